package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
)

func TestServers(t *testing.T) {
	hub := newHub(t)
	manager, err := debug.NewExternalServers(debug.ExternalServersOptions{Hub: hub, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close(context.WithoutCancel(t.Context())) })
	url := newServer(t, Options{Hub: hub, External: manager}).URL
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(name, mode string) string {
		return fmt.Sprintf(`{"name":%q,"transport":"stdio","command":%q,"env":{"MCPTEST_MODE":%q}}`, name, self, mode)
	}
	tests := []struct {
		what, method, path, body string
		status                   int
		want                     string
	}{
		{"C99", "GET", "/api/mcp-clients", "", 200, `{"clients":{}}`},
		{"C101", "GET", "/api/mcp-tools", "", 200, `{"tools":[]}`},
		{"C107", "GET", "/api/mcp-resources", "", 200, `{"resources":[]}`},
		{"C109", "POST", "/api/mcp-clients/connect", entry("r", "resources"), 200, `{"name":"r","status":"ok","tools":["r/echo","r/sleep","r/fail","r/empty","r/crash"]}`},
		{"C110", "POST", "/api/mcp-clients/connect", entry("r", "ok"), 409, `{"error":"duplicate_name","name":"r"}`},
		{"no name", "POST", "/api/mcp-clients/connect", `{"transport":"stdio"}`, 400, `{"error":"missing_parameter","message":"name required","parameter":"name"}`},
		{"bad entry", "POST", "/api/mcp-clients/connect", `{"name":"x"}`, 400, `"error":"invalid_config"`},
		{"failing", "POST", "/api/mcp-clients/connect", entry("bad", "crash-at-start"), 502, `"error":"connect_failed"`},
		{"C100", "GET", "/api/mcp-clients", "", 200, `"status":"connected","transport":"stdio","tools":["r/echo"`},
		{"C100: a server that did not connect", "GET", "/api/mcp-clients", "", 200, `"bad":{"status":"error","transport":"stdio","tools":[]`},
		{"C102", "GET", "/api/mcp-tools", "", 200, `{"name":"r/echo","server":"r","original_name":"echo","description":"the tool echo","input_schema":{"type":"object"}}`},
		{"C103 C145 C147", "POST", "/api/mcp-tools/call", `{"tool":"r/echo","arguments":{"text":"x"}}`, 200, `"text":"echo: x"`},
		{"C104", "POST", "/api/mcp-tools/call", `{"arguments":{}}`, 400, `{"error":"missing_parameter","message":"tool required","parameter":"tool"}`},
		{"wrong arguments", "POST", "/api/mcp-tools/call", `{"tool":"r/echo","arguments":[]}`, 400, `"error":"invalid_arguments"`},
		{"C106", "POST", "/api/mcp-tools/call", `{"tool":"r/nope"}`, 404, `{"error":"tool_not_found","tool":"r/nope"}`},
		{"C115", "GET", "/api/calls?function_name=r%2Fecho", "", 200, `"source":"mcp_client","server":"r"`},
		{"C108", "POST", "/api/mcp-resources/read", `{"server":"r","uri":"file:///a.txt"}`, 200, `{"content":"body","mime_type":"text/plain"}`},
		{"U118", "POST", "/api/mcp-resources/read", `{"uri":"file:///a.txt"}`, 400, `"parameter":"server"`},
		{"U119", "POST", "/api/mcp-resources/read", `{"server":"r"}`, 400, `"parameter":"uri"`},
		{"C111 C148", "POST", "/api/mcp-clients/r/disconnect", "", 200, `{"name":"r","status":"ok"}`},
		{"C105", "POST", "/api/mcp-tools/call", `{"tool":"r/echo"}`, 409, `{"error":"server_not_connected","server":"r"}`},
		{"C112", "POST", "/api/mcp-clients/nope/disconnect", "", 404, `{"error":"server_not_found","name":"nope"}`},
		{"C113", "POST", "/api/mcp-clients/r/reconnect", "", 200, `"tools":["r/echo"`},
		{"C114", "POST", "/api/mcp-clients/nope/reconnect", "", 404, `{"error":"server_not_found","name":"nope"}`},
	}
	for _, tt := range tests {
		status, got, _ := request(t, tt.method, url+tt.path, tt.body)
		if status != tt.status || !strings.Contains(string(got), tt.want) || !json.Valid(got) {
			t.Errorf("%s: %d %s, want %d %s", tt.what, status, got, tt.status, tt.want)
		}
	}
	// C117: without a manager, all these routes answer 503.
	bare := newServer(t, Options{}).URL
	for _, rt := range externalMCPServerRoutes(nil) {
		path := strings.Replace(rt.path, "{name}", "x", 1)
		if status, got, _ := request(t, rt.method, bare+path, "{}"); status != 503 {
			t.Errorf("%s %s: %d %s", rt.method, path, status, got)
		}
	}
}
