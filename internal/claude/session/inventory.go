package session

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// inventory is which tools there are: what flags and rules leave of the built-in ones, and of those of servers.
type inventory struct {
	plan             launch.Tools
	custom           launch.Customization
	denied           []string // rules that deny something, without the brackets that say nothing
	promptTool       string   // who is asked for permission
	schemaFlag       bool
	hostSchema       atomic.Bool             // the host wants a structured output
	state            *simulator.SessionState // its model may be offered the task list
	answersUserTools bool                    // somebody, or the scenario in his place, answers tools that talk to the user
}

func newInventory(plan launch.Plan, live *simulator.SessionState) *inventory {
	v := &inventory{
		state: live,
		plan:  plan.Tools, custom: plan.Custom, promptTool: plan.Permission.PromptTool, schemaFlag: plan.Prompt.SchemaFlag,
		answersUserTools: plan.Permission.PromptTool != "" || answersUserTools(plan.Scenario), denied: slices.Clone(plan.Tools.Disallowed),
	}
	for _, rule := range plan.Settings.Permissions.Rules {
		if rule.Behavior == permission.BehaviorDeny {
			v.denied = append(v.denied, rule.Text)
		}
	}
	if plan.Custom.Restricted && v.plan.IsDefault() { // whoever names them gets them (observed with 2.1.330)
		v.denied = append(v.denied, "Bash", "CronCreate", "Monitor", "WebFetch", "Workflow")
	}
	for i, rule := range v.denied {
		v.denied[i] = strings.TrimSuffix(strings.TrimSuffix(rule, "(*)"), "()")
	}
	return v
}

// answersUserTools tells whether a scenario says what comes of tools that talk to the user.
func answersUserTools(s launch.Scenario) bool {
	te := s.ToolExecution
	return te != nil && (te.Mode == "mock" || slices.ContainsFunc(userTools(), func(name string) bool {
		_, ok := te.Tools[name]
		return ok
	}))
}

func (v *inventory) listing(resources bool) toolListing {
	return toolListing{
		Tools: v.plan.Named, Given: v.plan.Restricted, Allowed: v.plan.Allowed, Disallowed: v.denied, Bare: v.custom.Bare,
		Host: v.promptTool != "", NoSkills: v.custom.NoCommands, Schema: v.schemaFlag, HostSchema: v.hostSchema.Load(),
		Resources: resources, Tasks: model.Of(model.Resolve(v.state.Model())).Tasks, NoTasks: v.plan.NoTasks,
	}
}

// list lists the built-in tools that the model is told of.
func (v *inventory) listed(resources bool) []string { return listTools(v.listing(resources)) }

// initTools lists the built-in tools that init names. What the agent of the session is without goes; nothing comes in its place.
func (v *inventory) initTools(resources bool) []string {
	o := v.listing(resources)
	all := listTools(o)
	o.Disallowed = slices.Concat(o.Disallowed, v.plan.Hidden)
	return slices.DeleteFunc(listTools(o), func(name string) bool { return !slices.Contains(all, name) })
}

// exists tells whether a built-in tool is left over from --tools and what takes tools away.
func (v *inventory) exists(name string) bool {
	same := func(other string) bool {
		match, _ := path.Match(other, name) // deny rules may be patterns; a bad one matches nothing
		return match || agent.IsCall(other) && agent.IsCall(name)
	}
	if name == "Skill" && v.custom.NoCommands || slices.Contains(userTools(), name) && !v.answersUserTools {
		return false
	}
	if slices.ContainsFunc(v.denied, same) || slices.ContainsFunc(v.plan.Hidden, same) {
		return false
	}
	return v.plan.IsDefault() || slices.ContainsFunc(v.plan.Named, same)
}

// isHidden tells whether an MCP tool is taken away for good.
func (v *inventory) isHidden(t protocol.Tool) bool {
	for _, rule := range v.denied {
		rule = strings.TrimSuffix(rule, "__*")
		if rule == t.Name || rule == strings.TrimSuffix(mcp.CanonicalName(t.Server, ""), "__") {
			return true
		}
	}
	return false
}

// isDisallowed tells whether --disallowedTools names a tool as a whole.
func (v *inventory) isDisallowed(name string) bool { return slices.Contains(v.plan.Disallowed, name) }

