package debugcmd

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/debug"
)

// fakeGate decides as configured and records its calls.
type fakeGate struct {
	before, after debug.Decision
	err           error
	call          *debug.Call
	use           string
	outcome       *debug.CallOutcome
}

func (g *fakeGate) BeforeCall(_ context.Context, c debug.Call) (string, debug.Decision, error) {
	g.call = &c
	if g.err != nil {
		return "", debug.Decision{}, g.err
	}
	return "id", g.before, nil
}

func (g *fakeGate) AfterToolUse(_ context.Context, session, toolUseID string, o debug.CallOutcome) (debug.Decision, error) {
	g.use, g.outcome = session+"/"+toolUseID, &o
	return g.after, g.err
}

func TestRun(t *testing.T) {
	const (
		pre     = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"tu","cwd":"/w","transcript_path":"/t"}`
		post    = `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_input":{},"tool_use_id":"tu","tool_response":{"stdout":"x"}}`
		postMCP = `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"mcp__t__echo","tool_use_id":"tu","tool_response":"x"}`
		failure = `{"hook_event_name":"PostToolUseFailure","session_id":"s","tool_name":"Bash","tool_use_id":"tu","error":"boom"}`
	)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name, in string
		gate     fakeGate
		out      string
		outcome  *debug.CallOutcome
	}{
		{"goes on", pre, fakeGate{before: debug.Decision{Action: debug.ActionContinue}}, "", nil},
		{"modified", pre, fakeGate{before: debug.Decision{Action: debug.ActionModify, Input: raw(`{"command":"pwd"}`)}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"pwd"}}}`, nil},
		{"raised", pre, fakeGate{before: debug.Decision{Action: debug.ActionRaise, Type: "E", Message: "not that"}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not that"}}`, &debug.CallOutcome{Failed: true, Error: "not that", ErrorType: "E"}},
		{"skipped", pre, fakeGate{before: debug.Decision{Action: debug.ActionSkip, Result: raw(`"made up"`)}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"made up"}}`, &debug.CallOutcome{Result: raw(`"made up"`)}},
		{"completed", post, fakeGate{after: debug.Decision{Action: debug.ActionContinue}}, "", &debug.CallOutcome{Result: raw(`{"stdout":"x"}`)}},
		{"result changed", post, fakeGate{after: debug.Decision{Action: debug.ActionModify, Result: raw(`{"stdout":"y"}`)}}, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"y"}}}`, &debug.CallOutcome{Result: raw(`{"stdout":"x"}`)}},
		{"MCP result changed", postMCP, fakeGate{after: debug.Decision{Action: debug.ActionModify, Result: raw(`"y"`)}}, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":"y"}}`, &debug.CallOutcome{Result: raw(`"x"`)}},
		{"failed afterwards", post, fakeGate{after: debug.Decision{Action: debug.ActionRaise, Message: "wrong"}}, `{"decision":"block","reason":"wrong"}`, &debug.CallOutcome{Result: raw(`{"stdout":"x"}`)}},
		{"failure", failure, fakeGate{after: debug.Decision{Action: debug.ActionContinue}}, "", &debug.CallOutcome{Failed: true, Error: "boom"}},
		{"another event", `{"hook_event_name":"Stop"}`, fakeGate{}, "", nil},
	}
	for _, tt := range tests {
		var out strings.Builder
		if err := answerToolUseHook(t.Context(), &tt.gate, strings.NewReader(tt.in), &out); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.out, strings.TrimSuffix(out.String(), "\n")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.outcome, tt.gate.outcome); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if tt.gate.outcome != nil && tt.gate.use != "s/tu" {
			t.Errorf("%s: completed %s", tt.name, tt.gate.use)
		}
		if tt.name == "goes on" {
			want := &debug.Call{Tool: "Bash", Input: raw(`{"command":"ls"}`), Session: "s", ToolUseID: "tu", Client: debug.ClientAgentHook, CallSite: raw(`{"cwd":"/w","transcript_path":"/t"}`)}
			if diff := cmp.Diff(want, tt.gate.call); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	}
}

// unreachableGate decides about a call and then cannot be reached.
type unreachableGate struct{ fakeGate }

func (g *unreachableGate) AfterToolUse(context.Context, string, string, debug.CallOutcome) (debug.Decision, error) {
	return debug.Decision{}, errors.New("gone")
}

// A denial is effective even if the debugger disconnects before the call is completed: the tool must not run.
func TestDenialSurvivesDisconnect(t *testing.T) {
	for _, action := range []debug.PauseDecisionAction{debug.ActionRaise, debug.ActionSkip} {
		var out strings.Builder
		gate := &unreachableGate{fakeGate{before: debug.Decision{Action: action, Message: "no", Result: json.RawMessage(`"no"`)}}}
		err := answerToolUseHook(t.Context(), gate, strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`), &out)
		if err != nil || !strings.Contains(out.String(), `"permissionDecision":"deny"`) {
			t.Errorf("%s: %v, printed %q", action, err, out.String())
		}
	}
}

// disconnectingGate disconnects while a call is paused.
type disconnectingGate struct{ fakeGate }

func (g *disconnectingGate) BeforeCall(context.Context, debug.Call) (string, debug.Decision, error) {
	return "id", debug.Decision{}, errors.New("cannot reach it")
}

// An agent continues if the debugger was never reachable. If it disconnects while a call is paused, the call fails,
// according to the policy of its caller.
func TestLostInPause(t *testing.T) {
	const pre = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_use_id":"tu"}`
	var out strings.Builder
	if err := answerToolUseHook(t.Context(), &disconnectingGate{}, strings.NewReader(pre), &out); err != nil || !strings.Contains(out.String(), `"permissionDecision":"deny","permissionDecisionReason":"debugger: cannot reach it"`) {
		t.Errorf("%v, printed %q", err, out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	if err := answerToolUseHook(ctx, &disconnectingGate{}, strings.NewReader(pre), &out); err == nil || out.Len() > 0 {
		t.Errorf("cancelled: %v, printed %q", err, out.String())
	}
}

func TestRunFails(t *testing.T) {
	for in, gate := range map[string]*fakeGate{
		"":                                  {},
		"{":                                 {},
		`[]`:                                {},
		`{"hook_event_name":"PreToolUse"}`:  {err: errors.New("gone")},
		`{"hook_event_name":"PostToolUse"}`: {err: errors.New("gone")},
	} {
		var out strings.Builder
		if err := answerToolUseHook(t.Context(), gate, strings.NewReader(in), &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, printed %q", in, err, out.String())
		}
	}
}

func FuzzRun(f *testing.F) {
	f.Add(`{"hook_event_name":"PreToolUse","tool_input":{}}`)
	f.Fuzz(func(t *testing.T, in string) {
		var out strings.Builder
		gate := &fakeGate{before: debug.Decision{Action: debug.ActionRaise, Message: in}}
		if err := answerToolUseHook(t.Context(), gate, strings.NewReader(in), &out); err == nil && out.Len() > 0 && !json.Valid([]byte(out.String())) {
			t.Errorf("printed %q", out.String())
		}
	})
}
