package verdict

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr,omitempty"`
	Cases    []junitCase `xml:"testcase"`
	Out      *junitText  `xml:"system-out,omitempty"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	File      string        `xml:"file,attr,omitempty"`
	Line      int           `xml:"line,attr,omitempty"`
	Failure   *junitFailure `xml:"failure,omitempty"`
	SystemOut *junitText    `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitText struct {
	Text string `xml:",chardata"`
}

// junit writes the report as one suite: a test case for each expectation, and one
// for each finding of level error.
func (r *Report) junit(w io.Writer) error {
	s := junitSuite{Name: "claudeless"}
	for _, x := range r.Expectations {
		c := junitCase{Name: x.Text, Class: "expect", File: x.File, Line: x.Line}
		if !x.Met {
			c.Failure = &junitFailure{Message: x.Text + but(x.Got), Type: "expectation", Text: place(x.File, x.Line) + x.Text + but(x.Got)}
			c.SystemOut = &junitText{r.digest()}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, f := range r.Findings {
		if f.Level != levelError {
			continue
		}
		s.Cases = append(s.Cases, junitCase{
			Name: f.ID + ": " + f.Text, Class: "finding", File: f.File, Line: f.Line,
			Failure:   &junitFailure{Message: f.Text, Type: f.ID, Text: place(f.File, f.Line) + f.Text + processID(f.PID) + "\n" + f.Advice},
			SystemOut: &junitText{r.digest()},
		})
	}
	for _, f := range r.Faults {
		c := junitCase{Name: f.Name, Class: "fault"}
		if !f.Clean() {
			c.Failure = &junitFailure{Message: f.Name + ": " + f.Outcome, Type: f.Outcome, Text: f.Bug + "\n" + f.Advice}
		}
		s.Cases = append(s.Cases, c)
	}
	if c := r.Command; c != nil {
		s.Time = fmt.Sprintf("%.3f", c.MS/1000)
		if c.Code != 0 {
			text := fmt.Sprintf("the command exited with %d", c.Code)
			s.Cases = append(s.Cases, junitCase{
				Name: strings.Join(c.Argv, " "), Class: "command", Failure: &junitFailure{Message: text, Type: "exit", Text: text},
			})
		}
	}
	if len(s.Cases) == 0 { // a suite without any looks like one that was not run
		s.Cases = append(s.Cases, junitCase{Name: "run", Class: "run"})
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// digest says in a few lines what the processes did.
func (r *Report) digest() string {
	var b strings.Builder
	for _, p := range r.Runs {
		fmt.Fprintf(&b, "process %d: %s\n", p.PID, strings.Join(p.Argv, " "))
		for _, prompt := range p.Prompts {
			fmt.Fprintf(&b, "  prompt %s\n", quoted(prompt))
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
