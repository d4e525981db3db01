package permission

import (
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type analyzedCall struct {
	modeAndRules *modeAndRules
	use          protocol.ToolUse
	name         string // canonical name, such as "Agent" for "Task"
	server       string // "mcp__server" for a call of an MCP tool
	readOnly     bool   // true if the tool's owner declares that the tool changes nothing
	toolClass    claudecode.ToolClass
	isComplete   bool // false if the input lacks a required value; the tool itself reports this error

	command          string
	script           shellcmd.Script
	parseErr         error
	path             string // absolute path of the file or directory
	domain           string
	urlPath          string // path of the URL to fetch, such as "/docs/api"; the host is in domain
	agentTypeOrSkill string // agent type or skill name
}

type modeAndRules struct {
	mode     protocol.PermissionMode
	rules    *ruleset
	resolver *pathResolver
	// noClassifierInPlanMode is true if the mode before plan mode was bypassPermissions, or if the settings forbid a classifier in plan
	// mode.
	noClassifierInPlanMode bool
}

type ruleset struct {
	rules    []rule
	resolver *pathResolver
}

func (j *modeAndRules) analyzeCall(use protocol.ToolUse, tool protocol.Tool) *analyzedCall {
	c := &analyzedCall{modeAndRules: j, use: use, name: CanonicalToolName(use.Name), readOnly: tool.ReadOnly, isComplete: true}
	c.toolClass = toolClassOf(c.name)
	if strings.HasPrefix(c.name, "mcp__") {
		c.server = mcpServerRulePrefix(c.name, tool)
	}
	var in struct {
		Command      any `json:"command"`
		FilePath     any `json:"file_path"`
		NotebookPath any `json:"notebook_path"`
		Path         any `json:"path"`
		Pattern      any `json:"pattern"`
		URL          any `json:"url"`
		SubagentType any `json:"subagent_type"`
		Skill        any `json:"skill"`
		CommandName  any `json:"name"`
	}
	if err := json.Unmarshal(use.Input, &in); err != nil {
		c.isComplete = c.toolClass == claudecode.ToolClassAsk || c.toolClass == claudecode.ToolClassNeverAsk || c.toolClass == claudecode.ToolClassAsksQuestionToUser
		return c
	}
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		c.command = firstNonEmptyString(in.Command)
		c.isComplete = isAnyValueOfTypeString(in.Command)
		c.script, c.parseErr = shellcmd.Parse(c.command)
	case claudecode.ToolClassRead, claudecode.ToolClassWrite:
		path := protocol.TrimWhiteSpaceAroundPath(firstNonEmptyString(in.FilePath, in.NotebookPath, in.Path))
		c.isComplete = isAnyValueOfTypeString(in.FilePath, in.NotebookPath, in.Path) || c.name == "Glob" || c.name == "Grep" || c.name == "LS"
		if pattern := firstNonEmptyString(in.Pattern); c.name == "Glob" && filepath.IsAbs(pattern) {
			path, _ = filepath.Split(pattern[:strings.IndexAny(pattern+"*", "*?[{\\")])
		}
		c.path = j.resolver.absolutePathFromCurrentDir(path)
	case claudecode.ToolClassFetch:
		if u, err := url.Parse(firstNonEmptyString(in.URL)); err == nil {
			c.domain, c.urlPath = strings.Map(asciiFormOfHostNameRune, u.Hostname()), path.Join("/", u.Path)
		}
	case claudecode.ToolClassStartsAgent:
		c.agentTypeOrSkill = firstNonEmptyString(in.SubagentType)
	case claudecode.ToolClassSkill:
		c.agentTypeOrSkill = firstNonEmptyString(in.Skill, in.Command, in.CommandName)
	default: // rules for other tools name only the tool
	}
	return c
}

// asciiFormOfHostNameRune returns the ASCII form of a full-width character or an ideographic full stop, as browsers do in host names.
func asciiFormOfHostNameRune(r rune) rune {
	switch {
	case r == '\u3002' || r == '\uff61':
		return '.'
	case r >= '\uff01' && r <= '\uff5e':
		return r - '\uff01' + '!'
	}
	return r
}

func firstNonEmptyString(values ...any) string {
	for _, v := range values {
		if s, _ := v.(string); s != "" {
			return s
		}
	}
	return ""
}

func isAnyValueOfTypeString(values ...any) bool {
	return slices.ContainsFunc(values, func(v any) bool { _, ok := v.(string); return ok })
}

