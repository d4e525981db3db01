// Package junit writes test reports as JUnit XML in the form that CI systems read. A suite's totals come from its cases.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Suite is a test report.
type Suite struct {
	Name  string
	Time  time.Duration // total time; 0 means unknown
	Cases []Case
}

// Case is the result of one test. The test passed if Failure and Skipped are nil.
type Case struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	File    string      `xml:"file,attr,omitempty"`
	Line    int         `xml:"line,attr,omitempty"`
	Time    Seconds     `xml:"time,attr,omitempty"`
	Failure *Failure    `xml:"failure,omitempty"`
	Skipped *Skipped    `xml:"skipped,omitempty"`
	Out     *OutputText `xml:"system-out,omitempty"`
}

// Failure explains why a case failed.
type Failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// Skipped explains why a case was not run.
type Skipped struct {
	Message string `xml:"message,attr"`
}

// OutputText is a text that a JUnit report shows as the output of a test case.
type OutputText struct {
	Text string `xml:",chardata"`
}

// Seconds is a duration that is written as seconds with three decimals; 0 is not written.
type Seconds time.Duration

// MarshalXMLAttr implements [xml.MarshalerAttr].
func (s Seconds) MarshalXMLAttr(name xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: name, Value: fmt.Sprintf("%.3f", time.Duration(s).Seconds())}, nil
}

// Write writes the suite and its totals.
func (s Suite) Write(w io.Writer) error {
	out := struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Time     Seconds  `xml:"time,attr,omitempty"`
		Cases    []Case   `xml:"testcase"`
	}{Name: s.Name, Tests: len(s.Cases), Time: Seconds(s.Time), Cases: s.Cases}
	for _, c := range s.Cases {
		if c.Failure != nil {
			out.Failures++
		}
		if c.Skipped != nil {
			out.Skipped++
		}
	}
	raw, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(raw)+"\n")
	return err
}
