// This file checks values of servers against the schemas of the protocol. Defects are worded as in the real CLI.

package connection

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

type schemaIssue struct {
	Expected string          `json:"expected,omitempty"`
	Code     string          `json:"code"`
	Values   []string        `json:"values,omitempty"`
	Errors   [][]schemaIssue `json:"errors,omitempty"` // the issues for each allowed kind of value, if there are several
	Path     []any           `json:"path"`
	Message  string          `json:"message"`

	isContentIssue bool // the value has the right type but the wrong content
}

// schemaCheck returns the defects of a value; nil means none. A missing value is nil.
type schemaCheck func(value json.RawMessage) []schemaIssue

func wrongTypeIssues(expected string, value json.RawMessage) []schemaIssue {
	text := fmt.Sprintf("Invalid input: expected %s, received %s", expected, plainjson.TypeOf(value))
	return []schemaIssue{{Expected: expected, Code: "invalid_type", Path: []any{}, Message: text}}
}

func jsonTypeCheck(jsonType string) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		if plainjson.TypeOf(v) == jsonType {
			return nil
		}
		return wrongTypeIssues(jsonType, v)
	}
}

func checkAnyObject(v json.RawMessage) []schemaIssue {
	if plainjson.TypeOf(v) == "object" {
		return nil
	}
	return wrongTypeIssues("record", v)
}

func oneOf(values ...string) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		if text, _ := plainjson.StringValue(v); slices.Contains(values, text) {
			return nil
		}
		message := fmt.Sprintf("Invalid input: expected %q", values[0])
		if len(values) > 1 {
			message = fmt.Sprintf(`Invalid option: expected one of "%s"`, strings.Join(values, `"|"`))
		}
		return []schemaIssue{{Code: "invalid_value", Values: values, Path: []any{}, Message: message}}
	}
}

func checkBase64(v json.RawMessage) []schemaIssue {
	text, isText := plainjson.StringValue(v)
	if !isText {
		return wrongTypeIssues("string", v)
	}
	if _, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")); err != nil {
		return []schemaIssue{{Code: "custom", Path: []any{}, Message: "Invalid Base64 string", isContentIssue: true}}
	}
	return nil
}

type objectMemberCheck struct {
	name       string
	valueCheck schemaCheck
	isOptional bool
}

func required(name string, s schemaCheck) objectMemberCheck { return objectMemberCheck{name, s, false} }

func optional(name string, s schemaCheck) objectMemberCheck { return objectMemberCheck{name, s, true} }

// object accepts objects with these members; other members are allowed.
func object(members ...objectMemberCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var found map[string]json.RawMessage
		if plainjson.TypeOf(v) != "object" || json.Unmarshal(v, &found) != nil {
			return wrongTypeIssues("object", v)
		}
		for _, m := range members {
			if value, exists := found[m.name]; exists || !m.isOptional {
				all = append(all, prefixIssues(m.name, m.valueCheck(value))...)
			}
		}
		return all
	}
}

func objectWithEveryMemberCheck(memberCheck schemaCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		if issues := checkAnyObject(v); issues != nil {
			return issues
		}
		members, _ := plainjson.Parse(v) // the caller has checked that it is an object
		for _, m := range members {
			all = append(all, prefixIssues(m.Key, memberCheck(m.Value))...)
		}
		return all
	}
}

func listOf(item schemaCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var items []json.RawMessage
		if plainjson.TypeOf(v) != "array" || json.Unmarshal(v, &items) != nil {
			return wrongTypeIssues("array", v)
		}
		for i, value := range items {
			all = append(all, prefixIssues(i, item(value))...)
		}
		return all
	}
}

// union accepts values of several kinds. For other values, it reports the defects for each kind. If
// the value has exactly one of the kinds and only its content is invalid, it reports only the
// defects of the content.
func union(kinds ...schemaCheck) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		var all, near [][]schemaIssue
		for _, kind := range kinds {
			issues := kind(v)
			if len(issues) == 0 {
				return nil
			}
			all = append(all, issues)
			if !slices.ContainsFunc(issues, func(i schemaIssue) bool { return !i.isContentIssue }) { // the type is right
				near = append(near, issues)
			}
		}
		if len(near) == 1 {
			return near[0]
		}
		return []schemaIssue{{Code: "invalid_union", Errors: all, Path: []any{}, Message: "Invalid input"}}
	}
}

func prefixIssues(key any, issues []schemaIssue) []schemaIssue {
	for i := range issues {
		issues[i].Path = append([]any{key}, issues[i].Path...)
	}
	return issues
}

// ResultDefects describes what is wrong with the result of a method, as the real CLI does (observed with 2.1.330); ""
// means nothing. The results of methods without a schema here are not checked.
func ResultDefects(method string, result json.RawMessage) string {
	return resultDefects(method, result, required)
}

