package mcptest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// resourceModeResultsByMethod are the results of mode "resources" for methods other than those of tools.
var resourceModeResultsByMethod = map[string]string{
	"resources/list":           `{"resources":[{"uri":"file:///a.txt","name":"a","mimeType":"text/plain"}]}`,
	"resources/read":           `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"file:///{x}","name":"t"}]}`,
	"prompts/list":             `{"prompts":[{"name":"p","description":"d","arguments":[{"name":"x","required":true}]}]}`,
	"prompts/get":              `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`,
} // constant: only read

// unusualTool is a valid definition with unusual keys, which a client must keep.
const unusualTool = `{"name":"good","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","oneOf":[{}],"patternProperties":{"^x-":{"type":"string"}},"x-vendor":9007199254740993},"annotations":{"readOnlyHint":true,"x-other":[1]},"_meta":{"k":1}}`

func (s *server) list(m message) {
	switch s.Mode {
	case "nocaps":
		s.fail(m.ID, -32601, "Method not found")
	case "schema-bytes":
		s.reply(m.ID, json.RawMessage(`{"tools":[`+unusualTool+`]}`))
	case "weird-tools": // a tool without a schema makes the list invalid
		s.reply(m.ID, json.RawMessage(`{"tools":[`+unusualTool+`,{"name":"bare"}]}`))
	case "tools-null":
		s.reply(m.ID, map[string]any{"tools": nil})
	case "tools-error":
		s.fail(m.ID, -32000, "no list today")
	case "tools-hang":
	case "pages", "page-loop", "page-endless":
		s.listPage(m)
	case "names":
		s.reply(m.ID, map[string]any{"tools": []any{toolDefinitionWithEmptySchema("a.b"), toolDefinitionWithEmptySchema("a/b"), toolDefinitionWithEmptySchema("x__y"), toolDefinitionWithEmptySchema(strings.Repeat("n", 121))}})
	default:
		if s.Mode == "list-breaks" && s.hasExtraTool {
			s.fail(m.ID, -32000, "this list is not available")
			return
		}
		tools := []any{toolDefinitionWithEmptySchema("echo"), toolDefinitionWithEmptySchema("sleep"), toolDefinitionWithEmptySchema("fail"), toolDefinitionWithEmptySchema("empty"), toolDefinitionWithEmptySchema("crash")}
		if s.hasExtraTool {
			tools = append(tools, toolDefinitionWithEmptySchema("extra"))
		}
		s.reply(m.ID, map[string]any{"tools": tools})
	}
}

// listPage responds with one tool per page: three pages, or an endless list.
func (s *server) listPage(m message) {
	n, _ := strconv.Atoi(m.Params.Cursor) // "" is the first page
	result := map[string]any{"tools": []any{toolDefinitionWithEmptySchema(fmt.Sprintf("t%d", n))}}
	switch {
	case s.Mode == "page-endless", n < 2:
		result["nextCursor"] = strconv.Itoa(n + 1)
	case s.Mode == "page-loop":
		result["nextCursor"] = "1"
	}
	s.reply(m.ID, result)
}
