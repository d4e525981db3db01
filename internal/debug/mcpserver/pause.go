package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

func pauseTools() []tool {
	return []tool{
		{name: "breakpoint_list_paused", doc: "List the calls that wait for a decision, the oldest first.", run: func(_ context.Context, f *hubAccess, _ arguments) (any, error) {
			return f.pausedCalls(), nil
		}},
		{name: "breakpoint_continue", doc: "Decide about a paused call: let it run, change its input or result, skip it, fail it, or run another tool.", run: resumePausedCall, params: resumeParams()},
		{name: "breakpoint_list_functions", doc: "List the tools that can be called, with their schemas.", run: func(_ context.Context, f *hubAccess, _ arguments) (any, error) {
			return f.functions(), nil
		}},
		{name: "breakpoint_get_call_records", doc: "List the newest finished calls.", run: listCalls, params: []param{
			{name: "function_name", kind: kindText, doc: "only calls of this tool"},
			{name: "limit", kind: kindInteger, doc: "maximum number of calls, at least 1 (default 100)"},
		}},
		{name: "breakpoint_repl_eval", doc: "Evaluate an expression at a paused call. Names: tool, phase, input, result, error, session, call, vars; \"name := expression\" sets vars.name.", run: evaluate, params: []param{
			{name: "pause_id", kind: kindText, required: true, doc: "the paused call"},
			{name: "expression", kind: kindText, required: true, doc: "expression to evaluate; older clients use their own language"},
			{name: "session_id", kind: kindText, typeErrorCode: debug.CodeInvalidSession, doc: "session of an earlier evaluation at this pause (default: a new session)"},
			{name: "timeout_s", kind: kindNumber, doc: "seconds to wait for the value (default 35)"},
		}},
		{
			name: "breakpoint_inspect_object", doc: "Describe a stored value by its content id.", run: inspectValue,
			params: []param{{name: "cid", kind: kindText, required: true, doc: "128 hexadecimal digits, as in call records"}},
		},
	}
}

func resumeParams() []param {
	return []param{
		{name: "pause_id", kind: kindText, required: true, doc: "the paused call"},
		{name: "action", kind: kindText, enum: []string{"continue", "modify", "skip", "raise", "replace"}, doc: "continue is the default; with new values it is modify"},
		{name: "modified_args", kind: kindList, doc: "new positional arguments; for a tool one element, the whole input"},
		{name: "modified_kwargs", kind: kindObject, doc: "the whole new input"},
		{name: "modified_result", doc: "after the call: the new result"},
		{name: "modified_input_expr", kind: kindText, doc: "expression whose value is the new input"},
		{name: "modified_result_expr", kind: kindText, doc: "expression whose value is the new result"},
		{name: "fake_result", doc: "the result of a call that is skipped; a string is the text, anything else its JSON"},
		{name: "exception_type", kind: kindText, doc: "type of the error with which the call fails; sent to older clients"},
		{name: "exception_message", kind: kindText, doc: "the text of the failure"},
		{name: "replacement_function", kind: kindText, doc: "a tool to run instead; overrides action"},
	}
}

func (f *hubAccess) pausedCalls() any { return fields{"paused": f.hub.Paused()} }

func resumePausedCall(ctx context.Context, f *hubAccess, a arguments) (any, error) {
	id := a.text("pause_id")
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var r debug.ResumeRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, &debug.Error{Code: debug.CodeInvalidArguments, Message: err.Error()}
	}
	decide := func(ctx context.Context) (any, error) {
		return fields{"status": "ok", "pause_id": id}, f.hub.Resume(ctx, id, r)
	}
	if r.ModifiedInputExpr != "" || r.ModifiedResultExpr != "" {
		return wire.DeferredAnswer(decide), nil
	}
	return decide(ctx)
}

func (f *hubAccess) calls(function string, limit *int) (any, error) {
	return f.hub.Records.Calls(function, limit)
}

func listCalls(_ context.Context, f *hubAccess, a arguments) (any, error) {
	var limit *int
	if given := a.number("limit"); given != nil {
		n := int(*given)
		limit = &n
	}
	return f.calls(a.text("function_name"), limit)
}

const maxPauseWait = time.Hour

func evaluate(_ context.Context, f *hubAccess, a arguments) (any, error) {
	q := debug.EvaluateParams{PauseID: a.text("pause_id"), Session: a.text("session_id"), Expr: a.text("expression")}
	if q.Session != "" && !debug.IsSessionID(q.Session) {
		return nil, debug.NewError(debug.CodeInvalidSession, "no session has this id", "session_id", q.Session)
	}
	if t := a.number("timeout_s"); t != nil {
		if *t <= 0 {
			return nil, debug.NewError(debug.CodeInvalidArguments, "timeout_s must be above 0", "parameter", "timeout_s")
		}
		q.Timeout = time.Duration(min(*t, maxPauseWait.Seconds()) * float64(time.Second))
	}
	return wire.DeferredAnswer(func(ctx context.Context) (any, error) { return f.hub.Evaluate(ctx, q) }), nil
}

func inspectValue(_ context.Context, f *hubAccess, a arguments) (any, error) {
	cid := a.text("cid")
	data, err := f.hub.Value(cid)
	if err != nil {
		return nil, err
	}
	in := compat.Inspect(cid, data)
	if in.Error != "" {
		return errorResult{in}, nil
	}
	return in, nil
}
