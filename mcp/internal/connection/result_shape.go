package connection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// Defects describes what is wrong with the result of a method, as the real CLI does (observed with 2.1.330); "" means
// nothing. The results of methods without a schema here are not checked.
func Defects(method string, result json.RawMessage) string { return defects(method, result, required) }

// DefectsWithoutSchema is like Defects, but for clients that call tools without an input schema.
func DefectsWithoutSchema(method string, result json.RawMessage) string {
	return defects(method, result, optional)
}

func defects(method string, result json.RawMessage, schema func(string, shape) objectMember) string {
	check, known := resultShapes(schema)[method]
	if !known {
		return ""
	}
	return describe(check(result))
}

// ToolResultDefects describes the defects of a tool result in revisions up to 2025-11-25; "" means none.
func ToolResultDefects(result json.RawMessage) string {
	return cmp.Or(describe(toolResult(optional("content", listOf(contentBlock())), anyObject)(result)), otherResultDefect(result))
}

// ModernToolResultDefects is ToolResultDefects for revision 2026-07-28, where results must have content, and structured
// content may be any value.
func ModernToolResultDefects(result json.RawMessage) string {
	return describe(toolResult(required("content", listOf(contentBlock())), anyValue)(result))
}

// CacheDefects describes the defects of the cache keys that lists have in revision 2026-07-28; "" means none.
func CacheDefects(result json.RawMessage) string {
	return describe(object(optional("ttlMs", durationIssues), optional("cacheScope", oneOf("public", "private")))(result))
}

// durationIssues returns the defects of a duration, which must be a whole number from 0.
func durationIssues(v json.RawMessage) []schemaIssue {
	if plainjson.TypeOf(v) != "number" {
		return wrongType("number", v)
	}
	const largest = 1<<53 - 1
	if n, err := strconv.ParseFloat(string(v), 64); err != nil || n < 0 || n > largest || n != math.Trunc(n) {
		return wrongType("int", v)
	}
	return nil
}

func anyValue(json.RawMessage) []schemaIssue { return nil }

func toolResult(content objectMember, structured shape) shape {
	return object(content, optional("structuredContent", structured), optional("isError", ofType("boolean")))
}

func describe(issues []schemaIssue) string {
	if len(issues) == 0 {
		return ""
	}
	text, err := plainjson.Indented(issues)
	if err != nil { // the result was valid JSON
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// otherResultDefect checks for a result that is not a tool result: it has no content, but a task or inputRequests. It
// returns the defect; "" means none.
func otherResultDefect(result json.RawMessage) string {
	members, _ := plainjson.Parse(result) // anything but an object has no members
	for _, name := range []string{"task", "inputRequests"} {
		if members.Get(name) != nil && members.Get("content") == nil {
			return fmt.Sprintf("[\n  {\n    \"code\": \"custom\",\n    \"message\": \"content is required when the body carries '%s' — another result family "+
				"cannot default into an empty tools/call success\",\n    \"path\": []\n  }\n]", name)
		}
	}
	return ""
}

func resultShapes(schema func(string, shape) objectMember) map[string]shape {
	return map[string]shape{
		"initialize":     initializeShape(),
		"tools/list":     listPageShape("tools", tool(schema)),
		"prompts/list":   listPageShape("prompts", prompt()),
		"resources/list": listPageShape("resources", resource()),
	}
}

func listPageShape(name string, item shape) shape {
	return object(optional("nextCursor", ofType("string")), required(name, listOf(item)))
}

func initializeShape() shape {
	lists := optional("listChanged", ofType("boolean"))
	return object(
		required("protocolVersion", ofType("string")),
		required("capabilities", object(
			optional("experimental", anyObject), optional("logging", ofType("object")), optional("completions", ofType("object")),
			optional("prompts", object(lists)), optional("resources", object(optional("subscribe", ofType("boolean")), lists)),
			optional("tools", object(lists)),
		)),
		required("serverInfo", object(namedMembers(required("version", ofType("string")))...)),
		optional("instructions", ofType("string")),
	)
}

func namedMembers(others ...objectMember) []objectMember {
	icon := object(required("src", ofType("string")), optional("mimeType", ofType("string")), optional("sizes", listOf(ofType("string"))))
	return append([]objectMember{required("name", ofType("string")), optional("title", ofType("string")), optional("icons", listOf(icon))}, others...)
}

func tool(schema func(string, shape) objectMember) shape {
	hints := []objectMember{optional("title", ofType("string"))}
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		hints = append(hints, optional(name, ofType("boolean")))
	}
	return object(namedMembers(
		optional("description", ofType("string")),
		schema("inputSchema", object(
			required("type", oneOf("object")), optional("properties", anyObject), optional("required", listOf(ofType("string"))),
		)),
		optional("outputSchema", ofType("object")),
		optional("annotations", object(hints...)),
		optional("execution", object(optional("taskSupport", oneOf("required", "optional", "forbidden")))),
		optional("_meta", anyObject),
	)...)
}

func prompt() shape {
	argument := object(required("name", ofType("string")), optional("description", ofType("string")), optional("required", ofType("boolean")))
	return object(namedMembers(optional("description", ofType("string")), optional("arguments", listOf(argument)))...)
}

func resource(others ...objectMember) shape {
	return object(append(namedMembers(
		required("uri", ofType("string")), optional("description", ofType("string")), optional("mimeType", ofType("string")),
		optional("annotations", annotations()), optional("_meta", ofType("object")),
	), others...)...)
}

func annotations() shape {
	return object(optional("audience", listOf(oneOf("user", "assistant"))), optional("priority", ofType("number")), optional("lastModified", ofType("string")))
}

func contentBlock() shape {
	block := func(kind string, members ...objectMember) shape {
		members = append([]objectMember{required("type", oneOf(kind))}, members...)
		return object(append(members, optional("annotations", annotations()), optional("_meta", anyObject))...)
	}
	media := []objectMember{required("data", base64Data), required("mimeType", ofType("string"))}
	contents := func(data objectMember) shape {
		return object(required("uri", ofType("string")), optional("mimeType", ofType("string")), optional("_meta", anyObject), data)
	}
	return union(
		block("text", required("text", ofType("string"))), block("image", media...), block("audio", media...),
		resource(required("type", oneOf("resource_link"))),
		block("resource", required("resource", union(contents(required("text", ofType("string"))), contents(required("blob", base64Data))))),
	)
}

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. isModern is true for revision 2026-07-28, in which elicitations have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	if issues := elicitation(isModern)(params); issues != nil {
		return &Error{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + describe(prefixIssues("params", issues))}
	}
	return nil
}

