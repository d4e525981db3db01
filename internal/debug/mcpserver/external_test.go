package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/mcpserver"
)

// TestExternal calls servers in separate processes through the tools of the debugger.
func TestExternal(t *testing.T) {
	hub, err := debug.New(hubOptions())
	if err != nil {
		t.Fatal(err)
	}
	manager := newExternal(t, hub)
	f := newTestServer(t, mcpserver.Options{Hub: hub, External: manager})
	c := f.dialStdio(t)
	expect(t, ask(t, c, "external_list_servers", ""), `{"servers":{}}`) // C118
	expect(t, ask(t, c, "external_list_tools", ""), `{"tools":[]}`)

	connect(t, manager, "ok", "rpc-error", "face")
	servers := ask(t, c, "external_list_servers", "")["servers"].(kindObject) // C119
	expect(t, servers["face"].(kindObject), `{"status":"connected","tool_count":19}`)
	expect(t, servers["ok"].(kindObject), `{"status":"connected"}`)
	all := ask(t, c, "external_list_tools", "")["tools"].([]any) // C120
	some := ask(t, c, "external_list_tools", `{"server":"face"}`)["tools"].([]any)
	if len(some) != 19 || len(all) <= len(some) { // C121
		t.Errorf("%d tools of one server, %d of all", len(some), len(all))
	}
	expect(t, some[0].(kindObject), `{"name":"face/breakpoint_list_breakpoints","server":"face"}`)

	// C122, C134, C146: the result as the server sent it, errors included.
	out := ask(t, c, "external_call_tool", `{"tool":"face/breakpoint_add","arguments":{"function_name":"A"}}`)
	text := out["content"].([]any)[0].(kindObject)["text"].(string)
	expect(t, decode(t, text), `{"status":"ok","function_name":"A"}`)
	expect(t, ask(t, c, "external_call_tool", `{"tool":"face/breakpoint_add"}`), `{"isError":true}`)
	records := ask(t, c, "breakpoint_get_call_records", `{"limit":2}`)["calls"].([]any)
	expect(t, records[0].(kindObject), `{"method_name":"face/breakpoint_add","source":"mcp_client","server":"face","status":"success"}`)
	cid, _ := records[0].(kindObject)["result_cid"].(string)
	expect(t, ask(t, c, "breakpoint_inspect_object", `{"cid":"`+cid+`"}`), `{"type":"object"}`) // C151

	for name, want := range map[string]string{
		`{"tool":"nope/x"}`:    `{"error":"server_not_found","server":"nope"}`,     // C123
		`{"tool":"face/nope"}`: `{"error":"tool_not_found","tool":"face/nope"}`,    // C124
		`{"tool":"nope"}`:      `{"error":"invalid_tool_name"}`,                    // C35
		`{"arguments":{}}`:     `{"error":"missing_parameter","parameter":"tool"}`, // S87
		`{"tool":"face/breakpoint_repl_eval","arguments":[]}`: `{"error":"invalid_arguments","parameter":"arguments"}`,
	} {
		expect(t, ask(t, c, "external_call_tool", name), want)
	}
	failed := ask(t, c, "external_call_tool", `{"tool":"rpc-error/echo","arguments":{"text":"x"}}`)
	expect(t, failed, `{"error":"call_failed"}`)
	if message, _ := failed["message"].(string); !strings.Contains(message, "-32") {
		t.Errorf("no code of the server in %v", failed)
	}
	slow := ask(t, c, "external_call_tool", `{"tool":"ok/sleep","arguments":{"ms":30000}}`) // C125
	expect(t, slow, `{"error":"call_timeout"}`)

	resources := ask(t, c, "external_list_resources", "")["resources"].([]any) // C127
	expect(t, resources[0].(kindObject), `{"uri":"breakpoint://status","server":"face","name":"status","mime_type":"application/json","description":"Counts of breakpoints, tools, calls and sessions."}`)
	if n := len(ask(t, c, "external_list_resources", `{"server":"ok"}`)["resources"].([]any)); n != 0 { // C128
		t.Errorf("%d resources of a server that has none", n)
	}
	read := ask(t, c, "external_read_resource", `{"server":"face","uri":"breakpoint://breakpoints"}`) // C129
	expect(t, read, `{"mime_type":"application/json"}`)
	expect(t, decode(t, read["content"].(string)), `{"breakpoints":["A"]}`)
	expect(t, ask(t, c, "external_read_resource", `{"server":"nope","uri":"x://y"}`), `{"error":"server_not_found"}`)      // C130
	expect(t, ask(t, c, "external_read_resource", `{"server":"face","uri":"x://y"}`), `{"error":"resource_not_found"}`)    // C131
	expect(t, ask(t, c, "external_read_resource", `{"server":"face"}`), `{"error":"missing_parameter","parameter":"uri"}`) // S87
	expect(t, ask(t, c, "external_read_resource", `{"uri":"x://y"}`), `{"error":"missing_parameter","parameter":"server"}`)

	if err := manager.DisconnectKeepingConfig(t.Context(), "face"); err != nil {
		t.Fatal(err)
	}
	expect(t, ask(t, c, "external_call_tool", `{"tool":"face/breakpoint_add"}`), `{"error":"server_not_connected","server":"face"}`)
}
