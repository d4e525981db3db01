package mcpserver

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/internal/debug"
)

func breakpointTools() []tool {
	name := param{name: "function_name", kind: kindText, required: true, doc: "tool name (mcp__server__tool, server/tool, Bash) or a glob (mcp__server__*)"}
	before := []string{"stop", "go", "yield"}
	after := []string{"stop", "go", "exception", "stop_exception", "yield"}
	return []tool{
		{name: "breakpoint_list_breakpoints", doc: "List all breakpoints with their behaviors, replacements and conditions.", run: func(_ context.Context, f *hubAccess, _ arguments) (any, error) {
			return f.breakpoints(), nil
		}},
		{name: "breakpoint_add", doc: "Set a breakpoint on a tool. An existing breakpoint keeps the settings that are not given.", run: addBreakpoint, params: []param{
			name,
			{name: "behavior", kind: kindText, enum: before, doc: "before the call; yield (the default) follows the default behavior"},
			{name: "after_behavior", kind: kindText, enum: after, doc: "after the call; yield is the default"},
			{name: "when", kind: kindText, doc: "condition over tool, phase, input, result, error, session, call"},
		}},
		{name: "breakpoint_remove", doc: "Remove a breakpoint and all its settings.", params: []param{name}, run: func(_ context.Context, f *hubAccess, a arguments) (any, error) {
			f.hub.BreakpointSet.RemoveBreakpoint(a.text("function_name"))
			return fields{"status": "ok", "function_name": a.text("function_name")}, nil
		}},
		{
			name: "breakpoint_set_behavior", doc: "Set whether a breakpoint stops calls before they run.", run: changeBreakpoint,
			params: []param{name, {name: "behavior", kind: kindText, required: true, enum: before, doc: "yield follows the default behavior"}},
		},
		{
			name: "breakpoint_set_after_behavior", doc: "Set whether a breakpoint stops calls after they have run.", run: changeAfterBehavior,
			params: []param{name, {name: "behavior", kind: kindText, required: true, enum: after, doc: "exception: only calls that failed; yield follows the default behavior"}},
		},
		{
			name: "breakpoint_set_replacement", doc: "Run another tool instead of a breakpoint's calls that are not paused.", run: setReplacement,
			params: []param{name, {name: "replacement_function", kind: kindText, required: true, doc: "a tool with the same schema; an empty text removes the replacement"}},
		},
		{name: "breakpoint_get_default_behavior", doc: "Get the behavior that yield uses.", run: func(_ context.Context, f *hubAccess, _ arguments) (any, error) {
			return fields{"behavior": f.hub.BreakpointSet.Default()}, nil
		}},
		{
			name: "breakpoint_set_default_behavior", doc: "Set the behavior that yield uses.", run: setDefaultBehavior,
			params: []param{{name: "behavior", kind: kindText, required: true, enum: []string{"stop", "go", "exception", "stop_exception"}, doc: "the new default"}},
		},
	}
}

func (f *hubAccess) breakpoints() any {
	return struct {
		Names        []string                  `json:"breakpoints"`
		Before       map[string]debug.Behavior `json:"behaviors"`
		After        map[string]debug.Behavior `json:"after_behaviors"`
		Replacements map[string]string         `json:"replacements"`
		Conditions   map[string]string         `json:"conditions"`
		Errors       map[string]string         `json:"condition_errors,omitempty"`
	}(f.hub.BreakpointSet.BreakpointLists())
}

func addBreakpoint(_ context.Context, f *hubAccess, a arguments) (any, error) {
	name := a.text("function_name")
	err := f.hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{
		Name: name, Before: a.optionalText("behavior"), After: a.optionalText("after_behavior"), When: a.optionalText("when"),
	})
	return fields{"status": "ok", "function_name": name}, err
}

func changeBreakpoint(_ context.Context, f *hubAccess, a arguments) (any, error) {
	b, err := f.hub.BreakpointSet.ChangeBreakpoint(debug.BreakpointSettings{Name: a.text("function_name"), Before: a.optionalText("behavior")})
	return fields{"status": "ok", "function_name": b.Name, "behavior": b.Before}, err
}

func changeAfterBehavior(_ context.Context, f *hubAccess, a arguments) (any, error) {
	b, err := f.hub.BreakpointSet.ChangeBreakpoint(debug.BreakpointSettings{Name: a.text("function_name"), After: a.optionalText("behavior")})
	return fields{"status": "ok", "function_name": b.Name, "behavior": b.After}, err
}

func setReplacement(_ context.Context, f *hubAccess, a arguments) (any, error) {
	name, tool := a.text("function_name"), a.text("replacement_function")
	// A missing breakpoint is reported before schemas are compared; the routes of
	// the older clients check in the opposite order.
	if !slices.ContainsFunc(f.hub.BreakpointSet.Breakpoints(), func(b debug.Breakpoint) bool { return b.Name == name }) {
		return nil, &debug.Error{Code: debug.CodeBreakpointNotFound, Detail: fields{"function_name": name}}
	}
	out := fields{"status": "ok", "function_name": name, "replacement_function": nil}
	if tool != "" && tool != name {
		out["replacement_function"] = tool
	}
	return out, f.hub.BreakpointSet.SetReplacement(name, tool)
}

func setDefaultBehavior(_ context.Context, f *hubAccess, a arguments) (any, error) {
	b, err := f.hub.BreakpointSet.SetDefault(a.text("behavior"))
	return fields{"status": "ok", "behavior": b}, err
}

func (f *hubAccess) functions() any {
	names, signatures, metadata := f.hub.FunctionLists()
	return fields{"functions": names, "signatures": signatures, "metadata": metadata}
}
