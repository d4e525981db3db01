package permission

import (
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
	if strings.Contains(name, "*") {
		re, err := regexp.Compile(`^` + strings.ReplaceAll(regexp.QuoteMeta(out.tool), `\*`, `.*`) + `$`)
		if err != nil {
			return fail(err.Error())
		}
		out.toolRE = re
	}
	if kind := kindOf(out.tool); out.content != "" && (kind == kindRead || kind == kindWrite) {
		glob, err := compileGlob(out.content)
		if err != nil {
			return fail(err.Error())
		}
		out.glob = glob
	}
	return out, nil
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

// covers tells whether the rule is about the tool of the call at all.
func (r *rule) covers(c *call) bool {
	switch {
	case r.toolRE != nil:
		// What is allowed is named, but for the tools of servers.
		return (strings.HasPrefix(r.tool, "mcp__") || r.Behavior != BehaviorAllow) && r.toolRE.MatchString(c.name)
	case c.kind == kindWrite && r.content != "" && r.Behavior == BehaviorAllow && r.tool != "Edit":
		return false // paths to write are allowed by Edit rules only
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
// part by part elsewhere: see [rule.matchesCommand].
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
	case kindAgent:
		return r.content == c.subject
	case kindSkill:
		return matchSkill(r.content, c.subject)
	default:
		return false
	}
}

// Covers tells whether a rule, as settings write it, is about the call; a shell
// command is judged part by part. A faulty rule is about nothing, and one that
// names a type of agent is about no call (observed with 2.1.329).
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
	return (c.kind != kindAgent || r.content == "") && r.forbids(c)
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
