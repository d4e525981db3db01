// Package supervise runs a claude process, simulated or real, inside a [procio]
// wrapper: it writes the journal of the process, applies its fault, and in
// strict mode checks its set-up at the end.
//
// The exit code is that of the process, unless it was 0 and the set-up check
// failed.
package supervise

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
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Watch has a process that runs as claude watched: the system that it returns is
// the same process seen through its edge, and end turns the outcome into the exit
// code. Commands are the words that are commands of our own.
func Watch(s *process.System, commands []string) (watched *process.System, end func(error) int) {
	fault, s := faultOf(s)
	w := &supervisor{sys: s, path: captureOf(s), strict: strictOf(s)}
	w.open(commands, fault)
	w.edge = procio.New(procio.Options{System: w.sys, Journal: w.journal, Fault: fault})
	return w.edge.System(), w.end
}

// supervisor is one process that is watched.
type supervisor struct {
	sys     *process.System
	path    string // of the journal; empty = there is none
	strict  bool   // the process judges its own set-up
	edge    *procio.Wrapper
	file    *os.File
	journal *journal.Journal // nil = none
	temp    *proc.TempDir    // of a journal that nobody has asked for; nil = it stays
}

// open begins the journal. A strict process needs one, if only for itself. What
// cannot be opened the run will complain of.
func (w *supervisor) open(commands []string, fault *procio.Fault) {
	if w.path == "" && w.strict {
		dir, err := proc.MakeTempDir("claudeless-strict-")
		if err != nil {
			w.strict = false
			return
		}
		w.path, w.temp = filepath.Join(dir.Path, "journal.jsonl"), dir
		w.sys = w.sys.With(map[string]string{"CLAUDELESS_CAPTURE": w.path})
	}
	if w.path == "" {
		return
	}
	var err error
	if w.file, err = os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return
	}
	w.journal = journal.New(journal.Options{W: w.file, Now: w.sys.Now, PID: w.sys.PID, Environ: w.sys.Environ})
	line := procio.Describe(w.sys, commands)
	if fault != nil {
		line.Fault = fault.Name
	}
	w.journal.Write(line)
}

// end writes the last lines and returns the exit code.
func (w *supervisor) end(err error) int {
	code := w.edge.End(process.Exit(w.sys.Stderr, err), refusal(err))
	if w.journal != nil && w.strict {
		code = cmp.Or(code, w.judge())
	}
	if w.file != nil {
		_ = w.file.Close() // what is in it is in it
	}
	_ = w.temp.Remove() // a guard removes it later
	return code
}

// judge holds the set-up of this one process against the rules of --strict, one
// line on stderr for each that is broken.
func (w *supervisor) judge() int {
	in := verdict.Input{Process: w.sys.PID}
	if err := in.ReadFiles([]string{w.path}, ""); err != nil {
		fmt.Fprintf(w.sys.Stderr, "claudeless: error: --strict: %v\n", err)
		return verdict.ExitStrict
	}
	report := verdict.Judge(in)
	code := 0
	for _, f := range report.Strict() {
		w.journal.Write(f.Record(w.sys.Now()))
		fmt.Fprintf(w.sys.Stderr, "claudeless: strict: %s\n", f)
		code = verdict.ExitStrict
	}
	return code
}

// strictOf tells whether a process is to judge its own set-up: it was asked to, and
// nobody else will.
func strictOf(s *process.System) bool {
	asked := process.On(s.Getenv("CLAUDELESS_STRICT")) || !s.AsClaude() && slices.Contains(s.Args, "--strict")
	return asked && s.Getenv("CLAUDELESS_EXPECT") != "defer"
}

// faultOf is the fault that the command line or the environment asks for, nil =
// none. The system that it returns asks for the failure of the model that belongs
// to the fault, if any.
func faultOf(s *process.System) (*procio.Fault, *process.System) {
	name, at := s.Getenv(failureVariable), -1
	for i, word := range s.Args {
		if value, found := strings.CutPrefix(word, "--failure="); found {
			name, at = value, i
		} else if word == "--failure" && i+1 < len(s.Args) {
			name, at = s.Args[i+1], i
		}
	}
	fault := procio.FaultByName(name)
	if fault == nil {
		return nil, s
	}
	s = s.With(map[string]string{failureVariable: fault.Do.Failure})
	if at > 0 && !s.AsClaude() {
		end := at + 1
		if s.Args[at] == "--failure" {
			end++
		}
		s.Args = slices.Concat(s.Args[:at], s.Args[end:])
	}
	return fault, s
}

const failureVariable = "CLAUDELESS_FAILURE"

// refusal is what the real CLI says to a command line that it does not take; empty = it took it.
func refusal(err error) string {
	var (
		usage    *argv.Error
		verbatim *process.VerbatimError
	)
	switch {
	case errors.As(err, &usage):
		return strings.TrimSpace(usage.Text)
	case errors.As(err, &verbatim) && strings.Contains(verbatim.Text, " --"):
		return strings.TrimSpace(verbatim.Text)
	}
	return ""
}

// MeantCommand is the command of ours that the first word of a command line nearly is; empty means that it is a prompt.
func MeantCommand(s *process.System, commands []string) string {
	return procio.MeantCommand(s, commands)
}

// captureOf is the journal that the command line or the environment asks for. It is
// looked for before the line is read, because a line that is refused is news, too.
func captureOf(s *process.System) string {
	path := s.Getenv("CLAUDELESS_CAPTURE")
	if s.AsClaude() {
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
