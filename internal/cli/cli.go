// Package cli is the entry point of the binary. It parses the command line, builds and connects the
// parts that do the work, and converts the outcome to messages and an exit code.
//
// It has two grammars. The command line of claude is parsed by internal/claude/flags: clients match on the exact error messages
// and on commander's treatment of variadic and optional values, which kong does not support. Building a kong parser would also
// take longer than a short run. The commands of claudeless (grammar.go) are kong structs.
//
// Only package main imports it, and simtest for test binaries.
package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/exec/procio"
)

// Main runs the program in the real process and returns its exit code. earlySignals holds signals that arrived before.
func Main(earlySignals chan os.Signal) int {
	s := process.InitSystemSIGPIPEAndLog()
	if isClaudeCommandLine(s) {
		s = s.WithEarlySignals(earlySignals)
	} else {
		process.RedeliverSignals(earlySignals) // not every command handles signals
	}
	return Run(context.Background(), s)
}

// Run runs the program. It returns the exit code after all processes and goroutines that it started have stopped,
// except possibly a blocked read from Stdin.
func Run(ctx context.Context, s *process.System) int {
	s = procio.WithShimEnvFile(s)
	if argv, fault := procio.RealClaudeCommandLine(s); argv != nil {
		code, err := procio.ExecOrRunRealClaude(ctx, s, fault, argv)
		return max(code, process.PrintErrorReturningExitCode(s.Stderr, err))
	}
	if !isClaudeCommandLine(s) {
		return process.PrintErrorReturningExitCode(s.Stderr, runCommandOrClaude(ctx, s))
	}
	if s.Getenv("CLAUDELESS_RUN") == "" { // otherwise claudeless exec reports them
		for _, name := range procio.UnknownClaudelessVariables(s.Environ) {
			fmt.Fprintln(s.Stderr, "claudeless: warning: unknown variable "+name)
		}
	}
	s, end := procio.Supervise(s, misspellingCandidates())
	return end(runCommandOrClaude(ctx, s))
}

func isClaudeCommandLine(s *process.System) bool {
	return len(s.Args) < 2 || hasPrintFlag(s.Args[1:]) || s.CalledAsClaude() && !s.StartedByClaudeless() || commandOfWord(s, s.Args[1]) == nil
}

func runCommandOrClaude(ctx context.Context, s *process.System) error {
	var words []string
	if len(s.Args) > 1 {
		words = s.Args[1:]
	}
	if len(words) > 0 && !hasPrintFlag(words) {
		if run := commandOfWord(s, words[0]); run != nil {
			return run(ctx, s, words[1:])
		}
	}
	if isExecCommandWithoutDoubleDash(s, words) {
		return process.WithHint(`exec needs "--" before the command that it runs`, "for example: "+s.InvokedProgramName()+" exec -s FILE -- claude -p PROMPT")
	}
	f, err := flags.Parse(s, process.ReplaceInvalidUTF8InCommandLineWords(words))
	if unknown := mistypedCommandError(s, words, err != nil); unknown != nil {
		return unknown
	}
	switch {
	case err != nil:
		return err
	case f.Version:
		return printVersion(s, f)
	case f.Help:
		return printHelp(s)
	}
	f.Interactive = !f.Print && !f.InitOnly && s.Terminal != nil && f.InputFormat != "stream-json"
	if err := f.CheckAndNormalize(s); err != nil {
		return err
	}
	if f.Interactive {
		return runInteractive(ctx, s, f)
	}
	if f.InputFormat == "stream-json" && !f.InitOnly {
		return runStreamJSONSessionForHost(ctx, s, f)
	}
	return runPrint(ctx, s, f)
}

func hasPrintFlag(words []string) bool {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.Contains(words, "-p") || slices.Contains(words, "--print")
}

// isExecCommandWithoutDoubleDash reports whether the words are an exec command without "--" before the command to run.
// The flag -p of that command would otherwise turn all words into a prompt.
func isExecCommandWithoutDoubleDash(s *process.System, words []string) bool {
	if len(words) < 2 || words[0] != "exec" || slices.Contains(words, "--") || commandOfWord(s, "exec") == nil {
		return false
	}
	return hasPrintFlag(words) && (words[1] == "-s" || slices.Contains(words, "claude"))
}

// mistypedCommandError returns an error if the words are probably a mistyped command, and nil if they are a prompt. A first word with
// white space begins a prompt. flagsInvalid means that the words are not valid arguments of claude.
func mistypedCommandError(s *process.System, words []string, flagsInvalid bool) error {
	if s.CalledAsClaude() || len(words) == 0 || hasPrintFlag(words) || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], " \t\n") {
		return nil
	}
	isOther := func(word string) bool { return strings.HasPrefix(word, "-") || strings.ContainsAny(word, " \t\n") }
	withFile := false
	for i, word := range words {
		withFile = withFile || isTOMLOrJSONLFileName(word) && (i == 0 || words[i-1] != "--scenario")
	}
	near, hint := procio.SuggestedSubcommand(s, misspellingCandidates()), ""
	switch {
	case near != "" && (flagsInvalid || withFile || slices.Contains(words, "--") || !slices.ContainsFunc(words, isOther)):
		hint = fmt.Sprintf("did you mean %q?", s.InvokedProgramName()+" "+near)
	case isTOMLOrJSONLFileName(words[0]):
		hint = fmt.Sprintf("did you mean %q?", s.InvokedProgramName()+" check "+words[0])
	case withFile:
		hint = fmt.Sprintf("%s --help lists the commands;", s.InvokedProgramName())
	default:
		return nil
	}
	return process.WithHint(fmt.Sprintf("unknown command %q", words[0]), fmt.Sprintf("%s to send a prompt, use -p: %s -p %q", hint, s.InvokedProgramName(), words[0]))
}

func isTOMLOrJSONLFileName(word string) bool {
	return !strings.HasPrefix(word, "-") && !strings.ContainsAny(word, " \t\n") && slices.Contains([]string{".toml", ".jsonl"}, filepath.Ext(word))
}
