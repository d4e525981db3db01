package connection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// ResultDefects describes what is wrong with the result of a method, as the real CLI does (observed with 2.1.330); ""
// means nothing. The results of methods without a schema here are not checked.
func ResultDefects(method string, result json.RawMessage) string {
	return resultDefects(method, result, required)
}

// ResultDefectsWithoutSchema is like [ResultDefects], but accepts tools without an input schema.
func ResultDefectsWithoutSchema(method string, result json.RawMessage) string {
	return resultDefects(method, result, optional)
}

func resultDefects(method string, result json.RawMessage, schema func(string, shape) objectMember) string {
	check, known := resultShapes(schema)[method]
	if !known {
		return ""
	}
	return describeIssues(check(result))
}

// ToolResultDefects describes the defects of a tool result in revisions up to 2025-11-25; "" means none.
func ToolResultDefects(result json.RawMessage) string {
	return cmp.Or(describeIssues(toolResultShape(optional("content", listOf(contentBlockShape())), checkAnyObject)(result)), otherResultDefect(result))
}

// ModernToolResultDefects is ToolResultDefects for revision 2026-07-28, where results must have content, and structured
// content may be any value.
func ModernToolResultDefects(result json.RawMessage) string {
	return describeIssues(toolResultShape(required("content", listOf(contentBlockShape())), acceptAnyValue)(result))
}

// CacheDefects describes the defects of the cache keys that lists have in revision 2026-07-28; "" means none.
func CacheDefects(result json.RawMessage) string {
	return describeIssues(object(optional("ttlMs", checkDuration), optional("cacheScope", oneOf("public", "private")))(result))
}

// checkDuration returns the defects of a duration, which must be a whole number from 0.
func checkDuration(v json.RawMessage) []schemaIssue {
	if plainjson.TypeOf(v) != "number" {
		return wrongTypeIssues("number", v)
	}
	const largest = 1<<53 - 1
	if n, err := strconv.ParseFloat(string(v), 64); err != nil || n < 0 || n > largest || n != math.Trunc(n) {
		return wrongTypeIssues("int", v)
	}
	return nil
}

func acceptAnyValue(json.RawMessage) []schemaIssue { return nil }

func toolResultShape(content objectMember, structured shape) shape {
	return object(content, optional("structuredContent", structured), optional("isError", typeShape("boolean")))
}

func describeIssues(issues []schemaIssue) string {
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
		"tools/list":     listPageShape("tools", toolShape(schema)),
		"prompts/list":   listPageShape("prompts", promptShape()),
		"resources/list": listPageShape("resources", resourceShape()),
	}
}

func listPageShape(name string, item shape) shape {
	return object(optional("nextCursor", typeShape("string")), required(name, listOf(item)))
}

func initializeShape() shape {
	lists := optional("listChanged", typeShape("boolean"))
	return object(
		required("protocolVersion", typeShape("string")),
		required("capabilities", object(
			optional("experimental", checkAnyObject), optional("logging", typeShape("object")), optional("completions", typeShape("object")),
			optional("prompts", object(lists)), optional("resources", object(optional("subscribe", typeShape("boolean")), lists)),
			optional("tools", object(lists)),
		)),
		required("serverInfo", object(namedMembers(required("version", typeShape("string")))...)),
		optional("instructions", typeShape("string")),
	)
}

func namedMembers(others ...objectMember) []objectMember {
	icon := object(required("src", typeShape("string")), optional("mimeType", typeShape("string")), optional("sizes", listOf(typeShape("string"))))
	return append([]objectMember{required("name", typeShape("string")), optional("title", typeShape("string")), optional("icons", listOf(icon))}, others...)
}

func toolShape(schema func(string, shape) objectMember) shape {
	hints := []objectMember{optional("title", typeShape("string"))}
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		hints = append(hints, optional(name, typeShape("boolean")))
	}
	return object(namedMembers(
		optional("description", typeShape("string")),
		schema("inputSchema", object(
			required("type", oneOf("object")), optional("properties", checkAnyObject), optional("required", listOf(typeShape("string"))),
		)),
		optional("outputSchema", typeShape("object")),
		optional("annotations", object(hints...)),
		optional("execution", object(optional("taskSupport", oneOf("required", "optional", "forbidden")))),
		optional("_meta", checkAnyObject),
	)...)
}

func promptShape() shape {
	argument := object(required("name", typeShape("string")), optional("description", typeShape("string")), optional("required", typeShape("boolean")))
	return object(namedMembers(optional("description", typeShape("string")), optional("arguments", listOf(argument)))...)
}

func resourceShape(others ...objectMember) shape {
	return object(append(namedMembers(
		required("uri", typeShape("string")), optional("description", typeShape("string")), optional("mimeType", typeShape("string")),
		optional("annotations", annotationsShape()), optional("_meta", typeShape("object")),
	), others...)...)
}

func annotationsShape() shape {
	return object(optional("audience", listOf(oneOf("user", "assistant"))), optional("priority", typeShape("number")), optional("lastModified", typeShape("string")))
}

func contentBlockShape() shape {
	block := func(kind string, members ...objectMember) shape {
		members = append([]objectMember{required("type", oneOf(kind))}, members...)
		return object(append(members, optional("annotations", annotationsShape()), optional("_meta", checkAnyObject))...)
	}
	media := []objectMember{required("data", checkBase64), required("mimeType", typeShape("string"))}
	contents := func(data objectMember) shape {
		return object(required("uri", typeShape("string")), optional("mimeType", typeShape("string")), optional("_meta", checkAnyObject), data)
	}
	return union(
		block("text", required("text", typeShape("string"))), block("image", media...), block("audio", media...),
		resourceShape(required("type", oneOf("resource_link"))),
		block("resource", required("resource", union(contents(required("text", typeShape("string"))), contents(required("blob", checkBase64))))),
	)
}

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. isModern is true for revision 2026-07-28, in which elicitations have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	if issues := elicitationShape(isModern)(params); issues != nil {
		return &Error{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + describeIssues(prefixIssues("params", issues))}
	}
	return nil
}

func elicitationShape(isModern bool) shape {
	text := typeShape("string")
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
	text, number := typeShape("string"), typeShape("number")
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
		field(oneOf("boolean"), optional("default", typeShape("boolean"))),
		field(oneOf("string"), optional("minLength", number), optional("maxLength", number),
			optional("format", oneOf("email", "uri", "date", "date-time")), optional("default", text)),
		field(oneOf("number", "integer"), optional("minimum", number), optional("maximum", number), optional("default", number)),
	)
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
