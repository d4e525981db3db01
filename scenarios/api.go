package scenarios

import (
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
)

// API is what only the Messages API face has. The CLI face reads none of it.
type API struct {
	// Strict refuses what the real API refuses and clients seldom notice: a
	// request without `anthropic-version`.
	Strict bool `toml:"strict"`
	// RequireAuth refuses requests without a key; any key will do.
	RequireAuth bool `toml:"require_auth"`
	// Diverged says what happens when a history holds an answer that the scenario
	// would not have given: `follow` goes on with the history and says so in the
	// journal, `error` refuses the request.
	Diverged string `toml:"diverged" enum:"follow,error" default:"follow"`
	// Pad puts spaces before the closing brace of streamed events, as the real
	// API does at times.
	Pad bool `toml:"pad"`
	// Headers are sent with every answer, in place of ours of the same name.
	Headers map[string]string `toml:"headers"`
	// Side answers requests that a client makes beside the conversation.
	Side []Side `toml:"side"`
}

// Side answers one kind of request beside the conversation. Such requests touch
// no rule, no count and no expectation.
type Side struct {
	// Kind is the kind of request: `title` names the session, `compact` sums the
	// conversation up, `probe` finds out whether a model is there, `other` is
	// everything else that is none of the conversation.
	Kind string `toml:"kind,required" enum:"title,compact,probe,other"`
	// Text is sent as it stands.
	Text string `toml:"text,required"`
}

// SideText is the scripted answer to a kind of side request; false = none. The
// first of a kind counts.
func (a *API) SideText(kind string) (string, bool) {
	for _, s := range a.Side {
		if s.Kind == kind {
			return s.Text, true
		}
	}
	return "", false
}

// Unhonoured lists what of the scenario the Messages API face cannot do, with
// its place and what happens instead, as warnings in file order. It is for
// scenarios that were loaded from files.
func (s *Scenario) Unhonoured() diag.List {
	l := &unhonoured{s: s}
	for i := range s.Responses {
		l.rule(i)
	}
	if s.DefaultResponse != nil {
		l.response(s.source, diag.Path{defaultName}, s.DefaultResponse)
	}
	l.top()
	l.list.Sort()
	return l.list
}

// unhonoured collects what the API face cannot do.
type unhonoured struct {
	s    *Scenario
	src  *source
	list diag.List
}

// add reports the key at path, and what happens instead.
func (l *unhonoured) add(path diag.Path, what, instead string) {
	d := l.src.ix.At(path, what)
	d.Hint, d.Warning = instead, true
	l.list = append(l.list, d)
}

// under is path with more steps, in memory of its own.
func under(path diag.Path, steps ...any) diag.Path {
	return append(path[:len(path):len(path)], steps...)
}

func (l *unhonoured) rule(i int) {
	r := &l.s.Responses[i]
	path := diag.Path{"responses", r.index}
	l.src = r.source
	l.failure(path, r.Failure)
	l.response(r.source, under(path, "response"), r.Response)
	for t := range r.Turns {
		turn := under(path, "turns", t)
		l.failure(turn, r.Turns[t].Failure)
		l.response(r.source, under(turn, "response"), r.Turns[t].Response)
	}
}

func (l *unhonoured) response(src *source, path diag.Path, r *Response) {
	if r == nil {
		return
	}
	l.src = src
	l.calls(under(path, "tool_calls"), r.ToolCalls)
	l.steps(under(path, "steps"), r.Steps)
}

func (l *unhonoured) steps(path diag.Path, steps []Step) {
	for i := range steps {
		s, at := &steps[i], under(path, i)
		l.failure(at, s.Failure)
		l.calls(under(at, "tool_calls"), s.ToolCalls)
		for b := range s.Blocks {
			l.call(under(at, "blocks", b), &s.Blocks[b].ToolCall)
		}
		if len(s.Frames) > 0 {
			l.add(under(at, "frames"), "`frames` are output of the CLI", "the API face leaves them out")
		}
		calls := len(s.ToolCalls) > 0 || slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Type == BlockToolUse })
		if !calls && i+1 < len(steps) && s.StopReason == "" {
			l.add(at, "a step without tool calls is followed by another one", "no client asks again after it: the API face sends both as one message")
		}
	}
}

func (l *unhonoured) calls(path diag.Path, calls []ToolCall) {
	for i := range calls {
		l.call(under(path, i), &calls[i])
	}
}

func (l *unhonoured) call(path diag.Path, c *ToolCall) {
	const runs = "the client runs the tool itself"
	if c.Result != nil {
		l.add(under(path, "result"), "`result` of a call is not sent by the API", runs+"; its result counts")
	}
	if c.IsError {
		l.add(under(path, "is_error"), "`is_error` of a call is not sent by the API", runs+"; its result counts")
	}
	if c.DelayMS > 0 {
		l.add(under(path, "delay_ms"), "`delay_ms` of a call waits in the CLI face only", runs+" when it likes")
	}
	if bareName(c.Tool) {
		l.add(under(path, "tool"), "the bare name of an MCP tool may not be offered",
			"real clients offer such tools late or never: write server/tool, else the name is sent as it stands")
	}
	if c.Subagent != nil {
		l.steps(under(path, "subagent", "steps"), c.Subagent.Steps)
	}
}

// bareName tells whether a tool's name can only be that of an MCP tool without
// its server: built-in tools begin with a capital.
func bareName(name string) bool {
	return name != "" && !strings.Contains(name, "/") && !strings.HasPrefix(name, "mcp__") && (name[0] < 'A' || name[0] > 'Z')
}

func (l *unhonoured) failure(path diag.Path, f *Failure) {
	if f != nil && f.Type == FailCrash {
		l.add(under(path, "failure"), "a `crash` ends the process of the CLI", "the API face resets the connection")
	}
}

// top reports on the keys of the whole scenario.
func (l *unhonoured) top() {
	l.src = l.s.source
	const client = "it is the client's own matter there"
	for _, k := range []struct {
		key, what, instead string
		set                bool
	}{
		{"tool_execution", "`tool_execution` is about running tools", "the client runs them", l.s.ToolExecution != nil},
		{"breakpoints", "`breakpoints` stop calls in the CLI face", "calls go to the client unseen", len(l.s.Breakpoints) > 0},
		{"mcp", "`mcp` configures the CLI", "the client needs these servers itself", len(l.s.MCP.Servers) > 0 || l.s.MCP.Elicitation != nil || len(l.s.MCP.Sampling) > 0},
		{"permission_mode", "`permission_mode` is a setting of the CLI", client, l.s.PermissionMode != ""},
		{"session_id", "`session_id` is made by the CLI", client, l.s.SessionID != ""},
	} {
		if k.set {
			l.add(diag.Path{k.key}, k.what, k.instead)
		}
	}
}
