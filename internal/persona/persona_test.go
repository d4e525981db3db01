package persona_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The lists are those of the init events recorded from CLI 2.1.329.
func TestTools(t *testing.T) {
	const byDefault = "Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write"
	allowed := strings.Split("Read,Write,Edit,Bash,Glob,Grep,TodoWrite,Task,WebFetch,NotebookEdit", ",")
	tests := []struct {
		name string
		o    persona.ToolOptions
		want string
	}{
		{"default", persona.ToolOptions{}, byDefault},
		{"tools default", persona.ToolOptions{Given: true, Tools: []string{"default"}}, byDefault},
		{
			"named in --allowedTools",
			persona.ToolOptions{Allowed: allowed},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskStop TaskUpdate ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"--tools (checklist row 45)", persona.ToolOptions{Given: true, Tools: []string{"Glob", "Grep", "TodoWrite"}, Allowed: allowed}, "Glob Grep"},
		{"--tools with an unknown name", persona.ToolOptions{Given: true, Tools: []string{"Nope", "Read"}}, "Read"},
		{"--tools empty", persona.ToolOptions{Given: true}, ""},
		{"--bare", persona.ToolOptions{Bare: true}, "Bash Edit Read"},
		{
			"a host answers",
			persona.ToolOptions{Host: true},
			"Task AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"--json-schema",
			persona.ToolOptions{Schema: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill StructuredOutput TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"a schema that the host gave later", persona.ToolOptions{Given: true, Tools: []string{"Read", "Write"}, HostSchema: true}, "Read Write StructuredOutput"},
		{
			"a server has resources",
			persona.ToolOptions{Resources: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents ListMcpResourcesTool Monitor NotebookEdit Read ReadMcpResourceDirTool ReadMcpResourceTool ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"disallowed",
			persona.ToolOptions{Disallowed: []string{"Bash", "Agent", "Write(x)"}},
			"CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep ListAgents NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"disallowed by patterns", persona.ToolOptions{Disallowed: []string{"W*", "[", "*e*", "Cron*"}}, "Task Bash Edit Monitor Skill TaskStop"},
		{"all disallowed", persona.ToolOptions{Disallowed: []string{"*"}}, ""},
		{"--tools names a tool that needs a host (contract 3.3)", persona.ToolOptions{Given: true, Tools: []string{"Read", "AskUserQuestion"}}, "Read"},
		{"the same with a host", persona.ToolOptions{Given: true, Tools: []string{"Read", "AskUserQuestion"}, Host: true}, "AskUserQuestion Read"},
		{
			"a model with a task list",
			persona.ToolOptions{Tasks: true, Disallowed: []string{"TaskCreate"}},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskGet TaskList TaskStop TaskUpdate ToolSearch WebFetch WebSearch Workflow Write",
		},
		{
			"the same, tasks off",
			persona.ToolOptions{Tasks: true, NoTasks: true},
			"Task Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop TodoWrite ToolSearch WebFetch WebSearch Workflow Write",
		},
		{"tasks named while off", persona.ToolOptions{Given: true, Tools: []string{"TaskCreate", "Bash"}, NoTasks: true}, "Bash"},
		{"tasks off", persona.ToolOptions{Given: true, Tools: []string{"TodoWrite"}, NoTasks: true}, "TodoWrite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, strings.Join(persona.Tools(tt.o), " ")); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithMCP(t *testing.T) {
	got := persona.WithMCP([]string{"Task", "Write"}, []protocol.Tool{
		{Name: "mcp__s__b", RawName: "b"},
		{Name: "Read"},
		{Name: "mcp__S__A", RawName: "A"},
		{Name: "mcp__a__z", RawName: "z"},
	})
	if diff := cmp.Diff([]string{"Task", "Write", "mcp__a__z", "mcp__S__A", "mcp__s__b"}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}
