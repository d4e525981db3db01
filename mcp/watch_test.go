package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// TestRecords: each call is recorded with server, tool, input, result or error, source, time, and
// the CIDs of its values (S27; C40–C45).
func TestRecords(t *testing.T) {
	observed := &observer{now: time.Unix(1000, 0)}
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "ok"), testConfig(t, "e", "rpc-error")}, Observer: observed})
	for _, c := range []CallRequest{
		{Tool: "mcp__s__echo", ToolUseID: "toolu_1", Input: json.RawMessage(`{"text": "x"}`)},
		{Tool: "e/echo"},
		{Tool: "mcp__s__fail", Input: json.RawMessage(`[]`)},
		{Tool: "mcp__s__crash"},
		{Tool: "nope"}, // nothing is sent, so this is not recorded
	} {
		_, _ = m.Call(t.Context(), c)
	}
	got := observed.calls
	want := []CallRecord{
		{Server: "s", Tool: "mcp__s__echo", RawTool: "echo", ToolUseID: "toolu_1", Input: json.RawMessage(`{"text": "x"}`), Result: json.RawMessage(`{"content":[{"text":"echo: x","type":"text"}]}`)},
		{Server: "e", Tool: "mcp__e__echo", RawTool: "echo", Input: json.RawMessage(`{}`), Error: "quota used up", ErrorCode: -32050},
		{Server: "s", Tool: "mcp__s__fail", RawTool: "fail", Input: json.RawMessage(`{}`), Result: json.RawMessage(`{"content":[{"text":"it failed","type":"text"}],"isError":true}`)},
		{Server: "s", Tool: "mcp__s__crash", RawTool: "crash", Input: json.RawMessage(`{}`), Error: "Connection closed"},
	}
	for i := range want {
		want[i].Source, want[i].DurationMS = "mcp_client", 5
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(CallRecord{}, "InputCID", "ResultCID", "StartedAt")); diff != "" || len(got) != 4 {
		t.Errorf("%d calls: %s", len(got), diff)
	}
	for cid, want := range map[string]string{got[0].InputCID: `{"text":"x"}`, got[0].ResultCID: `{"content":[{"text":"echo: x","type":"text"}]}`} {
		if cid != cas.CID([]byte(want)) {
			t.Errorf("got %s, want the id of %s", cid, want)
		}
	}
}

// observer stores what it is notified of.
type observer struct {
	mu            sync.Mutex
	calls         []CallRecord
	notifications []NotificationRecord
	now           time.Time
}

// Now returns a time that advances by 5 ms.
func (o *observer) Now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.now.Add(5 * time.Millisecond)
	return o.now
}

func (o *observer) RecordCall(c CallRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
}

func (o *observer) RecordNotification(n NotificationRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) == 0 { // the notifications of a call come before its record
		o.notifications = append(o.notifications, n)
	}
}

// TestNotifications: progress is recorded with its call, log messages with their level.
func TestNotifications(t *testing.T) {
	o := &observer{}
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "progress")}, Observer: o})
	for _, tool := range m.Tools() {
		_, _ = m.Call(t.Context(), CallRequest{Tool: tool.Name, ToolUseID: "toolu_1", Input: json.RawMessage(`{}`)})
		break
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.notifications) == 0 {
		t.Fatal("no notifications")
	}
	got := o.notifications[0]
	want := NotificationRecord{Source: "mcp_client", Server: "s", RawTool: got.RawTool, ToolUseID: "toolu_1", Progress: 1, Total: got.Total, Text: "step"}
	if diff := cmp.Diff(want, got); diff != "" || got.RawTool == "" {
		t.Error(diff)
	}
}

// TestSubscriptions checks that a thousand changes cause few reports and do not delay the server. After a crash the
// server is subscribed again; a server without subscriptions gives an error (S36).
func TestSubscriptions(t *testing.T) {
	var mu sync.Mutex
	var told []string
	log := filepath.Join(t.TempDir(), "log")
	release := make(chan struct{})
	m := start(t, Options{
		Servers: []ServerConfig{testConfig(t, "s", "subscribe", "MCPTEST_COUNT=1000", "MCPTEST_LOG="+log), testConfig(t, "no", "ok")},
		ResourceUpdated: func(server, uri string) {
			<-release
			mu.Lock()
			defer mu.Unlock()
			told = append(told, server+" "+uri)
		},
	})
	if err := m.Subscribe(t.Context(), "no", "file:///a.txt"); err == nil || err.Error() != "the MCP server does not support resource subscriptions: no" {
		t.Errorf("no subscriptions: %v", err)
	}
	if err := m.Subscribe(t.Context(), "s", "file:///a.txt"); err != nil {
		t.Fatal(err)
	}
	if got := call(t, m, "echo", `{"text":"x"}`); got != `[{"type":"text","text":"echo: x"}]` {
		t.Errorf("got %s", got)
	}
	close(release)
	updates := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
	eventually(t, 5*time.Second, func() bool { return len(updates()) > 0 }, "not told")
	if all := updates(); all[0] != "s file:///a.txt" || len(all) > 2 {
		t.Errorf("told %q", all)
	}
	call(t, m, "crash", `{}`)
	call(t, m, "echo", `{}`)
	subscribed := func() int { return strings.Count(readFileText(log), "resources/subscribe") }
	eventually(t, 5*time.Second, func() bool { return subscribed() == 2 }, "not subscribed again")
}

// TestRootsChange: new roots are announced once and then listed (M29).
func TestRootsChange(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "s2c", "MCPTEST_LOG="+log)}, Roots: []string{"/a"}})
	m.SetRootsAndNotifyServers(t.Context(), []string{"/a", "/b c"})
	m.SetRootsAndNotifyServers(t.Context(), []string{"/a", "/b c"})
	got := call(t, m, "echo", `{}`)
	if want := `{\"roots\":[{\"uri\":\"file:///a\"},{\"uri\":\"file:///b%20c\"}]}`; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
	if n := strings.Count(readFileText(log), "notifications/roots/list_changed"); n != 1 {
		t.Errorf("announced %d times", n)
	}
}

// TestSampling: with a handler, sampling is declared and answered (C31); a panic of the handler becomes an error
// response to the server (M44).
func TestSampling(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for _, test := range []struct {
		want   string
		sample func(context.Context, string, json.RawMessage) (json.RawMessage, error)
	}{
		{`{\"role\":\"assistant\"}`, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"assistant"}`), nil
		}},
		{`{\"code\":-32603,\"message\":\"not now\"}`, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, fmt.Errorf("not now")
		}},
		{`{\"code\":-32603,\"message\":\"internal error: oh\"}`, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			panic("oh")
		}},
	} {
		m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "s2c", "MCPTEST_LOG="+log)}, Sample: test.sample})
		if got := call(t, m, "echo", `{}`); !strings.Contains(got, test.want) {
			t.Errorf("no %s in\n%s", test.want, got)
		}
	}
	if !strings.Contains(readFileText(log), `"sampling":{}`) {
		t.Error("not declared")
	}
}

// TestLogging checks that log messages of servers are written to the debug log (M33).
func TestLogging(t *testing.T) {
	var debug logBuffer
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "flood-call", "MCPTEST_COUNT=3")}, Debug: &debug})
	call(t, m, "echo", `{}`)
	if want := "[mcp] s: log info: 2\n"; !strings.Contains(debug.String(), want) {
		t.Errorf("no %q in\n%s", want, debug.String())
	}
}
