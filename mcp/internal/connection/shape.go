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

func oneOfCheck(values ...string) schemaCheck {
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

func requiredMember(name string, s schemaCheck) objectMemberCheck {
	return objectMemberCheck{name, s, false}
}

func optionalMember(name string, s schemaCheck) objectMemberCheck {
	return objectMemberCheck{name, s, true}
}

// objectCheck accepts objects with these members; other members are allowed.
func objectCheck(members ...objectMemberCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var found map[string]json.RawMessage
		if plainjson.TypeOf(v) != "object" || json.Unmarshal(v, &found) != nil {
			return wrongTypeIssues("object", v)
		}
		for _, m := range members {
			if value, exists := found[m.name]; exists || !m.isOptional {
				all = append(all, withPathPrefix(m.name, m.valueCheck(value))...)
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
			all = append(all, withPathPrefix(m.Key, memberCheck(m.Value))...)
		}
		return all
	}
}

func listCheck(item schemaCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var items []json.RawMessage
		if plainjson.TypeOf(v) != "array" || json.Unmarshal(v, &items) != nil {
			return wrongTypeIssues("array", v)
		}
		for i, value := range items {
			all = append(all, withPathPrefix(i, item(value))...)
		}
		return all
	}
}

// unionCheck accepts values of several kinds. For other values, it reports the defects for each kind. If the value has exactly
// one of the kinds and only its content is invalid, it reports only the defects of the content.
func unionCheck(kinds ...schemaCheck) schemaCheck {
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

func withPathPrefix(key any, issues []schemaIssue) []schemaIssue {
	for i := range issues {
		issues[i].Path = append([]any{key}, issues[i].Path...)
	}
	return issues
}

// ResultDefects describes what is wrong with the result of a method, as the real CLI does (observed with 2.1.330); ""
// means nothing. The results of methods without a schema here are not checked.
func ResultDefects(method string, result json.RawMessage) string {
	return resultDefects(method, result, requiredMember)
}

// ResultDefectsOptionalSchema is like [ResultDefects], but accepts tools without an input schema.
func ResultDefectsOptionalSchema(method string, result json.RawMessage) string {
	return resultDefects(method, result, optionalMember)
}

func resultDefects(method string, result json.RawMessage, requiredOrOptional func(string, schemaCheck) objectMemberCheck) string {
	if check, known := resultShapes(requiredOrOptional)[method]; known {
		return describeIssues(check(result))
	}
	return ""
}

// ToolResultDefects describes the defects of a tool result in revisions up to 2025-11-25; "" means none.
func ToolResultDefects(result json.RawMessage) string {
	return cmp.Or(describeIssues(toolResultShape(optionalMember("content", listCheck(contentBlockShape())), checkAnyObject)(result)), taskOrInputRequestsDefect(result))
}

// ToolResultDefectsInModernVersion is ToolResultDefects for revision 2026-07-28, where results must have content, and structured
// content may be any value.
func ToolResultDefectsInModernVersion(result json.RawMessage) (defectsOrEmpty string) {
	return describeIssues(toolResultShape(requiredMember("content", listCheck(contentBlockShape())), acceptAnyValue)(result))
}

// CacheKeyDefectsOfList describes the defects of the cache keys that lists have in revision 2026-07-28; "" means none.
func CacheKeyDefectsOfList(listResult json.RawMessage) (defectsOrEmpty string) {
	return describeIssues(objectCheck(optionalMember("ttlMs", checkNonNegativeInteger), optionalMember("cacheScope", oneOfCheck("public", "private")))(listResult))
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
	return objectCheck(content, optionalMember("structuredContent", structured), optionalMember("isError", jsonTypeCheck("boolean")))
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

// taskOrInputRequestsDefect returns the defect of a result with a task or inputRequests but without content, or "".
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
	return objectCheck(optionalMember("nextCursor", jsonTypeCheck("string")), requiredMember(name, listCheck(item)))
}

func initializeShape() schemaCheck {
	lists := optionalMember("listChanged", jsonTypeCheck("boolean"))
	return objectCheck(
		requiredMember("protocolVersion", jsonTypeCheck("string")),
		requiredMember("capabilities", objectCheck(
			optionalMember("experimental", checkAnyObject), optionalMember("logging", jsonTypeCheck("object")), optionalMember("completions", jsonTypeCheck("object")),
			optionalMember("prompts", objectCheck(lists)), optionalMember("resources", objectCheck(optionalMember("subscribe", jsonTypeCheck("boolean")), lists)),
			optionalMember("tools", objectCheck(lists)),
		)),
		requiredMember("serverInfo", objectCheck(nameTitleAndIconsMembersPlus(requiredMember("version", jsonTypeCheck("string")))...)),
		optionalMember("instructions", jsonTypeCheck("string")),
	)
}

func nameTitleAndIconsMembersPlus(others ...objectMemberCheck) []objectMemberCheck {
	icon := objectCheck(requiredMember("src", jsonTypeCheck("string")), optionalMember("mimeType", jsonTypeCheck("string")), optionalMember("sizes", listCheck(jsonTypeCheck("string"))))
	return append([]objectMemberCheck{requiredMember("name", jsonTypeCheck("string")), optionalMember("title", jsonTypeCheck("string")), optionalMember("icons", listCheck(icon))}, others...)
}

func toolShape(schema func(string, schemaCheck) objectMemberCheck) schemaCheck {
	hints := []objectMemberCheck{optionalMember("title", jsonTypeCheck("string"))}
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		hints = append(hints, optionalMember(name, jsonTypeCheck("boolean")))
	}
	return objectCheck(nameTitleAndIconsMembersPlus(
		optionalMember("description", jsonTypeCheck("string")),
		schema("inputSchema", objectCheck(requiredMember("type", oneOfCheck("object")), optionalMember("properties", checkAnyObject), optionalMember("required", listCheck(jsonTypeCheck("string"))))),
		optionalMember("outputSchema", jsonTypeCheck("object")),
		optionalMember("annotations", objectCheck(hints...)),
		optionalMember("execution", objectCheck(optionalMember("taskSupport", oneOfCheck("required", "optional", "forbidden")))),
		optionalMember("_meta", checkAnyObject),
	)...)
}

