// This file checks values of servers against the schemas of the protocol. Defects are worded as in the real CLI.

package connection

import (
	"cmp"
	_ "embed" // for shapes.json
	"encoding/json"
	"fmt"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

//go:embed shapes.json
var shapesJSON string

// shapes are the schemas of results, by method, and of the values inside them.
var shapes = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(shapesJSON) })

var shapesWithOptionalToolSchema = sync.OnceValue(func() plainjson.SchemaLibrary {
	l := plainjson.MustParseSchemas(shapesJSON)
	l["tool"].Required = []string{"name"}
	return l
})

// ResultDefects describes what is wrong with the result of a method, as the real CLI does (observed with 2.1.330); ""
// means nothing. The results of methods without a schema here are not checked.
func ResultDefects(method string, result json.RawMessage) string {
	return shapes().DefectsJSON(method, result)
}

// ResultDefectsOptionalSchema is like [ResultDefects], but accepts tools without an input schema.
func ResultDefectsOptionalSchema(method string, result json.RawMessage) string {
	return shapesWithOptionalToolSchema().DefectsJSON(method, result)
}

// ToolResultDefects describes the defects of a tool result in revisions up to 2025-11-25; "" means none.
func ToolResultDefects(result json.RawMessage) string {
	return cmp.Or(shapes().DefectsJSON("tool result", result), taskOrInputRequestsDefect(result))
}

// ModernToolResultDefects is ToolResultDefects for revision 2026-07-28, where results must have content, and structured
// content may be any value.
func ModernToolResultDefects(result json.RawMessage) (defectsOrEmpty string) {
	return shapes().DefectsJSON("tool result of 2026-07-28", result)
}

// taskOrInputRequestsDefect returns the defect of a result that has a task or inputRequests but no content; "" means none.
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

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. isModern is true for revision 2026-07-28, in which elicitations have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	name := "elicitation"
	if isModern {
		name = "elicitation of 2026-07-28"
	}
	if issues := shapes()[name].Issues(params); issues != nil {
		return &RPCError{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + plainjson.IssuesJSON(issues, "params")}
	}
	return nil
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
	v, ok := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](h.Capabilities)[capability]
	return ok && string(v) != "null" && string(v) != "false"
}

// HasNoCapabilities reports whether the server declared nothing.
func (h InitializeResult) HasNoCapabilities() bool {
	return len(plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](h.Capabilities)) == 0
}

// HasResourceSubscriptions reports whether the server declared resource subscriptions.
func (h InitializeResult) HasResourceSubscriptions() bool {
	return plainjson.DecodeIgnoringErrors[struct{ Resources struct{ Subscribe bool } }](h.Capabilities).Resources.Subscribe
}
