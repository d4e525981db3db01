package builtin

import (
	"context"
	"encoding/json"

	"github.com/claudeless/claudeless/executor/internal/bash"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/search"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolFamilies are the tools of one session, each with the state that it works on.
type toolFamilies struct {
	files    *files.Files
	finder   *search.Finder
	commands *bash.Commands
	trees    *worktrees
	jobs     *cronJobs
	todos    *todoList
	tasks    *checklist
	plans    *planTools
	skills   Skills // nil = there are none
	answers  answers
}

// all lists the tools by name.
func (f toolFamilies) all() []tool.Tool {
	return []tool.Tool{
		agentTool("Agent"),
		askUserQuestionTool(f.answers),
		bash.Bash(f.commands),
		cronCreateTool(f.jobs),
		cronDeleteTool(f.jobs),
		cronListTool(f.jobs),
		f.trees.guarded(files.Edit(f.files)),
		enterPlanModeTool(f.plans),
		enterWorktreeTool(f.trees),
		exitPlanModeTool(f.plans),
		exitWorktreeTool(f.trees),
		search.Glob(f.finder),
		search.Grep(f.finder),
		notSimulated("ListAgents"),
		bash.Monitor(f.commands),
		files.NotebookEdit(f.files),
		files.Read(f.files),
		reportFindingsTool(),
		scheduleWakeupTool(f.jobs),
		notSimulated("SendMessage"),
		skillTool(f.skills),
		agentTool("Task"),
		taskCreateTool(f.tasks),
		taskGetTool(f.tasks),
		taskListTool(f.tasks),
		bash.Stop(f.commands),
		taskUpdateTool(f.tasks),
		todoWriteTool(f.todos),
		notSimulated("ToolSearch"),
		webFetchTool(),
		webSearchTool(),
		notSimulated("Workflow"),
		f.trees.guarded(files.Write(f.files)),
	}
}

// canonical is the name of a tool that calls may name as older clients did.
func canonical(name string) string {
	switch name {
	case "KillShell", "KillBash":
		return "TaskStop"
	}
	return name
}

// Definitions are the tools as a session tells of them, by name.
func Definitions() []protocol.Tool {
	tools := toolFamilies{}.all()
	out := make([]protocol.Tool, len(tools))
	for i, t := range tools {
		out[i] = t.Definition()
	}
	return out
}

// ReadOnlyCall says that the call may run beside its neighbours: it is one of
// a tool that only reads, or a Bash command that does. MCP tools tell for
// themselves ([protocol.Tool.ReadOnly]).
func ReadOnlyCall(use protocol.ToolUse) bool {
	switch use.Name {
	case "Read", "Glob", "Grep", "TaskGet", "TaskList", "WebFetch", "WebSearch":
		return true
	case "Bash":
		return bash.ReadOnly(use.Input)
	}
	return false
}

// Rewrite is what the model reads of an output that somebody else puts in place
// of a tool's own; false = it is not of the tool's form, or the tool has none
// that is known. Bash has.
func Rewrite(name string, output json.RawMessage) (protocol.Content, bool) {
	if name != "Bash" {
		return protocol.Content{}, false
	}
	return bash.Rewrite(output)
}

// Shape gives a canned text the structure a real result of the tool has, where
// the text determines it (spec: cli-contract 9.8).
func Shape(call protocol.ToolUse, s string) protocol.ToolResult {
	r := tool.Text(s, nil)
	switch call.Name {
	case "Bash":
		return bash.Printed(s)
	case "WebFetch":
		in, _ := tool.Decode[struct{ URL string }](call.Input)
		r.Output = struct {
			Bytes      int    `json:"bytes"`
			Code       int    `json:"code"`
			CodeText   string `json:"codeText"`
			Result     string `json:"result"`
			DurationMS int    `json:"durationMs"`
			URL        string `json:"url"`
		}{len(s), 200, "OK", s, 0, in.URL}
	case "WebSearch":
		in, _ := tool.Decode[struct{ Query string }](call.Input)
		r.Output = struct {
			Query    string   `json:"query"`
			Results  []string `json:"results"`
			Duration float64  `json:"durationSeconds"`
		}{in.Query, []string{s}, 0}
	}
	return r
}

// agentTool defines a tool that the agent executor runs; here is only what
// clients see of it.
func agentTool(name string) tool.Tool {
	return tool.Tool{
		Name:        name,
		Description: "Starts an agent that works on a task of its own and reports back.",
		Input: tool.Loose(
			tool.Req("description", tool.Str("The task in three to five words")),
			tool.Req("prompt", tool.Str("What the agent is to do")),
			tool.Opt("subagent_type", tool.Str("The kind of agent")),
			tool.Opt("model", tool.Str("The model of the agent", "sonnet", "opus", "haiku", "fable")),
			tool.Opt("effort", tool.Str("The effort of the agent")),
			tool.Opt("run_in_background", tool.Boolean("Do not wait for the agent")),
			tool.Opt("name", tool.Str("A name for the agent")),
			tool.Opt("team_name", tool.Str("The team that the agent joins")),
			tool.Opt("mode", tool.Str("The permission mode of the agent")),
			tool.Opt("isolation", tool.Str("Where the agent works")),
		),
		Run: canned("has no agents in this session"),
	}
}

// notSimulated is a tool that clients see in the list and that has no effect
// here worth imitating.
func notSimulated(name string) tool.Tool {
	return tool.Tool{
		Name:        name,
		Description: "Listed for completeness; not simulated. Give calls a canned result.",
		Input:       tool.Schema{Type: "object", Open: true},
		Run:         canned("is not simulated"),
	}
}

// canned answers calls that only a scenario can.
func canned(why string) tool.Run {
	return func(_ context.Context, call protocol.ToolUse) tool.Result {
		return tool.Plain(tool.NeedsResult(call.Name, why))
	}
}
