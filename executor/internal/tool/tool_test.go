package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The changes of inputs, as aliases and defaults of tools are made of them.
func TestInputChanges(t *testing.T) {
	rename := func(in *OrderedObject) (string, bool) { return "note", RenameKey(in, "old", "new") }
	renameText := func(in *OrderedObject) (string, bool) { return "", RenameNonEmptyStringKey(in, "old", "new") }
	remove := func(in *OrderedObject) (string, bool) { return "", RemoveKeys(in, "old", "new") }
	decode := func(in *OrderedObject) (string, bool) { return "", DecodeUnicodeEscapesInStrings(in) }
	for _, tt := range []struct {
		name        string
		change      func(*OrderedObject) (string, bool)
		input, want string
		note        string
	}{
		{"no aliases", nil, `{"old": 1}`, `{"old": 1}`, ""},
		{"renamed", rename, `{"a": 1, "old": 2}`, `{"a":1,"new":2}`, "note"},
		{"nothing to rename", rename, `{"a": 1}`, `{"a": 1}`, ""},
		{"the new name is used", rename, `{"old": 1, "new": 2}`, `{"old": 1, "new": 2}`, ""},
		{"not an object", rename, `[1]`, `[1]`, ""},
		{"a text", renameText, `{"old":"x"}`, `{"new":"x"}`, ""},
		{"an empty text", renameText, `{"old":""}`, `{"old":""}`, ""},
		{"a list of texts", renameText, `{"old":["x"]}`, `{"old":["x"]}`, ""},
		{"removed", remove, `{"new":1,"a":2,"old":3}`, `{"a":2}`, ""},
		{"nothing to remove", remove, `{"a": 2}`, `{"a": 2}`, ""},
		{"an escape", decode, `{"a":"x\\u00e9y","b":1}`, `{"a":"xéy","b":1}`, ""},
		{"a pair of escapes", decode, `{"a":"\\ud83d\\ude00"}`, `{"a":"😀"}`, ""},
		{"an escaped backslash", decode, `{"a":"\\\\u00e9"}`, `{"a":"\\\\u00e9"}`, ""},
		{"no escape", decode, `{"a": "\\ux"}`, `{"a": "\\ux"}`, ""},
	} {
		got, note := Tool{RenameAliases: tt.change}.ResolveAliases([]byte(tt.input))
		if string(got) != tt.want || note != tt.note {
			t.Errorf("%s: %s with note %q, want %s with %q", tt.name, got, note, tt.want, tt.note)
		}
		if tt.change == nil {
			continue
		}
		prepared := Tool{Prepare: func(in *OrderedObject) bool { _, changed := tt.change(in); return changed }}.PreparedInput([]byte(tt.input))
		if string(prepared) != tt.want {
			t.Errorf("%s: prepared as %s, want %s", tt.name, prepared, tt.want)
		}
	}
	if got := (Tool{}).PreparedInput([]byte(`{ }`)); string(got) != `{ }` {
		t.Errorf("without Prepare the input becomes %s", got)
	}
}

func TestTypedRun(t *testing.T) {
	type input struct{ N int }
	type state struct{ name string }
	say := func(_ context.Context, s state, in input) protocol.ToolResult {
		return TextResult(s.name+strings.Repeat("!", in.N), nil)
	}
	runs := map[string]Run{
		"TypedRun": TypedRun(state{"a"}, say),
		"TypedRunReturningEvents": TypedRunReturningEvents(state{"a"}, func(ctx context.Context, s state, in input) Result {
			return Result{ToolResult: say(ctx, s, in), EventsAfter: []protocol.Event{&protocol.SystemEvent{}}}
		}),
		"TypedRunWithCall": TypedRunWithCall(state{"a"}, func(ctx context.Context, s state, call protocol.ToolUse, in input) protocol.ToolResult {
			if call.ID != "toolu_1" {
				t.Errorf("call %+v", call)
			}
			return say(ctx, s, in)
		}),
	}
	for name, run := range runs {
		for in, want := range map[string]string{`{"n":2}`: "a!!", ``: "a", " \n": "a"} {
			if r := run(t.Context(), protocol.ToolUse{ID: "toolu_1", Input: json.RawMessage(in)}); r.IsError || r.Content.Text != want {
				t.Errorf("%s %q: %+v, want %q", name, in, r, want)
			}
		}
		r := run(t.Context(), protocol.ToolUse{ID: "toolu_1", Name: "X", Input: json.RawMessage(`{"n":"x"}`)})
		if !r.IsError || !strings.Contains(r.Content.Text, "InputValidationError: X failed due to the following issue:\njson: ") {
			t.Errorf("%s: input that cannot be decoded: %+v", name, r)
		}
		if n := len(r.EventsAfter); n != 0 {
			t.Errorf("%s: %d events of a call that did not run", name, n)
		}
	}
	if r := runs["TypedRunReturningEvents"](t.Context(), protocol.ToolUse{}); len(r.EventsAfter) != 1 {
		t.Errorf("events %v", r.EventsAfter)
	}

	check := TypedCheck(state{"a"}, func(_ context.Context, s state, in input) *protocol.ToolResult {
		if in.N > 1 {
			return new(Refuse("%s: %d", s.name, in.N))
		}
		return nil
	})
	for in, want := range map[string]string{`{"n":2}`: "<tool_use_error>a: 2</tool_use_error>", `{"n":1}`: "", `{"n":"x"}`: "", `{`: ""} {
		r := check(t.Context(), json.RawMessage(in))
		if (r != nil) != (want != "") || r != nil && r.Content.Text != want {
			t.Errorf("check of %s: %+v, want %q", in, r, want)
		}
	}
}

