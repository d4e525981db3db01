package parity

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// CaseStep is one line of a dialogue: an action of the host, or a condition it waits for.
//
//	prompt TEXT              sends a prompt
//	send JSON                sends a line unchanged; $id is the request of the last wait
//	request JSON             sends a control request and waits for its answer
//	ask JSON                 sends a control request without waiting
//	wait KIND [PATH=VALUE…]  waits for an event of that kind
//	allow [JSON]             waits for the next can_use_tool and allows it; JSON is its updatedInput
//	deny [TEXT]              waits for the next can_use_tool and denies it
//	refuse                   denies every permission request until the next result
//	answer JSON              answers the control request of the last wait; $rpc is the id of its MCP message
//	signal INT|TERM|HUP      sends the process a signal
//	close                    ends stdin, like the end of the dialogue
//
// Empty lines and lines that begin with # are ignored.
type CaseStep struct {
	Verb string `json:"verb"`
	// Text is the argument of the verb: a prompt, JSON, a kind or a signal.
	Text string `json:"text,omitempty"`
	// Where are the conditions of wait, PATH=VALUE.
	Where []string `json:"where,omitempty"`
	Line  int      `json:"line"` // line in the file of the case
}

// stepForms maps the steps to the form of their argument.
func stepForms() map[string]string {
	return map[string]string{
		"prompt": "text", "send": "json", "request": "json", "ask": "json", "wait": "kind", "allow": "json?",
		"deny": "text?", "refuse": "", "answer": "json", "signal": "signal", "close": "",
	}
}

func parseSteps(f *archiveFile) (steps []CaseStep, problems diag.List) {
	known := stepForms()
	for i, text := range lines(f.data) {
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(text, " ")
		s := CaseStep{Verb: verb, Text: strings.TrimSpace(rest), Line: f.line + i}
		form, ok := known[verb]
		if !ok {
			d := f.errorf(i+1, "unknown step %q", verb)
			var all []string
			for name := range known {
				all = append(all, name)
			}
			slices.Sort(all)
			if d.Hint = diag.NameHint(verb, all); d.Hint == "" {
				d.Hint = "steps are " + strings.Join(all, ", ")
			}
			problems = append(problems, d)
			continue
		}
		if wrong := s.checkArgument(form); wrong != "" {
			problems = append(problems, f.errorf(i+1, "%s %s", verb, wrong))
		}
		steps = append(steps, s)
	}
	return steps, problems
}

func (s *CaseStep) checkArgument(form string) string {
	optional := strings.HasSuffix(form, "?")
	switch form = strings.TrimSuffix(form, "?"); {
	case s.Text == "" && form != "" && !optional:
		return "needs a " + form
	case s.Text != "" && form == "":
		return "takes nothing"
	case s.Text != "" && form == "json" && !json.Valid([]byte(strings.NewReplacer("$id", "id", "$rpc", "1").Replace(s.Text))):
		return "needs JSON, not " + s.Text
	case form == "signal" && !slices.Contains([]string{"INT", "TERM", "HUP"}, s.Text):
		return "needs INT, TERM or HUP"
	case form == "kind":
		words := strings.Fields(s.Text)
		s.Text, s.Where = words[0], words[1:]
		for _, w := range s.Where {
			if !strings.Contains(w, "=") {
				return "has conditions PATH=VALUE, not " + w
			}
		}
	}
	return ""
}
