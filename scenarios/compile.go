package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// Compile prepares a scenario that was built in Go for [NewEngine]. A scenario that was loaded from a file does not need it. The error
// lists all problems.
func (s *Scenario) Compile() error {
	var found diag.List
	s.source = &fill.ScenarioFile{Index: diag.IndexTOML("", ""), Dir: ".", Templates: s.Templates == nil || *s.Templates}
	c := &scenarioCompiler{&fill.FileCompiler{Library: fill.NewCompiledExpressions(), Source: s.source, ReadFile: diag.ReadRegularFile, Diagnostics: &found}}
	c.compileScenario(s)
	s.library, s.rules = c.Library, &lazyRulePatternIndex{}
	return found.Err()
}

type scenarioCompiler struct{ *fill.FileCompiler }

func (c *scenarioCompiler) compileScenario(s *Scenario) {
	c.normalizeSessionKeys(s)
	if s.DefaultResponse != nil {
		c.WithPathExtendedBy("default_response", func() { c.compileResponse(s.DefaultResponse) })
	}
	c.Path = append(c.Path, "responses", 0)
	for i := range s.Responses {
		c.Path[1] = i
		c.compileRule(&s.Responses[i], i)
	}
	c.Path = c.Path[:0]
	c.compileList("breakpoints", len(s.Breakpoints), func(i int) { c.compileBreakpoint(&s.Breakpoints[i], i) })
	c.WithPathExtendedBy("mcp", func() {
		c.compileList("sampling", len(s.MCP.Sampling), func(i int) { c.compileSamplingRule(&s.MCP.Sampling[i], i) })
	})
	c.compileList("expect", len(s.Expect), func(i int) { c.compileExpectation(s, &s.Expect[i]) })
}

// compileList calls compile with the index of each element of a list of length n. During the call, c.Path is that of the element.
func (c *scenarioCompiler) compileList(key string, n int, compile func(i int)) {
	c.WithPathExtendedBy(key, func() {
		for i := range n {
			c.WithPathExtendedBy(i, func() { compile(i) })
		}
	})
}

// normalizeSessionKeys converts session_id, launch_timestamp and permission_mode to their canonical form, and reports invalid values.
func (c *scenarioCompiler) normalizeSessionKeys(s *Scenario) {
	if s.SessionID != "" {
		id, ok := normalUUID(s.SessionID)
		if !ok {
			c.WithPathExtendedBy("session_id", func() { c.Errorf("invalid session_id %q: must be a valid UUID", s.SessionID) })
		}
		s.SessionID = id
	}
	if s.LaunchTimestamp != "" {
		if _, err := time.Parse(time.RFC3339, s.LaunchTimestamp); err != nil {
			c.WithPathExtendedBy("launch_timestamp", func() {
				c.Errorf("invalid launch_timestamp %q: must be RFC 3339 with a zone, e.g. 2026-01-15T10:30:00Z", s.LaunchTimestamp)
			})
		}
	}
	if s.PermissionMode != "" {
		mode, ok := canonicalPermissionMode(s.PermissionMode)
		if !ok {
			known := []string{"default", "plan", "acceptEdits", "bypassPermissions", "dontAsk", "auto", "delegate"}
			c.WithPathExtendedBy("permission_mode", func() {
				c.ErrorWithHintf(diag.DidYouMean(s.PermissionMode, known), "invalid permission_mode %q: must be one of %s", s.PermissionMode, strings.Join(known, ", "))
			})
		}
		s.PermissionMode = mode
	}
}

// canonicalPermissionMode returns the real CLI's spelling of a mode. anySpelling may differ from it in case and hyphens.
func canonicalPermissionMode(anySpelling string) (realCLISpelling string, isKnown bool) {
	mode, ok := map[string]string{
		"default": "default", "manual": "default", "delegate": "delegate", "acceptedits": "acceptEdits",
		"auto": "auto", "bypasspermissions": "bypassPermissions", "dontask": "dontAsk", "plan": "plan",
	}[strings.ToLower(strings.ReplaceAll(anySpelling, "-", ""))]
	return cmp.Or(mode, anySpelling), ok
}

