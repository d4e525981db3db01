package permission

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// rule is a parsed [Rule].
type rule struct {
	Rule
	tool    string         // as written, "Task" as "Agent"
	toolRE  *regexp.Regexp // set when tool holds a *
	content string         // without the parentheses; empty = the whole tool
	glob    *regexp.Regexp // set when content is a path pattern
	// value is set when content may be "param:value": a deny or ask rule is about
	// calls with this input, a star in its value stands for any text.
	param string
	value *regexp.Regexp
}

// ParseRules splits the value of --allowedTools or --disallowedTools: rules
// stand between commas or spaces, which parentheses protect:
// "Bash(git *) Edit,mcp__s" is three rules.
func ParseRules(value string) []string {
	var out []string
	start, depth := 0, 0
	flush := func(end int) {
		if s := strings.TrimSpace(value[start:end]); s != "" {
			out = append(out, s)
		}
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			flush(i)
			start = i + 1
		}
	}
	flush(len(value))
	return out
}

// parseRule reads "Tool", "Tool(*)" or "Tool(content)". Parentheses
// and backslashes inside the content may be escaped by a backslash.
func parseRule(r Rule) (rule, error) {
	fail := func(why string) (rule, error) {
		return rule{}, fmt.Errorf("permission rule %q (%s): %s", r.Text, r.Source, why)
	}
	switch r.Behavior {
	case BehaviorAllow, BehaviorDeny, BehaviorAsk:
	default:
		return fail(fmt.Sprintf("unknown behavior %q", r.Behavior))
	}
	out := rule{Rule: r}
	name, content, found := strings.Cut(r.Text, "(")
	if found {
		body, closed := strings.CutSuffix(content, ")")
		if body == "" {
			return fail("nothing in the parentheses")
		}
		if escapes := len(body) - len(strings.TrimRight(body, `\`)); !closed || escapes%2 == 1 {
			return fail("missing closing parenthesis")
		}
		out.content = unescape(body)
		if out.content == "*" {
			out.content = ""
		}
	}
	out.tool = canonicalName(name)
	if name == "" || strings.ContainsAny(name, ") \t\n,") {
		return fail("a rule starts with a tool name")
	}
	if out.content != "" && strings.HasPrefix(name, "mcp__") {
		return fail("rules for MCP tools take nothing in parentheses")
	}
	var err error
	if strings.Contains(name, "*") {
		if out.toolRE, err = compileStars(out.tool); err != nil {
			return fail(err.Error())
		}
	}
	if key, value, found := strings.Cut(out.content, ":"); found && r.Behavior != BehaviorAllow && key != subjectOf(out.tool) {
		out.param = key
		if out.value, err = compileStars(value); err != nil {
			return fail(err.Error())
		}
	}
	if kind := kindOf(out.tool); out.content != "" && (kind == kindRead || kind == kindWrite) {
		if out.glob, err = compileGlob(out.content); err != nil {
			return fail(err.Error())
		}
	}
	return out, nil
}

// compileStars makes an expression of a text in which stars stand for any text.
// Bytes that are no UTF-8 are what JSON makes of them.
func compileStars(text string) (*regexp.Regexp, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return regexp.Compile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `.*`) + `$`)
}

// subjectOf names the parameter that the rules of a tool are about anyway: it
// is not matched by name (observed with 2.1.329).
func subjectOf(tool string) string {
	switch tool {
	case "Bash", "Monitor":
		return "command"
	case "Read", "Write", "Edit":
		return "file_path"
	case "NotebookEdit":
		return "notebook_path"
	case "Glob", "Grep":
		return "path"
	case "WebFetch":
		return "url"
	case "WebSearch":
		return "query"
	case "Skill":
		return "skill"
	}
	return ""
}

// hasParam tells whether the rule is about a parameter that the call has.
func (r *rule) hasParam(c *call) bool {
	if r.value == nil || r.tool != c.name {
		return false
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(c.use.Input, &params) != nil {
		return false
	}
	raw, given := params[r.param]
	if !given {
		return false
	}
	text := string(raw)
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) // a number or a boolean
	}
	return r.value.MatchString(text)
}

// Parts takes a rule apart, with its tool's own name; one that does not parse is
// all name.
func (r Rule) Parts() protocol.PermissionRule {
	parsed, err := parseRule(r)
	if err != nil {
		return protocol.PermissionRule{ToolName: r.Text}
	}
	return protocol.PermissionRule{ToolName: parsed.tool, RuleContent: parsed.content}
}

// FormatRule writes a rule as text; [Options.Rules] reads it back.
func FormatRule(r protocol.PermissionRule) string {
	if r.RuleContent == "" {
		return r.ToolName
	}
	return r.ToolName + "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(r.RuleContent) + ")"
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\(`, "(", `\)`, ")", `\\`, `\`).Replace(s)
}

// canonicalName maps the two names of the agent tool onto one.
func canonicalName(tool string) string {
	if tool == "Task" {
		return "Agent"
	}
	return tool
}

// idle tells whether a deny or ask rule has no effect: it is about the paths of a
// tool whose paths rules of Edit decide (observed with 2.1.329).
func (r *rule) idle() bool {
	return r.Behavior != BehaviorAllow && r.glob != nil && r.value == nil && (r.tool == "Write" || r.tool == "MultiEdit")
}

// covers tells whether the rule is about the tool of the call at all.
func (r *rule) covers(c *call) bool {
	switch {
	case r.toolRE != nil:
		// What is allowed is named, but for the tools of servers.
		return (strings.HasPrefix(r.tool, "mcp__") || r.Behavior != BehaviorAllow) && r.toolRE.MatchString(c.name)
	case c.kind == kindWrite && r.content != "" && r.Behavior == BehaviorAllow && r.tool != "Edit", r.idle():
		return false // paths to write are the matter of Edit rules only
	case c.name == "Monitor" && (r.tool == "Monitor" || r.tool == "Bash"):
		// What is forbidden to Bash is forbidden here; what is allowed to it is when
		// the rule names the command (observed with 2.1.329).
		return r.Behavior != BehaviorAllow || (r.tool == "Monitor") == (r.content == "")
	case r.tool == c.name:
		return true
	case r.content == "":
		return c.server != "" && r.tool == c.server
	}
	switch c.kind {
	case kindRead:
		return r.tool == "Read" || r.tool == "Edit" && r.Behavior == BehaviorAllow
	case kindWrite:
		return r.tool == "Edit"
	default:
		return false
	}
}

// matches tells whether the rule decides the call. Bash content is matched
// part by part elsewhere: see [rule.forbids].
func (r *rule) matches(c *call) bool {
	if !r.covers(c) {
		return false
	}
	if r.content == "" {
		return true
	}
	switch c.kind {
	case kindShell:
		return matchCommand(r.content, c.command, wholeText)
	case kindRead, kindWrite:
		return r.matchesPath(c)
	case kindFetch:
		return matchDomain(r.content, c.domain)
	case kindSkill:
		return matchSkill(r.content, c.subject)
	default:
		return false
	}
}

// Covers tells whether a rule, as settings write it, is about the call; a shell
// command is judged part by part. A faulty rule is about nothing, and one that
// names a type of agent is about no call: see [Policy.DeniedAgent].
func (p *Policy) Covers(text string, use protocol.ToolUse) bool {
	r, err := parseRule(Rule{Text: text, Behavior: BehaviorDeny})
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var tool protocol.Tool
	if p.opts.Tool != nil {
		tool, _ = p.opts.Tool(use.Name) // a stranger has its name only
	}
	c := p.inspect(use, tool)
	return r.forbids(c)
}

// DeniedAgent is the deny rule that keeps agents of a type from starting, and
// its source; empty = none does. The call itself is permitted (observed with
// 2.1.329).
func (p *Policy) DeniedAgent(name string) (text, source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.Behavior == BehaviorDeny && r.tool == "Agent" && r.content == name {
			return FormatRule(protocol.PermissionRule{ToolName: r.tool, RuleContent: name}), r.Source
		}
	}
	return "", ""
}

// matchDomain reads "domain:example.com"; a leading "*." takes subdomains.
func matchDomain(content, host string) bool {
	want, found := strings.CutPrefix(content, "domain:")
	if !found || host == "" {
		return false
	}
	want, host = strings.ToLower(want), strings.ToLower(host)
	if want == "*" {
		return true
	}
	if base, wild := strings.CutPrefix(want, "*."); wild {
		return strings.HasSuffix(host, "."+base)
	}
	return want == host
}

// matchSkill takes the name itself or a prefix: "name:*", "name *".
func matchSkill(content, name string) bool {
	for _, suffix := range []string{":*", " *"} {
		if base, found := strings.CutSuffix(content, suffix); found {
			return strings.HasPrefix(name, base)
		}
	}
	return strings.TrimPrefix(content, "/") == strings.TrimPrefix(name, "/")
}
