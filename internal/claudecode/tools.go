package claudecode

import (
	"cmp"
	"slices"
)

// ToolClass is a group of tools that permission rules treat in the same way.
type ToolClass int

// The classes of tools.
const (
	ToolClassAsk      ToolClass = iota // unknown tool: ask
	ToolClassNeverAsk                  // never asks
	ToolClassUser                      // the tool is itself a question to the user
	ToolClassShell                     // runs a command line
	ToolClassRead                      // reads the file system
	ToolClassWrite                     // writes one file
	ToolClassFetch                     // requests a URL
	ToolClassAgent                     // starts an agent
	ToolClassSkill                     // loads a skill
)

// ToolListing specifies when init lists a tool.
type ToolListing int

// The listings.
const (
	ListNever         ToolListing = iota // never
	ListAlways                           // always
	ListOnRequest                        // if --tools or --allowedTools names it
	ListWithTaskList                     // like ListOnRequest, and always for models that are offered the task list
	ListWithUser                         // if a user is there to answer
	ListWithResources                    // if an MCP server has resources
)

// Tool describes one built-in tool. It does not run the tool.
type Tool struct {
	Name    string
	Aliases []string // other names that calls and rules may use
	Class   ToolClass
	Listing ToolListing
	// Subject is the parameter of a call that a rule such as Bash(ls) is compared with; empty means none.
	Subject string
	// ReadOnly tools can run concurrently with others. For tools of ToolClassShell this depends on the command.
	ReadOnly bool
	// Deferred tools are found by search, because the model receives only their names.
	Deferred bool
	// Unsimulated tools are listed but have no effect; a scenario can define their results.
	Unsimulated bool
	// MainOnly tools do not exist for sub-agents. ForegroundOnly tools do not exist for sub-agents in the background.
	MainOnly, ForegroundOnly bool
	// BareDenial is true if a denial in the JSON output of a hook is shown without the name of the hook (observed with
	// 2.1.330).
	BareDenial bool
	// UnknownToRules tools are not known to permission rules: a rule with their name matches no tool.
	UnknownToRules bool

	since string // first version that lists the tool; empty means all
}

// Tools lists the built-in tools by name.
func Tools() []Tool { return slices.Clone(tools[:]) }

