package connection

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDefects_N7 has a row for every malformed result that was sent to the real CLI 2.1.330. want is a part of the text
// of its error; "" means that the CLI accepts the value.
func TestDefects_N7(t *testing.T) {
	hello := func(members string) string { return `{"protocolVersion":"2025-11-25",` + members + `}` }
	info := `"serverInfo":{"name":"s","version":"1"}`
	tools := func(members string) string { return `{"tools":[{"name":"echo"` + members + `}]}` }
	schema := `,"inputSchema":{"type":"object"}`
	text := func(members string) string { return `{"content":[{"type":"text","text":"x"` + members + `}]}` }
	for _, test := range []struct{ method, value, want string }{
		{"initialize", hello(`"capabilities":{"foo":3,"tools":{}},` + info + `,"extra":1`), ""},
		{"initialize", hello(`"capabilities":{"tools":{}}`), "expected object, received undefined"},
		{"initialize", hello(`"capabilities":{"tools":{}},"serverInfo":{"name":"s"}`), "expected string, received undefined"},
		{"initialize", hello(`"capabilities":null,` + info), "expected object, received null"},
		{"initialize", hello(`"capabilities":{"tools":null},` + info), "expected object, received null"},
		{"initialize", hello(`"capabilities":{"tools":{"listChanged":"yes"}},` + info), "expected boolean, received string"},
		{"initialize", `{"capabilities":{},` + info + `}`, "expected string, received undefined"},
		{"tools/list", tools(schema), ""},
		{"tools/list", tools(``), "expected object, received undefined"},
		{"tools/list", tools(`,"inputSchema":{"type":"array"}`), `expected \"object\"`},
		{"tools/list", tools(schema + `,"description":null`), "expected string, received null"},
		{"tools/list", tools(schema + `,"annotations":{"readOnlyHint":"yes"}`), "expected boolean, received string"},
		{"tools/list", tools(schema + `,"outputSchema":null`), "expected object, received null"},
		{"tools/list", tools(schema + `,"outputSchema":{"type":"string"}`), ""},
		{"tools/list", tools(schema + `,"icons":"x"`), "expected array, received string"},
		{"tools/list", tools(schema + `,"execution":{"taskSupport":"maybe"}`), `expected one of \"required\"|\"optional\"|\"forbidden\"`},
		{"tools/list", tools(schema + `,"_meta":"x"`), "expected record, received string"},
		{"tools/list", `{"tools":["echo"]}`, "expected object, received string"},
		{"tools/list", `{"tools":[],"nextCursor":null}`, "expected string, received null"},
		{"tools/list", `{}`, "expected array, received undefined"},
		{"prompts/list", `{"prompts":[{"name":"ok"},{"name":5}]}`, "expected string, received number"},
		{"resources/list", `{"resources":[{"uri":"a://b"}]}`, "expected string, received undefined"},
		{"tools/call", text(`,"annotations":{"audience":["user"],"priority":0.5}`), ""},
		{"tools/call", text(`,"annotations":{"audience":"user","priority":"high"}`), "expected array, received string"},
		{"tools/call", text(`,"annotations":null`), "expected object, received null"},
		{"tools/call", `{"content":[],"structuredContent":[1]}`, "expected record, received array"},
		{"tools/call", `{"structuredContent":{"n":5}}`, ""},
		{"tools/call", `{"content":[{"type":"image","data":"!!!","mimeType":"image/png"}]}`, "Invalid Base64 string"},
		{"ping", `5`, ""},
	} {
		got := ResultDefects(test.method, json.RawMessage(test.value))
		if test.method == "tools/call" {
			got = ToolResultDefects(json.RawMessage(test.value))
		}
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %s, want %q", test.method, test.value, got, test.want)
		}
	}
	if got := ResultDefectsOptionalSchema("tools/list", json.RawMessage(tools(``))); got != "" {
		t.Errorf("tool without a schema: %q", got)
	}
	if got := ModernToolResultDefects(json.RawMessage(`{}`)); !strings.Contains(got, "expected array, received undefined") {
		t.Errorf("modern result without content: %q", got)
	}
	if got := ToolResultDefects(json.RawMessage(`{"task":{}}`)); !strings.Contains(got, "carries 'task'") || ToolResultDefects(json.RawMessage(`{"task":{},"content":[]}`)) != "" {
		t.Errorf("task instead of content: %q", got)
	}
}

// FuzzDefects: no value of a server makes the check crash, and a value without defects is an object.
func FuzzDefects(f *testing.F) {
	for _, seed := range []string{`{}`, `{"content":[{"type":"resource","resource":{"uri":"a","blob":"!"}}]}`, `{"tools":[{"name":1}]}`, `[null]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		_ = ToolResultDefects(json.RawMessage(value))
		for _, method := range []string{"initialize", "tools/list", "prompts/list", "resources/list"} {
			if got := ResultDefects(method, json.RawMessage(value)); got == "" && strings.TrimSpace(value)[0] != '{' {
				t.Errorf("%s accepts %s", method, value)
			}
		}
	})
}
