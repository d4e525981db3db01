package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug"
)

type hubAccess struct {
	hub      *debug.Hub
	external *debug.ExternalServers // nil means not available
}

// debuggerToolDefinition is an entry of tools.json, in the form of tools/list.
type debuggerToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// handler handles a call with checked arguments. It must not block; blocking work is returned as a wire.DeferredAnswer.
type handler func(ctx context.Context, f *hubAccess, a checkedArguments) (any, error)

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

func (t debuggerToolDefinition) parseArgumentsIgnoringUnknown(raw json.RawMessage) (checkedArguments, error) {
	var schema plainjson.Schema
	if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return nil, &debug.Error{Code: debug.CodeInvalidArguments, Message: "arguments must be an object"}
	}
	a := checkedArguments{}
	for _, p := range schema.Properties {
		v, ok := given[p.Name]
		ok = ok && (p.Schema.Type == "" || plainjson.IsSet(v))
		p.Schema.Enum = nil // documented but not checked: the hub accepts more spellings
		switch {
		case !ok && slices.Contains(schema.Required, p.Name):
			return nil, debug.NewMissingParameterError(p.Name)
		case !ok:
			continue
		case p.Schema.Issues(v) != nil:
			code := debug.CodeInvalidArguments
			if p.Name == "session_id" {
				code = debug.CodeInvalidSession
			}
			return nil, debug.NewError(code, fmt.Sprintf("%s must be of type %s", p.Name, p.Schema.Type), "parameter", p.Name)
		}
		a[p.Name] = v
	}
	return a, nil
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

func invalidParamsError(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: message}
}