func promptShape() schemaCheck {
	argument := objectCheck(requiredMember("name", jsonTypeCheck("string")), optionalMember("description", jsonTypeCheck("string")), optionalMember("required", jsonTypeCheck("boolean")))
	return objectCheck(nameTitleAndIconsMembersPlus(optionalMember("description", jsonTypeCheck("string")), optionalMember("arguments", listCheck(argument)))...)
}

func resourceShape(others ...objectMemberCheck) schemaCheck {
	return objectCheck(append(nameTitleAndIconsMembersPlus(
		requiredMember("uri", jsonTypeCheck("string")), optionalMember("description", jsonTypeCheck("string")), optionalMember("mimeType", jsonTypeCheck("string")),
		optionalMember("annotations", annotationsShape()), optionalMember("_meta", jsonTypeCheck("object")),
	), others...)...)
}

func annotationsShape() schemaCheck {
	return objectCheck(optionalMember("audience", listCheck(oneOfCheck("user", "assistant"))), optionalMember("priority", jsonTypeCheck("number")), optionalMember("lastModified", jsonTypeCheck("string")))
}

func contentBlockShape() schemaCheck {
	block := func(kind string, members ...objectMemberCheck) schemaCheck {
		members = append([]objectMemberCheck{requiredMember("type", oneOfCheck(kind))}, members...)
		return objectCheck(append(members, optionalMember("annotations", annotationsShape()), optionalMember("_meta", checkAnyObject))...)
	}
	media := []objectMemberCheck{requiredMember("data", checkBase64), requiredMember("mimeType", jsonTypeCheck("string"))}
	contents := func(data objectMemberCheck) schemaCheck {
		return objectCheck(requiredMember("uri", jsonTypeCheck("string")), optionalMember("mimeType", jsonTypeCheck("string")), optionalMember("_meta", checkAnyObject), data)
	}
	return unionCheck(
		block("text", requiredMember("text", jsonTypeCheck("string"))), block("image", media...), block("audio", media...),
		resourceShape(requiredMember("type", oneOfCheck("resource_link"))),
		block("resource", requiredMember("resource", unionCheck(contents(requiredMember("text", jsonTypeCheck("string"))), contents(requiredMember("blob", checkBase64))))),
	)
}

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. isModern is true for revision 2026-07-28, in which elicitations have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	if issues := elicitationParamsCheck(isModern)(params); issues != nil {
		return &Error{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + describeIssues(withPathPrefix("params", issues))}
	}
	return nil
}

func elicitationParamsCheck(isModernVersion bool) schemaCheck {
	text := jsonTypeCheck("string")
	url := []objectMemberCheck{requiredMember("mode", oneOfCheck("url")), requiredMember("message", text)}
	if !isModernVersion {
		url = append(url, requiredMember("elicitationId", text))
	}
	form := objectCheck(requiredMember("type", oneOfCheck("object")), requiredMember("properties", objectWithEveryMemberCheck(elicitationFormFieldCheck())), optionalMember("required", listCheck(text)))
	return unionCheck(objectCheck(optionalMember("mode", oneOfCheck("form")), requiredMember("message", text), requiredMember("requestedSchema", form)), objectCheck(append(url, requiredMember("url", text))...))
}

func elicitationFormFieldCheck() schemaCheck {
	text, number := jsonTypeCheck("string"), jsonTypeCheck("number")
	field := func(kind schemaCheck, others ...objectMemberCheck) schemaCheck {
		return objectCheck(append([]objectMemberCheck{requiredMember("type", kind), optionalMember("title", text), optionalMember("description", text)}, others...)...)
	}
	options := listCheck(objectCheck(requiredMember("const", text), requiredMember("title", text)))
	one := func(values ...objectMemberCheck) schemaCheck {
		return field(oneOfCheck("string"), append(values, optionalMember("default", text))...)
	}
	many := func(items schemaCheck) schemaCheck {
		return field(oneOfCheck("array"), optionalMember("minItems", number), optionalMember("maxItems", number), requiredMember("items", items), optionalMember("default", listCheck(text)))
	}
	choice := unionCheck(
		one(requiredMember("enum", listCheck(text)), optionalMember("enumNames", listCheck(text))),
		unionCheck(one(requiredMember("enum", listCheck(text))), one(requiredMember("oneOf", options))),
		unionCheck(many(objectCheck(requiredMember("type", oneOfCheck("string")), requiredMember("enum", listCheck(text)))), many(objectCheck(requiredMember("anyOf", options)))),
	)
	return unionCheck(
		choice,
		field(oneOfCheck("boolean"), optionalMember("default", jsonTypeCheck("boolean"))),
		field(oneOfCheck("string"), optionalMember("minLength", number), optionalMember("maxLength", number),
			optionalMember("format", oneOfCheck("email", "uri", "date", "date-time")), optionalMember("default", text)),
		field(oneOfCheck("number", "integer"), optionalMember("minimum", number), optionalMember("maximum", number), optionalMember("default", number)),
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
