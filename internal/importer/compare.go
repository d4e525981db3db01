package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/importer/session"
	"github.com/claudeless/claudeless/internal/parity"
)

// comparableSessionEvent is something that happened in a session, and where it was recorded.
type comparableSessionEvent struct {
	place        session.Place
	comparedText string
}

func collectComparableSessionEvents(sessions []*session.Session, placeholdersByPath map[string]string, o CompareOptions) []comparableSessionEvent {
	t := eventCollector{normaliser: parity.New(placeholdersByPath), o: o}
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if !p.IsNotice { // a notification may come in its own turn or in the current one
				t.addEvent(p.At, "prompt")
			}
			t.addEventsOfMessages("", p.Messages)
		}
	}
	return t.events
}

type eventCollector struct {
	normaliser *parity.Normaliser
	o          CompareOptions
	events     []comparableSessionEvent
}

func (t *eventCollector) addEvent(at session.Place, text string) {
	t.events = append(t.events, comparableSessionEvent{at, text})
}

func (t *eventCollector) addEventsOfMessages(subAgentIndent string, messages []*session.Message) {
	for _, m := range messages {
		if m.Failure != nil {
			_, message := m.Failure.APIError()
			t.addEvent(m.At, subAgentIndent+"failure "+t.normaliser.Text(message))
			continue
		}
		for _, b := range m.Blocks {
			switch {
			case b.Call != nil:
				t.addCall(subAgentIndent, b.Call)
			case subAgentIndent != "": // the stream contains only the calls of sub-agents
			case b.Thinking && t.o.Thinking && b.Text != "":
				t.addEvent(m.At, subAgentIndent+"thinking "+t.normaliser.Text(b.Text))
			case !b.Thinking && b.Text != "":
				t.addEvent(m.At, subAgentIndent+"text "+t.normaliser.Text(b.Text))
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
		t.addEventsOfMessages(indent+"  ", c.Agent.Messages)
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
	case c.Result.Denied, strings.HasSuffix(text, ScriptedErrorTextOfDeniedTool(c.Tool)):
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

// ScriptedErrorTextOfDeniedTool returns the error that the scenario scripts for a tool whose calls were denied in the
// recording. Without it, the call could be allowed when the scenario is played.
func ScriptedErrorTextOfDeniedTool(toolName string) string {
	return "The user does not want " + toolName + " to run."
}

const maxListedDifferencesBetweenRecordingAndPlay = 20

func compareEvents(recorded, played []comparableSessionEvent) []string {
	var out []string
	for i := range max(len(recorded), len(played)) {
		var want, got string
		at := "after the end"
		if i < len(recorded) {
			want, at = recorded[i].comparedText, recorded[i].place.String()
		}
		if i < len(played) {
			got = played[i].comparedText
		}
		if want == got {
			continue
		}
		if len(out) == maxListedDifferencesBetweenRecordingAndPlay {
			return append(out, "and more")
		}
		out = append(out, fmt.Sprintf("%s: recorded %s, played %s", at, quoteTextFromFirstDifference(want, got), quoteTextFromFirstDifference(got, want)))
	}
	return out
}

// quoteTextFromFirstDifference returns a text from the point where it begins to differ from another.
func quoteTextFromFirstDifference(text, comparedText string) string {
	if text == "" {
		return "nothing"
	}
	const before, most = 20, 160
	same := 0
	for same < min(len(text), len(comparedText)) && text[same] == comparedText[same] {
		same++
	}
	prefix := ""
	if same > before*2 {
		kind, _, _ := strings.Cut(text, " ")
		prefix, text = kind+" …", text[same-before:]
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", prefix+strings.ToValidUTF8(text, "�"))
}
