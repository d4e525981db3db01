package simtest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/claudeless/claudeless/internal/verdict"
)

// problems are what is wrong with the run, a text each.
func (c *Claude) problems() []string {
	var in verdict.Input
	if err := in.ReadFiles([]string{c.journal()}, c.scenario()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{"simtest: " + err.Error()}
	}
	if in.Scenario == nil {
		scenario, err := verdict.LoadScenario(c.scenario())
		if err != nil {
			return []string{"simtest: " + err.Error()}
		}
		in.Scenario = scenario
	}
	report := verdict.Judge(in)
	var all []string
	for _, x := range report.Expectations {
		if !x.Met {
			all = append(all, c.at(x.File, x.Line)+x.Text+suffix(": ", x.Got))
		}
	}
	for _, f := range report.Findings {
		if f.Level == "error" {
			all = append(all, fmt.Sprintf("%s%s [%s]%s", c.at(f.File, f.Line), f.Text, f.ID, suffix("\n\t", f.Advice)))
		}
	}
	for _, u := range report.Unmatched {
		if said := strings.Join(all, "\n"); !strings.Contains(said, u.Prompt) {
			all = append(all, fmt.Sprintf("%s: no rule for the prompt %q%s", c.place, u.Prompt, suffix("\n\t", strings.Join(u.Nearest, "\n\t"))))
		}
	}
	return append(all, c.askedAgain(in)...)
}

func suffix(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// askedAgain finds prompts that a script has answered after its first: it
// answers one, whichever process asks.
func (c *Claude) askedAgain(in verdict.Input) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := map[int]int{}
	var all []string
	for _, e := range in.Entries {
		if e.Match == nil || c.file != "" {
			continue
		}
		i := e.Match.Line - firstRule
		if i < 0 || i >= len(c.rules) || !c.rules[i].once {
			continue
		}
		if times[i]++; times[i] > 1 {
			all = append(all, fmt.Sprintf("%s: the script answers one prompt, and there was another: %q", c.rules[i].place, e.Match.Prompt))
		}
	}
	return all
}

// at is where a finding stands: the line of the test that wrote the rule, or that
// of the file.
func (c *Claude) at(file string, line int) string {
	switch {
	case file == "":
		return c.place + ": "
	case c.file != "":
		return fmt.Sprintf("%s:%d: ", file, line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := line - firstRule; i >= 0 && i < len(c.rules) {
		return c.rules[i].place + ": "
	}
	return c.place + ": "
}
