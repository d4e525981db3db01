// Package tooltest has what the tests of the families of built-in tools share: inputs of calls, checks of results, and a clock and
// rules for files that never change.
package tooltest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Input is the input of a call.
type Input map[string]any

// Use returns a call of a tool; input is JSON or a value to marshal.
func Use(t *testing.T, name string, input any) protocol.ToolUse {
	t.Helper()
	raw, ok := input.(string)
	if !ok {
		raw = marshal(t, input)
	}
	return protocol.ToolUse{ID: "toolu_1", Name: name, Input: json.RawMessage(raw)}
}

// Output decodes the structured result that hosts receive.
func Output[T any](t *testing.T, r protocol.ToolResult) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(marshal(t, r.Output)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// WantText checks the text of a result that is not an error.
func WantText(t *testing.T, r protocol.ToolResult, want string) {
	t.Helper()
	wantText(t, r, want)
	if r.IsError {
		t.Error("the result is an error")
	}
}

// WantError checks the text of a result that is an error.
func WantError(t *testing.T, r protocol.ToolResult, want string) {
	t.Helper()
	wantText(t, r, want)
	if !r.IsError {
		t.Error("the result is not an error")
	}
}

func wantText(t *testing.T, r protocol.ToolResult, want string) {
	t.Helper()
	if diff := cmp.Diff(want, r.Content.Plain()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// WantOutput checks the structured result that hosts receive, as JSON.
func WantOutput(t *testing.T, r protocol.ToolResult, want string) {
	t.Helper()
	if diff := cmp.Diff(want, marshal(t, r.Output)); diff != "" {
		t.Errorf("tool_use_result (-want +got):\n%s", diff)
	}
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	raw, err := protocol.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// WriteFile writes a file and its directories. It returns the path of the file.
func WriteFile(t *testing.T, dir, name, content string) string {
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

// FileText returns the content of a file.
func FileText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Clock never moves, and gives the same id again and again.
type Clock struct {
	Time time.Time
	ID   string
}

// Now returns the time of the clock.
func (c Clock) Now() time.Time { return c.Time }

// NewID returns the id of the clock.
func (c Clock) NewID() string { return c.ID }

// Access allows changing unread files whose path begins with Readable. Hidden reports which files are not searched; nil means none.
type Access struct {
	Readable string
	Hidden   func(path string) bool
}

// IsChangeableUnread reports whether a file may be changed although it was not read.
func (a Access) IsChangeableUnread(path string, _ *protocol.AgentRef) bool {
	return strings.HasPrefix(path, a.Readable)
}

// IsReadDenied reports whether a file is not searched.
func (a Access) IsReadDenied(path string) bool { return a.Hidden != nil && a.Hidden(path) }
