package session

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolInventory decides which tools the session has: the built-in and server tools that no flag or rule removes.
type toolInventory struct {
	plan              launch.ToolSelection
	customization     launch.ResolvedCustomization
	profile           claudecode.Profile
	denied            []string // deny rules; "Bash()" and "Bash(*)" are stored as "Bash"
	promptTool        string
	schemaFlag        bool
	hostSchema        atomic.Bool             // the host requests structured output
	state             *simulator.SessionState // contains the current model; the model determines whether the task list is offered
	runsUnlistedTools bool                    // a call runs even if init does not list its tool
	answersQuestions  bool                    // a host or the scenario answers the questions that tools ask the user
}

func newToolInventory(plan launch.Plan, state *simulator.SessionState) *toolInventory {
	v := &toolInventory{
		state: state, runsUnlistedTools: plan.RustCompat || plan.Scenario.Compat.HiddenTools,
		plan: plan.Tools, customization: plan.Customization, profile: plan.Profile, promptTool: plan.Permission.PromptTool, schemaFlag: plan.Prompt.SchemaFlag,
		answersQuestions: plan.Permission.PromptTool != "" || scenarioAnswersToolsThatAskUser(plan.Scenario), denied: slices.Clone(plan.Tools.Disallowed),
	}
	for _, rule := range plan.Settings.Permissions.Rules {
		if rule.Behavior == permission.BehaviorDeny {
			v.denied = append(v.denied, rule.Text)
		}
	}
	if plan.Customization.Restricted && v.plan.IsDefault() { // these tools are available only if --tools names them (observed with 2.1.330)
		v.denied = append(v.denied, "Bash", "CronCreate", "Monitor", "WebFetch", "Workflow")
	}
	for i, rule := range v.denied {
		v.denied[i] = strings.TrimSuffix(strings.TrimSuffix(rule, "(*)"), "()")
	}
	return v
}

func scenarioAnswersToolsThatAskUser(s launch.Scenario) bool {
	te := s.ToolExecution
	return te != nil && (te.Mode == "mock" || slices.ContainsFunc(toolsThatAskUser(), func(name string) bool {
		_, ok := te.Tools[name]
		return ok
	}))
}

func (v *toolInventory) builtinListingOptions(hasServerResources bool) builtinToolListingOptions {
	tools := v.plan
	tools.Disallowed = v.denied
	return builtinToolListingOptions{
		ToolSelection: tools, Bare: v.customization.Bare, HostAnswers: v.promptTool != "", NoSkills: v.customization.NoCommands, HasSchema: v.schemaFlag, HostSchema: v.hostSchema.Load(),
		HasResources: hasServerResources, Profile: v.profile, HasTaskList: claudecode.FactsOfModel(v.state.SessionModel()).HasTaskList,
	}
}

func (v *toolInventory) offeredBuiltinTools(hasResources bool) []string {
	return builtinToolsInInitOrder(v.builtinListingOptions(hasResources))
}

// initEventBuiltinTools returns the built-in tools that init lists. Tools that the session's agent must not use are left out. A deny rule
// for Bash adds Glob and Grep; leaving out Bash in this way does not.
func (v *toolInventory) initEventBuiltinTools(hasResources bool) []string {
	o := v.builtinListingOptions(hasResources)
	all := builtinToolsInInitOrder(o)
	o.Disallowed = slices.Concat(o.Disallowed, v.plan.AgentDisallowed)
	return slices.DeleteFunc(builtinToolsInInitOrder(o), func(name string) bool { return !slices.Contains(all, name) })
}

// hasBuiltinTool reports whether the session has a built-in tool: one that init lists, or Glob or Grep, which agents without
// a shell have. If the scenario enables hidden tools, the session has all that --tools and deny rules do not remove.
func (v *toolInventory) hasBuiltinTool(name string) bool {
	return v.isAvailable(name) && (v.runsUnlistedTools || isGlobOrGrep(name) || v.isListedInInitEvent(name))
}

func isGlobOrGrep(name string) bool { return name == "Glob" || name == "Grep" }

func (v *toolInventory) isListedInInitEvent(name string) bool {
	t := claudecode.ToolNamed(name)
	if t.Listing == claudecode.InitListsToolAlways && t.Name != "Monitor" && v.plan.IsDefault() && !v.customization.Bare {
		return v.profile.HasTool(name)
	}
	if t.Listing == claudecode.InitListsToolNever && t.Name != "StructuredOutput" {
		return false
	}
	return v.answersQuestions && t.Listing == claudecode.InitListsToolIfUserCanAnswer || slices.Contains(v.offeredBuiltinTools(false), claudecode.ToolNameInInitEvent(name))
}

