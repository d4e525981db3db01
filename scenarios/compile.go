package scenarios

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/eval"
	"github.com/claudeless/claudeless/internal/match"
)

// compiled is what loading adds to a [Scenario].
type compiled struct {
	source  *source
	library *library
}

// compiledRule is what loading adds to a [Rule] or [Turn].
type compiledRule struct {
	match  match.Text
	source *source
	index  int    // in its own file
	groups string // names of the captures that it sees
}

// Compile makes a scenario that was built in Go ready for [NewEngine], and says
// everything that is wrong with it. Loading has done it for those from files.
func (s *Scenario) Compile() error {
	l := newLoader(LoadOptions{})
	s.source = &source{ix: diag.IndexTOML("", nil), dir: ".", templates: s.Templates == nil || *s.Templates}
	(&compiler{loader: l, src: s.source}).scenario(s)
	s.library = l.lib
	return l.list.Err()
}

// compiler checks one file after it was bound and compiles what is in it.
type compiler struct {
	*loader
	src    *source
	path   diag.Path
	groups string
}

// in calls f with the path extended by step.
func (c *compiler) in(step any, f func()) {
	c.path = append(c.path, step)
	f()
	c.path = c.path[:len(c.path)-1]
}

func (c *compiler) errorf(format string, args ...any) { c.hintf("", format, args...) }

func (c *compiler) hintf(hint, format string, args ...any) {
	d := c.src.ix.At(c.path, fmt.Sprintf(format, args...))
	d.Hint = hint
	c.list = append(c.list, d)
}

func (c *compiler) scenario(s *Scenario) {
	c.identity(s)
	if s.DefaultResponse != nil {
		c.in("default_response", func() { c.response(s.DefaultResponse) })
	}
	c.path = append(c.path, "responses", 0)
	for i := range s.Responses {
		c.path[1] = i
		c.rule(&s.Responses[i], i)
	}
	c.path = c.path[:0]
	c.in("breakpoints", func() {
		for i := range s.Breakpoints {
			c.in(i, func() { c.breakpoint(&s.Breakpoints[i], i) })
		}
	})
	c.in("mcp", func() {
		c.in("sampling", func() { c.sampling(s.MCP.Sampling) })
	})
	c.in("expect", func() {
		for i := range s.Expect {
			c.in(i, func() { c.expectation(s, &s.Expect[i]) })
		}
	})
}

// identity checks the keys whose values have a form of their own.
func (c *compiler) identity(s *Scenario) {
	if s.SessionID != "" {
		id, ok := normalUUID(s.SessionID)
		if !ok {
			c.in("session_id", func() { c.errorf("invalid session_id %q: must be a valid UUID", s.SessionID) })
		}
		s.SessionID = id
	}
	if s.LaunchTimestamp != "" {
		if _, err := time.Parse(time.RFC3339, s.LaunchTimestamp); err != nil {
			c.in("launch_timestamp", func() {
				c.errorf("invalid launch_timestamp %q: must be RFC 3339 with a zone, e.g. 2026-01-15T10:30:00Z", s.LaunchTimestamp)
			})
		}
	}
	if s.PermissionMode != "" {
		mode, ok := permissionMode(s.PermissionMode)
		if !ok {
			known := []string{"default", "plan", "acceptEdits", "bypassPermissions", "dontAsk", "auto", "delegate"}
			c.in("permission_mode", func() {
				c.hintf(diag.MeantHint(s.PermissionMode, known), "invalid permission_mode %q: must be one of %s", s.PermissionMode, strings.Join(known, ", "))
			})
		}
		s.PermissionMode = mode
	}
}

// permissionMode accepts both spellings and returns the real CLI's.
func permissionMode(s string) (string, bool) {
	switch strings.ToLower(strings.ReplaceAll(s, "-", "")) {
	case "default", "manual":
		return "default", true
	case "plan":
		return "plan", true
	case "acceptedits":
		return "acceptEdits", true
	case "bypasspermissions":
		return "bypassPermissions", true
	case "dontask":
		return "dontAsk", true
	case "auto":
		return "auto", true
	case "delegate":
		return "delegate", true
	}
	return s, false
}

