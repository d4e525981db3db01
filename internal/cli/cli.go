// Package cli is the binary: it reads the command line, has the parts built that do the work, connects them to the process
// and turns the outcome into texts and an exit code.
//
// It has two grammars. The claude face is read by internal/claude/flags, because clients match on the exact error texts and on
// commander's treatment of variadic and optional values, which kong does not offer, and because building a kong parser
// costs more than a whole short run may. Our own commands (grammar.go) are kong structs.
//
// Nothing imports the package but package main, and simtest for test binaries.
package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/exec/supervise"
)

// Main runs the program on the real process and returns its exit code. Early holds the
// signals that came before.
func Main(early chan os.Signal) int {
	s := process.Real()
	if playsClaude(s) {
		s = s.WithEarly(early)
	} else {
		process.Redeliver(early) // not every command handles signals
	}
	return Run(context.Background(), s)
}

// Run is the whole program. It returns the exit code after everything it started has ended, except a read from Stdin that
// never comes back.
func Run(ctx context.Context, s *process.System) int {
	s = supervise.ApplyShimSettings(s)
	if argv, fault := supervise.RealCommand(s); argv != nil {
		code, err := supervise.Relay(ctx, s, fault, argv)
		return max(code, process.Exit(s.Stderr, err))
	}
	if !playsClaude(s) {
		return process.Exit(s.Stderr, dispatch(ctx, s))
	}
	s, end := supervise.Watch(s, commandNames())
	return end(dispatch(ctx, s))
}

// playsClaude tells a process of claude from a command of our own.
func playsClaude(s *process.System) bool {
	return len(s.Args) < 2 || asksPrint(s.Args[1:]) || s.CalledAsClaude() && !s.StartedByClaudeless() || command(s, s.Args[1]) == nil
}

func dispatch(ctx context.Context, s *process.System) error {
	var words []string
	if len(s.Args) > 1 {
		words = s.Args[1:]
	}
	if len(words) > 0 && !asksPrint(words) {
		if run := command(s, words[0]); run != nil {
			return run(ctx, s, words[1:])
		}
	}
	if lacksSeparator(s, words) {
		return process.Hinted(`exec needs "--" before the command that it runs`, "as in: "+s.Name()+" exec -s FILE -- claude -p PROMPT")
	}
	f, err := flags.Parse(s, process.DecodeWords(words))
	if near := misspelledCommand(s, words, err != nil); near != "" {
		return process.Hinted(fmt.Sprintf("unknown command %q", words[0]),
			fmt.Sprintf("did you mean %q? a prompt is given with -p: %s -p %q", s.Name()+" "+near, s.Name(), words[0]))
	}
	switch {
	case err != nil:
		return err
	case f.Version:
		return printVersion(s, f)
	case f.Help:
		return printHelp(s)
	case !f.Print && s.StdoutIsTTY && f.InputFormat != "stream-json": // else the real CLI answers and exits
		return process.Hinted("interactive terminal mode is not simulated", `give a prompt with -p: `+s.Name()+` -p "…"`)
	}
	if err := f.Check(s); err != nil {
		return err
	}
	if f.InputFormat == "stream-json" {
		return runStream(ctx, s, f)
	}
	return runPrint(ctx, s, f)
}

// asksPrint reports whether -p stands among the words before "--": then even a command's name is a prompt.
func asksPrint(words []string) bool {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.Contains(words, "-p") || slices.Contains(words, "--print")
}

// lacksSeparator reports whether the words are an exec command whose "--" is missing. The -p of the command that exec
// would run makes them look like a prompt.
func lacksSeparator(s *process.System, words []string) bool {
	if len(words) < 2 || words[0] != "exec" || slices.Contains(words, "--") || command(s, "exec") == nil {
		return false
	}
	return asksPrint(words) && (words[1] == "-s" || slices.Contains(words, "claude"))
}

// misspelledCommand returns the command of ours that the first word nearly is; empty means that the words are a prompt.
// Words with white space, and flags that a run of claude takes, belong to a prompt.
func misspelledCommand(s *process.System, words []string, refused bool) string {
	isFlag := func(word string) bool { return strings.HasPrefix(word, "-") }
	isSentence := func(word string) bool { return strings.ContainsAny(word, " \t\n") }
	if slices.ContainsFunc(words, isSentence) || !refused && slices.ContainsFunc(words, isFlag) {
		return ""
	}
	return supervise.MeantCommand(s, commandNames())
}
