package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
)

type hubAccess struct {
	hub      *debug.Hub
	external *debug.ServerManager // nil means not available
}

// debuggerTool is an entry of tools.json.
type debuggerTool struct {
	Name, Description string
	Params            []toolParam
}

// handler handles a call with checked arguments. It must not block; blocking work is returned as a wire.DeferredAnswer.
type handler func(ctx context.Context, f *hubAccess, a checkedArguments) (any, error)

// toolParam is a parameter of a tool.
type toolParam struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"` // a JSON type; empty means any
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	Enum        []string `json:"enum"` // documented but not checked: the hub accepts more spellings
	// TypeErrorCode is the error code for a value of another type; empty means invalid_arguments.
	TypeErrorCode string `json:"typeErrorCode"`
}

// MarshalJSON writes the tool as tools/list shows it.
func (t debuggerTool) MarshalJSON() ([]byte, error) {
	properties, required := map[string]any{}, []string{}
	for _, p := range t.Params {
		schema := map[string]any{"description": p.Description}
		if p.Type != "" {
			schema["type"] = p.Type
		}
		if p.Enum != nil {
			schema["enum"] = p.Enum
		}
		properties[p.Name] = schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema})
}

// checkedArguments are the checked arguments of one call. All required ones are present. An argument has the right type, and
// is not null unless the parameter accepts any value.
type checkedArguments map[string]json.RawMessage

func (a checkedArguments) text(name string) string {
	if p := a.optionalText(name); p != nil {
		return *p
	}
	return ""
}

// optionalText returns a string argument; nil means missing.
func (a checkedArguments) optionalText(name string) *string { return argument[string](a, name) }

// number returns a numeric argument; nil means missing.
func (a checkedArguments) number(name string) *float64 { return argument[float64](a, name) }

func argument[T any](a checkedArguments, name string) *T {
	var v *T
	if raw, ok := a[name]; !ok || json.Unmarshal(raw, &v) != nil {
		return nil // the types of the arguments were checked before, so the argument is missing
	}
	return v
}

func (t debuggerTool) parseArguments(raw json.RawMessage) (checkedArguments, error) {
	var given map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return nil, &debug.Error{Code: debug.CodeInvalidArguments, Message: "arguments must be an object"}
	}
	a := checkedArguments{}
	for _, p := range t.Params {
		v, ok := given[p.Name]
		if ok && p.Type != "" && bytes.Equal(v, []byte("null")) {
			ok = false
		}
		switch {
		case !ok && p.Required:
			return nil, debug.MissingParameter(p.Name)
		case !ok:
			continue
		case !p.hasType(v):
			return nil, debug.NewError(cmp.Or(p.TypeErrorCode, debug.CodeInvalidArguments), fmt.Sprintf("%s must be of type %s", p.Name, p.Type), "parameter", p.Name)
		}
		a[p.Name] = v
	}
	return a, nil
}

func (p toolParam) hasType(v json.RawMessage) bool {
	var f float64
	switch p.Type {
	case "string":
		return v[0] == '"'
	case "object":
		return v[0] == '{'
	case "array":
		return v[0] == '['
	case "number":
		return json.Unmarshal(v, &f) == nil
	case "integer":
		return json.Unmarshal(v, &f) == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53
	default:
		return true
	}
}

type fields map[string]any

type toolOutputMarkedAsError struct{ body any }

type toolCallResult struct {
	Content [1]block       `json:"content"`
	IsError bool           `json:"isError"`
	Meta    map[string]int `json:"_meta,omitempty"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func invalidParams(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: message}
}
