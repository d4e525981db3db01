package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// canUseToolRequest is a permission request to the host (spec: cli-contract 6.3).
type canUseToolRequest struct {
	Subtype            string                        `json:"subtype"` // "can_use_tool"
	ToolName           string                        `json:"tool_name"`
	DisplayName        string                        `json:"display_name"`
	Input              json.RawMessage               `json:"input"`
	Description        string                        `json:"description,omitempty"`
	Suggestions        []protocol.PermissionUpdate   `json:"permission_suggestions,omitzero"`
	BlockedPath        string                        `json:"blocked_path,omitempty"`
	DecisionReason     string                        `json:"decision_reason,omitempty"`
	DecisionReasonType string                        `json:"decision_reason_type,omitempty"`
	RuleSource         string                        `json:"decision_reason_rule_source,omitempty"`
	HookEvent          string                        `json:"decision_reason_hook_event,omitempty"` // event of the hook that asks
	HookOrigin         string                        `json:"decision_reason_hook_source,omitempty"`
	HookPlugin         string                        `json:"decision_reason_hook_plugin_id,omitempty"`
	Approvable         *bool                         `json:"classifier_approvable,omitempty"`
	SuppressRule       bool                          `json:"suppress_always_allow_rule,omitempty"`
	Server             *protocol.ServerNameAndSource `json:"mcp_server,omitempty"`
	ServerAskOnly      *bool                         `json:"server_policy_ask_only,omitempty"` // nil means omitted
	ToolUseID          string                        `json:"tool_use_id"`
	RequiresUser       bool                          `json:"requires_user_interaction,omitempty"`
	AgentID            string                        `json:"agent_id,omitempty"` // set for calls of a sub-agent
}

// Ask sends a permission request to the host. A response, an error and a lost connection all become an answer. An
// error is returned only if ctx is cancelled.
func (p *Conn) Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	q := canUseToolRequest{
		Subtype: "can_use_tool", ToolName: r.Use.Name, DisplayName: r.DisplayName, Input: r.Use.Input, Description: r.Description,
		Suggestions: r.Suggestions, BlockedPath: r.BlockedPath, DecisionReason: r.DecisionReason,
		DecisionReasonType: r.DecisionReasonType, RuleSource: r.RuleSource, Server: r.Server, ServerAskOnly: r.ServerAskOnly, RequiresUser: r.RequiresUser, ToolUseID: r.Use.ID, AgentID: r.Use.CallerAgentID(),
	}
	if r.Hook != nil {
		q.HookEvent, q.HookOrigin = "PreToolUse", r.Hook.Origin
		if name, ok := strings.CutPrefix(r.Hook.Origin, protocol.PluginHookOriginPrefix); ok {
			q.HookPlugin = name + "@inline"
		}
	}
	if r.Safety != "" {
		approvable := r.Safety == protocol.SafetyApprovableByRuleOrClassifier
		q.Approvable, q.SuppressRule = &approvable, !approvable
	}
	q.DisplayName = cmp.Or(q.DisplayName, q.ToolName)
	p.out.writeStateIfChanged("requires_action")
	raw, err := p.requestsToHost.sendAndAwaitAnswer(ctx, q, requestKindPermission)
	if ctx.Err() != nil {
		return protocol.PermissionAnswer{}, ctx.Err()
	}
	p.out.writeStateIfChanged("running")
	switch refused, failed := errors.AsType[*ResponseError](err); {
	case failed:
		return protocol.PermissionAnswer{AskFailure: strings.TrimSuffix("Tool permission request failed: Error: "+refused.Text, ": ")}, nil
	case errors.Is(err, errRequestNotSent):
		return protocol.PermissionAnswer{AskFailure: "Tool permission request failed: AbortError: Stream closed"}, nil
	case errors.Is(err, ErrClosed):
		return protocol.PermissionAnswer{AskFailure: "Tool permission request failed: AbortError: Tool permission stream closed before response received"}, nil
	case err != nil:
		return protocol.PermissionAnswer{}, err
	}
	return permission.ParseAnswerOrAskFailure(raw), nil
}

// CallHook asks the host to run one of its hooks; see hook.Callback. After EOF, the error is [ErrClosed] and [hook.ErrHostGone].
func (p *Conn) CallHook(ctx context.Context, callbackID string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	out, err := p.requestsToHost.sendAndAwaitAnswer(ctx, struct {
		Subtype    string          `json:"subtype"`
		CallbackID string          `json:"callback_id"`
		Input      json.RawMessage `json:"input"`
		ToolUseID  string          `json:"tool_use_id,omitempty"`
	}{"hook_callback", callbackID, input, toolUseID}, requestKindHookCallback)
	if errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", hook.ErrHostGone, err)
	}
	return out, err
}

// SendToServer sends a JSON-RPC message to an MCP server inside the host and returns its answer, or nil
// for a notification; see mcp.Options.SDK.
func (p *Conn) SendToServer(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	if known, ok := p.takeHandshakeAnswer(server, message); ok {
		return known, nil
	}
	if err := p.waitUntilMessagesToServerAllowed(ctx, server); err != nil {
		return nil, err
	}
	q, err := p.requestsToHost.sendRequest(ctx, struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}{"mcp_message", server, message}, requestKindServerMessage)
	if err != nil {
		return nil, err
	}
	told := p.initialConnect.reportMessageToServer()
	raw, err := p.requestsToHost.awaitAnswerOrWithdraw(ctx, q)
	if told != nil {
		select {
		case <-told:
		case <-ctx.Done():
		}
	}
	if err != nil {
		return nil, err
	}
	answer := plainjson.DecodeIgnoringErrors[struct {
		Response json.RawMessage `json:"mcp_response"`
	}](raw).Response
	if plainjson.DecodeIgnoringErrors[struct{ ID json.RawMessage }](message).ID == nil {
		return nil, nil
	}
	if answer == nil {
		return nil, errors.New("the SDK host's response to mcp_message has no mcp_response")
	}
	return answer, nil
}

// elicitation is the request to ask the user a question for an MCP server (spec: cli-contract 4.5).
type elicitation struct {
	Subtype string          `json:"subtype"` // "elicitation"
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"` // "url" if URL is set, else "form"
	Schema  json.RawMessage `json:"requested_schema,omitempty"`
	Order   []string        `json:"property_order,omitzero"` // order of the properties in Schema
	URL     string          `json:"url,omitempty"`
	ID      string          `json:"elicitation_id,omitempty"` // id of the question; only with URL
}

// Elicit passes an MCP server's question to the host. If the host cannot answer, the question is cancelled.
func (p *Conn) Elicit(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer {
	ask := elicitation{Subtype: "elicitation", Server: q.Server, Message: q.Message, Mode: q.Mode, Schema: q.Schema, Order: propertyOrder(q.Schema), URL: q.URL, ID: q.ID}
	raw, err := p.requestsToHost.sendAndAwaitAnswer(ctx, ask, requestKindElicitation)
	a := plainjson.DecodeIgnoringErrors[struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}](raw)
	if err != nil || a.Action != "accept" && a.Action != "decline" {
		return mcp.ElicitAnswer{}
	}
	return mcp.ElicitAnswer{Action: a.Action, Content: a.Content}
}

// propertyOrder lists the properties of a schema in their original order. nil means that it has none.
func propertyOrder(schema json.RawMessage) []string {
	s, err := plainjson.Parse(schema)
	if err != nil {
		return nil
	}
	properties, err := plainjson.Parse(s.Get("properties"))
	if err != nil {
		return nil
	}
	names := make([]string, len(properties))
	for i, p := range properties {
		names[i] = p.Key
	}
	return names
}