func (c *scenarioCompiler) compileRule(r *Rule, i int) {
	r.compiledRule = compiledRule{source: c.Source, index: i, match: c.compilePatternAtKey(&r.Pattern, "pattern"), promptSourceFilter: promptSourceFilter{r.Source, &r.Pattern}}
	r.groups = sortAndSpaceJoinGroupNames(r.match.GroupNames())
	c.Groups = r.groups
	if r.Once && r.MaxMatches != nil {
		c.WithPathExtendedBy("once", func() { c.Errorf("cannot set both `once` and `max_matches` in one rule") })
	}
	c.compileAnswer(r.When, r.Response, r.Failure)
	names := slices.Clip(r.match.GroupNames())
	for t := range r.Turns {
		turn := &r.Turns[t]
		c.Path = append(c.Path, "turns", t)
		turn.compiledRule = compiledRule{source: c.Source, index: t, match: c.compilePatternAtKey(&turn.Expect, "expect"), promptSourceFilter: promptSourceFilter{turn.Source, &turn.Expect}}
		names = append(names, turn.match.GroupNames()...)
		turn.groups = sortAndSpaceJoinGroupNames(names)
		c.Groups = turn.groups
		c.compileAnswer(turn.When, turn.Response, turn.Failure)
		c.Path = c.Path[:len(c.Path)-2]
	}
	c.Groups = ""
}

func (c *scenarioCompiler) compileAnswer(when string, r *Response, f *Failure) {
	c.CompileCondition(when)
	c.compileFailure(f)
	// Plain text is checked first, because most responses have this form, and large scenarios have many.
	if r == nil || (len(r.Steps) == 0 && len(r.ToolCalls) == 0 && r.StructuredOutput == nil && !eval.HasTemplate(r.Text)) {
		return
	}
	c.WithPathExtendedBy("response", func() { c.compileResponse(r) })
}

func (c *scenarioCompiler) compileFailure(f *Failure) {
	if f != nil {
		c.WithPathExtendedBy("failure", func() {
			c.WithPathExtendedBy("message", func() { c.CompileTemplate(f.Message) })
			c.WithPathExtendedBy("partial_text", func() { c.CompileTemplate(f.PartialText) })
		})
	}
}

func (c *scenarioCompiler) compileResponse(r *Response) {
	c.WithPathExtendedBy("text", func() { c.compileResponseText(r.Text) })
	c.compileList("tool_calls", len(r.ToolCalls), func(i int) { c.compileCall(&r.ToolCalls[i]) })
	c.WithPathExtendedBy("structured_output", func() { c.CompileJSONValue(r.StructuredOutput) })
	c.compileList("steps", len(r.Steps), func(i int) { c.compileStep(&r.Steps[i]) })
}

// compileResponseText compiles the text of a response. If the response is only a string, such as "hi", the file has no
// key `text`. Problems of the text are then reported at the position of the response.
func (c *scenarioCompiler) compileResponseText(text string) {
	if _, ok := c.Source.Index.Lookup(c.Path); !ok {
		saved := c.Path
		c.Path = c.Path[:len(c.Path)-1]
		c.CompileTemplate(text)
		c.Path = saved
		return
	}
	c.CompileTemplate(text)
}

func (c *scenarioCompiler) compileStep(s *Step) {
	c.CompileCondition(s.When)
	c.compileFailure(s.Failure)
	c.WithPathExtendedBy("thinking", func() { c.CompileTemplate(s.Thinking) })
	c.WithPathExtendedBy("text", func() { c.CompileTemplate(s.Text) })
	c.compileList("tool_calls", len(s.ToolCalls), func(i int) { c.compileCall(&s.ToolCalls[i]) })
	c.WithPathExtendedBy("structured_output", func() { c.CompileJSONValue(s.StructuredOutput) })
	c.compileList("frames", len(s.Frames), func(i int) {
		f := &s.Frames[i]
		c.WithPathExtendedBy("json", func() { c.CompileJSONValue(f.JSON) })
		c.WithPathExtendedBy("line", func() { c.CompileTemplate(f.Line) })
		c.WithPathExtendedBy("stderr", func() { c.CompileTemplate(f.Stderr) })
	})
	c.compileList("blocks", len(s.Blocks), func(i int) { c.compileBlock(&s.Blocks[i]) })
}

func (c *scenarioCompiler) compileCall(t *ToolCall) {
	c.WithPathExtendedBy("input", func() { c.CompileJSONValue(t.Input) })
	if t.Result != nil {
		c.WithPathExtendedBy("result", func() {
			c.CompileTemplate(t.Result.Text)
			if t.Result.File != "" {
				c.WithPathExtendedBy("$file", func() { c.LoadTextFile(t.Result.File) })
			}
		})
	}
	if t.Expect != nil {
		c.compilePatternAtKey(t.Expect, "expect")
		c.WithPathExtendedBy("expect", func() { t.at = c.Source.Index.Pos(c.Path) })
	}
	if t.Subagent != nil {
		c.WithPathExtendedBy("subagent", func() {
			c.compileList("steps", len(t.Subagent.Steps), func(i int) { c.compileStep(&t.Subagent.Steps[i]) })
		})
	}
}

