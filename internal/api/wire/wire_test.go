package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// newMessage returns a message with these blocks.
func newMessage(blocks ...protocol.Block) *Message {
	return &Message{
		ID: "msg_1", Model: "claude-x", Blocks: blocks, StopReason: "end_turn",
		Usage: scenarios.Usage{InputTokens: 5, OutputTokens: 7}, Cache: CacheTokens{Read: 1, Created5m: 2, Created1h: 3},
	}
}

// lines returns events in lines: the pause, if there is one, and the data.
func lines(s *EventList) []string {
	var out []string
	for _, e := range s.Events {
		line := string(e.Data)
		if e.Pause > 0 {
			line = e.Pause.String() + " " + line
		}
		if !strings.Contains(line, `{"type":"`+e.Name+`"`) {
			line = e.Name + ": " + line
		}
		out = append(out, line)
	}
	return out
}

const (
	startLine = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,` +
		`"stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":5,"cache_read_input_tokens":1,` +
		`"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3},"output_tokens":1,"service_tier":"standard"}}}`
	deltaLine = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},` +
		`"usage":{"input_tokens":5,"cache_creation_input_tokens":5,"cache_read_input_tokens":1,"output_tokens":7}}`
	stopLine = `{"type":"message_stop"}`
	pingLine = `{"type":"ping"}`
)

// blockLines are the lines of a block: its start, deltas and stop. The first block is followed by a ping.
func blockLines(i int, empty string, deltas ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, empty)}
	if i == 0 {
		out = append(out, pingLine)
	}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func TestEventsOfBlocks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		block protocol.Block
		want  []string
	}{
		{"text", protocol.Text("hi"), blockLines(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"hi"}`)},
		{
			"citations",
			protocol.TextBlock{Type: "text", Text: "hi", Citations: json.RawMessage(`[{"a":1},{"a":2}]`)},
			blockLines(0, `{"type":"text","text":"","citations":[]}`, `{"type":"citations_delta","citation":{"a":1}}`,
				`{"type":"citations_delta","citation":{"a":2}}`, `{"type":"text_delta","text":"hi"}`),
		},
		{
			"thinking",
			protocol.ThinkingBlock{Type: "thinking", Thinking: "why", Signature: "s"},
			blockLines(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"why"}`, `{"type":"signature_delta","signature":"s"}`),
		},
		{
			"hidden thinking",
			protocol.ThinkingBlock{Type: "thinking", Signature: "s"},
			blockLines(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"s"}`),
		},
		{
			"call",
			protocol.ToolUse{Type: "tool_use", ID: "t1", Name: "Read", Input: json.RawMessage(`{"a":1}`)},
			blockLines(0, `{"type":"tool_use","id":"t1","name":"Read","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"a\""}`, `{"type":"input_json_delta","partial_json":":1}"}`),
		},
		{
			"call of a server",
			protocol.ServerToolCall{Type: "server_tool_use", ID: "t1", Name: "web_search", Input: json.RawMessage(`{}`)},
			blockLines(0, `{"type":"server_tool_use","id":"t1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{"}`, `{"type":"input_json_delta","partial_json":"}"}`),
		},
		{
			"compaction",
			protocol.RawBlock{JSON: json.RawMessage(`{"type":"compaction","content":"short"}`)},
			blockLines(0, `{"type":"compaction","content":null}`, `{"type":"compaction_delta","content":"short"}`),
		},
		{"failed compaction", protocol.RawBlock{JSON: json.RawMessage(`{"type":"compaction","content":null}`)}, blockLines(0, `{"type":"compaction","content":null}`)},
		{"other", protocol.RawBlock{JSON: json.RawMessage(`{"type":"fallback","content":"x"}`)}, blockLines(0, `{"type":"fallback","content":"x"}`)},
	} {
		want := append(append([]string{startLine}, tt.want...), deltaLine, stopLine)
		if diff := cmp.Diff(want, lines(newMessage(tt.block).Events(StreamOptions{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	two := append(blockLines(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"a"}`), blockLines(1, `{"type":"text","text":""}`, `{"type":"text_delta","text":"b"}`)...)
	want := append(append([]string{startLine}, two...), deltaLine, stopLine)
	if diff := cmp.Diff(want, lines(newMessage(protocol.Text("a"), protocol.Text("b")).Events(StreamOptions{}))); diff != "" {
		t.Errorf("two blocks (-want +got):\n%s", diff)
	}
}

// The end of a stream tells why it ended and how many tokens were thinking.
func TestEndOfStream(t *testing.T) {
	m := newMessage()
	m.StopReason, m.ThinkingTokens, m.Usage.OutputTokens = "refusal", 3, 0
	got := lines(m.Events(StreamOptions{}))
	want := []string{
		strings.Replace(startLine, `"output_tokens":1`, `"output_tokens":0`, 1),
		`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":null}},` +
			`"usage":{"input_tokens":5,"cache_creation_input_tokens":5,"cache_read_input_tokens":1,"output_tokens":0,"output_tokens_details":{"thinking_tokens":3}}}`,
		stopLine,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	body, err := protocol.Marshal(m.Body())
	if err != nil {
		t.Fatal(err)
	}
	wantBody := `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":null,"stop_reason":"refusal","stop_sequence":null,` +
		`"stop_details":{"type":"refusal","category":null,"explanation":null},"usage":{"input_tokens":5,"cache_creation_input_tokens":5,"cache_read_input_tokens":1,` +
		`"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3},"output_tokens":0,"output_tokens_details":{"thinking_tokens":3},"service_tier":"standard"}}`
	if diff := cmp.Diff(wantBody, string(body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// The first event has the time to the first token as its pause, and pieces the time of their tokens.
func TestPace(t *testing.T) {
	pace := scenarios.Stream{TTFTMS: 50, TokensPerSecond: 10}
	m := newMessage(protocol.ThinkingBlock{Type: "thinking", Thinking: strings.Repeat("think ", 40)}, protocol.Text(strings.Repeat("word ", 40)))
	s := m.Events(StreamOptions{Pace: pace})
	if s.Events[0].Pause != 50*time.Millisecond {
		t.Errorf("pause before the first event: %v", s.Events[0].Pause)
	}
	var total time.Duration
	pieces := map[string]int{}
	for _, e := range s.Events[1:] {
		if e.Pause > 0 != (e.Name == "content_block_delta" && !strings.Contains(string(e.Data), "signature_delta")) {
			t.Errorf("%s: pause %v", e.Data, e.Pause)
		}
		total += e.Pause
		for _, kind := range []string{"thinking_delta", "text_delta"} {
			if strings.Contains(string(e.Data), kind) {
				pieces[kind]++
			}
		}
	}
	if least := time.Duration(scenarios.EstimateTokens(240)+scenarios.EstimateTokens(200)) * 100 * time.Millisecond; total < least {
		t.Errorf("the text takes %v at 10 tokens a second, want at least %v", total, least)
	}
	if pieces["thinking_delta"] < 2 || pieces["text_delta"] < 2 {
		t.Errorf("pieces %v", pieces)
	}
	m = newMessage(protocol.ThinkingBlock{Type: "thinking", Thinking: strings.Repeat("think ", 40)})
	if n := strings.Count(strings.Join(lines(m.Events(StreamOptions{})), "\n"), "thinking_delta"); n != 1 {
		t.Errorf("without a pace, thinking has %d pieces", n)
	}
}

// The jitter depends on the seed, and padding on the number of the event.
func TestSeedAndPad(t *testing.T) {
	m := newMessage(protocol.Text(strings.Repeat("word ", 40)))
	pace := scenarios.Stream{TokensPerSecond: 10, Jitter: 0.5}
	first := lines(m.Events(StreamOptions{Pace: pace, Seed: [16]byte{1}}))
	if diff := cmp.Diff(first, lines(m.Events(StreamOptions{Pace: pace, Seed: [16]byte{1}}))); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	for _, seed := range [][16]byte{{2}, {15: 1}} {
		if cmp.Equal(first, lines(m.Events(StreamOptions{Pace: pace, Seed: seed}))) {
			t.Errorf("seed %v gives the same pauses", seed)
		}
	}
	got := lines(newMessage().Events(StreamOptions{Pad: true}))
	want := []string{startLine, deltaLine[:len(deltaLine)-1] + strings.Repeat(" ", 7) + "}", stopLine[:len(stopLine)-1] + strings.Repeat(" ", 14) + "}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("padded (-want +got):\n%s", diff)
	}
	s := EventList{}
	if s.Add("odd", func() {}); lines(&s)[0] != `{"type":"odd"}` {
		t.Errorf("an event without data: %v", lines(&s))
	}
}

func TestHideThinking(t *testing.T) {
	m := newMessage(protocol.ThinkingBlock{Type: "thinking", Thinking: "why", Signature: "s"}, protocol.Text("a"))
	m.ClearThinkingTexts()
	if diff := cmp.Diff([]protocol.Block{protocol.ThinkingBlock{Type: "thinking", Signature: "s"}, protocol.Text("a")}, m.Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestTrimPrefill(t *testing.T) {
	for _, tt := range []struct{ text, prefill, want string }{
		{"one two", "one", " two"}, {"one two", "one \n", " two"}, {"one two", "two", "one two"}, {"one", "one", ""}, {"one", "", "one"},
	} {
		m := newMessage(protocol.ThinkingBlock{Type: "thinking"}, protocol.Text(tt.text), protocol.Text(tt.text))
		m.TrimPrefill(tt.prefill)
		if diff := cmp.Diff([]protocol.Block{protocol.Text(tt.want), protocol.Text(tt.text)}, m.Blocks[1:]); diff != "" {
			t.Errorf("%q without %q (-want +got):\n%s", tt.text, tt.prefill, diff)
		}
	}
}

func TestTruncate(t *testing.T) {
	call := protocol.ToolUse{Type: "tool_use"}
	stop := func(s string) *string { return &s }
	for _, tt := range []struct {
		name   string
		blocks []protocol.Block
		tokens int
		stops  []string
		want   []protocol.Block
		reason string
		stop   *string
	}{
		{"no limit", []protocol.Block{protocol.Text("one two"), call}, -1, nil, []protocol.Block{protocol.Text("one two"), call}, "end_turn", nil},
		{"enough tokens", []protocol.Block{protocol.Text("12345678"), call}, 2, nil, []protocol.Block{protocol.Text("12345678"), call}, "end_turn", nil},
		{"too few", []protocol.Block{protocol.Text("123456789"), call}, 2, nil, []protocol.Block{protocol.Text("12345678")}, "max_tokens", nil},
		{"none", []protocol.Block{protocol.Text("1"), call}, 0, nil, []protocol.Block{protocol.Text("")}, "max_tokens", nil},
		{"the second text", []protocol.Block{protocol.Text("12345678"), call, protocol.Text("1234abcd")}, 3, nil, []protocol.Block{protocol.Text("12345678"), call, protocol.Text("1234")}, "max_tokens", nil},
		{"within a character", []protocol.Block{protocol.Text("123éé")}, 1, nil, []protocol.Block{protocol.Text("123")}, "max_tokens", nil},
		{"a stop sequence", []protocol.Block{protocol.Text("one two"), call}, -1, []string{"two", "", "e"}, []protocol.Block{protocol.Text("on")}, "stop_sequence", stop("e")},
		{"at the beginning", []protocol.Block{call, protocol.Text("one two")}, -1, []string{"one"}, []protocol.Block{call, protocol.Text("")}, "stop_sequence", stop("one")},
		{"two at one place", []protocol.Block{protocol.Text("one two")}, -1, []string{"one", "one two"}, []protocol.Block{protocol.Text("")}, "stop_sequence", stop("one")},
		{"tokens before the stop sequence", []protocol.Block{protocol.Text("12345678 stop")}, 1, []string{"stop"}, []protocol.Block{protocol.Text("1234")}, "max_tokens", nil},
		{"the stop sequence before the tokens", []protocol.Block{protocol.Text("1234stop 12345678")}, 1, []string{"stop"}, []protocol.Block{protocol.Text("1234")}, "stop_sequence", stop("stop")},
	} {
		m := newMessage(tt.blocks...)
		m.Truncate(tt.tokens, tt.stops)
		if diff := cmp.Diff(tt.want, m.Blocks); diff != "" {
			t.Errorf("%s: blocks (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.stop, m.StopSequence); diff != "" || m.StopReason != tt.reason {
			t.Errorf("%s: stop reason %s, want %s; sequence (-want +got):\n%s", tt.name, m.StopReason, tt.reason, diff)
		}
	}
}

func TestFaults(t *testing.T) {
	call := protocol.ToolUse{Type: "tool_use", ID: "t1", Name: "Read", Input: json.RawMessage(`{"a":1}`)}
	text := blockLines(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"hi"}`)
	calls := blockLines(1, `{"type":"tool_use","id":"t1","name":"Read","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"a\""}`, `{"type":"input_json_delta","partial_json":":1}"}`)
	joined := func(parts ...[]string) (all []string) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	start, end := []string{startLine}, []string{deltaLine, stopLine}
	for _, tt := range []struct {
		fault string
		want  []string
		open  bool
	}{
		{"none", joined(start, text, calls, end), false},
		{"ping-silence", joined(start, text[:2]), true},
		{"stall-mid-stream", joined(start, text[:3]), true},
		{"delta-after-stop", joined(start, text, text[2:3], calls, end), false},
		{"two-message-starts", joined(start, start, text, calls, end), false},
		{"tool-json-truncated", joined(start, text, calls[:len(calls)-2], calls[len(calls)-1:], end), false},
		{"usage-in-start-only", joined(start, text, calls, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}`, stopLine}), false},
		{"empty-content", joined(start, end), false},
	} {
		s := newMessage(protocol.Text("hi"), call).Events(StreamOptions{})
		if open := s.InjectFault(tt.fault); open != tt.open {
			t.Errorf("%s: the stream stays open: %v", tt.fault, open)
		}
		if diff := cmp.Diff(tt.want, lines(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.fault, diff)
		}
	}
	for fault, want := range map[string][]string{
		"ping-silence": joined(start, end), "stall-mid-stream": joined(start, end), "delta-after-stop": joined(start, end), "tool-json-truncated": joined(start, end),
	} {
		s := newMessage().Events(StreamOptions{})
		s.InjectFault(fault)
		if diff := cmp.Diff(want, lines(s)); diff != "" {
			t.Errorf("%s of a message without content (-want +got):\n%s", fault, diff)
		}
	}
}

func TestNewError(t *testing.T) {
	for _, tt := range []struct {
		err  scenarios.APIError
		code string
		want string
	}{
		{scenarios.APIError{Status: 529, Message: "m"}, "", `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`},
		{scenarios.APIError{Status: 418, Message: "m"}, "", `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
		{scenarios.APIError{Status: 500, Message: "m"}, "", `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`},
		{scenarios.APIError{Status: 429, Type: "mine", Message: "m"}, "c", `{"type":"error","error":{"type":"mine","message":"m","details":{"error_code":"c"}},"request_id":"r"}`},
	} {
		got, err := protocol.Marshal(NewErrorResponse(tt.err, tt.code, "r"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.err, diff)
		}
	}
}

// Every model has information; the family and the support of efforts depend on it.
func TestModelInfo(t *testing.T) {
	for id, want := range map[string]string{"claude-haiku-4-5": "haiku", "claude-opus-5-5": "opus", "my-sonnet": "sonnet", "other": ""} {
		m := ModelInfoFor(id)
		line := ""
		if m.Line != nil {
			line = *m.Line
		}
		if line != want || m.ID != id || m.Type != "model" || m.MaxInput == 0 || m.MaxTokens == 0 || !strings.HasPrefix(m.DisplayName, "Claude ") {
			t.Errorf("%s: %+v, family %q", id, m, line)
		}
		if !json.Valid(m.Capabilities) {
			t.Errorf("%s: capabilities %s", id, m.Capabilities)
		}
	}
}