// toolListing says which built-in tools a session lists.
type toolListing struct {
	// Tools is --tools; nil = not given, one "default" = the default list.
	Tools      []string
	Given      bool // --tools was given, be it empty
	Allowed    []string
	Disallowed []string
	Bare       bool
	Host       bool // somebody answers permission questions (--permission-prompt-tool)
	NoSkills   bool // --disable-slash-commands
	Schema     bool // --json-schema
	HostSchema bool // a schema that the host gave later; its tool is the last of the list
	Resources  bool // an MCP server has resources
	Tasks      bool // the model is offered the task list
	// NoTasks is CLAUDE_CODE_ENABLE_TASKS=0: TodoWrite instead of the Task tools.
	NoTasks bool
}

func defaultTools() []string {
	return []string{
		"Task", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree", "ListAgents",
		"Monitor", "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskStop",
		"ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
	}
}

// optionalTools are listed only when named.
func optionalTools() []string {
	return append([]string{"Glob", "Grep", "TodoWrite"}, taskTools()...)
}

func taskTools() []string { return []string{"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"} }

// taskListTools are the tools of the task list in force.
func taskListTools(o toolListing) []string {
	if o.NoTasks {
		return []string{"TodoWrite"}
	}
	return taskTools()
}

// listTools lists the built-in tools as the init event does: alphabetically, Task
// first.
func listTools(o toolListing) []string {
	var list []string
	switch {
	case o.Given && !slices.Equal(o.Tools, []string{"default"}):
		list = requestedTools(o)
	case o.Bare:
		list = []string{"Bash", "Edit", "Read"}
	default:
		list = append(defaultTools(), allowedOptionalTools(o)...)
		if o.Tasks {
			list = append(list, taskListTools(o)...)
		}
		if o.Host {
			list = append(list, userTools()...)
		}
	}
	if o.Schema {
		list = append(list, "StructuredOutput")
	}
	if o.Resources {
		list = append(list, "ListMcpResourcesTool", "ReadMcpResourceDirTool", "ReadMcpResourceTool")
	}
	out := func(name string) bool {
		if name == "Skill" && o.NoSkills {
			return true
		}
		return slices.ContainsFunc(o.Disallowed, func(d string) bool {
			match, _ := path.Match(initName(d), name) // a bad pattern matches nothing
			return match
		})
	}
	if out("Bash") && slices.Contains(list, "Bash") {
		// Without a shell there is nothing to monitor, and searching is by tools.
		list = append(slices.DeleteFunc(list, func(name string) bool { return name == "Monitor" }), "Glob", "Grep")
	}
	list = slices.DeleteFunc(list, out)
	slices.SortFunc(list, compareNames)
	list = slices.Compact(list)
	if o.HostSchema && !out("StructuredOutput") {
		list = append(list, "StructuredOutput")
	}
	return list
}

// requestedTools lists the tools of --tools that there are.
func requestedTools(o toolListing) []string {
	known := append(defaultTools(), optionalTools()...)
	if o.Host {
		known = append(known, userTools()...)
	}
	var list []string
	for _, name := range o.Tools {
		name = initName(name)
		// TodoWrite and the Task tools are never there together.
		off := name == "TodoWrite" && !o.NoTasks || o.NoTasks && slices.Contains(taskTools(), name)
		if slices.Contains(known, name) && !off {
			list = append(list, name)
		}
	}
	return list
}

func userTools() []string { return []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} }

// allowedOptionalTools are the optional tools that --allowedTools brings in.
func allowedOptionalTools(o toolListing) []string {
	var list []string
	for _, rule := range o.Allowed {
		name, _, _ := strings.Cut(rule, "(")
		switch {
		case name == "TodoWrite" || slices.Contains(taskTools(), name): // whichever of the two lists is in force
			list = append(list, taskListTools(o)...)
		case name == "Glob" || name == "Grep": // they come together
			list = append(list, "Glob", "Grep")
		case slices.Contains(optionalTools(), name):
			list = append(list, name)
		}
	}
	return list
}

// initName is the name under which init lists a tool.
func initName(name string) string {
	switch name {
	case "Agent":
		return "Task"
	case "KillShell", "KillBash":
		return "TaskStop"
	}
	return name
}

func compareNames(a, b string) int {
	if (a == "Task") != (b == "Task") {
		if a == "Task" {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
}

// appendMCPNames appends the names of MCP tools, sorted without regard to case.
func appendMCPNames(builtin []string, tools []protocol.Tool) []string {
	var names []string
	for _, t := range tools {
		if t.RawName != "" {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, compareNames)
	return append(append([]string{}, builtin...), names...)
}
