package verdict

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// Report is the verdict. Its JSON form is the output of --json; lists are never null.
type Report struct {
	Verdict      string              `json:"verdict"` // "ok" or "failed"
	Findings     []Finding           `json:"findings"`
	Expectations []ExpectationResult `json:"expectations"`
	Unmatched    []UnmatchedPrompt   `json:"unmatched"`
	Runs         []Run               `json:"runs"`
	Guard        string              `json:"guard,omitempty"`    // description of the active protection; empty means none
	Faults       []FaultResult       `json:"faults,omitempty"`   // results of --faults; nil means not used
	Terminal     *TerminalSummary    `json:"terminal,omitempty"` // content of the pseudo-terminal of --tty; nil without --tty
	Command      *CommandOutcome     `json:"command,omitempty"`  // describes how the command ended; nil means that there was no command
}

// TerminalSummary is the recorded content of a pseudo-terminal.
type TerminalSummary struct {
	Screens  int      `json:"screens"` // counts the distinct screens that were visible for some time
	States   []string `json:"states"`  // the states of claude on the recorded screens, in the order of their first appearance
	Dialogs  []Dialog `json:"dialogs"`
	LostKeys int      `json:"lost_keys"` // counts keys that were sent while nothing was reading
}

// Dialog is a dialog of claude and its answer: the label of an option, or a key; "" if it was still open at the end.
type Dialog struct {
	State  string `json:"state"`
	Answer string `json:"answer"`
}

// Finding is one problem of a run.
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

// ExpectationResult is the result of one [[expect]] block.
type ExpectationResult struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	Met  bool   `json:"met"`
	Got  string `json:"got"`
}

// UnmatchedPrompt is a prompt that no rule answered.
type UnmatchedPrompt struct {
	Prompt  string   `json:"prompt"`
	Nearest []string `json:"nearest"`
	Rule    string   `json:"rule"` // a rule in TOML that would answer the prompt
	File    string   `json:"-"`    // scenario to which the rule should be added; empty means none
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
	Code      *int     `json:"code"` // exit code; nil means the process did not end normally
	Signal    string   `json:"signal"`
	MS        float64  `json:"ms"`
}

// CommandOutcome describes how the command of `claudeless exec` ended.
type CommandOutcome struct {
	Argv   []string `json:"argv"`
	Code   int      `json:"code"`
	Signal string   `json:"signal,omitempty"`
	MS     float64  `json:"ms"`
}

// FaultResult is the result of the command under one fault.
type FaultResult struct {
	Name string `json:"name"`
	// Outcome is "survived" (the command succeeded, correctly), "failed" (it reported a failure), "hung", "crashed" or
	// "lied" (it reported success although it never received a result).
	Outcome string  `json:"outcome"`
	Code    int     `json:"code"`
	MS      float64 `json:"ms"`
	Bug     string  `json:"bug"`
	Advice  string  `json:"advice"`
}

// IsAcceptable reports whether the command survived the fault or reported a failure.
func (f FaultResult) IsAcceptable() bool { return f.Outcome == "survived" || f.Outcome == "failed" }

// The levels of findings.
const (
	levelError = "error"
	levelWarn  = "warn"
	levelInfo  = "info"
)

// The exit codes of a verdict. If the command itself failed, claudeless exits with the command's code instead.
const (
	ExitUnmetExpectation = 3
	ExitWrongUsage       = 4
	ExitGuardBreach      = 5
	ExitSetUpFinding     = 6
)

// ExitCode returns the command's exit code if the command failed. Otherwise the code depends on the first kind of
// failure that occurred: unmet expectations, then faults that were not handled well, then findings. 0 means success.
func (r *Report) ExitCode() int {
	if r.Command != nil && r.Command.Code != 0 {
		return r.Command.Code
	}
	if slices.ContainsFunc(r.Expectations, func(x ExpectationResult) bool { return !x.Met }) {
		return ExitUnmetExpectation
	}
	if slices.ContainsFunc(r.Faults, func(f FaultResult) bool { return !f.IsAcceptable() }) {
		return ExitWrongUsage
	}
	for _, kind := range []struct {
		prefix byte
		code   int
	}{{'C', ExitWrongUsage}, {'G', ExitGuardBreach}, {'S', ExitSetUpFinding}, {'T', ExitSetUpFinding}} {
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == levelError && f.ID[0] == kind.prefix }) {
			return kind.code
		}
	}
	return 0
}

// SetUpErrorsAndUnmetExpectations returns the findings about the set-up, including unmet expectations.
func (r *Report) SetUpErrorsAndUnmetExpectations() []Finding {
	var found []Finding
	for _, x := range r.Expectations {
		if !x.Met {
			found = append(found, Finding{ID: "S06", Level: levelError, Text: x.Text + commaButActualOutcomeSuffix(x.Got), File: x.File, Line: x.Line})
		}
	}
	for _, f := range r.Findings {
		if f.ID[0] == 'S' && f.Level == levelError {
			found = append(found, f)
		}
	}
	return found
}