func (c *compiler) rule(r *Rule, i int) {
	r.compiledRule = compiledRule{source: c.src, index: i, match: c.pattern(&r.Pattern, "pattern")}
	r.groups = groupsOf(r.match.GroupNames())
	c.groups = r.groups
	c.answer(r.When, r.Response, r.Failure)
	for t := range r.Turns {
		turn := &r.Turns[t]
		c.path = append(c.path, "turns", t)
		turn.compiledRule = compiledRule{source: c.src, index: t, match: c.pattern(&turn.Expect, "expect")}
		turn.groups = groupsOf(append(turn.match.GroupNames(), r.match.GroupNames()...))
		c.groups = turn.groups
		c.answer(turn.When, turn.Response, turn.Failure)
		c.path = c.path[:len(c.path)-2]
	}
	c.groups = ""
}

// groupsOf writes names of captures as one string, each once.
func groupsOf(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func (c *compiler) answer(when string, r *Response, f *Failure) {
	c.condition(when)
	c.failure(f)
	// Most responses are a plain text, and most scenarios big ones of them.
	if r == nil || (len(r.Steps) == 0 && len(r.ToolCalls) == 0 && r.StructuredOutput == nil && !eval.HasTemplate(r.Text)) {
		return
	}
	c.in("response", func() { c.response(r) })
}

func (c *compiler) failure(f *Failure) {
	if f != nil {
		c.in("failure", func() {
			c.in("message", func() { c.template(f.Message) })
			c.in("partial_text", func() { c.template(f.PartialText) })
		})
	}
}

func (c *compiler) response(r *Response) {
	c.in("text", func() { c.responseText(r.Text) })
	c.calls(r.ToolCalls)
	c.in("structured_output", func() { c.data(r.StructuredOutput) })
	c.steps(r.Steps)
}

// responseText compiles a text that may stand for the whole response.
func (c *compiler) responseText(text string) {
	if _, ok := c.src.ix.Lookup(c.path); !ok {
		saved := c.path
		c.path = c.path[:len(c.path)-1]
		c.template(text)
		c.path = saved
		return
	}
	c.template(text)
}

func (c *compiler) steps(steps []Step) {
	c.in("steps", func() {
		for i := range steps {
			c.in(i, func() { c.step(&steps[i]) })
		}
	})
}

func (c *compiler) step(s *Step) {
	c.condition(s.When)
	c.failure(s.Failure)
	c.in("thinking", func() { c.template(s.Thinking) })
	c.in("text", func() { c.template(s.Text) })
	c.calls(s.ToolCalls)
	c.in("structured_output", func() { c.data(s.StructuredOutput) })
	c.in("frames", func() {
		for i := range s.Frames {
			f := &s.Frames[i]
			c.in(i, func() {
				c.in("json", func() { c.data(f.JSON) })
				c.in("line", func() { c.template(f.Line) })
				c.in("stderr", func() { c.template(f.Stderr) })
			})
		}
	})
	c.in("blocks", func() {
		for i := range s.Blocks {
			b := &s.Blocks[i]
			c.in(i, func() { c.block(b) })
		}
	})
}

func (c *compiler) calls(calls []ToolCall) {
	c.in("tool_calls", func() {
		for i := range calls {
			c.in(i, func() { c.call(&calls[i]) })
		}
	})
}

func (c *compiler) call(t *ToolCall) {
	c.in("input", func() { c.data(t.Input) })
	if t.Result != nil {
		c.in("result", func() { c.template(*t.Result) })
	}
	if t.Expect != nil {
		c.pattern(t.Expect, "expect")
		c.in("expect", func() { t.at = c.src.ix.Pos(c.path) })
	}
	if t.Subagent != nil {
		c.in("subagent", func() { c.steps(t.Subagent.Steps) })
	}
}

// condition compiles the `when` of the current table.
func (c *compiler) condition(src string) {
	if src == "" {
		return
	}
	key := snippet{src, c.groups}
	if c.lib.conditions[key] != nil {
		return
	}
	p, err := eval.CompileBool(src, c.lib.env(c.groups))
	if err != nil {
		c.in("when", func() { c.evalError("in the condition: ", err) })
		return
	}
	c.lib.conditions[key] = p
	c.lib.mention(src)
}

// template compiles the string at the current path.
func (c *compiler) template(src string) {
	if !c.src.templates || !eval.HasTemplate(src) {
		return
	}
	key := snippet{src, c.groups}
	if c.lib.templates[key] != nil {
		return
	}
	t, err := eval.ParseTemplate(src, c.lib.env(c.groups))
	if err != nil {
		c.evalError("in the template: ", err)
		return
	}
	c.lib.templates[key] = t
	c.lib.mention(src)
}

// evalError reports what is wrong with the string at the current path.
func (c *compiler) evalError(where string, err error) {
	for _, e := range eval.Faults(err) {
		d := c.src.ix.AtText(c.path, e.Offset, where+e.Message)
		d.Hint = cmp.Or(e.Hint, diag.NameHint(e.Name, e.Known))
		c.list = append(c.list, d)
	}
}

// data compiles the strings of a JSON value and reads its files.
func (c *compiler) data(raw json.RawMessage) {
	if !dynamic(raw, c.src.templates) {
		return
	}
	v, _ := diag.IndexJSON("", wrapJSON(raw)).Root().Field("")
	c.walk(v)
}

func (c *compiler) walk(v diag.Value) {
	switch v.Kind {
	case diag.String:
		c.template(v.Text)
	case diag.Array:
		for i, item := range v.Items() {
			c.in(i, func() { c.walk(item) })
		}
	case diag.Table:
		if name, ok := fileRef(v); ok {
			c.in("$file", func() { c.file(name, len(v.Fields())) })
			return
		}
		for _, f := range v.Fields() {
			c.in(f.Key, func() { c.walk(f.Value) })
		}
	default:
	}
}

// file reads the file that a { "$file" = … } table with that many keys names.
func (c *compiler) file(name string, keys int) {
	if keys > 1 {
		c.errorf("a table with `$file` cannot have other keys")
	}
	path := resolve(c.src.dir, name)
	if c.lib.files[path] != nil {
		return
	}
	content, err := c.readFile(path)
	if err != nil {
		c.errorf("failed to resolve file reference %q: %s", name, reason(err))
		return
	}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		if d := diag.IndexJSON(name, wrapJSON(content)).Doubt(); d != nil || !json.Valid(content) {
			c.errorf("the file %q is not valid JSON", name)
			return
		}
		c.lib.files[path] = content
		return
	}
	if c.lib.files[path], err = eval.AppendJSON(nil, string(content)); err != nil {
		c.errorf("the file %q cannot be used: %v", name, err)
	}
}

