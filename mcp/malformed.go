package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// issue is a defect of a result as the real CLI reports it (observed with 2.1.330).
type issue struct {
	Expected string    `json:"expected,omitempty"`
	Code     string    `json:"code"`
	Values   []string  `json:"values,omitempty"`
	Errors   [][]issue `json:"errors,omitempty"` // one list for each kind that a value could be
	Path     []any     `json:"path"`
	Message  string    `json:"message"`
}

func wrongType(expected string, value json.RawMessage, path ...any) issue {
	text := fmt.Sprintf("Invalid input: expected %s, received %s", expected, plainjson.TypeOf(value))
	return issue{Expected: expected, Code: "invalid_type", Path: append([]any{}, path...), Message: text}
}

// malformed returns the error of a result that is not what the protocol says; nil = it is. If strict, content is required.
func malformed(r callResult, items []json.RawMessage, strict bool) error {
	var all []issue
	if kind := plainjson.TypeOf(r.Content); kind != "array" && (strict || kind != "undefined") {
		all = append(all, wrongType("array", r.Content, "content"))
	}
	for i, item := range items {
		if kinds := blockIssues(item); kinds != nil {
			all = append(all, issue{Code: "invalid_union", Errors: kinds, Path: []any{"content", i}, Message: "Invalid input"})
		} else if !hasBase64(item) {
			all = append(all, issue{Code: "custom", Path: []any{"content", i, "data"}, Message: "Invalid Base64 string"})
		}
	}
	if kind := plainjson.TypeOf(r.IsError); kind != "boolean" && kind != "undefined" {
		all = append(all, wrongType("boolean", r.IsError, "isError"))
	}
	if all == nil {
		return nil
	}
	text, err := plainjson.Indented(all)
	if err != nil {
		return err
	}
	return connection.Malformed("tools/call", strings.TrimSpace(string(text)))
}

// hasBase64 reports whether the data of an item can be decoded, if it has any.
func hasBase64(item json.RawMessage) bool {
	var block struct{ Data string }
	if json.Unmarshal(item, &block) != nil { // not that of an image
		return true
	}
	_, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(block.Data), ""), "="))
	return err == nil
}

// blockIssues returns why a content item is none of the kinds of blocks; nil = it is one.
func blockIssues(item json.RawMessage) [][]issue {
	var all [][]issue
	for _, fields := range []string{"type=text text", "type=image data mimeType", "type=audio data mimeType", "name uri type=resource_link", "type=resource resource"} {
		issues := objectIssues(item, fields)
		if issues == nil {
			return nil
		}
		all = append(all, issues)
	}
	return all
}

// objectIssues returns why a value is not an object with these fields: texts, a text with one value (NAME=VALUE), or the
// field resource.
func objectIssues(value json.RawMessage, fields string) (all []issue) {
	var members map[string]json.RawMessage
	if plainjson.TypeOf(value) != "object" || json.Unmarshal(value, &members) != nil {
		return []issue{wrongType("object", value)}
	}
	for field := range strings.FieldsSeq(fields) {
		name, want, fixed := strings.Cut(field, "=")
		member := members[name]
		switch {
		case fixed && plainjson.String(member) != want:
			all = append(all, issue{Code: "invalid_value", Values: []string{want}, Path: []any{name}, Message: fmt.Sprintf("Invalid input: expected %q", want)})
		case name == "resource":
			text, blob := objectIssues(member, "uri text"), objectIssues(member, "uri blob")
			if text != nil && blob != nil {
				all = append(all, issue{Code: "invalid_union", Errors: [][]issue{text, blob}, Path: []any{name}, Message: "Invalid input"})
			}
		case !fixed && plainjson.TypeOf(member) != "string":
			all = append(all, wrongType("string", member, name))
		}
	}
	return all
}
