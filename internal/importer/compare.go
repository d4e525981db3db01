package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/importer/session"
	"github.com/claudeless/claudeless/internal/parity"
)

// event is something that happened in a session, and where it was recorded.
type event struct {
	at   session.Place
	text string
}

// events converts sessions to lines that can be compared between two runs.
func events(sessions []*session.Session, paths map[string]string, o CompareOptions) []event {
	t := reporter{normal: parity.New(parity.Options{Paths: paths}), o: o}
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if !p.Notice { // a notice may come in its own turn or in the current one
				t.add(p.At, "prompt")
			}
			t.messages("", p.Messages)
		}
	}
	return t.events
}

type reporter struct {
	normal *parity.Normaliser
	o      CompareOptions
	events []event
}

func (t *reporter) add(at session.Place, text string) { t.events = append(t.events, event{at, text}) }

func (t *reporter) messages(indent string, messages []*session.Message) {
	for _, m := range messages {
		if m.Failure != nil {
			_, message := m.Failure.API()
			t.add(m.At, indent+"failure "+t.normal.Text(message))
			continue
		}
		for _, b := range m.Blocks {
			switch {
			case b.Call != nil:
				t.call(indent, b.Call)
			case indent != "": // the stream contains only the calls of sub-agents
			case b.Thinking && t.o.Thinking && b.Text != "":
				t.add(m.At, indent+"thinking "+t.normal.Text(b.Text))
			case !b.Thinking && b.Text != "":
				t.add(m.At, indent+"text "+t.normal.Text(b.Text))
			}
		}
	}
}

func (t *reporter) call(indent string, c *session.Call) {
	input := t.normal.JSON(c.Input)
	if c.Tool == "Bash" { // file names of the kit are absolute when it is played
		input = strings.ReplaceAll(input, " <cwd>/", " ")
	}
	t.add(c.At, indent+"call "+c.Tool+" "+input)
	if c.Agent != nil {
		t.messages(indent+"  ", c.Agent.Messages)
	}
	if c.Result == nil {
		return
	}
	text, _, _ := strings.Cut(c.Result.Text, leftOut)
	if t.o.Longest > 0 && len(text) > t.o.Longest {
		text = strings.ToValidUTF8(text[:t.o.Longest], "")
	}
	kind := "result "
	if c.Result.IsError {
		kind = "error "
	}
	switch { // texts of the CLI
	case c.Agent != nil:
		text = "of the agent"
	case c.Result.Denied, strings.HasSuffix(text, Refusal(c.Tool)):
		kind, text = "denied", ""
	}
	t.add(c.Result.At, indent+kind+t.normal.Text(text))
}

// Cut truncates a text to at most most bytes and appends how many were left out.
func Cut(s string, most int) string {
	return strings.ToValidUTF8(s[:most], "") + leftOut + strconv.Itoa(len(s)-most) + " bytes; --big keeps them]"
}

const leftOut = "\n[import left out the other "

// Refusal returns the result of a recorded denied call that nothing denies when the kit is played.
func Refusal(tool string) string { return "The user does not want " + tool + " to run." }

// mostDifferences is how many differences are reported.
const mostDifferences = 20

func compare(recorded, played []event) []string {
	var out []string
	for i := range max(len(recorded), len(played)) {
		var want, got string
		at := "after the end"
		if i < len(recorded) {
			want, at = recorded[i].text, recorded[i].at.String()
		}
		if i < len(played) {
			got = played[i].text
		}
		if want == got {
			continue
		}
		if len(out) == mostDifferences {
			return append(out, "and more")
		}
		out = append(out, fmt.Sprintf("%s: recorded %s, played %s", at, shorten(want, got), shorten(got, want)))
	}
	return out
}

// shorten returns a text from where it begins to differ from another.
func shorten(s, other string) string {
	if s == "" {
		return "nothing"
	}
	const before, most = 20, 160
	same := 0
	for same < min(len(s), len(other)) && s[same] == other[same] {
		same++
	}
	prefix := ""
	if same > before*2 {
		kind, _, _ := strings.Cut(s, " ")
		prefix, s = kind+" …", s[same-before:]
	}
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", prefix+strings.ToValidUTF8(s, "�"))
}
