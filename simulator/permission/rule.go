package permission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func toolClassOf(tool string) claudecode.ToolClass { return claudecode.ToolNamed(tool).Class }

// Behaviors of a [Rule] and of a permission update.
const (
	BehaviorAllow = "allow"
	BehaviorDeny  = "deny"
	BehaviorAsk   = "ask"
)

// Rule is one permission rule as a user writes it.
type Rule struct {
	Behavior string // BehaviorAllow, BehaviorDeny or BehaviorAsk
	Source   string // "cliArg", "userSettings", "projectSettings", "localSettings", "flagSettings", "session", …
	Text     string // "Bash(npm run *)"
	Root     string // the directory to which path patterns with one leading slash are relative; empty means Options.CWD
}

// rule is a parsed [Rule].
type rule struct {
	Rule
	tool        string         // name as written, but "Agent" for "Task"
	toolPattern *regexp.Regexp // set when tool contains a *
	content     string         // text in the parentheses; empty means that the rule covers the whole tool
	pathPattern *regexp.Regexp // set when content is a path pattern
	isStar      bool           // the content was "*", which counts as no content
	// param and value are set for a deny or ask rule with the content "param:value". The rule
	// applies to calls in which this parameter has this value. A star in value matches any text.
	param      string
	paramValue *regexp.Regexp
}

