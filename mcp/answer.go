package mcp

import (
	"cmp"
	"context"
	"encoding/json"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// RPCError is a JSON-RPC error: a response of a server, or an error of Options.Sample for the server. A nil Data means absent.
type RPCError = connection.RPCError

type serverRequestHandler struct {
	*managerState
	server string
}

func (a serverRequestHandler) HandleResourceUpdate(uri string) {
	a.reportResourceUpdateAsync(a.server, uri)
}

func (a serverRequestHandler) HandleLogOrProgressNotification(notification connection.ProgressOrLogNotification) {
	if a.options.Observer != nil {
		a.options.Observer.RecordNotification(notificationRecord(a.server, notification))
	}
}

// notificationRecord returns the record of a notification. Members of a wrong type are omitted.
func notificationRecord(server string, n connection.ProgressOrLogNotification) NotificationRecord {
	r := NotificationRecord{Source: RecordSource, Server: server, RawTool: n.Tool, ToolUseID: n.UseID}
	if n.Method == string(wire.MethodNotificationProgress) {
		r.Progress, _ = n.Params["progress"].(float64)
		r.Total, _ = n.Params["total"].(float64)
		r.Text, _ = n.Params["message"].(string)
		return r
	}
	level, _ := n.Params["level"].(string)
	r.Level = cmp.Or(level, "info")
	r.Logger, _ = n.Params["logger"].(string)
	if text, ok := n.Params["data"].(string); ok {
		r.Text = text
	} else if data, err := json.Marshal(n.Params["data"]); err == nil {
		r.Text = string(data)
	}
	return r
}

func (a serverRequestHandler) HandleRequest(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "ping":
		return struct{}{}, nil
	case connection.MethodRoots:
		return a.rootsListResult(), nil
	case connection.MethodSample:
		if a.options.Sample != nil {
			return a.options.Sample(ctx, a.server, params)
		}
	case connection.MethodElicit:
		return a.answerElicitation(ctx, params)
	}
	return nil, &connection.RPCError{Code: connection.CodeMethodNotFound, Message: "Method not found"}
}

func (a serverRequestHandler) answerElicitation(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Message string          `json:"message"`
		Mode    string          `json:"mode"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitationId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &connection.RPCError{Code: connection.CodeInvalidParams, Message: "Invalid params"}
	}
	answer := ElicitAnswer{}
	if a.options.Elicit != nil {
		answer = a.options.Elicit(ctx, ElicitRequest{Server: a.server, Message: p.Message, Mode: cmp.Or(p.Mode, "form"), Schema: p.Schema, URL: p.URL, ID: p.ID, Params: params})
	}
	out := map[string]any{"action": cmp.Or(answer.Action, "cancel")}
	switch {
	case answer.Action == "accept" && answer.AddDefaults:
		out["content"] = addSchemaDefaults(answer.Content, p.Schema)
	case answer.Action == "accept" && answer.Content != nil:
		out["content"] = answer.Content
	}
	return out, nil
}

func addSchemaDefaults(content, schema json.RawMessage) map[string]json.RawMessage {
	var s struct {
		Properties map[string]struct{ Default json.RawMessage } `json:"properties"`
	}
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(schema, &s)    // an unreadable schema has no defaults
	_ = json.Unmarshal(content, &out) // content that is not an object counts as empty
	for name, p := range s.Properties {
		if _, given := out[name]; !given && p.Default != nil {
			out[name] = p.Default
		}
	}
	return out
}
