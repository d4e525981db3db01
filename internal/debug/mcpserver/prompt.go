package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

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

func (f *hubAccess) prompt(params json.RawMessage) (any, error) {
	var in struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParams("prompts/get: " + err.Error())
	}
	switch in.Name {
	case promptNameSessionStart:
		return f.sessionStartPrompt()
	case promptNamePausedCall:
		return f.pausedCallPrompt(in.Arguments["pause_id"])
	default:
		return nil, invalidParams(fmt.Sprintf("unknown prompt %q", in.Name))
	}
}

const maxPromptCalls = 10

func (f *hubAccess) sessionStartPrompt() (any, error) {
	limit := maxPromptCalls
	calls, err := f.calls("", &limit)
	if err != nil {
		return nil, err
	}
	return promptMessage("The state of the debugging session",
		"You are debugging an agent through breakpoints on its tool calls. A call that hits one waits until breakpoint_continue decides about it. This is the state now.",
		promptSection{"Counts and default behavior", f.hub.Status()}, promptSection{"Breakpoints", f.breakpoints()},
		promptSection{"Paused calls", f.pausedCalls()}, promptSection{fmt.Sprintf("Newest %d calls", limit), calls}, promptSection{"Tools", f.functions()})
}

func (f *hubAccess) pausedCallPrompt(id string) (any, error) {
	if id == "" {
		return nil, protocolError(debug.MissingParameter("pause_id"))
	}
	p, err := f.hub.Pause(id)
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
		parts = append(parts, promptSection{"Schema", json.RawMessage(quoteUnlessJSON(d.Signature))})
	}
	phase := cmp.Or(d.Phase, debug.PhaseBefore)
	head := fmt.Sprintf("A call of %s is paused %s it runs (pause_id %s, reason %s, session %q). Actions that breakpoint_continue accepts: %v. "+
		"breakpoint_repl_eval evaluates expressions in it.", d.MethodName, phase, p.ID, d.Reason, d.SessionID, d.Capabilities)
	return promptMessage("The paused call of "+d.MethodName, head, parts...)
}

func quoteUnlessJSON(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	raw, err := wire.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
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

// protocolError converts an error of the hub for prompts, which cannot report an error in their result.
func protocolError(err error) error {
	data, merr := wire.Marshal(debug.ErrorFields(err))
	if merr != nil {
		return err
	}
	e := invalidParams(err.Error())
	e.Data = data
	return e
}

type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`

	read func() (any, error)
}

const maxHistoryCalls = 50

func (f *hubAccess) resources() []resource {
	always := func(f func() any) func() (any, error) { return func() (any, error) { return f(), nil } }
	limit := maxHistoryCalls
	all := []resource{
		{URI: "breakpoint://status", Description: "Counts of breakpoints, tools, calls and sessions.", read: func() (any, error) { return f.hub.Status(), nil }},
		{URI: "breakpoint://breakpoints", Description: "All breakpoints with their settings.", read: always(f.breakpoints)},
		{URI: "breakpoint://paused", Description: "The calls that wait for a decision.", read: always(f.pausedCalls)},
		{URI: "breakpoint://call-history", Description: "The newest 50 finished calls.", read: func() (any, error) { return f.calls("", &limit) }},
		{URI: "breakpoint://functions", Description: "The tools that can be called, with their schemas.", read: always(f.functions)},
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
		return nil, invalidParams("resources/read: " + err.Error())
	}
	all := f.resources()
	i := slices.IndexFunc(all, func(r resource) bool { return r.URI == in.URI })
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
	type contents struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
	}
	return map[string]any{"contents": [1]contents{{in.URI, all[i].MIMEType, string(text)}}}, nil
}
