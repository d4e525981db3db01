package harness

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/claudeless/claudeless/internal/argv"
	"github.com/claudeless/claudeless/internal/edge"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/process"
)

// Witness has the edge of a process that runs as claude watched: the system that
// it returns is the same process seen through it, and end turns the outcome into
// the exit code.
func Witness(s *process.System) (watched *process.System, end func(error) int) {
	o := edge.Options{System: s}
	var file io.Closer
	if path := captureOf(s); path != "" {
		if opened, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil { // else the run says so
			file = opened
			o.Journal = journal.New(journal.Options{W: opened, Now: s.Now, PID: s.PID, Environ: s.Environ})
			o.Journal.Write(edge.Describe(s))
		}
	}
	e := edge.New(o)
	e.Arm(edge.FaultByName(s.Getenv("CLAUDELESS_FAILURE")))
	return e.System(), func(err error) int {
		code := e.End(process.Exit(s.Stderr, err), refusal(err))
		if file != nil {
			_ = file.Close() // what is in it is in it
		}
		return code
	}
}

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

// capture is the journal that the command line or the environment asks for. It is looked for before the line is read,
// because a line that is refused is news, too.
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