func mcpServerRulePrefix(mcpToolName string, tool protocol.Tool) string {
	if tool.Server != "" {
		return "mcp__" + protocol.NormalizeMCPNamePart(tool.Server)
	}
	server, _, _ := strings.Cut(strings.TrimPrefix(mcpToolName, "mcp__"), "__")
	return "mcp__" + server
}

func (j *modeAndRules) usesClassifierInMode() bool {
	return j.mode == protocol.ModeAuto || j.mode == protocol.ModePlan && !j.noClassifierInPlanMode
}

func (j *modeAndRules) modeIsAcceptEditsOrAuto() bool {
	return j.mode == protocol.ModeAcceptEdits || j.mode == protocol.ModeAuto
}

func (s *ruleset) hasMatchingRule(behavior string, c *analyzedCall) bool {
	return s.firstMatchingRule(behavior, c) != nil
}

func (s *ruleset) firstMatchingRule(behavior string, c *analyzedCall) *rule {
	i := slices.IndexFunc(s.rules, func(r rule) bool {
		if r.Behavior != behavior {
			return false
		}
		if behavior == BehaviorAllow {
			return r.matchesCallAsOneUnit(c)
		}
		return r.matchesAnyPart(c)
	})
	if i < 0 {
		return nil
	}
	return &s.rules[i]
}

// Behavior is the decision about a call: allow, ask or deny.
type Behavior int

// The possible verdicts. Ask is the default, so that an unset verdict never allows a call.
const (
	Ask Behavior = iota
	Allow
	Deny
)

// Verdict is the outcome of [Policy.Decide], with the texts and events that report it.
type Verdict struct {
	Behavior Behavior
	// Decision is the decision that tool_result_meta shows. If the verdict is Ask, Decision applies only in a session
	// without a prompter. The zero value means that the call did not reach the permission checks.
	Decision         protocol.PermissionDecision
	NonExecutionKind string // why the call did not run, such as "user-rejected"; empty when it runs
	Message          string // tool result of a denial
	// Event is shown before the result of a denial; its uuid and session id are not set. Nil means none. If a
	// prompter answers an Ask, the event is not shown.
	Event       *protocol.PermissionDeniedEvent
	CountDenial bool // the denial is listed in result.permission_denials
	ToolError   bool // Message goes into <tool_use_error>

	// Suggestions and the next five fields are sent in the can_use_tool request of an Ask.
	Suggestions        []protocol.PermissionUpdate
	BlockedPath        string
	Safety             protocol.SafetyApprovalReason
	Reason, ReasonType string
	RequiresUser       bool
	// DenyRule is true if a deny rule refuses the call, or if the call would write through a link. A hook
	// that answers "allow" overrules a refusal by the permission mode, but neither of these refusals.
	DenyRule bool
	// AskRule is true if an ask rule requires the question, even after "allow" by a hook. RuleSource is its source.
	AskRule    bool
	RuleSource string
}

// Denial returns the result of a denied call and the event to show before the result; the event may be nil. A session
// without a prompter also calls it for an Ask, which then counts as a denial.
func (v Verdict) Denial() (protocol.ToolResult, *protocol.PermissionDeniedEvent) {
	var r protocol.ToolResult
	event := v.Event
	if v.ToolError {
		r, event = protocol.UsageErrorResult(v.Message), nil
		r.Output = "Error: " + v.Message
	} else {
		r = protocol.ErrorResult(v.Message)
		r.NonExecutionKind = v.NonExecutionKind
	}
	if v.Decision != (protocol.PermissionDecision{}) {
		r.Decision = &v.Decision
	}
	return r, event
}

func (s *ruleset) hasPathDenyRule() bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		return r.Behavior == BehaviorDeny && r.content != "" && (r.tool == "Read" || r.tool == "Edit")
	})
}

// hasDenyOrAskRuleWithContent reports whether a deny or ask rule applies to only some calls of the tool.
func (s *ruleset) hasDenyOrAskRuleWithContent(c *analyzedCall) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		return r.Behavior != BehaviorAllow && r.content != "" && r.coversToolOfCall(c)
	})
}

// matchesPath matches the paths of a call against a path pattern. The start of the pattern selects the base: "//x"
// is absolute, "~/x" is in the home directory, "/x" is below the directory of the rule's settings, anything else is
// below the working directory. The rest is a gitignore pattern.
func (r *rule) matchesPath(c *analyzedCall) bool {
	root := c.modeAndRules.resolver.startDir
	switch {
	case r.pathPattern == nil:
		return false
	case strings.HasPrefix(r.content, "//"):
		root = "/"
	case strings.HasPrefix(r.content, "~/"):
		root = c.modeAndRules.resolver.home
	case strings.HasPrefix(r.content, "/") && r.Root != "":
		root = r.Root
	}
	if root == "" {
		return false
	}
	for _, root := range []string{root, c.modeAndRules.resolver.resolveLinks(root)} {
		for _, path := range []string{c.path, c.modeAndRules.resolver.resolveLinks(c.path)} {
			path = strings.TrimRight(path, " ") // trailing spaces are ignored (observed with 2.1.330)
			if isAtOrBelow(root, path) && path != root && r.pathPattern.MatchString(strings.TrimPrefix(path[len(root):], "/")) {
				return true
			}
		}
	}
	return false
}

