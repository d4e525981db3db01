package junit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/junit"
)

func TestWrite(t *testing.T) {
	s := junit.Suite{Name: "s", Time: 1500 * time.Millisecond, Cases: []junit.Case{
		{Name: "a <b>", Class: "c", File: "f.toml", Line: 3, Time: junit.Seconds(time.Second)},
		{Name: "bad", Class: "c", Failure: &junit.Failure{Message: "m", Type: "t", Text: "x\ny"}, Out: &junit.OutputText{Text: "said"}},
		{Name: "left", Class: "c", Skipped: &junit.Skipped{Message: "why"}},
	}}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="s" tests="3" failures="1" skipped="1" time="1.500">
  <testcase name="a &lt;b&gt;" classname="c" file="f.toml" line="3" time="1.000"></testcase>
  <testcase name="bad" classname="c">
    <failure message="m" type="t">x&#xA;y</failure>
    <system-out>said</system-out>
  </testcase>
  <testcase name="left" classname="c">
    <skipped message="why"></skipped>
  </testcase>
</testsuite>
`
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
