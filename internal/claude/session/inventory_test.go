package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The lists are those of the init events recorded from CLI 2.1.329.
func TestTools(t *testing.T) {
	const byDefault = "Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write"
	allowed := strings.Split("Read,Write,Edit,Bash,Glob,Grep,TodoWrite,Task,WebFetch,NotebookEdit", ",")
	tests := []struct {
		name string
		o    builtinToolListingOptions
		want string
	}{
		{"default", builtinToolListingOptions{}, byDefault},
		{"tools default", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"default"}}}, byDefault},
		{
			"named in --allowedTools",
			builtinToolListingOptions{ToolSelection: launch.ToolSelection{Allowed: allowed}},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskStop TaskUpdate ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"--tools (checklist row 45)", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Glob", "Grep", "TodoWrite"}, Allowed: allowed}}, "Glob Grep"},
		{"--tools with an unknown name", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Nope", "Read"}}}, "Read"},
		{"--tools empty", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true}}, ""},
		{"--bare", builtinToolListingOptions{Bare: true}, "Bash Edit Read"},
		{
			"a host answers",
			builtinToolListingOptions{HostAnswers: true},
			"Task AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"--json-schema",
			builtinToolListingOptions{HasSchema: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill StructuredOutput TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"a schema that the host gave later", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Read", "Write"}}, HostSchema: true}, "Read Write StructuredOutput"},
		{
			"a server has resources",
			builtinToolListingOptions{HasResources: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents ListMcpResourcesTool Monitor NotebookEdit Read ReadMcpResourceDirTool ReadMcpResourceTool ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"disallowed",
			builtinToolListingOptions{ToolSelection: launch.ToolSelection{Disallowed: []string{"Bash", "Agent", "Write(x)"}}},
			"CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep ListAgents NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"--tools names the disallowed Bash", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Read", "Bash"}, Disallowed: []string{"Bash"}}}, "Read"},
		{"--bare with the disallowed Bash", builtinToolListingOptions{Bare: true, ToolSelection: launch.ToolSelection{Disallowed: []string{"Bash"}}}, "Edit Read"},
		{"disallowed by patterns", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Disallowed: []string{"W*", "[", "*e*", "Cron*"}}}, "Task Bash Edit Monitor Skill TaskStop"},
		{"all disallowed", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Disallowed: []string{"*"}}}, ""},
		{"--tools names a tool that needs a host (contract 3.3)", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Read", "AskUserQuestion"}}}, "Read"},
		{"the same with a host", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"Read", "AskUserQuestion"}}, HostAnswers: true}, "AskUserQuestion Read"},
		{
			"a model with a task list",
			builtinToolListingOptions{ToolSelection: launch.ToolSelection{Disallowed: []string{"TaskCreate"}}, HasTaskList: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskGet TaskList TaskStop TaskUpdate ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"the same, tasks off",
			builtinToolListingOptions{ToolSelection: launch.ToolSelection{NoTasks: true}, HasTaskList: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop TodoWrite ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"tasks named while off", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"TaskCreate", "Bash"}, NoTasks: true}}, "Bash"},
		{"tasks off", builtinToolListingOptions{ToolSelection: launch.ToolSelection{Restricted: true, Requested: []string{"TodoWrite"}, NoTasks: true}}, "TodoWrite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Profile = claudecode.ProfileForExactVersion(claudecode.DefaultVersion)
			if diff := cmp.Diff(tt.want, strings.Join(builtinToolsInInitOrder(tt.o), " ")); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithMCP(t *testing.T) {
	got := appendMCPNames([]string{"Task", "Write"}, []protocol.Tool{
		{Name: "mcp__s__b", RawName: "b"},
		{Name: "Read"},
		{Name: "mcp__S__A", RawName: "A"},
		{Name: "mcp__a__z", RawName: "z"},
	})
	if diff := cmp.Diff([]string{"Task", "Write", "mcp__a__z", "mcp__S__A", "mcp__s__b"}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// Agents in the background lack tools that other agents have (observed with 2.1.330).
func TestForegroundOnlyTools(t *testing.T) {
	v := &toolInventory{profile: claudecode.ProfileForExactVersion(claudecode.DefaultVersion), state: &simulator.SessionState{}}
	for background, want := range map[bool]string{false: "", true: "Error: No such tool available: CronList. CronList is not among the tools available here. Continue with the tools you have."} {
		if got, _ := v.unavailableBuiltinToolText(protocol.ToolUse{Name: "CronList", Agent: &protocol.AgentRef{InBackground: background}}); got != want {
			t.Errorf("background %t: %q, want %q", background, got, want)
		}
	}
}