func TestIntFromJSONNumber(t *testing.T) {
	for in, want := range map[string]IntFromJSONNumber{"3": 3, "3.9": 3, "-3.9": -3, "1e300": 1 << 40, "-1e300": -1 << 40} {
		if got, err := Decode[IntFromJSONNumber](json.RawMessage(in)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", in, got, err, want)
		}
	}
	if _, err := Decode[IntFromJSONNumber](json.RawMessage(`"3"`)); !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("a text: %v", err)
	}
}

func TestJSONStringOrConcatenatedList(t *testing.T) {
	for in, want := range map[string]string{`"a"`: "a", `["a","b"]`: "ab", `[]`: "", `1`: "", ``: "", `{}`: ""} {
		if got := JSONStringOrConcatenatedList(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestOutput(t *testing.T) {
	got, err := StructuredOutput("b", 1, "a", []string{"x"}).MarshalJSON()
	if want := `{"b":1,"a":["x"]}`; err != nil || string(got) != want {
		t.Errorf("output %s, %v, want %s", got, err, want)
	}
	if got := string(Quote("<a>\n")); got != `"<a>\n"` {
		t.Errorf("quoted: %s", got)
	}
}

// Errors of tools have texts for the model and for hosts.
func TestErrors(t *testing.T) {
	want := protocol.UsageErrorResult("no 5")
	want.Output = "Error: no 5"
	if diff := cmp.Diff(want, Refuse("no %d", 5)); diff != "" {
		t.Errorf("Refuse (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(protocol.ErrorResult("no 5"), Fail("no %d", 5)); diff != "" {
		t.Errorf("Fail (-want +got):\n%s", diff)
	}
	if got := Fail("%s", strings.Repeat("é", 10_000)).Content.Text; got != strings.Repeat("é", 10_000) {
		t.Errorf("a text of 10,000 characters is cut to %d bytes", len(got))
	}
	half := strings.Repeat("é", 5000)
	if diff := cmp.Diff(half+"\n\n... [2 characters truncated] ...\n\n"+half, Fail("%s", half+"xy"+half).Content.Text); diff != "" {
		t.Errorf("a long text (-want +got):\n%s", diff)
	}
	if r := FailUnsimulated("WebFetch", "needs a network"); !r.IsError || !strings.HasPrefix(r.Content.Text, "WebFetch needs a network. ") ||
		!strings.Contains(r.Content.Text, "[tool_execution.tools.WebFetch]") {
		t.Errorf("unsimulated: %+v", r)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1KB", 1536: "1.5KB", 1 << 20: "1MB", 3 << 29: "1.5GB", 5 << 40: "5120GB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"", 0, ""}, {"abc", 0, ""}} {
		if got := Prefix(tt.text, tt.n); got != tt.want || !utf8.ValidString(got) {
			t.Errorf("%q to %d: %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
	if got := TruncateWithMissingLinesNote("a\nb\nc", 5); got != "a\nb\nc" {
		t.Errorf("a short text became %q", got)
	}
	if got := TruncateWithMissingLinesNote("a\nb\nc", 2); got != "a\n\n\n... [2 lines truncated] ..." {
		t.Errorf("truncated: %q", got)
	}
}

func TestNonNilCopy(t *testing.T) {
	if got := NonNilCopy[int](nil); got == nil || len(got) != 0 {
		t.Errorf("copy of nil: %#v", got)
	}
	from := []int{1}
	to := NonNilCopy(from)
	from[0] = 2
	if diff := cmp.Diff([]int{1}, to); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestIsString(t *testing.T) {
	in, err := plainjson.Parse([]byte(`{"a":"x","b":1}`))
	if err != nil || !IsString(in.Get("a")) || IsString(in.Get("b")) || IsString(in.Get("c")) {
		t.Errorf("IsString: %v, %v, %v (%v)", IsString(in.Get("a")), IsString(in.Get("b")), IsString(in.Get("c")), err)
	}
}
