package verdict

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/junit"
)

// writeJUnit writes the report as one test suite, with a test case for each expectation, finding of level error and
// fault, and for a command that failed.
func (r *Report) writeJUnit(w io.Writer) error {
	s := junit.Suite{Name: "claudeless"}
	for _, x := range r.Expectations {
		c := junit.Case{Name: x.Text, Class: "expect", File: x.File, Line: x.Line}
		if !x.Met {
			c.Failure = &junit.Failure{Message: x.Text + reasonSuffix(x.Got), Type: "expectation", Text: location(x.File, x.Line) + x.Text + reasonSuffix(x.Got)}
			c.Out = &junit.OutputText{Text: r.processSummary()}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, f := range r.Findings {
		if f.Level != levelError {
			continue
		}
		s.Cases = append(s.Cases, junit.Case{
			Name: f.ID + ": " + f.Text, Class: "finding", File: f.File, Line: f.Line,
			Failure: &junit.Failure{Message: f.Text, Type: f.ID, Text: location(f.File, f.Line) + f.Text + processID(f.PID) + "\n" + f.Advice},
			Out:     &junit.OutputText{Text: r.processSummary()},
		})
	}
	for _, f := range r.Faults {
		c := junit.Case{Name: f.Name, Class: "fault"}
		if !f.IsAcceptable() {
			c.Failure = &junit.Failure{Message: f.Name + ": " + f.Outcome, Type: f.Outcome, Text: f.Bug + "\n" + f.Advice}
		}
		s.Cases = append(s.Cases, c)
	}
	if c := r.Command; c != nil {
		s.Time = time.Duration(c.MS * float64(time.Millisecond))
		if c.Code != 0 {
			text := fmt.Sprintf("the command exited with %d", c.Code)
			s.Cases = append(s.Cases, junit.Case{
				Name: strings.Join(c.Argv, " "), Class: "command", Failure: &junit.Failure{Message: text, Type: "exit", Text: text},
			})
		}
	}
	if len(s.Cases) == 0 { // an empty suite would look like a suite that did not run
		s.Cases = append(s.Cases, junit.Case{Name: "run", Class: "run"})
	}
	return s.Write(w)
}

func (r *Report) processSummary() string {
	var b strings.Builder
	for _, p := range r.Runs {
		fmt.Fprintf(&b, "process %d: %s\n", p.PID, strings.Join(p.Argv, " "))
		for _, prompt := range p.Prompts {
			fmt.Fprintf(&b, "  prompt %s\n", quoteShort(prompt))
		}
		for _, tool := range p.Tools {
			fmt.Fprintf(&b, "  call   %s\n", tool)
		}
		if p.Code != nil {
			fmt.Fprintf(&b, "  exit   %d\n", *p.Code)
		}
	}
	return b.String()
}