// unavailableBuiltinToolText returns the text for a call of a built-in tool that the session does not have. It returns false
// for tools that the session has, and for names that are not tools in any version.
func (v *toolInventory) unavailableBuiltinToolText(call protocol.ToolUse) (errorText string, isUnavailable bool) {
	t := claudecode.ToolNamed(call.Name)
	search := isGlobOrGrep(t.Name)
	lacks := search && !v.runsUnlistedTools && !v.isListedInInitEvent(t.Name) && (call.Agent == nil || !call.Agent.Searches)
	background := t.ForegroundOnly && call.Agent != nil && call.Agent.InBackground
	if t.Listing == claudecode.InitListsToolNever || t.Listing == claudecode.InitListsToolIfMCPServerHasResources || v.hasBuiltinTool(t.Name) && !lacks && !background {
		return "", false
	}
	text := "Error: No such tool available: " + call.Name
	available := v.isAvailable(t.Name) || v.customization.Agent != "" && !slices.Contains(v.denied, t.Name) // or only the session's agent removes the tool
	switch user := t.Listing == claudecode.InitListsToolIfUserCanAnswer; {
	case user && call.Agent != nil:
		return text + ". " + call.Name + " is not available inside subagents. Complete the task with the tools provided and return findings to the orchestrator.", true
	case t.Listing == claudecode.InitListsToolForTaskListModelsOrIfFlagNamesIt && v.plan.NoTasks, t.Name == "ToolSearch" && v.plan.NoSearch:
		return text, true
	case search && !v.isAvailable("Bash"):
		return text + ". " + call.Name + " is disabled for this session.", true
	case t.Name == "Glob":
		return text + ". Glob is not available in this session — find files with `find` via the Bash tool instead.", true
	case t.Name == "Grep":
		return text + ". Grep is not available in this session — search file contents with `grep` via the Bash tool instead.", true
	case t.Name == "SendMessage":
		return text + ". SendMessage is not among the tools available here. An agent cannot be continued from this context. " +
			"To message another session, use your host application's own messaging tool if it provides one; otherwise that is not possible from here.", true
	case t.Listing == claudecode.InitListsToolAlways && available:
		return text + ". " + call.Name + " is not among the tools available here. Continue with the tools you have.", true
	default:
		return text + ". " + call.Name + " is disabled for this session, in subagents as well as here.", true
	}
}

// isAvailable reports whether flags, deny rules and the session's agent leave a built-in tool
// available. A tool that asks the user is available only if its questions can be answered.
func (v *toolInventory) isAvailable(name string) bool {
	same := func(other string) bool {
		match, _ := path.Match(other, name) // deny rules may be patterns; an invalid pattern matches no tool
		return match || agent.IsAgentOrTask(other) && agent.IsAgentOrTask(name)
	}
	if name == "Skill" && v.customization.NoCommands || name == "ToolSearch" && v.plan.NoSearch || claudecode.ToolNamed(name).Listing == claudecode.InitListsToolIfUserCanAnswer && !v.answersQuestions {
		return false
	}
	isListed := v.plan.IsDefault() || slices.ContainsFunc(v.plan.Requested, same)
	return isListed && !slices.ContainsFunc(v.denied, same) && !slices.ContainsFunc(v.plan.AgentDisallowed, same)
}

// isMCPToolDenied reports whether a deny rule removes an MCP tool.
func (v *toolInventory) isMCPToolDenied(t protocol.Tool) bool {
	for _, rule := range v.denied {
		match, _ := path.Match(rule, t.Name) // an invalid pattern matches no tool
		rule = strings.TrimSuffix(rule, "__*")
		if match || rule == strings.TrimSuffix(mcp.CanonicalToolName(t.Server, ""), "__") {
			return true
		}
	}
	return false
}

// isDisallowedByFlag reports whether --disallowedTools contains the bare name of a tool, without parentheses.
func (v *toolInventory) isDisallowedByFlag(name string) bool {
	return slices.Contains(v.plan.Disallowed, name)
}

// builtinToolListingOptions holds the options that decide which built-in tools a session lists.
type builtinToolListingOptions struct {
	launch.ToolSelection
	Bare         bool
	HostAnswers  bool // a host or tool answers permission questions (--permission-prompt-tool)
	NoSkills     bool // --disable-slash-commands
	HasSchema    bool // --json-schema
	HostSchema   bool // the host requested structured output after the start; the tool for it is last in the list
	HasResources bool // an MCP server has resources
	HasTaskList  bool // the model is offered the task list
	Profile      claudecode.Profile
}

func toolsListedByDefault() []string { return claudecode.InitToolNames(claudecode.InitListsToolAlways) }

// toolsListedIfFlagsNameThem are listed only if --tools or --allowedTools names them.
func toolsListedIfFlagsNameThem() []string {
	return append(claudecode.InitToolNames(claudecode.InitListsToolIfFlagNamesIt), taskTools()...)
}

func taskTools() []string {
	return claudecode.InitToolNames(claudecode.InitListsToolForTaskListModelsOrIfFlagNamesIt)
}

func taskToolsOrTodoWrite(o builtinToolListingOptions) []string {
	if o.NoTasks {
		return []string{"TodoWrite"}
	}
	return taskTools()
}

