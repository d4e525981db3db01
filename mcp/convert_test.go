package mcp

import (
	std "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestConvert checks the results of the goldens mcp-*.txt: content for the model, then tool_use_result (M20).
func TestConvert(t *testing.T) {
	tests := []struct{ name, result, content, output string }{
		{
			"text", `{"content":[{"type":"text","text":"Echo: yo"}]}`,
			`[{"type":"text","text":"Echo: yo"}]`, `[{"type":"text","text":"Echo: yo"}]`,
		},
		{"iserror", `{"content":[{"type":"text","text":"tool says no"},{"type":"text","text":"twice"}],"isError":true}`, `"tool says no\ntwice"`, `"Error: tool says no\ntwice"`},
		{"failed with an image", `{"content":[{"type":"image","data":"QQ==","mimeType":"image/png"}],"isError":true}`, `"Unknown error"`, `"Error: Unknown error"`},
		{"empty", `{"content":[]}`, `"(mcp__s__t completed with no output)"`, `[]`},
		{"structured", `{"content":[{"type":"text","text":"x"}],"structuredContent":{ "a": 1 }}`, `"{\"a\":1}"`, `{"content":"{\"a\":1}","structuredContent":{"a":1}}`},
		{
			"link", `{"content":[{"type":"resource_link","uri":"file:///l.txt","name":"l","description":"a link"}]}`,
			`[{"type":"text","text":"[Resource link: l] file:///l.txt (a link)"}]`,
			`{"content":[{"type":"text","text":"[Resource link: l] file:///l.txt (a link)"}],"resourceLinks":[{"uri":"file:///l.txt","name":"l","description":"a link"}]}`,
		},
		{
			"resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a.txt","text":"resource body"}}]}`,
			`[{"type":"text","text":"[Resource from s at file:///a.txt] resource body"}]`, `[{"type":"text","text":"[Resource from s at file:///a.txt] resource body"}]`,
		},
		{
			"image", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`,
			`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"[Image: source: /b/s-image/png-2]"}]`,
			`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"[Image: source: /b/s-image/png-2]"}]`,
		},
		{
			"audio", `{"content":[{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]}`,
			`[{"type":"text","text":"[Audio from s] Binary content (audio/wav, 2 bytes) saved to /b/s-audio/wav-2"}]`,
			`[{"type":"text","text":"[Audio from s] Binary content (audio/wav, 2 bytes) saved to /b/s-audio/wav-2"}]`,
		},
		{
			"meta", `{"content":[{"type":"text","text":"x"}],"_meta":{"k":1}}`, `[{"type":"text","text":"x"}]`,
			`{"content":[{"type":"text","text":"x"}],"_meta":{"k":1}}`,
		},
		{
			"type of a link", `{"content":[{"type":"resource_link","uri":"u:","name":"l","mimeType":"text/x"}]}`,
			`[{"type":"text","text":"[Resource link: l] u:"}]`,
			`{"content":[{"type":"text","text":"[Resource link: l] u:"}],"resourceLinks":[{"uri":"u:","name":"l","mimeType":"text/x"}]}`,
		},
		{
			"image no model takes", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/svg+xml"}]}`,
			`[{"type":"text","text":"[Image from s] Binary content (image/svg+xml, 2 bytes) saved to /b/s-image/svg+xml-2"}]`,
			`[{"type":"text","text":"[Image from s] Binary content (image/svg+xml, 2 bytes) saved to /b/s-image/svg+xml-2"}]`,
		},
		{"empty text", `{"content":[{"type":"text","text":""}]}`, `"(mcp__s__t completed with no output)"`, `[{"type":"text","text":""}]`},
		{"toolResult of old servers", `{"toolResult":"old"}`, `"old"`, `"old"`},
		{"nothing", `{}`, `"(mcp__s__t completed with no output)"`, `[]`},
	}
	m, err := New(Options{Files: files{blob: func(server, mime string, data []byte) (string, error) {
		return fmt.Sprintf("/b/%s-%s-%d", server, mime, len(data)), nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := m.resultConverterFor("s").Convert(calledTool{Tool: protocol.Tool{Name: "mcp__s__t", Server: "s", RawName: "t"}}, "toolu_1", json.RawMessage(test.result))
			content, _ := protocol.Marshal(got.Content)
			output, _ := protocol.Marshal(got.Output)
			if diff := cmp.Diff(test.content, string(content)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.output, string(output)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// files implements Files with functions; a nil function saves nothing.
type files struct {
	blob func(server, mime string, data []byte) (string, error)
	text func(tool protocol.Tool, name, text string) (string, error)
}

var errNotKept = errors.New("not kept")

func (f files) SaveBlob(server, mime string, data []byte) (string, error) {
	if f.blob == nil {
		return "", errNotKept
	}
	return f.blob(server, mime, data)
}

func (f files) SaveText(tool protocol.Tool, name, text string) (string, error) {
	if f.text == nil {
		return "", errNotKept
	}
	return f.text(tool, name, text)
}

// TestMalformedContent: the texts are those of the real CLI.
func TestMalformedContent(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(path, expected, received string) string {
		return `{"expected":"` + expected + `","code":"invalid_type","path":[` + path + `],"message":"Invalid input: expected ` + expected + `, received ` + received + `"}`
	}
	kind := func(name string) string {
		return `{"code":"invalid_value","values":["` + name + `"],"path":["type"],"message":"Invalid input: expected \"` + name + `\""}`
	}
	union := func(path string, kinds ...string) string {
		return `{"code":"invalid_union","errors":[[` + strings.Join(kinds, "],[") + `]],"path":[` + path + `],"message":"Invalid input"}`
	}
	text, data, mime := wrong(`"text"`, "string", "undefined"), wrong(`"data"`, "string", "undefined"), wrong(`"mimeType"`, "string", "undefined")
	link := wrong(`"name"`, "string", "undefined") + "," + wrong(`"uri"`, "string", "undefined") + "," + kind("resource_link")
	noResource := kind("resource") + "," + union(`"resource"`, wrong("", "object", "undefined"), wrong("", "object", "undefined"))
	media := func(name string) string { return kind(name) + "," + data + "," + mime }
	for result, want := range map[string]string{
		`{"content":"x"}`:                wrong(`"content"`, "array", "string"),
		`{"content":null}`:               wrong(`"content"`, "array", "null"),
		`{"content":{"type":"text"}}`:    wrong(`"content"`, "array", "object"),
		`{"content":[],"isError":"yes"}`: wrong(`"isError"`, "boolean", "string"),
		`{"content":[{"type":"text","text":"x"},{"type":"hologram"}]}`: union(`"content",1`, kind("text")+","+text, media("image"), media("audio"), link, noResource),
		`{"content":[{"type":"text","text":5}],"isError":null}`:        union(`"content",0`, wrong(`"text"`, "string", "number"), media("image"), media("audio"), link, noResource) + "," + wrong(`"isError"`, "boolean", "null"),
		`{"content":["x"]}`: union(`"content",0`, wrong("", "object", "string"), wrong("", "object", "string"), wrong("", "object", "string"), wrong("", "object", "string"), wrong("", "object", "string")),
		`{"content":[{"type":"resource","resource":{"uri":"a:"}}]}`: union(`"content",0`, kind("text")+","+text, media("image"), media("audio"), link,
			union(`"resource"`, text, wrong(`"blob"`, "string", "undefined"))),
		`{"content":[{"type":"image","data":"%%%","mimeType":"image/png"}]}`: `{"code":"custom","path":["content",0,"data"],"message":"Invalid Base64 string"}`,
	} {
		got := m.resultConverterFor("s").Convert(calledTool{Tool: protocol.Tool{Server: "s"}}, "", json.RawMessage(result))
		const start = `MCP server "s" returned a malformed result that failed schema validation: Invalid result for tools/call: `
		defects, ok := strings.CutPrefix(got.Content.Text, start)
		if !ok || !got.IsError || !strings.HasPrefix(defects, "[\n  {\n    \"") {
			t.Errorf("%s: %v %s", result, got.IsError, got.Content.Text)
		}
		if diff := cmp.Diff("["+want+"]", string(plainjson.Compact(json.RawMessage(defects)))); diff != "" {
			t.Errorf("%s: %s", result, diff)
		}
	}
}

// TestLongResults checks that a result of up to 50,000 characters is unchanged and a longer one becomes the preview of
// a saved file. An even longer one, or one over the token limit, becomes the error text without is_error (S26).
func TestLongResults(t *testing.T) {
	const block, image = `{"type":"text","text":"%s"}`, `{"type":"image","data":"aGk=","mimeType":"image/png"}`
	one := func(n int) string { return `{"content":[` + fmt.Sprintf(block, strings.Repeat("x", n)) + `]}` }
	tests := []struct {
		name, result string
		max          int
		want, kept   string
	}{
		{"whole", one(50_000), 0, `[{"type":"text","text":"xxx`, ""},
		{"preview", one(50_001), 0, `"<persisted-output>\nOutput too large (48.9KB). Full output saved to: /kept/toolu_1.json\n\nPreview (first 2KB):\n[\n  {\n    \"type\": \"text\",\n    \"text\": \"xxx`, "[\n  {\n    \"type\": \"text\",\n    \"text\": \"xxx"},
		{"structured preview", `{"content":[],"structuredContent":{"a":"` + strings.Repeat("x", 51_192) + `"}}`, 0, `"<persisted-output>\nOutput too large (50KB). Full output saved to: /kept/toolu_1.txt\n\nPreview (first 2KB):\n{\"a\":\"xxx`, `{"a":"xxx`},
		{"image", `{"content":[` + fmt.Sprintf(block, strings.Repeat("x", 60_000)) + "," + image + `]}`, 0, `[{"type":"text","text":"xxx`, ""},
		{"too long", one(410_000), 0, `"Error: result (410,000 characters across 1 line) exceeds maximum allowed tokens. Output has been saved to /kept/t.txt.\nFormat: Plain text\n`, "xxx"},
		{"token limit", `{"content":[` + fmt.Sprintf(block, strings.Repeat(`xxx\n`, 2000)) + `]}`, 1000, `"Error: result (8,000 characters across 2,000 lines) exceeds maximum allowed tokens. Output has been saved to /kept/t.txt.\nFormat: Plain text\n`, "xxx\n"},
		{"token limit, two blocks", `{"content":[` + fmt.Sprintf(block, strings.Repeat("x", 5000)) + `,` + fmt.Sprintf(block, "y") + `]}`, 1000, `"Error: result (5,091 characters) exceeds maximum allowed tokens. Output has been saved to /kept/t.txt.\nFormat: JSON\n`, "[\n  {\n"},
	}
	for _, test := range tests {
		var debug logBuffer
		kept := ""
		m, err := New(Options{Debug: &debug, MaxOutputTokens: test.max, Files: files{text: func(tool protocol.Tool, name, text string) (string, error) {
			kept = text
			return "/kept/" + std.Or(name, tool.RawName+".txt"), nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		got := m.resultConverterFor("s").Convert(calledTool{Tool: protocol.Tool{Name: "mcp__s__t", Server: "s", RawName: "t"}}, "toolu_1", json.RawMessage(test.result))
		content, _ := protocol.Marshal(got.Content)
		if !strings.HasPrefix(string(content), test.want) || got.IsError {
			t.Errorf("%s: got %.300s\nwant %.300s", test.name, content, test.want)
		}
		if !strings.HasPrefix(kept, test.kept) || (kept == "") != (test.kept == "") {
			t.Errorf("%s: kept %.100q, want %q", test.name, kept, test.kept)
		}
		if large := strings.Contains(debug.String(), "[mcp] s: result of t is large: about "); large != (len(test.result) > 40_100) {
			t.Errorf("%s: the debug log has %q", test.name, debug.String())
		}
	}
}

// TestLongErrors: the middle of a long error is omitted.
func TestLongErrors(t *testing.T) {
	for n, want := range map[int]int{11_000: 11_000, 120_000: 10_041} {
		got := shortenedErrorResult(strings.Repeat("e", n))
		if text := got.Content.Text; len(text) != want || n > want && !strings.Contains(text, "\n\n... [110000 characters truncated] ...\n\n") {
			t.Errorf("%d characters became %d: %.100s", n, len(text), text)
		}
	}
}

// TestCanonicalName checks the observed normalizations of names (M15).
func TestCanonicalName(t *testing.T) {
	for _, test := range []struct{ server, tool, want string }{
		{"my server.1/x", "echo", "mcp__my_server_1_x__echo"},
		{"ünï", "odd.name/x y", "mcp___n___odd_name_x_y"},
		{"", "tool", "mcp____tool"},
		{"a__b", "C-d", "mcp__a__b__C-d"},
		{"😀", "t", "mcp______t"},
	} {
		if got := CanonicalToolName(test.server, test.tool); got != test.want {
			t.Errorf("%q %q: got %s, want %s", test.server, test.tool, got, test.want)
		}
	}
	if got, want := (Prompt{Server: "my server", Name: "say hello"}).SlashCommand(), "mcp__my_server__say hello"; got != want {
		t.Errorf("command of a prompt: got %s, want %s", got, want)
	}
}

// TestRouting: names of all forms, hidden tools and the four errors (M15,
// M17, M19).
func TestRouting(t *testing.T) {
	off := testConfig(t, "off", "ok")
	off.Disabled = true
	var debug logBuffer
	m := start(t, Options{Debug: &debug, Servers: []ServerConfig{
		testConfig(t, "a b", "pages"), testConfig(t, "a.b", "pages"), testConfig(t, "x", "ok"), testConfig(t, "bad", "crash-at-start"), off,
	}})
	for _, test := range []struct{ name, want string }{
		{"mcp__a_b__t0", "a b/t0"},
		{"a.b/t0", "unknown MCP tool: a.b/t0"}, // hidden by the tool of "a b"
		{"a b/t1", "a b/t1"},
		{"echo", "x/echo"},
		{"nope", "unknown MCP tool: nope"},
		{"mcp__x__nope", "unknown MCP tool: mcp__x__nope"},
		{"mcp__zz__t", "unknown MCP server: mcp__zz__t"},
		{"mcp__bad__t", `MCP server "bad" is not connected`},
		{"off/echo", "MCP server is disabled: off"},
	} {
		tool, err := m.Resolve(test.name)
		got := tool.Server + "/" + tool.RawName
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if n := len(m.ShadowedTools()); n != 3 {
		t.Errorf("%d hidden tools", n)
	}
	log := debug.String()
	if !strings.Contains(log, `[mcp] a.b: tool "t0" is hidden`) {
		t.Errorf("hidden tool not in the log:\n%s", log)
	}
	if st := m.Servers()[4]; st.Status != "disabled" {
		t.Errorf("got %s", st.Status)
	}
}

// TestSetServers checks that configured servers remain, that unchanged entries keep their process, and that others are
// added and removed. A configured server that is set becomes part of the set (observed with 2.1.329). Toggling stops
// and starts a server (M16, M17).
func TestSetServers(t *testing.T) {
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "a", "ok"), testConfig(t, "b", "ok"), testConfig(t, "c", "ok")}})
	before := m.Servers()
	crash := testConfig(t, "d", "crash-at-start")
	for i, step := range []struct {
		desired []ServerConfig
		want    ReplaceServersResult
	}{
		{[]ServerConfig{testConfig(t, "b", "ok"), crash}, ReplaceServersResult{Added: []string{"b", "d"}, Errors: map[string]string{"d": "Connection closed"}}},
		{[]ServerConfig{testConfig(t, "b", "ok"), testConfig(t, "c", "ok", "X=1")}, ReplaceServersResult{Added: []string{"c"}, Removed: []string{"d"}, Errors: map[string]string{}}},
		{[]ServerConfig{testConfig(t, "b", "ok")}, ReplaceServersResult{Removed: []string{"c"}, Errors: map[string]string{}}},
	} {
		change, err := m.ReplaceServersOfSource(t.Context(), "dynamic", step.desired)
		if diff := cmp.Diff(step.want, change); diff != "" || err != nil {
			t.Errorf("step %d: %s %v", i, diff, err)
		}
	}
	now := m.Servers()
	if len(now) != 2 || now[0].Name != "a" || now[0].PID != before[0].PID || now[1].Name != "b" || now[1].PID != before[1].PID {
		t.Errorf("a or b was restarted or is gone: %+v", now)
	}
	assertGone(t, before[2].PID)
	if change, err := m.ReplaceServersOfSource(t.Context(), "dynamic", nil); err != nil || len(m.Servers()) != 1 || len(change.Removed) != 1 {
		t.Errorf("%+v, %v", change, err)
	}
	if _, err := m.ReplaceServersOfSource(t.Context(), "dynamic", []ServerConfig{testConfig(t, "b", "ok")}); err != nil {
		t.Error(err)
	}
	before = []ServerStatus{{}, m.Servers()[1]}

	if err := m.Disable(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if names := toolNames(m); strings.Contains(names, "mcp__b__") {
		t.Errorf("tools of a disabled server: %s", names)
	}
	if err := m.Connect(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if st := m.Servers()[1]; st.State != StateConnected || st.PID == before[1].PID {
		t.Errorf("got %s, pid %d", st.State, st.PID)
	}
}

// TestSameAfterExpansion: an entry that is equal after expansion keeps its process; one whose value changed does not
// (M16).
func TestSameAfterExpansion(t *testing.T) {
	spelled := func(value string) []ServerConfig { return []ServerConfig{testConfig(t, "s", "ok", "X="+value)} }
	m := start(t, Options{Environ: append(os.Environ(), "A=1")})
	if _, err := m.ReplaceServersOfSource(t.Context(), "dynamic", spelled("${A}")); err != nil {
		t.Fatal(err)
	}
	pid := m.Servers()[0].PID
	for _, value := range []string{"1", "${NOPE:-1}", "${A}"} {
		change, err := m.ReplaceServersOfSource(t.Context(), "dynamic", spelled(value))
		if err != nil || len(change.Added)+len(change.Removed) != 0 || m.Servers()[0].PID != pid {
			t.Errorf("%s: %+v, %v", value, change, err)
		}
	}
	change, err := m.ReplaceServersOfSource(t.Context(), "dynamic", spelled("2"))
	if diff := cmp.Diff(ReplaceServersResult{Added: []string{"s"}, Removed: []string{"s"}, Errors: map[string]string{}}, change); diff != "" || err != nil {
		t.Error(diff, err)
	}
	assertGone(t, pid)
}

// TestOrdersTwice: each operation may be repeated and keeps the configuration; an unknown name is an error (M17; C17,
// C18, C63).
func TestOrdersTwice(t *testing.T) {
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "ok")}})
	before := m.Servers()[0]
	for _, test := range []struct {
		name  string
		order func(context.Context, string) error
		want  ServerState
		tools int
	}{
		{"connect", m.Connect, StateConnected, 5},
		{"disconnect", m.Disconnect, StateDisconnected, 0},
		{"connect", m.Connect, StateConnected, 5},
		{"disable", m.Disable, StateDisabled, 0},
		{"disconnect", m.Disconnect, StateDisconnected, 0},
		{"reconnect", m.Reconnect, StateConnected, 5},
		{"disable", m.Disable, StateDisabled, 0},
		{"enable", m.Connect, StateConnected, 5},
	} {
		for range 2 {
			if err := test.order(t.Context(), "s"); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			st := m.Servers()[0]
			if st.State != test.want || len(m.Tools()) != test.tools {
				t.Errorf("%s: %s, %d tools", test.name, st.State, len(m.Tools()))
			}
			if diff := cmp.Diff(before.Config, st.Config); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
		}
		if err := test.order(t.Context(), "nobody"); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("%s of nobody: %v", test.name, err)
		}
	}
}

// TestListShrinks checks that a call of a tool that was removed from the list sends no request, both after a
// notification (M32) and after a reconnect (M39). Resources and prompts are also listed again.
func TestListShrinks(t *testing.T) {
	var tool atomic.Value
	tool.Store("one")
	var calls atomic.Int64
	host := func(_ context.Context, _ string, message json.RawMessage) (json.RawMessage, error) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return nil, err
		}
		name := tool.Load().(string)
		result := map[string]string{
			"initialize":     `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list":     `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]}`,
			"resources/list": `{"resources":[{"uri":"r:` + name + `","name":"r"}]}`,
			"prompts/list":   `{"prompts":[{"name":"p-` + name + `"}]}`,
			"tools/call":     `{"content":[]}`,
		}[m.Method]
		if m.Method == "tools/call" {
			calls.Add(1)
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result), nil
	}
	m := start(t, Options{SDK: host, Servers: []ServerConfig{{Name: "s", Type: "sdk"}}})
	check := func(name, gone string) {
		t.Helper()
		eventually(t, 5*time.Second, func() bool { return toolNames(m) == "mcp__s__"+name }, "tools %s", toolNames(m))
		resources, _ := m.Resources("s")
		if len(resources) != 1 || resources[0].URI != "r:"+name || m.Servers()[0].Prompts[0].Name != "p-"+name {
			t.Errorf("%s: %+v, %+v", name, resources, m.Servers()[0].Prompts)
		}
		before := calls.Load()
		if _, err := m.Call(t.Context(), CallRequest{Tool: "mcp__s__" + gone}); !errors.Is(err, ErrUnknownTool) || calls.Load() != before {
			t.Errorf("%s: %v, %d calls", gone, err, calls.Load()-before)
		}
	}
	check("one", "two")
	tool.Store("two")
	for _, list := range []string{"resources", "prompts", "tools"} {
		message := `{"jsonrpc":"2.0","method":"notifications/` + list + `/list_changed"}`
		if err := m.DeliverSDKServerMessage(t.Context(), "s", json.RawMessage(message)); err != nil {
			t.Error(err)
		}
	}
	eventually(t, 5*time.Second, func() bool { return len(m.Servers()[0].Prompts) == 1 && m.Servers()[0].Prompts[0].Name == "p-two" }, "old prompts")
	check("two", "one")
	tool.Store("three")
	if err := m.Reconnect(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	check("three", "two")
}

// TestResources: list, read, templates, prompts (M34, S35).
func TestResources(t *testing.T) {
	m := startOne(t, "resources")
	if !m.HasResources() {
		t.Error("no resources")
	}
	got, err := m.Resources("")
	if diff := cmp.Diff([]Resource{{Server: "s", URI: "file:///a.txt", Name: "a", MIMEType: "text/plain"}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	read, err := m.ReadResource(t.Context(), "s", "file:///a.txt")
	if want := `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}]}`; string(read) != want {
		t.Errorf("got %s %v", read, err)
	}
	templates, err := m.ResourceTemplates(t.Context(), "s")
	if len(templates) != 1 || err != nil {
		t.Errorf("got %s %v", templates, err)
	}
	if p := m.Servers()[0].Prompts; len(p) != 1 || p[0].Name != "p" || !p[0].Arguments[0].Required {
		t.Errorf("got %+v", p)
	}
	prompt, err := m.GetPrompt(t.Context(), "s", "p", json.RawMessage(`{"x":"1"}`))
	if !strings.Contains(string(prompt), `"messages"`) || err != nil {
		t.Errorf("got %s %v", prompt, err)
	}
}
