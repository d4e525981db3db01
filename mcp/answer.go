package mcp

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// RPCError is a JSON-RPC error a server answered with; a *RPCError is an error. Code is
// an int and Message a string as they came, Data is any JSON value, nil = none.
// Options.Sample may fail with one too.
type RPCError = connection.Error

// clientRequests handles what a server asks of us.
type clientRequests struct {
	*shared
	server string
}

// Updated implements connection.Handler.
func (a clientRequests) Updated(uri string) { a.updated(a.server, uri) }

// Answer implements connection.Handler.
func (a clientRequests) Answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "ping":
		return struct{}{}, nil
	case connection.MethodRoots:
		return a.roots.list(), nil
	case connection.MethodSample:
		return a.sample(ctx, params)
	case connection.MethodElicit:
		return a.elicit(ctx, params)
	default:
		return nil, errMethod
	}
}

var errMethod = &connection.Error{Code: connection.CodeMethodNotFound, Message: "Method not found"}

func (a clientRequests) sample(ctx context.Context, params json.RawMessage) (any, error) {
	if a.o.Sample == nil {
		return nil, errMethod
	}
	return a.o.Sample(ctx, a.server, params)
}

func (a clientRequests) elicit(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitationId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &connection.Error{Code: connection.CodeInvalidParams, Message: "Invalid params"}
	}
	answer := ElicitAnswer{}
	if a.o.Elicit != nil {
		answer = a.o.Elicit(ctx, ElicitRequest{Server: a.server, Message: p.Message, Schema: p.Schema, URL: p.URL, ID: p.ID, Params: params})
	}
	out := map[string]any{"action": cmp.Or(answer.Action, "cancel")}
	if answer.Action == "accept" && p.URL == "" {
		out["content"] = withDefaults(answer.Content, p.Schema)
	}
	return out, nil
}

// withDefaults fills in what an answer leaves out from the schema's defaults.
func withDefaults(content, schema json.RawMessage) map[string]json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(schema, &s)    // a schema we cannot read has no defaults
	_ = json.Unmarshal(content, &out) // neither has an answer that is no object
	for name, p := range s.Properties {
		if _, given := out[name]; !given && p.Default != nil {
			out[name] = p.Default
		}
	}
	return out
}