// builtinToolsInInitOrder returns the built-in tools in the order of the init event: as the session's agent lists them,
// otherwise alphabetical with Task first.
func builtinToolsInInitOrder(o builtinToolListingOptions) []string {
	var list []string
	switch {
	case !o.IsDefault():
		list = requestedToolsThatExist(o)
	case o.Bare:
		list = []string{"Bash", "Edit", "Read"}
	default:
		list = append(toolsListedByDefault(), optionalToolsNamedByAllowRules(o)...)
		if o.HasTaskList {
			list = append(list, taskToolsOrTodoWrite(o)...)
		}
		if o.HostAnswers {
			list = append(list, toolsThatAskUser()...)
		}
	}
	if o.HasSchema {
		list = append(list, "StructuredOutput")
	}
	if o.HasResources {
		list = append(list, claudecode.InitToolNames(claudecode.InitListsToolIfMCPServerHasResources)...)
	}
	out := func(name string) bool {
		if name == "Skill" && o.NoSkills || name == "ToolSearch" && o.NoSearch || !o.Profile.HasTool(name) {
			return true
		}
		return slices.ContainsFunc(o.Disallowed, func(d string) bool {
			match, _ := path.Match(claudecode.ToolNameInInitEvent(d), name) // a bad pattern matches nothing
			return match
		})
	}
	if out("Bash") && o.IsDefault() && !o.Bare {
		// Without a shell, no Monitor tool is listed, but the tools for searching are.
		list = append(slices.DeleteFunc(list, func(name string) bool { return name == "Monitor" }), "Glob", "Grep")
	}
	list = slices.DeleteFunc(list, out)
	slices.SortFunc(list, compareToolNamesTaskFirst)
	list = slices.Compact(list)
	if o.OfAgent {
		position := func(name string) int {
			return slices.IndexFunc(o.Requested, func(t string) bool { return claudecode.ToolNameInInitEvent(t) == name })
		}
		slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(uint(position(a)), uint(position(b))) }) // tools without a position are last
	}
	if o.HostSchema && !out("StructuredOutput") {
		list = append(list, "StructuredOutput")
	}
	return list
}

func requestedToolsThatExist(o builtinToolListingOptions) []string {
	known := append(toolsListedByDefault(), toolsListedIfFlagsNameThem()...)
	if o.HostAnswers {
		known = append(known, toolsThatAskUser()...)
	}
	var list []string
	for _, name := range o.Requested {
		name = claudecode.ToolNameInInitEvent(name)
		// The session has either TodoWrite or the Task tools, never both.
		if off := name == "TodoWrite" && !o.NoTasks || o.NoTasks && slices.Contains(taskTools(), name); slices.Contains(known, name) && !off {
			list = append(list, name)
		}
	}
	return list
}

func toolsThatAskUser() []string {
	return claudecode.InitToolNames(claudecode.InitListsToolIfUserCanAnswer)
}

func optionalToolsNamedByAllowRules(o builtinToolListingOptions) []string {
	var list []string
	for _, rule := range o.Allowed {
		name := claudecode.ParsePermissionRule(rule).Tool
		switch {
		case name == "TodoWrite" || slices.Contains(taskTools(), name): // a session has either TodoWrite or the Task tools
			list = append(list, taskToolsOrTodoWrite(o)...)
		case isGlobOrGrep(name): // Glob and Grep are added together
			list = append(list, "Glob", "Grep")
		case slices.Contains(toolsListedIfFlagsNameThem(), name):
			list = append(list, name)
		}
	}
	return list
}

func compareToolNamesTaskFirst(a, b string) int {
	if (a == "Task") != (b == "Task") {
		if a == "Task" {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
}

// appendMCPNames appends the names of MCP tools, sorted case-insensitively, before a final StructuredOutput.
func appendMCPNames(builtin []string, tools []protocol.Tool) []string {
	var names []string
	for _, t := range tools {
		if t.RawName != "" {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, compareToolNamesTaskFirst)
	if last := len(builtin) - 1; last >= 0 && builtin[last] == "StructuredOutput" {
		builtin, names = builtin[:last], append(names, "StructuredOutput")
	}
	return append(append([]string{}, builtin...), names...)
}

// fileAccessPolicy decides which files the built-in tools may access. If the session does not have the tool Read, the other
// tools can change only files that were read earlier.
type fileAccessPolicy struct {
	*permissionPolicy
	tools *toolInventory
}

// IsChangeableUnread reports whether the model can change a file without reading it first, and may read it without asking.
func (a fileAccessPolicy) IsChangeableUnread(path string, agent *protocol.AgentRef) bool {
	model := claudecode.ResolveModel(a.tools.state.NextRequestModel())
	if agent != nil {
		model = agent.Model
	}
	return a.tools.hasBuiltinTool("Read") && a.IsReadableWithoutAsking(path) && !claudecode.FactsOfModel(model).ReadsBeforeChange
}
