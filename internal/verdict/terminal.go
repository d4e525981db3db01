package verdict

import (
	"fmt"
	"io"
	"strings"
)

// prefix begins every line of the report on stderr.
const prefix = "claudeless: verdict: "

// Terminal writes the report for people: one line for each thing that is wrong,
// what to do about it below, and a last line that sums up.
func (r *Report) Terminal(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(prefix + fmt.Sprintf(format, args...) + "\n") }
	unmet := 0
	for _, x := range r.Expectations {
		switch {
		case !x.Met:
			unmet++
			line("%sunmet: %s%s", at(x.File, x.Line), x.Text, but(x.Got))
		case x.Got != "":
			line("%snote: %s%s", at(x.File, x.Line), x.Text, but(x.Got))
		}
	}
	errors := 0
	for _, f := range r.Findings {
		if f.Level == levelError {
			errors++
		}
		line("%s%s %s: %s%s", at(f.File, f.Line), f.Level, f.ID, f.Text, processID(f.PID))
		for advice := range strings.Lines(f.Advice) {
			line("  %s", strings.TrimRight(advice, "\n"))
		}
	}
	if r.Guard != "" {
		line("guard: %s", r.Guard)
	}
	line("%s: %s, %s met, %s", r.Verdict, count(len(r.Runs), "run")+" of claude",
		fmt.Sprintf("%d of %s", len(r.Expectations)-unmet, count(len(r.Expectations), "expectation")), count(errors, "error"))
	_, err := io.WriteString(w, b.String())
	return err
}

func at(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func but(got string) string {
	if got == "" {
		return ""
	}
	return ", but " + got
}

func processID(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
