package procio

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Supervise wraps the process s, which runs as claude. The returned system is the same process with wrapped streams and
// signals. end writes the journal and converts the outcome into the exit code. commands are the subcommands of
// claudeless itself.
func Supervise(s *process.System, commands []string) (watched *process.System, end func(error) int) {
	fault, s := requestedFault(s)
	w := &supervisor{sys: s, path: requestedJournal(s), judgesItself: isStrict(s)}
	w.open(commands, fault)
	w.wrapper = New(Options{
		System: w.sys, Journal: w.journal, Fault: fault,
		RecordOutput: w.journal != nil && process.IsEnabled(s.Getenv("CLAUDELESS_CAPTURE_OUTPUT")),
	})
	w.watched = w.wrapper.System()
	return w.watched, w.end
}

type supervisor struct {
	sys          *process.System
	path         string // path of the journal; empty means none
	judgesItself bool   // the process checks its own set-up
	realCacheDir string // directory of the real claude's logs; empty means claude is simulated
	wrapper      *Wrapper
	watched      *process.System // sys with the streams of the wrapper
	file         *os.File
	journal      *journal.Journal // nil means none
	temp         *proc.TempDir    // directory of a temporary journal; nil means that the journal is kept
}

// open opens the journal. A strict process needs one even if none was requested. Errors are ignored here; the run
// reports them.
func (w *supervisor) open(commands []string, fault *Fault) {
	if w.path == "" && w.judgesItself {
		dir, err := proc.MakeTempDir("claudeless-strict-")
		if err != nil {
			w.judgesItself = false
			return
		}
		w.path, w.temp = filepath.Join(dir.Path, "journal.jsonl"), dir
		w.sys = w.sys.WithEnv(map[string]string{"CLAUDELESS_CAPTURE": w.path})
	}
	if w.path == "" {
		return
	}
	var err error
	if w.file, err = os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return
	}
	w.journal = journal.New(journal.Options{W: w.file, Now: w.sys.Now, PID: w.sys.PID, Environ: w.sys.Environ})
	line := DescribeStart(w.sys, commands)
	line.LogCache = w.realCacheDir
	if fault != nil {
		line.Fault = fault.Name
	}
	w.journal.Write(line)
}

// end writes the last lines and returns the exit code.
func (w *supervisor) end(err error) int {
	code := w.wrapper.RecordExit(process.Exit(w.watched.Stderr, err), refusalMessage(err))
	if w.journal != nil && w.judgesItself {
		code = cmp.Or(code, w.judge())
	}
	if w.file != nil {
		_ = w.file.Close() // everything has been written
	}
	_ = w.temp.Remove() // a leftover directory is removed later
	return code
}

// judge applies the rules of --strict to the set-up of this process and prints one line on stderr for each violation.
func (w *supervisor) judge() int {
	in := verdict.Input{Environ: w.sys.Environ, OnlyProcess: w.sys.PID}
	if err := in.ReadFiles([]string{w.path}, ""); err != nil {
		fmt.Fprintf(w.sys.Stderr, "claudeless: error: --strict: %v\n", err)
		return verdict.ExitStrict
	}
	report := verdict.Judge(in)
	code := 0
	for _, f := range report.SetUpFindings() {
		w.journal.Write(f.JournalLine(w.sys.Now()))
		fmt.Fprintf(w.sys.Stderr, "claudeless: strict: %s\n", f)
		code = verdict.ExitStrict
	}
	return code
}

// isStrict reports whether the process checks its own set-up: strict mode is on, and no other process checks it.
func isStrict(s *process.System) bool {
	asked := process.IsEnabled(s.Getenv("CLAUDELESS_STRICT")) || !s.CalledAsClaude() && slices.Contains(s.Args, "--strict")
	return asked && s.Getenv("CLAUDELESS_EXPECT") != "defer"
}

// requestedFault returns the fault that the command line or the environment requests (nil means none), and a system that
// requests the model failure belonging to the fault, if any.
func requestedFault(s *process.System) (*Fault, *process.System) {
	name, at := s.Getenv(failureVariable), -1
	for i, word := range s.Args {
		if value, found := strings.CutPrefix(word, "--failure="); found {
			name, at = value, i
		} else if word == "--failure" && i+1 < len(s.Args) {
			name, at = s.Args[i+1], i
		}
	}
	fault := FaultByName(name)
	if fault == nil {
		return nil, s
	}
	more := map[string]string{failureVariable: fault.Effects.Failure}
	if fault.Interface == "screen" {
		more["CLAUDELESS_SCREEN_FAULT"] = fault.Name
	}
	s = s.WithEnv(more)
	if at > 0 && !s.CalledAsClaude() {
		end := at + 1
		if s.Args[at] == "--failure" {
			end++
		}
		s.Args = slices.Concat(s.Args[:at], s.Args[end:])
	}
	return fault, s
}

const failureVariable = "CLAUDELESS_FAILURE"

// refusalMessage returns the message of the real CLI for a command line that it refuses; empty means accepted.
func refusalMessage(err error) string {
	var (
		usage    *argv.Error
		verbatim *process.VerbatimError
	)
	switch {
	case errors.As(err, &usage):
		return strings.TrimSpace(usage.Text)
	case errors.As(err, &verbatim) && strings.Contains(" "+verbatim.Text, " --"):
		return strings.TrimSpace(verbatim.Text)
	}
	return ""
}

// requestedJournal returns the journal that the command line or the environment requests. It is determined before the
// command line is parsed, because refused command lines are also recorded.
func requestedJournal(s *process.System) string {
	path := s.Getenv("CLAUDELESS_CAPTURE")
	if s.CalledAsClaude() {
		return path
	}
	for i, word := range s.Args {
		if value, found := strings.CutPrefix(word, "--capture="); found {
			path = value
		} else if word == "--capture" && i+1 < len(s.Args) {
			path = s.Args[i+1]
		}
	}
	return path
}
