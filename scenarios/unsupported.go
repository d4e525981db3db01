package scenarios

import (
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// UnsupportedByAPI returns warnings about the parts of the scenario that claudeless serve does not support, in file
// order. The hint of each says what happens instead. The scenario must have been loaded from files.
func (s *Scenario) UnsupportedByAPI() diag.List {
	l := &apiUnsupportedKeyChecker{s: s}
	for i := range s.Responses {
		l.warnOfUnsupportedKeysInRule(i)
	}
	if s.DefaultResponse != nil {
		l.warnOfUnsupportedKeysInResponse(s.source, diag.Path{defaultRuleName}, s.DefaultResponse)
	}
	l.warnOfUnsupportedTopLevelKeys()
	l.list.Sort()
	return l.list
}

type apiUnsupportedKeyChecker struct {
	s    *Scenario
	src  *fill.ScenarioFile
	list diag.List
}

// addUnsupportedKeyWarning adds a warning about the key at path. hint explains what claudeless serve does instead.
func (l *apiUnsupportedKeyChecker) addUnsupportedKeyWarning(path diag.Path, message, hint string) {
	d := l.src.Index.DiagnosticAt(path, message)
	d.Hint, d.Warning = hint, true
	l.list = append(l.list, d)
}

func extendPath(path diag.Path, keys ...any) diag.Path {
	return append(path[:len(path):len(path)], keys...)
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedKeysInRule(ruleIndex int) {
	r := &l.s.Responses[ruleIndex]
	path := diag.Path{"responses", r.index}
	l.src = r.source
	l.warnAboutIgnoredFault(path, r.Fault)
	l.warnOfCrashFailure(path, r.Failure)
	l.warnOfUnsupportedKeysInResponse(r.source, extendPath(path, "response"), r.Response)
	for t := range r.Turns {
		turn := extendPath(path, "turns", t)
		l.warnOfCrashFailure(turn, r.Turns[t].Failure)
		l.warnOfUnsupportedKeysInResponse(r.source, extendPath(turn, "response"), r.Turns[t].Response)
	}
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedKeysInResponse(src *fill.ScenarioFile, path diag.Path, r *Response) {
	if r == nil {
		return
	}
	l.src = src
	l.warnOfUnsupportedKeysInCalls(extendPath(path, "tool_calls"), r.ToolCalls)
	l.warnOfUnsupportedKeysInSteps(extendPath(path, "steps"), r.Steps)
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedKeysInSteps(path diag.Path, steps []Step) {
	for i := range steps {
		s, at := &steps[i], extendPath(path, i)
		l.warnOfCrashFailure(at, s.Failure)
		l.warnAboutIgnoredFault(at, s.Fault)
		l.warnOfUnsupportedKeysInCalls(extendPath(at, "tool_calls"), s.ToolCalls)
		for b := range s.Blocks {
			l.warnOfUnsupportedKeysInCall(extendPath(at, "blocks", b), &s.Blocks[b].ToolCall)
		}
		if len(s.Frames) > 0 {
			l.addUnsupportedKeyWarning(extendPath(at, "frames"), "`frames` belong to the output of the CLI", "claudeless serve ignores them")
		}
		calls := len(s.ToolCalls) > 0 || slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Type == BlockToolUse })
		// A next step with a condition may be an alternative to this one.
		if !calls && i+1 < len(steps) && steps[i+1].When == "" && s.StopReason == "" {
			l.addUnsupportedKeyWarning(at, "another step follows a step without tool calls", "clients send no request between the two steps, so claudeless serve sends them as one message")
		}
	}
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedKeysInCalls(path diag.Path, calls []ToolCall) {
	for i := range calls {
		l.warnOfUnsupportedKeysInCall(extendPath(path, i), &calls[i])
	}
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedKeysInCall(path diag.Path, scriptedCall *ToolCall) {
	const runs = "the client runs the tool"
	if scriptedCall.Result != nil {
		l.addUnsupportedKeyWarning(extendPath(path, "result"), "claudeless serve does not send the `result` of a call", runs+" and returns its own result")
	}
	if scriptedCall.IsError {
		l.addUnsupportedKeyWarning(extendPath(path, "is_error"), "claudeless serve does not send `is_error` of a call", runs+" and returns its own result")
	}
	if scriptedCall.DelayMS > 0 {
		l.addUnsupportedKeyWarning(extendPath(path, "delay_ms"), "claudeless serve ignores `delay_ms` of a call", runs+" at once")
	}
	// If a name has no server and does not begin with a capital letter, it is not that of a built-in tool.
	if name := scriptedCall.Tool; name != "" && !strings.Contains(name, "/") && !strings.HasPrefix(name, "mcp__") && (name[0] < 'A' || name[0] > 'Z') {
		l.addUnsupportedKeyWarning(extendPath(path, "tool"), "clients usually offer an MCP tool only under its full name",
			"write server/tool: claudeless serve then sends the full name (mcp__server__tool)")
	}
	if scriptedCall.Subagent != nil {
		l.warnOfUnsupportedKeysInSteps(extendPath(path, "subagent", "steps"), scriptedCall.Subagent.Steps)
	}
}

func (l *apiUnsupportedKeyChecker) warnOfCrashFailure(path diag.Path, f *Failure) {
	if f != nil && f.Type == FailCrash {
		l.addUnsupportedKeyWarning(extendPath(path, "failure"), "a `crash` ends the process of the CLI", "claudeless serve cannot end the CLI; instead, it closes the connection")
	}
}

func (l *apiUnsupportedKeyChecker) warnAboutIgnoredFault(path diag.Path, name string) {
	if name != "" && name != "529-storm" && !FaultChangesStreamedMessages(name) {
		l.addUnsupportedKeyWarning(extendPath(path, "fault"), "the `fault` "+name+" changes the output of the CLI", "claudeless serve ignores it")
	}
}

func (l *apiUnsupportedKeyChecker) warnOfUnsupportedTopLevelKeys() {
	l.src = l.s.source
	const client = "the client decides this itself"
	for _, k := range []struct {
		key, what, instead string
		set                bool
	}{
		{"tool_execution", "`tool_execution` configures how the CLI runs tools", "the client runs the tools", l.s.ToolExecution != nil},
		{"breakpoints", "`breakpoints` stop tool calls of the CLI", "claudeless serve sends every call to the client", len(l.s.Breakpoints) > 0},
		{"mcp", "`mcp` configures the CLI", "configure these servers in the client", len(l.s.MCP.Servers) > 0 || l.s.MCP.Elicitation != nil || len(l.s.MCP.Sampling) > 0},
		{"permission_mode", "`permission_mode` is a setting of the CLI", client, l.s.PermissionMode != ""},
		{"fault", "the `fault` of a scenario changes the output of the CLI", "claudeless serve simulates only the faults that rules and steps set", l.s.Fault != ""},
		{"pace", "`pace` applies only to the CLI", "use `stream` and `timeouts`", l.s.Pace != ""},
		{"session_id", "`session_id` is set by the CLI", client, l.s.SessionID != ""},
	} {
		if k.set {
			l.addUnsupportedKeyWarning(diag.Path{k.key}, k.what, k.instead)
		}
	}
}
