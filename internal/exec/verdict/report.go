package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Report is the verdict. Its JSON form is that of --json; lists are never null.
type Report struct {
	Verdict      string        `json:"verdict"` // "ok" or "failed"
	Findings     []Finding     `json:"findings"`
	Expectations []Expectation `json:"expectations"`
	Unmatched    []Unmatched   `json:"unmatched"`
	Runs         []Run         `json:"runs"`
	// Guard says which protection was active; empty = none was needed.
	Guard string `json:"guard,omitempty"`
	// Faults are the rows of --faults; nil = none was tried.
	Faults []Fault `json:"faults,omitempty"`
	// Command is how the command ended; nil = there was none.
	Command *Command `json:"command,omitempty"`
}

// Finding is one thing that is wrong.
type Finding struct {
	ID     string `json:"id"`
	Level  string `json:"level"` // "error", "warn" or "info"
	Text   string `json:"text"`
	Advice string `json:"advice"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Time   string `json:"time"`
	PID    int    `json:"pid"`
}

// Expectation is one [[expect]] and what came of it.
type Expectation struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	Met  bool   `json:"met"`
	Got  string `json:"got"`
}

// Unmatched is a prompt that no rule answered.
type Unmatched struct {
	Prompt  string   `json:"prompt"`
	Nearest []string `json:"nearest"`
	// Rule would answer it, as it is written in a scenario.
	Rule string `json:"rule"`
	// File is the scenario that is to have the rule; empty = there is none.
	File string `json:"-"`
}

// Run is one process that ran as claude.
type Run struct {
	PID       int      `json:"pid"`
	SessionID string   `json:"session_id"`
	Argv      []string `json:"argv"`
	CWD       string   `json:"cwd"`
	Parent    string   `json:"parent"`
	Prompts   []string `json:"prompts"`
	Tools     []string `json:"tools"`
	// Code is the exit code; nil = the process did not end in order.
	Code   *int    `json:"code"`
	Signal string  `json:"signal"`
	MS     float64 `json:"ms"`
}

// Command is how the command of `claudeless exec` ended.
type Command struct {
	Argv   []string `json:"argv"`
	Code   int      `json:"code"`
	Signal string   `json:"signal,omitempty"`
	MS     float64  `json:"ms"`
}

// Fault is how the command came through a fault of the catalogue.
type Fault struct {
	Name string `json:"name"`
	// Outcome is "survived" (it ended well, and rightly so), "failed" (it said that it
	// could not do its work), "hung", "crashed" or "lied" (it ended well, but what it was
	// after never came).
	Outcome string  `json:"outcome"`
	Code    int     `json:"code"`
	MS      float64 `json:"ms"`
	Bug     string  `json:"bug"`
	Advice  string  `json:"advice"`
}

// Clean tells whether a caller may come through a fault like that.
func (f Fault) Clean() bool { return f.Outcome == "survived" || f.Outcome == "failed" }

// The levels of findings.
const (
	levelError = "error"
	levelWarn  = "warn"
	levelInfo  = "info"
)

// The exit codes of a verdict; what the command itself failed with comes first.
const (
	ExitExpect  = 3
	ExitConduct = 4
	ExitGuard   = 5
	ExitStrict  = 6
)

// ExitCode is the command's own if it failed; else that of the first kind of
// failure there is; 0 = the verdict is good.
func (r *Report) ExitCode() int {
	if r.Command != nil && r.Command.Code != 0 {
		return r.Command.Code
	}
	if slices.ContainsFunc(r.Expectations, func(x Expectation) bool { return !x.Met }) {
		return ExitExpect
	}
	if slices.ContainsFunc(r.Faults, func(f Fault) bool { return !f.Clean() }) {
		return ExitConduct
	}
	for _, kind := range []struct {
		prefix byte
		code   int
	}{{'C', ExitConduct}, {'G', ExitGuard}, {'S', ExitStrict}, {'T', ExitStrict}} {
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == levelError && f.ID[0] == kind.prefix }) {
			return kind.code
		}
	}
	return 0
}

// Strict are the findings about the set-up, unmet expectations among them.
func (r *Report) Strict() []Finding {
	var found []Finding
	for _, x := range r.Expectations {
		if !x.Met {
			found = append(found, Finding{ID: "S06", Level: levelError, Text: x.Text + but(x.Got), File: x.File, Line: x.Line})
		}
	}
	for _, f := range r.Findings {
		if f.ID[0] == 'S' && f.Level == levelError {
			found = append(found, f)
		}
	}
	return found
}

// Record is the finding of a verdict as a line of the journal. Its time, which is now where the finding has none, tells it
// from what a process has found itself.
func (f Finding) Record(now time.Time) journal.Finding {
	seen := cmp.Or(f.Time, now.UTC().Format(time.RFC3339Nano))
	if now.IsZero() {
		seen = f.Time
	}
	return journal.Finding{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Time: seen, Process: f.PID}
}

// String is the finding in one line.
func (f Finding) String() string {
	advice, _, _ := strings.Cut(f.Advice, "\n")
	if advice != "" {
		advice = " (" + advice + ")"
	}
	return place(f.File, f.Line) + f.ID + ": " + f.Text + advice
}

// Lines are the verdict as lines of the journal, written now. What has no verdict yet is left to a later one.
func (r *Report) Lines(now time.Time) []journal.Body {
	if r.Verdict == "" {
		now = time.Time{}
	}
	var lines []journal.Body
	for _, x := range r.Expectations {
		lines = append(lines, journal.Expectation(x))
	}
	for _, f := range r.Findings {
		lines = append(lines, f.Record(now))
	}
	return lines
}

// placed gives a finding the position of a diagnostic.
func placed(f Finding, at diag.Position) Finding {
	f.File, f.Line = at.File, at.Line
	return f
}

// AppendTo writes the verdict behind the lines of a journal, as a process with that
// id and environment.
func (r *Report) AppendTo(name string, now func() time.Time, pid int, environ []string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the verdict into the journal: %w", err)
	}
	j := journal.New(journal.Options{W: file, Now: now, PID: pid, Environ: environ})
	for _, line := range r.Lines(now()) {
		j.Write(line)
	}
	return errors.Join(j.Err(), file.Close())
}