// has tells whether the current table has a key, be its value right or wrong.
func (c *compiler) has(key string) (ok bool) {
	c.in(key, func() { _, ok = c.src.ix.Lookup(c.path) })
	return ok
}

func (c *compiler) expectation(s *Scenario, e *Expectation) {
	e.at = c.src.ix.Pos(c.path)
	kinds := []string{}
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"tool", e.Tool != ""},
		{"prompt", e.Prompt != nil},
		{"mcp", e.MCP != nil},
		{"request", e.Request != nil},
		{"exit", e.Exit != nil},
		{"rule", e.Rule != nil},
		{"unused", e.Unused != ""},
	} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	switch {
	case len(kinds) == 0 && !c.has("tool") && !c.has("prompt"):
		c.errorf("an expectation needs `tool` or `prompt`")
	case len(kinds) > 1:
		c.in(kinds[1], func() { c.errorf("an expectation has either `%s` or `%s`", kinds[0], kinds[1]) })
	}
	if e.Input != nil && e.Tool == "" {
		c.in("input", func() { c.errorf("`input` needs `tool`") })
	}
	if e.Never && e.Times != nil {
		c.in("times", func() { c.errorf("`times` cannot stand beside `never`") })
	}
	if e.Prompt != nil {
		e.prompt = c.pattern(e.Prompt, "prompt")
	}
	if e.Rule != nil && !c.isRule(s, *e.Rule) {
		c.in("rule", func() { c.errorf("no rule begins in line %d", *e.Rule) })
	}
	if e.MCP != nil {
		c.in("mcp", func() { c.glob("server", e.MCP.Server); c.glob("tool", e.MCP.Tool) })
	}
	if e.Request != nil {
		c.in("request", func() { c.glob("model", e.Request.Model) })
	}
	for _, form := range toolForms(e.Tool) {
		t, err := match.Glob(form)
		if err != nil {
			c.in("tool", func() { c.errorf("%v", err) })
			break
		}
		e.tools = append(e.tools, t)
	}
}

// isRule tells whether a rule of the file, or one of its turns, begins in a line.
func (c *compiler) isRule(s *Scenario, line int) bool {
	for i, r := range s.Responses {
		if c.src.ix.Pos(diag.Path{"responses", i}).Line == line {
			return true
		}
		for t := range r.Turns {
			if c.src.ix.Pos(diag.Path{"responses", i, "turns", t}).Line == line {
				return true
			}
		}
	}
	return false
}

func (c *compiler) glob(key, text string) {
	if _, err := match.Glob(text); err != nil {
		c.in(key, func() { c.errorf("%v", err) })
	}
}