// parseRule parses "Tool", "Tool(*)" or "Tool(content)". A backslash may escape parentheses and backslashes in content.
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
	text := claudecode.ParsePermissionRule(r.Text)
	name := text.Tool
	if text.HasContent {
		body := text.Content
		if body == "" {
			return fail("the parentheses are empty: write only the tool, or a pattern between them")
		}
		if escapes := body[len(strings.TrimRight(body, `\`)):]; !text.IsClosed || len(escapes)%2 == 1 {
			return fail("missing closing parenthesis")
		}
		out.content = strings.NewReplacer(`\(`, "(", `\)`, ")", `\\`, `\`).Replace(body)
		if out.content == "*" {
			out.content = ""
			out.isStar = true
		}
	}
	out.tool = CanonicalToolName(name)
	if name == "" || strings.ContainsAny(name, ") \t\n,") {
		return fail("a rule must start with a tool name")
	}
	if out.content != "" && strings.HasPrefix(name, "mcp__") {
		return fail("rules for MCP tools cannot have parentheses: write only the name of the tool")
	}
	var err error
	if strings.Contains(name, "*") {
		if out.toolPattern, err = compileWildcards(out.tool); err != nil {
			return fail(err.Error())
		}
	}
	// The name of the tool's subject, such as command for Bash, does not count as a parameter here (observed with 2.1.329).
	if key, value, found := strings.Cut(out.content, ":"); found && r.Behavior != BehaviorAllow && key != claudecode.ToolNamed(out.tool).Subject {
		out.param = key
		if out.paramValue, err = compileWildcards(value); err != nil {
			return fail(err.Error())
		}
	}
	if kind := toolClassOf(out.tool); out.content != "" && (kind == claudecode.ToolClassRead || kind == claudecode.ToolClassWrite) {
		if out.pathPattern, err = match.CompileGitignore(strings.TrimPrefix(strings.TrimPrefix(out.content, "~"), "./")); err != nil {
			return fail(err.Error())
		}
		// The CLI ignores case in path patterns (observed with 2.1.330).
		out.pathPattern = regexp.MustCompile("(?i)" + out.pathPattern.String())
	}
	return out, nil
}

// compileWildcards compiles a pattern whose stars match any text. Invalid UTF-8 is replaced as in JSON.
func compileWildcards(text string) (*regexp.Regexp, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return regexp.Compile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `.*`) + `$`)
}

// Parts splits a rule into the tool's name and its content. If the rule cannot be parsed, the name is the whole text.
func (r Rule) Parts() protocol.PermissionRule {
	parsed, err := parseRule(r)
	if err != nil {
		return protocol.PermissionRule{ToolName: r.Text}
	}
	return protocol.PermissionRule{ToolName: parsed.tool, RuleContent: parsed.content}
}

// FormatRule formats a rule as [Options.Rules] expects it.
func FormatRule(r protocol.PermissionRule) string {
	if r.RuleContent == "" {
		return r.ToolName
	}
	return r.ToolName + "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(r.RuleContent) + ")"
}

// CanonicalToolName returns the name of a tool in rules and hooks: "Agent" for the tool Task, and the unchanged name otherwise.
func CanonicalToolName(tool string) string {
	if tool == "Task" {
		return "Agent"
	}
	return tool
}

// isIneffectivePathRuleForWriteTools reports whether a rule is a deny or ask rule with a path for Write or MultiEdit. Such a
// rule has no effect, because these tools obey only the path rules for Edit (observed with 2.1.329).
func (r *rule) isIneffectivePathRuleForWriteTools() bool {
	return r.Behavior != BehaviorAllow && r.pathPattern != nil && r.paramValue == nil && (r.tool == "Write" || r.tool == "MultiEdit")
}

// ruleContentMatchesHost matches "domain:example.com". A leading "*." matches subdomains; other stars match within a
// label. Dots at the end of the host are ignored. "domain:*" also matches URLs without a host (observed with 2.1.330).
func ruleContentMatchesHost(content, host string) bool {
	want, found := strings.CutPrefix(content, "domain:")
	want, host = strings.ToLower(want), strings.ToLower(strings.TrimRight(host, "."))
	if !found || want == "*" || !strings.Contains(want, "*") {
		return found && (want == "*" || want == host && host != "")
	}
	base, wild := strings.CutPrefix(want, "*.")
	pattern := strings.ReplaceAll(regexp.QuoteMeta(base), `\*`, `[^.]*`) + "$"
	if wild {
		pattern = `([^.]+\.)+` + pattern
	}
	matched, err := regexp.MatchString("^"+pattern, host)
	return err == nil && matched
}

func ruleContentMatchesSkill(content, name string) bool {
	for _, suffix := range []string{":*", " *"} {
		if base, found := strings.CutSuffix(content, suffix); found {
			return strings.HasPrefix(name, base)
		}
	}
	return strings.TrimPrefix(content, "/") == strings.TrimPrefix(name, "/")
}

// ruleContentMatchesCommand compares the text of a simple command with the content of a Bash rule. "npm run *" and
// "npm:*" match prefixes, other stars match any text, and everything else must be equal.
func ruleContentMatchesCommand(content, text string) bool {
	text = strings.TrimSpace(text)
	if !strings.Contains(content, "*") || content == text {
		return content == text
	}
	for _, suffix := range []string{":*", " *"} {
		if prefix, found := strings.CutSuffix(content, suffix); found && (suffix == ":*" || !strings.Contains(prefix, "*")) {
			return text == prefix || strings.HasPrefix(text, prefix+" ")
		}
	}
	pattern, err := compileWildcards(content)
	return err == nil && pattern.MatchString(text)
}

func ruleReasonCode(source string) string { return "rule:" + source }

func (s *ruleset) denyRuleSource(c *analyzedCall) string {
	return s.sourceOfFirstDenyRule(func(r rule) bool { return r.matchesAnyPart(c) })
}

func (s *ruleset) sourceOfFirstPathDenyRule() string {
	return s.sourceOfFirstDenyRule(func(r rule) bool { return r.content != "" && (r.tool == "Read" || r.tool == "Edit") })
}

// sourceOfFirstDenyRule returns the source of the first deny rule that applies; empty means none.
func (s *ruleset) sourceOfFirstDenyRule(appliesTo func(rule) bool) string {
	i := slices.IndexFunc(s.rules, func(r rule) bool { return r.Behavior == BehaviorDeny && appliesTo(r) })
	if i < 0 {
		return ""
	}
	return s.rules[i].Source
}

// isPathDeniedWithoutFollowingLinks reports whether a deny rule applies to the path of a call as written, without following links.
func isPathDeniedWithoutFollowingLinks(c *analyzedCall) bool {
	judge, resolver, written := *c.modeAndRules, *c.modeAndRules.resolver, *c
	resolver.fileSystem, judge.resolver, written.modeAndRules = nil, &resolver, &judge
	return c.modeAndRules.rules.hasMatchingRule(BehaviorDeny, &written)
}
