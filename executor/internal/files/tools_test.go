package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// testOptions configure [newTools]. The zero value is a session in a new directory.
type testOptions struct {
	CWD     string
	Environ []string
	Clock   tool.Clock
	Access  fakeAccess
}

// session has the tools of this package and the files that its model has seen.
type session struct {
	tracker *SeenFileTracker
	tools   map[string]tool.Tool
}

func newTools(t *testing.T, o testOptions) session {
	t.Helper()
	if o.CWD == "" {
		o.CWD = t.TempDir()
	}
	if o.Clock == nil {
		o.Clock = fakeClock{id: "id"}
	}
	shell := tool.NewShell(tool.ShellOptions{CWD: o.CWD, Environ: o.Environ})
	s := session{tracker: New(Options{Paths: shell, Clock: o.Clock, Access: o.Access}), tools: map[string]tool.Tool{}}
	finder := NewFinder(FinderOptions{Paths: shell, Clock: o.Clock, Access: o.Access})
	for _, x := range append(Tools(s.tracker), Glob(finder), Grep(finder)) {
		s.tools[x.Name] = x
	}
	return s
}

// Precheck returns the refusal of a call, or nil.
func (s session) Precheck(ctx context.Context, use protocol.ToolUse) *protocol.ToolResult {
	x := s.tools[use.Name]
	if r := x.Validate(use); r != nil || x.Check == nil {
		return r
	}
	return x.Check(WithCall(ctx, use), use.Input)
}

// Execute runs a call that has valid input.
func (s session) Execute(ctx context.Context, use protocol.ToolUse) tool.Result {
	x := s.tools[use.Name]
	if r := x.Validate(use); r != nil {
		return tool.ResultWithoutEvents(*r)
	}
	return x.Run(WithCall(ctx, use), use)
}

// fakeClock never moves.
type fakeClock struct{ id string }

func (c fakeClock) Now() time.Time { return time.Time{} }
func (c fakeClock) NewID() string  { return c.id }

// fakeAccess allows changing unread files below one directory; "" allows it everywhere. Hidden files are not searched.
type fakeAccess struct {
	readable string
	hidden   func(string) bool
}

func (a fakeAccess) IsChangeableUnread(path string, _ *protocol.AgentRef) bool {
	return strings.HasPrefix(path, a.readable)
}
func (a fakeAccess) IsHidden(path string) bool { return a.hidden != nil && a.hidden(path) }

type toolInput map[string]any

func toolUse(t *testing.T, name string, input any) protocol.ToolUse {
	t.Helper()
	raw, ok := input.(string)
	if !ok {
		data, err := protocol.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(data)
	}
	return protocol.ToolUse{ID: "toolu_1", Name: name, Input: json.RawMessage(raw)}
}

// call runs a tool; input is JSON or a value to marshal.
func call(t *testing.T, tools session, name string, input any) tool.Result {
	t.Helper()
	return tools.Execute(t.Context(), toolUse(t, name, input))
}

// structuredOutput returns the structured result that hosts receive.
func structuredOutput[T any](t *testing.T, r tool.Result) (out T) {
	t.Helper()
	raw, err := protocol.Marshal(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantText(t *testing.T, r tool.Result, isError bool, want string) {
	t.Helper()
	if diff := cmp.Diff(want, r.Content.Plain()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if r.IsError != isError {
		t.Errorf("IsError = %v, want %v", r.IsError, isError)
	}
}

func wantOutput(t *testing.T, r tool.Result, want string) {
	t.Helper()
	got, err := protocol.Marshal(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("tool_use_result (-want +got):\n%s", diff)
	}
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