func (r *rule) matchesParameterValue(c *analyzedCall) bool {
	if r.paramValue == nil || r.tool != c.name {
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
		text = string(raw) // the value is a number or a boolean
	}
	return r.paramValue.MatchString(text)
}

func (r *rule) coversToolOfCall(c *analyzedCall) bool {
	switch {
	case r.toolPattern != nil:
		// The tool in an allow rule may be a pattern only if it names tools of MCP servers.
		return (strings.HasPrefix(r.tool, "mcp__") || r.Behavior != BehaviorAllow) && r.toolPattern.MatchString(c.name)
	case c.toolClass == claudecode.ToolClassWrite && r.content != "" && r.Behavior == BehaviorAllow && r.tool != "Edit", r.isIneffectivePathRuleForWriteTools():
		return false // only Edit rules decide about paths to write
	case c.name == "Monitor" && (r.tool == "Monitor" || r.tool == "Bash"):
		// Bash rules that deny or ask also apply to Monitor. An allow rule applies if it is a Monitor rule without
		// content, or a Bash rule with content (observed with 2.1.329).
		return r.Behavior != BehaviorAllow || (r.tool == "Monitor") == (r.content == "")
	case r.tool == c.name:
		return true
	case r.content == "":
		return c.server != "" && r.tool == c.server
	}
	switch c.toolClass {
	case claudecode.ToolClassRead:
		return r.tool == "Read" || r.tool == "Edit" && r.Behavior == BehaviorAllow
	case claudecode.ToolClassWrite:
		return r.tool == "Edit"
	default:
		return false
	}
}

// matchesCallAsOneUnit reports whether the rule applies to the call. A Bash rule is compared with the whole command line; see
// [rule.matchesAnyPart] for rules that apply to a part of it.
func (r *rule) matchesCallAsOneUnit(c *analyzedCall) bool {
	if !r.coversToolOfCall(c) {
		return false
	}
	if r.content == "" {
		// Read(*) and Write(*) allow only what is in a working directory (observed with 2.1.330).
		files := c.toolClass == claudecode.ToolClassRead || c.toolClass == claudecode.ToolClassWrite
		return !r.isStar || r.Behavior != BehaviorAllow || !files || c.modeAndRules.resolver.isInWorkingDir(c.path)
	}
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		// Stars in the rule are not expanded here, because they could match a second command. A rule such as Bash(eval:*) does
		// not allow eval without arguments, and a rule with & does not allow a background command (observed with 2.1.330).
		text, obstacle := strings.TrimSpace(c.command), c.script.Obstacle.Kind
		if r.Behavior == BehaviorAllow && (obstacle == shellcmd.ObstacleBackground || r.content != text && (c.parseErr != nil || obstacle == shellcmd.ObstacleEval)) {
			return false
		}
		return r.content == text || r.content == text+":*"
	case claudecode.ToolClassRead, claudecode.ToolClassWrite:
		return r.matchesPath(c)
	case claudecode.ToolClassFetch:
		return ruleContentMatchesHost(r.content, c.domain)
	case claudecode.ToolClassSkill:
		return ruleContentMatchesSkill(r.content, c.agentTypeOrSkill)
	default:
		return false
	}
}

// matchesAnyPart reports whether a deny or ask rule applies to the call or to one of the commands in its command line.
// Each command is compared both with and without its variables and wrappers.
func (r *rule) matchesAnyPart(c *analyzedCall) bool {
	if r.matchesCallAsOneUnit(c) || r.matchesParameterValue(c) {
		return true
	}
	if c.toolClass != claudecode.ToolClassRunsCommandLine || !r.coversToolOfCall(c) {
		return false
	}
	commands := slices.Clone(c.script.Commands)
	if c.parseErr != nil || strings.Contains(c.command, "\\\n") {
		for _, text := range splitUnparsableScript(c.command) {
			piece, _ := shellcmd.Parse(strings.TrimSpace(text))
			commands = append(append(commands, piece.Commands...), shellcmd.Command{Text: text})
		}
	}
	return slices.ContainsFunc(commands, r.matchesCommand)
}