func elicitation(isModern bool) shape {
	text := ofType("string")
	url := []objectMember{required("mode", oneOf("url")), required("message", text)}
	if !isModern {
		url = append(url, required("elicitationId", text))
	}
	form := object(required("type", oneOf("object")), required("properties", recordOf(formFieldShape())), optional("required", listOf(text)))
	return union(
		object(optional("mode", oneOf("form")), required("message", text), required("requestedSchema", form)),
		object(append(url, required("url", text))...),
	)
}

func formFieldShape() shape {
	text, number := ofType("string"), ofType("number")
	field := func(kind shape, others ...objectMember) shape {
		return object(append([]objectMember{required("type", kind), optional("title", text), optional("description", text)}, others...)...)
	}
	options := listOf(object(required("const", text), required("title", text)))
	one := func(values ...objectMember) shape {
		return field(oneOf("string"), append(values, optional("default", text))...)
	}
	many := func(items shape) shape {
		return field(oneOf("array"), optional("minItems", number), optional("maxItems", number), required("items", items), optional("default", listOf(text)))
	}
	choice := union(
		one(required("enum", listOf(text)), optional("enumNames", listOf(text))),
		union(one(required("enum", listOf(text))), one(required("oneOf", options))),
		union(many(object(required("type", oneOf("string")), required("enum", listOf(text)))), many(object(required("anyOf", options)))),
	)
	return union(
		choice,
		field(oneOf("boolean"), optional("default", ofType("boolean"))),
		field(oneOf("string"), optional("minLength", number), optional("maxLength", number),
			optional("format", oneOf("email", "uri", "date", "date-time")), optional("default", text)),
		field(oneOf("number", "integer"), optional("minimum", number), optional("maximum", number), optional("default", number)),
	)
}

// isMessage reports whether a line is a JSON-RPC message. Like the real CLI, it rejects a message without the version,
// with unknown members, or with a _meta that is not an object (observed with 2.1.330).
func isMessage(line []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || plainjson.JSString(members["jsonrpc"]) != wire.JSONRPC_VERSION {
		return false
	}
	bodies := 0
	for name, value := range members {
		switch name {
		case "jsonrpc", "id":
		case "params", "result":
			if object(optional("_meta", ofType("object")))(value) != nil {
				return false
			}
			if name == "result" {
				bodies++
			}
		case "method", "error":
			bodies++
		default:
			return false
		}
	}
	return bodies == 1
}

// ServerInfo is the name and version of a server.
type ServerInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// InitializeResult is a server's answer to initialize.
type InitializeResult struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ServerInfo      ServerInfo      `json:"serverInfo"`
	Instructions    string          `json:"instructions"`
}

// Has reports whether the server declared a capability.
func (h InitializeResult) Has(capability string) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(h.Capabilities, &all) != nil {
		return false
	}
	v, ok := all[capability]
	return ok && string(v) != "null" && string(v) != "false"
}

// IsEmpty reports whether the server declared nothing.
func (h InitializeResult) IsEmpty() bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(h.Capabilities, &all) != nil || len(all) == 0
}

// SupportsSubscriptions reports whether the server declared resource subscriptions.
func (h InitializeResult) SupportsSubscriptions() bool {
	var c struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	return json.Unmarshal(h.Capabilities, &c) == nil && c.Resources.Subscribe
}
