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
	place session.Place
	text  string
}

func collectEvents(sessions []*session.Session, paths map[string]string, o CompareOptions) []event {
	t := eventCollector{normaliser: parity.New(paths), o: o}
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if !p.IsNotice { // a notification may come in its own turn or in the current one
				t.addEvent(p.At, "prompt")
			}
			t.addMessages("", p.Messages)
		}
	}
	return t.events
}

type eventCollector struct {
	normaliser *parity.Normaliser
	o          CompareOptions
	events     []event
}

func (t *eventCollector) addEvent(at session.Place, text string) {
	t.events = append(t.events, event{at, text})
}

func (t *eventCollector) addMessages(indent string, messages []*session.Message) {
	for _, m := range messages {
		if m.Failure != nil {
			_, message := m.Failure.APIError()
			t.addEvent(m.At, indent+"failure "+t.normaliser.Text(message))
			continue
		}
		for _, b := range m.Blocks {
			switch {
			case b.Call != nil:
				t.addCall(indent, b.Call)
			case indent != "": // the stream contains only the calls of sub-agents
			case b.Thinking && t.o.Thinking && b.Text != "":
				t.addEvent(m.At, indent+"thinking "+t.normaliser.Text(b.Text))
			case !b.Thinking && b.Text != "":
				t.addEvent(m.At, indent+"text "+t.normaliser.Text(b.Text))
			}
		}
	}
}

func (t *eventCollector) addCall(indent string, c *session.Call) {
	input := t.normaliser.JSON(c.Input)
	if c.Tool == "Bash" { // file names are absolute when the scenario is played
		input = strings.ReplaceAll(input, " <cwd>/", " ")
	}
	t.addEvent(c.At, indent+"call "+c.Tool+" "+input)
	if c.Agent != nil {
		t.addMessages(indent+"  ", c.Agent.Messages)
	}
	if c.Result == nil {
		return
	}
	text, _, _ := strings.Cut(c.Result.Text, truncationMark)
	if t.o.MaxResultBytes > 0 && len(text) > t.o.MaxResultBytes {
		text = strings.ToValidUTF8(text[:t.o.MaxResultBytes], "")
	}
	kind := "result "
	if c.Result.IsError {
		kind = "error "
	}
	switch { // prompts that the CLI itself wrote
	case c.Agent != nil:
		text = "of the agent"
	case c.Result.Denied, strings.HasSuffix(text, RefusalText(c.Tool)):
		kind, text = "denied", ""
	}
	t.addEvent(c.Result.At, indent+kind+t.normaliser.Text(text))
}

// Truncate cuts a text, which must be longer, to at most limit bytes and appends the number of omitted bytes.
func Truncate(s string, limit int) string {
	return strings.ToValidUTF8(s[:limit], "") + truncationMark + strconv.Itoa(len(s)-limit) + " bytes; --big keeps them]"
}

// truncationMark begins the note that [Truncate] appends.
const truncationMark = "\n[import left out the other "

// RefusalText returns the error that the scenario scripts for a tool whose calls were denied in the recording. Without
// it, the call could be allowed when the scenario is played.
func RefusalText(tool string) string { return "The user does not want " + tool + " to run." }

const maxDifferences = 20

func compareEvents(recorded, played []event) []string {
	var out []string
	for i := range max(len(recorded), len(played)) {
		var want, got string
		at := "after the end"
		if i < len(recorded) {
			want, at = recorded[i].text, recorded[i].place.String()
		}
		if i < len(played) {
			got = played[i].text
		}
		if want == got {
			continue
		}
		if len(out) == maxDifferences {
			return append(out, "and more")
		}
		out = append(out, fmt.Sprintf("%s: recorded %s, played %s", at, textFromDifference(want, got), textFromDifference(got, want)))
	}
	return out
}

// textFromDifference returns a text from the point where it begins to differ from another.
func textFromDifference(s, other string) string {
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