// JournalLine returns the finding as a journal line. If the finding has no time, the line gets the value of now, or no time if now is
// zero. Lines of a verdict always have a time, which distinguishes them from findings that processes write.
func (f Finding) JournalLine(fallbackTime time.Time) journal.Finding {
	seen := cmp.Or(f.Time, fallbackTime.UTC().Format(time.RFC3339Nano))
	if fallbackTime.IsZero() {
		seen = f.Time
	}
	return journal.Finding{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Time: seen, Process: f.PID}
}

// String returns the finding as one line.
func (f Finding) String() string {
	advice, _, _ := strings.Cut(f.Advice, "\n")
	if advice != "" {
		advice = " (" + advice + ")"
	}
	return positionPrefix(f.File, f.Line) + f.ID + ": " + f.Text + advice
}

// JournalLines returns the verdict as journal lines. Parts that were not checked are omitted.
func (r *Report) JournalLines(timeOfVerdict time.Time) []journal.Body {
	if r.Verdict == "" {
		timeOfVerdict = time.Time{}
	}
	var lines []journal.Body
	for _, x := range r.Expectations {
		lines = append(lines, journal.Expectation(x))
	}
	for _, f := range r.Findings {
		lines = append(lines, f.JournalLine(timeOfVerdict))
	}
	return lines
}

func withPosition(f Finding, at diag.Position) Finding {
	f.File, f.Line = at.File, at.Line
	return f
}

// AppendToJournalFile appends the verdict to a journal, as a process with the given id and environment.
func (r *Report) AppendToJournalFile(journalFile string, now func() time.Time, pid int, environ []string) error {
	file, err := os.OpenFile(journalFile, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the verdict into the journal: %w", err)
	}
	j := journal.New(journal.Options{W: file, Now: now, PID: pid, Environ: environ})
	for _, line := range r.JournalLines(now()) {
		j.Write(line)
	}
	return errors.Join(j.Err(), file.Close())
}

// Redacted returns the report with secrets removed from all strings, including values of secret variables in environ.
func (r *Report) Redacted(environ []string) (*Report, error) {
	hide := redact.New(redact.Options{Environ: environ})
	shown, out := *r, &Report{}
	if r.Command != nil {
		command := *r.Command
		command.Argv = hide.Args(command.Argv)
		shown.Command = &command
	}
	shown.Runs = slices.Clone(r.Runs)
	for i := range shown.Runs {
		shown.Runs[i].Argv = hide.Args(shown.Runs[i].Argv)
	}
	raw, err := json.Marshal(shown)
	if err == nil {
		err = json.Unmarshal(hide.JSON(raw), out)
	}
	if err != nil {
		return nil, fmt.Errorf("redacting the report: %w", err)
	}
	return out, nil
}

// findingsOfWrongAPIUsage returns C14 findings about wrong use of the Messages API: requests that were refused by the API itself, not by
// the scenario. They name no process, because the server does not know which process sent a request.
func findingsOfWrongAPIUsage(journalEntries []journal.Entry) []Finding {
	var found []Finding
	told := map[string]bool{}
	for _, e := range journalEntries {
		q := e.Request
		if q == nil || q.Status != 400 && q.Status != 404 || q.Prompt != "" { // the scenario caused the error of a request with a prompt
			continue
		}
		advice := ""
		switch {
		case strings.Contains(q.Path, "/v1/v1"):
			advice = "the base URL must not end in /v1: clients add it"
		case strings.Contains(q.Error, "anthropic-version"):
			advice = "send the header anthropic-version"
		case strings.Contains(q.Error, "tool_use") || strings.Contains(q.Error, "tool_result"):
			advice = "send a tool_result for every tool_use in the next user message, and no other tool_result"
		case strings.Contains(q.Error, "thinking"):
			advice = "send thinking blocks back unchanged, with their signature"
		}
		if text := fmt.Sprintf("the API refused a request with %d: %s", q.Status, q.Error); advice != "" && !told[text] {
			told[text] = true
			found = append(found, Finding{ID: "C14", Level: levelError, Text: text, Advice: advice, Time: e.Time})
		}
	}
	return found
}

func positionPrefix(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func commaButActualOutcomeSuffix(actualOutcome string) string {
	if actualOutcome == "" {
		return ""
	}
	return ", but " + actualOutcome
}

func processIDInParentheses(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func quoteFirst100Characters(text string) string {
	const most = 100
	if r := []rune(text); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", text)
}