// ResultDefectsOptionalSchema is like [ResultDefects], but accepts tools without an input schema.
func ResultDefectsOptionalSchema(method string, result json.RawMessage) string {
	return resultDefects(method, result, optional)
}

func resultDefects(method string, result json.RawMessage, requiredOrOptional func(string, schemaCheck) objectMemberCheck) string {
	if check, known := resultShapes(requiredOrOptional)[method]; known {
		return describeIssues(check(result))
	}
	return ""
}

// ToolResultDefects describes the defects of a tool result in revisions up to 2025-11-25; "" means none.
func ToolResultDefects(result json.RawMessage) string {
	return cmp.Or(describeIssues(toolResultShape(optional("content", listOf(contentBlockShape())), checkAnyObject)(result)), taskOrInputRequestsDefect(result))
}

// ToolResultDefectsInModernVersion is ToolResultDefects for revision 2026-07-28, where results must have content, and structured
// content may be any value.
func ToolResultDefectsInModernVersion(result json.RawMessage) (defectsOrEmpty string) {
	return describeIssues(toolResultShape(required("content", listOf(contentBlockShape())), acceptAnyValue)(result))
}

// CacheKeyDefectsOfList describes the defects of the cache keys that lists have in revision 2026-07-28; "" means none.
func CacheKeyDefectsOfList(listResult json.RawMessage) (defectsOrEmpty string) {
	return describeIssues(object(optional("ttlMs", checkNonNegativeInteger), optional("cacheScope", oneOf("public", "private")))(listResult))
}

// checkNonNegativeInteger returns the defects of a duration, which must be a whole number from 0.
func checkNonNegativeInteger(v json.RawMessage) []schemaIssue {
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

func toolResultShape(content objectMemberCheck, structured schemaCheck) schemaCheck {
	return object(content, optional("structuredContent", structured), optional("isError", jsonTypeCheck("boolean")))
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

// taskOrInputRequestsDefect returns the defect of a result that has a task or inputRequests but no
// content, so it is not a tool result; "" means none.
func taskOrInputRequestsDefect(toolCallResult json.RawMessage) (defectOrEmpty string) {
	members, _ := plainjson.Parse(toolCallResult) // anything but an object has no members
	for _, name := range []string{"task", "inputRequests"} {
		if members.Get(name) != nil && members.Get("content") == nil {
			return fmt.Sprintf("[\n  {\n    \"code\": \"custom\",\n    \"message\": \"content is required when the body carries '%s' — another result family "+
				"cannot default into an empty tools/call success\",\n    \"path\": []\n  }\n]", name)
		}
	}
	return ""
}

func resultShapes(schema func(string, schemaCheck) objectMemberCheck) map[string]schemaCheck {
	return map[string]schemaCheck{
		"initialize":     initializeShape(),
		"tools/list":     listPageShape("tools", toolShape(schema)),
		"prompts/list":   listPageShape("prompts", promptShape()),
		"resources/list": listPageShape("resources", resourceShape()),
	}
}

func listPageShape(name string, item schemaCheck) schemaCheck {
	return object(optional("nextCursor", jsonTypeCheck("string")), required(name, listOf(item)))
}

func initializeShape() schemaCheck {
	lists := optional("listChanged", jsonTypeCheck("boolean"))
	return object(
		required("protocolVersion", jsonTypeCheck("string")),
		required("capabilities", object(
			optional("experimental", checkAnyObject), optional("logging", jsonTypeCheck("object")), optional("completions", jsonTypeCheck("object")),
			optional("prompts", object(lists)), optional("resources", object(optional("subscribe", jsonTypeCheck("boolean")), lists)),
			optional("tools", object(lists)),
		)),
		required("serverInfo", object(nameTitleAndIconsMembersPlus(required("version", jsonTypeCheck("string")))...)),
		optional("instructions", jsonTypeCheck("string")),
	)
}

func nameTitleAndIconsMembersPlus(others ...objectMemberCheck) []objectMemberCheck {
	icon := object(required("src", jsonTypeCheck("string")), optional("mimeType", jsonTypeCheck("string")), optional("sizes", listOf(jsonTypeCheck("string"))))
	return append([]objectMemberCheck{required("name", jsonTypeCheck("string")), optional("title", jsonTypeCheck("string")), optional("icons", listOf(icon))}, others...)
}

func toolShape(schema func(string, schemaCheck) objectMemberCheck) schemaCheck {
	hints := []objectMemberCheck{optional("title", jsonTypeCheck("string"))}
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		hints = append(hints, optional(name, jsonTypeCheck("boolean")))
	}
	return object(nameTitleAndIconsMembersPlus(
		optional("description", jsonTypeCheck("string")),
		schema("inputSchema", object(required("type", oneOf("object")), optional("properties", checkAnyObject), optional("required", listOf(jsonTypeCheck("string"))))),
		optional("outputSchema", jsonTypeCheck("object")),
		optional("annotations", object(hints...)),
		optional("execution", object(optional("taskSupport", oneOf("required", "optional", "forbidden")))),
		optional("_meta", checkAnyObject),
	)...)
}

func promptShape() schemaCheck {
	argument := object(required("name", jsonTypeCheck("string")), optional("description", jsonTypeCheck("string")), optional("required", jsonTypeCheck("boolean")))
	return object(nameTitleAndIconsMembersPlus(optional("description", jsonTypeCheck("string")), optional("arguments", listOf(argument)))...)
}

func resourceShape(others ...objectMemberCheck) schemaCheck {
	return object(append(nameTitleAndIconsMembersPlus(
		required("uri", jsonTypeCheck("string")), optional("description", jsonTypeCheck("string")), optional("mimeType", jsonTypeCheck("string")),
		optional("annotations", annotationsShape()), optional("_meta", jsonTypeCheck("object")),
	), others...)...)
}

func annotationsShape() schemaCheck {
	return object(optional("audience", listOf(oneOf("user", "assistant"))), optional("priority", jsonTypeCheck("number")), optional("lastModified", jsonTypeCheck("string")))
}

func contentBlockShape() schemaCheck {
	block := func(kind string, members ...objectMemberCheck) schemaCheck {
		members = append([]objectMemberCheck{required("type", oneOf(kind))}, members...)
		return object(append(members, optional("annotations", annotationsShape()), optional("_meta", checkAnyObject))...)
	}
	media := []objectMemberCheck{required("data", checkBase64), required("mimeType", jsonTypeCheck("string"))}
	contents := func(data objectMemberCheck) schemaCheck {
		return object(required("uri", jsonTypeCheck("string")), optional("mimeType", jsonTypeCheck("string")), optional("_meta", checkAnyObject), data)
	}
	return union(
		block("text", required("text", jsonTypeCheck("string"))), block("image", media...), block("audio", media...),
		resourceShape(required("type", oneOf("resource_link"))),
		block("resource", required("resource", union(contents(required("text", jsonTypeCheck("string"))), contents(required("blob", checkBase64))))),
	)
}

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. isModern is true for revision 2026-07-28, in which elicitations have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	if issues := elicitationParamsCheck(isModern)(params); issues != nil {
		return &Error{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + describeIssues(prefixIssues("params", issues))}
	}
	return nil
}