var tools = [...]Tool{
	{Name: "Agent", Aliases: []string{"Task"}, Class: ToolClassAgent, Listing: ListAlways},
	{Name: "AgentOutputTool"},
	{Name: "Artifact"},
	{Name: "AskUserQuestion", Class: ToolClassUser, Listing: ListWithUser, ForegroundOnly: true},
	{Name: "Bash", Class: ToolClassShell, Listing: ListAlways, Subject: "command"},
	{Name: "BashOutput", Class: ToolClassNeverAsk},
	{Name: "Brief"},
	{Name: "CronCreate", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true, ForegroundOnly: true},
	{Name: "CronDelete", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true, ForegroundOnly: true},
	{Name: "CronList", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true, ForegroundOnly: true},
	{Name: "DesignSync", Listing: ListAlways, Unsimulated: true},
	{Name: "Edit", Class: ToolClassWrite, Listing: ListAlways, Subject: "file_path", BareDenial: true},
	{Name: "EnterPlanMode", Class: ToolClassNeverAsk, Listing: ListWithUser, Deferred: true, ForegroundOnly: true},
	{Name: "EnterWorktree", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true},
	{Name: "ExitPlanMode", Class: ToolClassUser, Listing: ListWithUser, Deferred: true, ForegroundOnly: true},
	{Name: "ExitWorktree", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true},
	{Name: "Glob", Class: ToolClassRead, Listing: ListOnRequest, Subject: "path", ReadOnly: true},
	{Name: "Grep", Class: ToolClassRead, Listing: ListOnRequest, Subject: "path", ReadOnly: true},
	{Name: "LS", Class: ToolClassRead, UnknownToRules: true},
	{Name: "LSP"},
	{Name: "ListAgents", Class: ToolClassNeverAsk, Listing: ListAlways, Unsimulated: true, ForegroundOnly: true},
	{Name: "ListMcpResources"},
	{Name: "ListMcpResourcesTool", Class: ToolClassNeverAsk, Listing: ListWithResources, Deferred: true},
	{Name: "Monitor", Class: ToolClassShell, Listing: ListAlways, Subject: "command", Deferred: true, BareDenial: true, since: "2.1.310"},
	{Name: "MultiEdit", Class: ToolClassWrite, UnknownToRules: true},
	{Name: "NotebookEdit", Class: ToolClassWrite, Listing: ListAlways, Subject: "notebook_path", Deferred: true, BareDenial: true},
	{Name: "NotebookRead", Class: ToolClassRead, UnknownToRules: true},
	{Name: "PowerShell"},
	{Name: "PushNotification"},
	{Name: "Read", Class: ToolClassRead, Listing: ListAlways, Subject: "file_path", ReadOnly: true, BareDenial: true},
	{Name: "ReadMcpResourceDirTool", Class: ToolClassNeverAsk, Listing: ListWithResources, Deferred: true},
	{Name: "ReadMcpResourceTool", Class: ToolClassNeverAsk, Listing: ListWithResources, Deferred: true},
	{Name: "RemoteTrigger", Listing: ListAlways, Unsimulated: true},
	{Name: "ReportFindings", Class: ToolClassNeverAsk, Listing: ListAlways, ForegroundOnly: true},
	{Name: "ScheduleWakeup", Class: ToolClassNeverAsk, Listing: ListAlways, MainOnly: true},
	{Name: "SendMessage", Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true, Unsimulated: true, BareDenial: true},
	{Name: "SendUserFile"},
	{Name: "SendUserMessage"},
	{Name: "Skill", Class: ToolClassSkill, Listing: ListAlways, Subject: "skill"},
	{Name: "StructuredOutput", Class: ToolClassNeverAsk, UnknownToRules: true},
	{Name: "SuggestBackgroundPR"},
	{Name: "TaskCreate", Class: ToolClassNeverAsk, Listing: ListWithTaskList, Deferred: true},
	{Name: "TaskGet", Class: ToolClassNeverAsk, Listing: ListWithTaskList, ReadOnly: true, Deferred: true},
	{Name: "TaskList", Class: ToolClassNeverAsk, Listing: ListWithTaskList, ReadOnly: true, Deferred: true},
	{Name: "TaskOutput", Class: ToolClassNeverAsk},
	{Name: "TaskStop", Aliases: []string{"KillShell", "KillBash"}, Class: ToolClassNeverAsk, Listing: ListAlways, Deferred: true},
	{Name: "TaskUpdate", Class: ToolClassNeverAsk, Listing: ListWithTaskList, Deferred: true},
	{Name: "TeamCreate"},
	{Name: "TeamDelete"},
	{Name: "TodoWrite", Class: ToolClassNeverAsk, Listing: ListOnRequest, Deferred: true},
	{Name: "ToolSearch", Class: ToolClassNeverAsk, Listing: ListAlways, Unsimulated: true, BareDenial: true, since: "2.1.304"},
	{Name: "WaitForMcpServers"},
	{Name: "WebFetch", Class: ToolClassFetch, Listing: ListAlways, Subject: "url", ReadOnly: true, Deferred: true},
	{Name: "WebSearch", Listing: ListAlways, Subject: "query", ReadOnly: true, Deferred: true},
	{Name: "Workflow", Listing: ListAlways, Unsimulated: true, MainOnly: true},
	{Name: "Write", Class: ToolClassWrite, Listing: ListAlways, Subject: "file_path", BareDenial: true},
}

// ToolNamed returns the tool with this name or alias, or the zero Tool if none exists.
func ToolNamed(name string) Tool {
	for i := range tools {
		if tools[i].Name == name || slices.Contains(tools[i].Aliases, name) {
			return tools[i]
		}
	}
	return Tool{}
}

// ToolsListed returns the names of tools with this listing, in the form that init uses.
func ToolsListed(l ToolListing) []string {
	var names []string
	for i := range tools {
		if tools[i].Listing == l {
			names = append(names, tools[i].nameInInit())
		}
	}
	return names
}

// NameInInit returns the name of a tool in init, given any of its names.
func NameInInit(name string) string { return cmp.Or(ToolNamed(name).nameInInit(), name) }

func (t Tool) nameInInit() string {
	if t.Name == "Agent" { // init uses the older name
		return "Task"
	}
	return t.Name
}

func toolRows() []versionRow {
	var rows []versionRow
	for i := range tools {
		if tools[i].since != "" {
			rows = append(rows, versionRow{tools[i].Name, tools[i].since})
		}
	}
	return rows
}