func (c *scenarioCompiler) hasKeyAtCurrentPath(key string) (ok bool) {
	c.WithPathExtendedBy(key, func() { _, ok = c.Source.Index.Lookup(c.Path) })
	return ok
}

func (c *scenarioCompiler) compileExpectation(s *Scenario, e *Expectation) {
	e.at = c.Source.Index.Pos(c.Path)
	kinds := []string{}
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"tool", e.Tool != ""},
		{"prompt", e.Prompt != nil},
		{"mcp", e.MCP != nil},
		{"request", e.Request != nil},
		{"oauth", e.OAuth != nil},
		{"otel", e.Otel != ""},
		{"exit", e.Exit != nil},
		{"rule", e.Rule != nil},
		{"screen", e.Screen != ""},
		{"unused", e.Unused != ""},
	} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	switch {
	case len(kinds) == 0 && !c.hasKeyAtCurrentPath("tool") && !c.hasKeyAtCurrentPath("prompt"):
		c.Errorf("an expectation needs a key that says what to expect, such as `tool` or `prompt`")
	case len(kinds) > 1:
		c.WithPathExtendedBy(kinds[1], func() { c.Errorf("cannot set both `%s` and `%s` in one expectation", kinds[0], kinds[1]) })
	}
	if e.Input != nil && e.Tool == "" {
		c.WithPathExtendedBy("input", func() { c.Errorf("`input` requires `tool` in the same expectation") })
	}
	if e.Answered != "" && e.Screen == "" {
		c.WithPathExtendedBy("answered", func() { c.Errorf("`answered` requires `screen` in the same expectation") })
	}
	state, _, _ := strings.Cut(e.Screen, "/") // such as "permission", optionally with a kind: "permission/bash"
	if e.Screen != "" && !slices.Contains([]string{"permission", "question", "plan", "dialog"}, state) {
		c.WithPathExtendedBy("screen", func() {
			c.Errorf("`screen` must be permission, question, plan or dialog, optionally with a kind, as in permission/bash")
		})
	}
	if e.OAuth != nil {
		c.WithPathExtendedBy("oauth", func() { c.compileOAuthExpectation(e) })
	}
	if e.Never && e.Times != nil {
		c.WithPathExtendedBy("times", func() { c.Errorf("`times` cannot be combined with `never`") })
	}
	if e.Prompt != nil {
		e.prompt = c.compilePatternAtKey(e.Prompt, "prompt")
	}
	if e.Rule != nil && !c.isStartLineOfRuleOrTurn(s, *e.Rule) {
		c.WithPathExtendedBy("rule", func() {
			c.Errorf("`rule` must be the line of a [[responses]] header; no rule begins on line %d", *e.Rule)
		})
	}
	if e.MCP != nil {
		c.WithPathExtendedBy("mcp", func() { c.compileServerExpectation(e.MCP) })
	}
	if e.Request != nil {
		c.WithPathExtendedBy("request", func() { c.reportInvalidGlob("model", e.Request.Model) })
	}
	c.reportInvalidGlob("otel", e.Otel)
	for _, form := range globsForCanonicalToolNames(e.Tool) {
		t, err := match.Glob(form)
		if err != nil {
			c.WithPathExtendedBy("tool", func() { c.Errorf("%v", err) })
			break
		}
		e.tools = append(e.tools, t)
	}
}

func (c *scenarioCompiler) compileServerExpectation(m *ExpectMCP) {
	c.reportInvalidGlob("server", m.Server)
	c.reportInvalidGlob("tool", m.Tool)
	c.reportInvalidGlob("progress", m.Progress)
	c.reportInvalidGlob("log", m.Log)
	log := "log"
	if m.Log == "" {
		log = "level"
	}
	switch logs := m.Log != "" || m.Level != ""; {
	case logs && m.Progress != "":
		c.WithPathExtendedBy(log, func() { c.Errorf("cannot set both `progress` and `%s` in one expectation", log) })
	case logs && m.Tool != "":
		c.WithPathExtendedBy("tool", func() { c.Errorf("`tool` cannot be combined with `log` or `level`") })
	}
}

