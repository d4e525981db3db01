package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

func (f *hubAccess) pausedCalls() any { return fields{"paused": f.hub.Pauses()} }

func resumePausedCall(ctx context.Context, f *hubAccess, a checkedArguments) (any, error) {
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

func listCalls(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	var limit *int
	if given := a.number("limit"); given != nil {
		limit = new(int(*given))
	}
	return f.hub.Records.Calls(a.text("function_name"), limit)
}

const maxPauseWait = time.Hour

func evaluate(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	q := debug.EvaluateParams{PauseID: a.text("pause_id"), Session: a.text("session_id"), Expr: a.text("expression")}
	if q.Session != "" && !debug.HasREPLSessionIDForm(q.Session) {
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

func inspectStoredValueByContentID(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	cid := a.text("cid")
	data, err := f.hub.StoredValueByContentID(cid)
	if err != nil {
		return nil, err
	}
	in := compat.Inspect(cid, data)
	if in.Error != "" {
		return toolOutputMarkedAsError{in}, nil
	}
	return in, nil
}

const (
	promptNameSessionStart = "debug-session-start"
	promptNamePausedCall   = "inspect-paused-call"
)

func prompts() []any {
	type argument struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
	}
	return []any{
		fields{"name": promptNameSessionStart, "description": "The state of this debugging session: breakpoints, tools, recent calls, paused calls."},
		fields{
			"name": promptNamePausedCall, "description": "One paused call with all its details.",
			"arguments": [1]argument{{"pause_id", "the paused call", true}},
		},
	}
}

func (f *hubAccess) getPrompt(params json.RawMessage) (any, error) {
	var in struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParamsError("prompts/get: " + err.Error())
	}
	switch in.Name {
	case promptNameSessionStart:
		return f.debuggingSessionStatePrompt()
	case promptNamePausedCall:
		return f.pausedCallPrompt(in.Arguments["pause_id"])
	default:
		return nil, invalidParamsError(fmt.Sprintf("unknown prompt %q", in.Name))
	}
}

const maxPromptCalls = 10

func (f *hubAccess) debuggingSessionStatePrompt() (promptResult any, listError error) {
	limit := maxPromptCalls
	calls, err := f.hub.Records.Calls("", &limit)
	if err != nil {
		return nil, err
	}
	return promptMessage("The state of the debugging session",
		"You are debugging an agent through breakpoints on its tool calls. A call that hits one waits until you decide with breakpoint_continue. This is the current state.",
		promptSection{"Counts and default behavior", f.hub.Status()}, promptSection{"Breakpoints", f.breakpoints()},
		promptSection{"Paused calls", f.pausedCalls()}, promptSection{fmt.Sprintf("Newest %d calls", limit), calls}, promptSection{"Tools", f.namesSignaturesAndMetadataOfTools()})
}

func (f *hubAccess) pausedCallPrompt(id string) (any, error) {
	if id == "" {
		return nil, protocolError(debug.NewMissingParameterError("pause_id"))
	}
	p, err := f.hub.PauseByID(id)
	if err != nil {
		return nil, protocolError(err)
	}
	d := p.CallData
	parts := []promptSection{{"Input", d.Input()}}
	if older, ok := d.Values.(*compat.CallData); ok {
		parts = []promptSection{{"Input", older.PrettyKwargs}}
		if len(older.PrettyArgs) > 0 {
			parts = append(parts, promptSection{"Positional arguments", older.PrettyArgs})
		}
	}
	if d.PrettyResult != nil {
		parts = append(parts, promptSection{"Result", d.PrettyResult})
	}
	if d.Exception != nil {
		parts = append(parts, promptSection{"Error", d.Exception})
	}
	if d.CallSite != nil {
		parts = append(parts, promptSection{"Call site", d.CallSite})
	}
	if d.Signature != "" {
		var schema any = d.Signature
		if json.Valid([]byte(d.Signature)) {
			schema = json.RawMessage(d.Signature)
		}
		parts = append(parts, promptSection{"Schema", schema})
	}
	phase := cmp.Or(d.Phase, debug.PhaseBefore)
	head := fmt.Sprintf("A call of %s is paused %s it runs (pause_id %s, reason %s, session %q). Actions that breakpoint_continue accepts: %v. "+
		"breakpoint_repl_eval evaluates expressions in it.", d.MethodName, phase, p.ID, d.Reason, d.SessionID, d.Capabilities)
	return promptMessage("The paused call of "+d.MethodName, head, parts...)
}

type promptSection struct {
	title string
	body  any
}

func promptMessage(description, head string, parts ...promptSection) (any, error) {
	var b strings.Builder
	b.WriteString(head + "\n")
	for _, p := range parts {
		raw, err := wire.Marshal(p.body)
		if err != nil {
			return nil, err
		}
		var indented bytes.Buffer
		if json.Indent(&indented, raw, "", "  ") != nil {
			indented.Write(raw)
		}
		fmt.Fprintf(&b, "\n%s:\n%s\n", p.title, indented.String())
	}
	return fields{"description": description, "messages": [1]any{fields{"role": "user", "content": block{Type: "text", Text: b.String()}}}}, nil
}

// protocolError converts an error of the hub to a JSON-RPC error, because the result of a prompt cannot report it.
func protocolError(err error) error {
	data, merr := wire.Marshal(debug.ErrorResponseMembers(err))
	if merr != nil {
		return err
	}
	e := invalidParamsError(err.Error())
	e.Data = data
	return e
}

type debuggerResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`

	read func() (any, error)
}

const maxHistoryCalls = 50

func (f *hubAccess) resources() []debuggerResource {
	always := func(f func() any) func() (any, error) { return func() (any, error) { return f(), nil } }
	limit := maxHistoryCalls
	all := []debuggerResource{
		{URI: "breakpoint://status", Description: "Counts of breakpoints, tools, calls and sessions.", read: func() (any, error) { return f.hub.Status(), nil }},
		{URI: "breakpoint://breakpoints", Description: "All breakpoints with their settings.", read: always(f.breakpoints)},
		{URI: "breakpoint://paused", Description: "The calls that wait for a decision.", read: always(f.pausedCalls)},
		{URI: "breakpoint://call-history", Description: "The newest 50 finished calls.", read: func() (any, error) { return f.hub.Records.Calls("", &limit) }},
		{URI: "breakpoint://functions", Description: "The tools that can be called, with their schemas.", read: always(f.namesSignaturesAndMetadataOfTools)},
	}
	for i := range all {
		all[i].Name = all[i].URI[len("breakpoint://"):]
		all[i].MIMEType = "application/json"
	}
	return all
}

func (f *hubAccess) readResource(params json.RawMessage) (any, error) {
	var in struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParamsError("resources/read: " + err.Error())
	}
	all := f.resources()
	i := slices.IndexFunc(all, func(r debuggerResource) bool { return r.URI == in.URI })
	if i < 0 {
		return nil, &wire.Error{Code: wire.CodeResourceNotFound, Message: fmt.Sprintf("unknown resource %q", in.URI)}
	}
	body, err := all[i].read()
	if err != nil {
		return nil, err
	}
	text, err := wire.Marshal(body)
	if err != nil {
		return nil, err
	}
	return fields{"contents": [1]any{fields{"uri": in.URI, "mimeType": all[i].MIMEType, "text": string(text)}}}, nil
}

func (f *hubAccess) breakpoints() any {
	return struct {
		Names        []string                            `json:"breakpoints"`
		Before       map[string]debug.BreakpointBehavior `json:"behaviors"`
		After        map[string]debug.BreakpointBehavior `json:"after_behaviors"`
		Replacements map[string]string                   `json:"replacements"`
		Conditions   map[string]string                   `json:"conditions"`
		Errors       map[string]string                   `json:"condition_errors,omitempty"`
	}(f.hub.BreakpointSet.SettingsByBreakpointName())
}

func addOrChangeBreakpoint(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	name := a.text("function_name")
	err := f.hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{
		Name: name, Before: a.optionalText("behavior"), After: a.optionalText("after_behavior"), When: a.optionalText("when"),
	})
	return fields{"status": "ok", "function_name": name}, err
}

func removeBreakpoint(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	f.hub.BreakpointSet.RemoveBreakpoint(a.text("function_name"))
	return fields{"status": "ok", "function_name": a.text("function_name")}, nil
}

func setBreakpointBehaviorBeforeCall(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	b, err := f.hub.BreakpointSet.UpdateBreakpoint(debug.BreakpointSettings{Name: a.text("function_name"), Before: a.optionalText("behavior")})
	return fields{"status": "ok", "function_name": b.Name, "behavior": b.Before}, err
}

func setBreakpointBehaviorAfterCall(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	b, err := f.hub.BreakpointSet.UpdateBreakpoint(debug.BreakpointSettings{Name: a.text("function_name"), After: a.optionalText("behavior")})
	return fields{"status": "ok", "function_name": b.Name, "behavior": b.After}, err
}

func setReplacementTool(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	name, tool := a.text("function_name"), a.text("replacement_function")
	// A missing breakpoint is reported before the schemas are compared. The REST route checks in the opposite order.
	if !slices.ContainsFunc(f.hub.BreakpointSet.Breakpoints(), func(b debug.Breakpoint) bool { return b.Name == name }) {
		return nil, &debug.Error{Code: debug.CodeBreakpointNotFound, Detail: fields{"function_name": name}}
	}
	out := fields{"status": "ok", "function_name": name, "replacement_function": nil}
	if tool != "" && tool != name {
		out["replacement_function"] = tool
	}
	return out, f.hub.BreakpointSet.SetReplacementToolOfBreakpoint(name, tool)
}

func setDefaultBehavior(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
	b, err := f.hub.BreakpointSet.SetDefaultBreakpointBehavior(a.text("behavior"))
	return fields{"status": "ok", "behavior": b}, err
}

func (f *hubAccess) namesSignaturesAndMetadataOfTools() any {
	names, signatures, metadata := f.hub.FunctionNamesSignaturesAndMetadata()
	return fields{"functions": names, "signatures": signatures, "metadata": metadata}
}
