// Package persona is what the simulated CLI says about itself: the lists and
// constants of the init event that depend on flags and environment only.
//
// The values are those of CLI 2.1.329 (spec: cli-observed 2). The package
// decides nothing about a run.
package persona

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Version is the simulated version of the real CLI.
const Version = "2.1.329"

// ToolOptions says which built-in tools a session lists.
type ToolOptions struct {
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

// taskList are the tools of the task list in force.
func taskList(o ToolOptions) []string {
	if o.NoTasks {
		return []string{"TodoWrite"}
	}
	return taskTools()
}

// Tools lists the built-in tools as the init event does: alphabetically, Task
// first.
func Tools(o ToolOptions) []string {
	var list []string
	switch {
	case o.Given && !slices.Equal(o.Tools, []string{"default"}):
		known := append(defaultTools(), optionalTools()...)
		if o.Host {
			known = append(known, hostTools()...)
		}
		for _, name := range o.Tools {
			name = listed(name)
			// TodoWrite and the Task tools are never there together.
			off := name == "TodoWrite" && !o.NoTasks || o.NoTasks && slices.Contains(taskTools(), name)
			if slices.Contains(known, name) && !off {
				list = append(list, name)
			}
		}
	case o.Bare:
		list = []string{"Bash", "Edit", "Read"}
	default:
		list = append(defaultTools(), named(o)...)
		if o.Tasks {
			list = append(list, taskList(o)...)
		}
		if o.Host {
			list = append(list, hostTools()...)
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
			match, _ := path.Match(listed(d), name) // a bad pattern matches nothing
			return match
		})
	}
	if out("Bash") && slices.Contains(list, "Bash") {
		// Without a shell there is nothing to monitor, and searching is by tools.
		list = append(slices.DeleteFunc(list, func(name string) bool { return name == "Monitor" }), "Glob", "Grep")
	}
	list = slices.DeleteFunc(list, out)
	slices.SortFunc(list, byName)
	list = slices.Compact(list)
	if o.HostSchema && !out("StructuredOutput") {
		list = append(list, "StructuredOutput")
	}
	return list
}

func hostTools() []string { return []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} }

// named are the optional tools that --allowedTools brings in.
func named(o ToolOptions) []string {
	var list []string
	for _, rule := range o.Allowed {
		name, _, _ := strings.Cut(rule, "(")
		switch {
		case name == "TodoWrite" && !o.NoTasks:
			list = append(list, taskTools()...)
		case name == "Glob" || name == "Grep": // they come together
			list = append(list, "Glob", "Grep")
		case slices.Contains(optionalTools(), name):
			list = append(list, name)
		}
	}
	return list
}

// listed is the name under which init lists a tool.
func listed(name string) string {
	if name == "Agent" {
		return "Task"
	}
	return name
}

func byName(a, b string) int {
	if (a == "Task") != (b == "Task") {
		if a == "Task" {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
}

// WithMCP appends the names of MCP tools, sorted without regard to case.
func WithMCP(builtin []string, tools []protocol.Tool) []string {
	var names []string
	for _, t := range tools {
		if t.RawName != "" {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, byName)
	return append(append([]string{}, builtin...), names...)
}

// Init is the init event of a session before anything of a run is filled in.
func Init() protocol.Init {
	return protocol.Init{
		SlashCommands:         builtinNames(func(Builtin) bool { return true }),
		TerminalSlashCommands: []string{"doctor", "color", "focus", "reload-plugins"},
		ClaudeCodeVersion:     Version,
		OutputStyle:           "default",
		Agents:                []string{"claude", "Explore", "general-purpose", "Plan", "statusline-setup"},
		Skills:                builtinNames(func(b Builtin) bool { return b.Skill }),
		Plugins:               plugins(),
		Capabilities:          capabilities(),
		MCPServers:            []protocol.MCPServer{},
		AnalyticsDisabled:     true, ProductFeedbackDisabled: true,
		AdditionalDirectories:  []string{},
		FastModeState:          "off",
		FastModeDisabledReason: "sdk_opt_in_required",
		ViewMode:               "default",
	}
}

func plugins() []protocol.Plugin {
	var list []protocol.Plugin
	for _, name := range []string{"cc-plugin-agents-md", "cc-plugin-privacy", "cc-plugin-plugin-authoring"} {
		list = append(list, protocol.Plugin{Name: name, Path: "builtin", Source: name + "@builtin"})
	}
	return list
}

func capabilities() []string {
	return []string{
		"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "interrupt_send_now_v1", "interrupt_requeue_taken_v1",
		"msg_lifecycle_v1", "request_marker_lists_v1", "ask_user_question_unanswered_v1", "lifecycle_wakeup_source_v1",
		"sdk_mcp_tools_list_changed", "sdk_mcp_manifests", "mcp_read_resource_v1", "mcp_tool_ui_meta_v1", "ui_surface_v1",
		"mcp_call_result_not_for_model_v1", "mcp_call_check_permissions_v1", "voice_call_talk_line_v1",
		"withdrawn_files_note_v2", "ui_pane_widget_v1", "reload_plugins_refuse_if_busy_v1", "get_usage_detached_v1",
		"silent_resend_files_v1",
	}
}