func elicitationParamsCheck(isModernVersion bool) schemaCheck {
	text := jsonTypeCheck("string")
	url := []objectMemberCheck{required("mode", oneOf("url")), required("message", text)}
	if !isModernVersion {
		url = append(url, required("elicitationId", text))
	}
	form := object(required("type", oneOf("object")), required("properties", objectWithEveryMemberCheck(elicitationFormFieldCheck())), optional("required", listOf(text)))
	return union(object(optional("mode", oneOf("form")), required("message", text), required("requestedSchema", form)), object(append(url, required("url", text))...))
}

func elicitationFormFieldCheck() schemaCheck {
	text, number := jsonTypeCheck("string"), jsonTypeCheck("number")
	field := func(kind schemaCheck, others ...objectMemberCheck) schemaCheck {
		return object(append([]objectMemberCheck{required("type", kind), optional("title", text), optional("description", text)}, others...)...)
	}
	options := listOf(object(required("const", text), required("title", text)))
	one := func(values ...objectMemberCheck) schemaCheck {
		return field(oneOf("string"), append(values, optional("default", text))...)
	}
	many := func(items schemaCheck) schemaCheck {
		return field(oneOf("array"), optional("minItems", number), optional("maxItems", number), required("items", items), optional("default", listOf(text)))
	}
	choice := union(
		one(required("enum", listOf(text)), optional("enumNames", listOf(text))),
		union(one(required("enum", listOf(text))), one(required("oneOf", options))),
		union(many(object(required("type", oneOf("string")), required("enum", listOf(text)))), many(object(required("anyOf", options)))),
	)
	return union(
		choice,
		field(oneOf("boolean"), optional("default", jsonTypeCheck("boolean"))),
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
	v, ok := plainjson.DecodeOrZero[map[string]json.RawMessage](h.Capabilities)[capability]
	return ok && string(v) != "null" && string(v) != "false"
}

// HasNoCapabilities reports whether the server declared nothing.
func (h InitializeResult) HasNoCapabilities() bool {
	return len(plainjson.DecodeOrZero[map[string]json.RawMessage](h.Capabilities)) == 0
}

// SupportsSubscriptions reports whether the server declared resource subscriptions.
func (h InitializeResult) SupportsSubscriptions() bool {
	return plainjson.DecodeOrZero[struct{ Resources struct{ Subscribe bool } }](h.Capabilities).Resources.Subscribe
}