// compileOAuthExpectation checks an OAuth expectation. The value of its key `count`, if any, becomes `times`.
func (c *scenarioCompiler) compileOAuthExpectation(e *Expectation) {
	o := e.OAuth
	c.reportInvalidGlob("client", o.Client)
	switch {
	case o.Count != nil && (e.Times != nil || e.Never):
		c.WithPathExtendedBy("count", func() { c.Errorf("`count` cannot be combined with `times` or `never`") })
	case o.Grant != "" && o.Request != "" && o.Request != "token":
		c.WithPathExtendedBy("grant", func() { c.Errorf("`grant` requires `request = \"token\"`") })
	case o.Count != nil:
		e.Times = o.Count
	}
}

func (c *scenarioCompiler) isStartLineOfRuleOrTurn(s *Scenario, line int) bool {
	for i, r := range s.Responses {
		if c.Source.Index.Pos(diag.Path{"responses", i}).Line == line {
			return true
		}
		for t := range r.Turns {
			if c.Source.Index.Pos(diag.Path{"responses", i, "turns", t}).Line == line {
				return true
			}
		}
	}
	return false
}

func (c *scenarioCompiler) reportInvalidGlob(key, globText string) {
	if _, err := match.Glob(globText); err != nil {
		c.WithPathExtendedBy(key, func() { c.Errorf("%v", err) })
	}
}

func (c *scenarioCompiler) compilePatternAtKey(p *Pattern, key string) (compiledPattern match.Pattern) {
	c.WithPathExtendedBy(key, func() {
		var err error
		var bad diag.Path
		if compiledPattern, bad, err = compilePattern(p, nil); err != nil {
			saved := c.Path
			c.Path = append(c.Path, bad...)
			c.ErrorWithHintf(hintIfRE2LacksSyntax(err), "%v", err)
			c.Path = saved
		}
	})
	return compiledPattern
}

func (c *scenarioCompiler) compileBreakpoint(k *Breakpoint, i int) {
	k.at, k.index, k.source, k.lib = c.Source.Index.Pos(c.Path), i, c.Source, c.Library
	k.Phase = cmp.Or(k.Phase, BreakBefore)
	c.Groups = fill.GroupsMarkerOfBreakpointExpressions
	defer func() { c.Groups = "" }()
	for _, form := range k.Names() {
		if _, err := match.Glob(form); err != nil {
			c.WithPathExtendedBy("tool", func() { c.Errorf("%v", err) })
			break
		}
	}
	c.CompileCondition(k.When)
	c.WithPathExtendedBy("input", func() {
		c.CompileJSONValue(k.Input)
		var text string // a missing text is reported by another check
		table := len(k.Input) == 0 || bytes.HasPrefix(k.Input, []byte("{"))
		if !table && (!c.Source.Templates || json.Unmarshal(k.Input, &text) != nil || !eval.HasTemplate(text)) {
			c.Errorf("`input` must be a table, or one template that returns a table")
		}
	})
	c.WithPathExtendedBy("result", func() { c.CompileJSONValue(k.Result) })
	c.WithPathExtendedBy("message", func() { c.CompileTemplate(k.Message) })
	c.WithPathExtendedBy("replacement", func() { c.CompileTemplate(k.Replacement) })
}

func (c *scenarioCompiler) compileSamplingRule(a *Sampling, index int) {
	a.compiledRule = compiledRule{source: c.Source, index: index, match: match.Any()}
	if a.Pattern != nil {
		a.match = c.compilePatternAtKey(a.Pattern, "pattern")
	}
	a.groups = sortAndSpaceJoinGroupNames(a.match.GroupNames())
	c.Groups = a.groups
	c.WithPathExtendedBy("text", func() { c.CompileTemplate(a.Text) })
	c.WithPathExtendedBy("error", func() { c.CompileTemplate(a.Error) })
	c.Groups = ""
}

func (c *scenarioCompiler) compileBlock(b *Block) {
	c.WithPathExtendedBy("text", func() { c.CompileTemplate(b.Text) })
	c.WithPathExtendedBy("thinking", func() { c.CompileTemplate(b.Thinking) })
	c.WithPathExtendedBy("citations", func() { c.CompileJSONValue(b.Citations) })
	c.WithPathExtendedBy("content", func() { c.CompileJSONValue(b.Content) })
	c.WithPathExtendedBy("json", func() { c.CompileJSONValue(b.JSON) })
	c.compileCall(&b.ToolCall)
	if b.Type == BlockServerToolUse {
		b.at = c.Source.Index.Pos(c.Path) // the id of the call is derived from this position
	}
}

// normalUUID returns a UUID in lower case with hyphens. It accepts no other notation than 36 characters with hyphens or 32 without.
func normalUUID(s string) (string, bool) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 && len(s) != 32 { // uuid.Parse also accepts braces and a URN prefix
		return s, false
	}
	return id.String(), true
}
