package debugcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// hookGate connects a hook to the debugger. Two hook processes, before and after a call, find the call by the agent's
// ids. BeforeCall returns an error and a call id if the debugger has stopped the call and then became unreachable.
type hookGate interface {
	BeforeCall(ctx context.Context, c debug.Call) (callID string, d debug.Decision, err error)
	AfterToolUse(ctx context.Context, session, toolUseID string, o debug.Outcome) (debug.Decision, error)
}

type hookInput struct {
	Event     string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	Response  json.RawMessage `json:"tool_response"`
	Error     string          `json:"error"`
	CWD       string          `json:"cwd"`
	Path      string          `json:"transcript_path"`
}

const maxHookInputBytes = 64 << 20

// answerHook answers one event (PreToolUse, PostToolUse or PostToolUseFailure; others are ignored) with the debugger's
// decision. If the debugger changes nothing, it prints nothing: the CLI's own permission rules apply.
func answerHook(ctx context.Context, g hookGate, stdin io.Reader, stdout io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(stdin, maxHookInputBytes+1))
	if err != nil {
		return fmt.Errorf("reading the hook's input: %w", err)
	}
	if len(data) > maxHookInputBytes {
		return fmt.Errorf("the hook's input is longer than %d bytes", maxHookInputBytes)
	}
	var in hookInput
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("the hook's input is not a JSON object: %w", err)
	}
	var out *protocol.HookOutput
	switch in.Event {
	case "PreToolUse":
		out, err = answerBeforeCall(ctx, g, in)
	case "PostToolUse", "PostToolUseFailure":
		out, err = answerAfterCall(ctx, g, in)
	}
	if err != nil || out == nil {
		return err
	}
	line, err := protocol.Marshal(out)
	if err != nil {
		return fmt.Errorf("encoding the hook's output: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s\n", line)
	return err
}

func answerBeforeCall(ctx context.Context, g hookGate, in hookInput) (output *protocol.HookOutput, err error) {
	site, err := protocol.Marshal(map[string]string{"cwd": in.CWD, "transcript_path": in.Path})
	if err != nil {
		return nil, err
	}
	callID, d, err := g.BeforeCall(ctx, debug.Call{
		Tool: in.ToolName, Input: in.ToolInput, Session: in.SessionID, ToolUseID: in.ToolUseID, Client: debug.ClientHook, CallSite: site,
	})
	switch {
	case err != nil && (callID == "" || ctx.Err() != nil):
		return nil, err
	case err != nil: // the call was stopped, and the debugger is no longer reachable
		d = debug.Decision{Action: debug.ActionRaise, Message: "debugger: " + err.Error()}
	}
	specific := &protocol.HookSpecificOutput{HookEventName: in.Event}
	var o debug.Outcome
	switch d.Action {
	case debug.ActionModify:
		specific.UpdatedInput = d.Input
		return &protocol.HookOutput{Specific: specific}, nil
	case debug.ActionRaise:
		specific.PermissionDecisionReason = d.Message
		o = debug.Outcome{Failed: true, Error: d.Message, ErrorType: d.Type}
	case debug.ActionSkip:
		// A hook cannot return a result: the agent receives it as the reason why the tool did not run.
		specific.PermissionDecisionReason = debug.ResultText(d.Result)
		o = debug.Outcome{Result: d.Result}
	default:
		return output, nil
	}
	specific.PermissionDecision = "deny"
	// No other event follows a denial, so the call is completed here. An error does not change the decision.
	_, _ = g.AfterToolUse(ctx, in.SessionID, in.ToolUseID, o)
	return &protocol.HookOutput{Specific: specific}, nil
}

func answerAfterCall(ctx context.Context, g hookGate, in hookInput) (output *protocol.HookOutput, err error) {
	o := debug.Outcome{Result: in.Response, Failed: in.Event == "PostToolUseFailure", Error: in.Error}
	d, err := g.AfterToolUse(ctx, in.SessionID, in.ToolUseID, o)
	if err != nil {
		return nil, err
	}
	switch {
	case d.Action == debug.ActionModify && strings.HasPrefix(in.ToolName, "mcp__"):
		return &protocol.HookOutput{Specific: &protocol.HookSpecificOutput{HookEventName: in.Event, UpdatedMCPToolOutput: d.Result}}, nil
	case d.Action == debug.ActionModify:
		return &protocol.HookOutput{Specific: &protocol.HookSpecificOutput{HookEventName: in.Event, UpdatedToolOutput: d.Result}}, nil
	case d.Action == debug.ActionRaise:
		return &protocol.HookOutput{Decision: "block", Reason: d.Message}, nil
	}
	return output, nil
}