// splitUnparsableScript splits a script that cannot be parsed into texts, each of which may be a command. A line continuation
// counts as a space, as in the real CLI (observed with 2.1.330).
func splitUnparsableScript(text string) []string {
	text = leadingAssignmentsPattern().ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "")
	if at := openHeredocPattern().FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	if i := strings.LastIndex(text, "${"); i >= 0 && !strings.Contains(text[i:], "}") {
		text = text[:i] // the shell reads the rest of the text as a part of the expansion
	}
	if i := strings.LastIndex(text, "$("); i >= 0 && !strings.Contains(text[i:], ")") {
		text = text[:i]
	}
	pieces, start, quote := []string{text}, 0, rune(0)
	for i, r := range text {
		switch before := text[start:i]; {
		case r == quote:
			quote = 0
			if r == '\n' { // a line end also ends a comment
				start = i + 1
			}
		case quote != 0:
		case r == '\'' || r == '"':
			quote = r
		case r == '{' && strings.HasSuffix(before, "$"):
			quote = '}'
		case r == '#' && strings.Trim(before[max(0, len(before)-1):], " \t") == "":
			pieces, start, quote = append(pieces, before), i, '\n'
		case strings.HasSuffix(before, `\`), r == '&' && (strings.HasSuffix(before, ">") || strings.HasPrefix(text[i:], "&>")):
		case strings.ContainsRune("\n;&|()`", r):
			pieces, start = append(pieces, before), i+1
		}
	}
	if quote != '\n' {
		pieces = append(pieces, text[start:])
	}
	for i := range pieces {
		pieces[i] = leadingKeywordsPattern().ReplaceAllString(pieces[i], "")
		for rest := ""; rest != pieces[i]; pieces[i] = assignmentsWithKeywordsPattern().ReplaceAllString(rest, "") {
			rest = pieces[i]
		}
	}
	return pieces
}

const (
	assignments   = `^\s*(\w+(\[[^\]]*\])?=('[^']*'|"[^"]*"|[^\s'"])*\s+)+`
	reservedWords = `then|else|elif|do|if|while|until|fi|done|esac|!`
)

// The following patterns match what may precede the name of a command in a text that cannot be parsed. The parser refuses
// assignments to array elements, such as a[0]=x.
var (
	leadingAssignmentsPattern      = shellcmd.LazyRegexp(assignments)
	leadingKeywordsPattern         = shellcmd.LazyRegexp(`^\s*((` + reservedWords + `|\{)(\s+|$)|\}\s*|function\s+[^\s$]+\s+)+`)
	openHeredocPattern             = shellcmd.LazyRegexp(`<<-?\s*['"\\]?\w`) // a here-document whose end is missing or unclear
	assignmentsWithKeywordsPattern = shellcmd.LazyRegexp(assignments + `((` + reservedWords + `)(\s+|$))*`)
)

func (r *rule) matchesCommand(cmd shellcmd.Command) bool {
	return ruleContentMatchesCommand(r.content, strings.ReplaceAll(cmd.Text, "\\\n", " ")) || slices.ContainsFunc(cmd.UnwrappedCommandLines(), func(text string) bool {
		return ruleContentMatchesCommand(r.content, text)
	})
}

func (s *ruleset) hasRuleForPath(behavior, tool, path string) bool {
	file := &analyzedCall{modeAndRules: &modeAndRules{resolver: s.resolver}, name: tool, toolClass: toolClassOf(tool), path: path}
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		return r.Behavior == behavior && r.tool == tool && r.content != "" && r.matchesCallAsOneUnit(file)
	})
}

func (j *modeAndRules) isInWorkingDirOrAllowed(tool, path string) bool {
	if strings.HasPrefix(path, "//") { // see [pathResolver.absolutePathKeepingDoubleSlash]
		return false
	}
	return j.resolver.isInWorkingDir(path) || tool == "Read" && j.resolver.isReadableOutsideWorkingDirs(path) || j.rules.hasRuleForPath(BehaviorAllow, tool, path)
}

func (s *ruleset) denialSourceOfFirstDenyRule(appliesTo func(rule) bool) (userRejectOrConfig string) {
	switch s.sourceOfFirstDenyRule(appliesTo) {
	case "userSettings", "localSettings":
		return "user_reject"
	}
	return "config"
}

func (v Verdict) withReasonCode(code string) Verdict {
	v.Decision.ReasonCode = code
	return v
}

func (v Verdict) withDecisionRuleSourceAndCode(source string) Verdict {
	if source != "" {
		v.Decision.RuleSource, v.Decision.ReasonCode = source, ruleReasonCode(source)
	}
	return v
}
