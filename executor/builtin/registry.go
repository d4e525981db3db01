package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/internal/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// tool is one built-in tool.
type tool struct {
	name, description string
	readOnly          bool
	input             schema
	run               func(context.Context, *Tools, protocol.ToolUse) executor.Result
	// check finds out before permissions are asked whether a well-formed call
	// is impossible; nil = never.
	check func(context.Context, *Tools, json.RawMessage) *protocol.ToolResult
	// prepare changes an input before anybody sees it and reports whether it
	// did; nil = never.
	prepare func(*ordered.Object) bool
}

// all lists the tools by name.
func all() []tool {
	return []tool{
		agentTool("Agent"),
		askUserQuestionTool(),
		bashTool(),
		cronCreateTool(),
		cronDeleteTool(),
		cronListTool(),
		editTool(),
		enterPlanModeTool(),
		enterWorktreeTool(),
		exitPlanModeTool(),
		exitWorktreeTool(),
		globTool(),
		grepTool(),
		notSimulated("ListAgents"),
		monitorTool(),
		notebookEditTool(),
		readTool(),
		reportFindingsTool(),
		scheduleWakeupTool(),
		notSimulated("SendMessage"),
		skillTool(),
		agentTool("Task"),
		taskCreateTool(),
		taskGetTool(),
		taskListTool(),
		taskStopTool(),
		taskUpdateTool(),
		todoWriteTool(),
		notSimulated("ToolSearch"),
		webFetchTool(),
		webSearchTool(),
		notSimulated("Workflow"),
		writeTool(),
	}
}

func byName() map[string]tool {
	tools := all()
	m := make(map[string]tool, len(tools))
	for _, t := range tools {
		m[t.name] = t
	}
	return m
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
	tools := all()
	out := make([]protocol.Tool, len(tools))
	for i, t := range tools {
		out[i] = t.definition()
	}
	return out
}

func (t tool) definition() protocol.Tool {
	return protocol.Tool{
		Name: t.name, Description: t.description, InputSchema: t.input.appendJSON(nil), ReadOnly: t.readOnly,
	}
}

// typed makes the run function of a tool from one that takes the decoded input.
func typed[In any](f func(context.Context, *Tools, In) protocol.ToolResult) func(context.Context, *Tools, protocol.ToolUse) executor.Result {
	return traced(func(ctx context.Context, t *Tools, in In) executor.Result { return executor.Plain(f(ctx, t, in)) })
}

// traced is typed for tools that show more than their result.
func traced[In any](f func(context.Context, *Tools, In) executor.Result) func(context.Context, *Tools, protocol.ToolUse) executor.Result {
	return func(ctx context.Context, t *Tools, call protocol.ToolUse) executor.Result {
		in, err := decode[In](call.Input)
		if err != nil {
			return executor.Plain(refuse("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))
		}
		return f(ctx, t, in)
	}
}

// plain makes the run function of a tool from one that takes the call as it is.
func plain(f func(context.Context, *Tools, protocol.ToolUse) protocol.ToolResult) func(context.Context, *Tools, protocol.ToolUse) executor.Result {
	return func(ctx context.Context, t *Tools, call protocol.ToolUse) executor.Result {
		return executor.Plain(f(ctx, t, call))
	}
}

// typedCheck is typed for check functions.
func typedCheck[In any](f func(*Tools, In) *protocol.ToolResult) func(context.Context, *Tools, json.RawMessage) *protocol.ToolResult {
	return func(_ context.Context, t *Tools, raw json.RawMessage) *protocol.ToolResult {
		in, err := decode[In](raw)
		if err != nil {
			return nil // validation has the words for it
		}
		return f(t, in)
	}
}

// ReadOnlyCall says that the call may run beside its neighbours: it is one of
// a tool that only reads, or a Bash command that does. MCP tools tell for
// themselves ([protocol.Tool.ReadOnly]).
func ReadOnlyCall(use protocol.ToolUse) bool {
	switch use.Name {
	case "Read", "Glob", "Grep", "TaskGet", "TaskList", "WebFetch", "WebSearch":
		return true
	case "Bash":
		in, err := decode[bashInput](use.Input)
		if err != nil || in.RunInBackground {
			return false
		}
		script, err := shellcmd.Parse(in.Command)
		return err == nil && script.ReadOnly()
	}
	return false
}

// notSimulated is a tool that clients see in the list and that has no effect
// here worth imitating.
func notSimulated(name string) tool {
	return tool{
		name:        name,
		description: "Listed for completeness; not simulated. Give calls a canned result.",
		input:       schema{Type: "object", Open: true},
		run: plain(func(_ context.Context, _ *Tools, call protocol.ToolUse) protocol.ToolResult {
			return needsResult(call.Name, "is not simulated")
		}),
	}
}

func needsResult(name, why string) protocol.ToolResult {
	return fail("%s %s. Give the call a result in the scenario: `result = \"…\"` on the tool call, or `[tool_execution.tools.%[1]s] result = \"…\"`.", name, why)
}

// Shape gives a canned text the structure a real result of the tool has, where
// the text determines it (spec: cli-contract 9.8).
func Shape(call protocol.ToolUse, s string) protocol.ToolResult {
	r := text(s, nil)
	switch call.Name {
	case "Bash":
		r.ExplicitOK = true
		r.Output = bashOutput{Stdout: s}
	case "WebFetch":
		in, _ := decode[struct{ URL string }](call.Input)
		r.Output = struct {
			Bytes      int    `json:"bytes"`
			Code       int    `json:"code"`
			CodeText   string `json:"codeText"`
			Result     string `json:"result"`
			DurationMS int    `json:"durationMs"`
			URL        string `json:"url"`
		}{len(s), 200, "OK", s, 0, in.URL}
	case "WebSearch":
		in, _ := decode[struct{ Query string }](call.Input)
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
func agentTool(name string) tool {
	return tool{
		name:        name,
		description: "Starts an agent that works on a task of its own and reports back.",
		input: object(
			req("description", str("The task in three to five words")),
			req("prompt", str("What the agent is to do")),
			opt("subagent_type", str("The kind of agent")),
			opt("model", str("The model of the agent")),
			opt("effort", str("The effort of the agent")),
			opt("run_in_background", boolean("Do not wait for the agent")),
			opt("name", str("A name for the agent")),
			opt("team_name", str("The team that the agent joins")),
			opt("mode", str("The permission mode of the agent")),
			opt("isolation", str("Where the agent works")),
		),
		run: plain(func(_ context.Context, _ *Tools, call protocol.ToolUse) protocol.ToolResult {
			return needsResult(call.Name, "has no agents in this session")
		}),
	}
}

type stopInput struct {
	TaskID  string `json:"task_id"`
	ShellID string `json:"shell_id"`
}

func taskStopTool() tool {
	return tool{
		name:        "TaskStop",
		description: "Ends a task in the background.",
		input:       object(opt("task_id", str("The task")), opt("shell_id", str("The task, as older clients call it"))),
		check: typedCheck(func(t *Tools, in stopInput) *protocol.ToolResult {
			_, refusal := t.running(in)
			return refusal
		}),
		run: typed(taskStop),
	}
}

// running finds the task to stop, or says why there is none.
func (t *Tools) running(in stopInput) (task.Info, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Info, *protocol.ToolResult) {
		r := refuse(format, args...)
		return task.Info{}, &r
	}
	id := cmp.Or(in.TaskID, in.ShellID)
	if id == "" {
		return no("Missing required parameter: task_id")
	}
	if t.o.Tasks == nil {
		return no("No task found with ID: %s", id)
	}
	info, found := t.o.Tasks.Find(id)
	if !found {
		return no("No task found with ID: %s", id)
	}
	return info, nil
}

func taskStop(_ context.Context, t *Tools, in stopInput) protocol.ToolResult {
	info, refusal := t.running(in)
	if refusal != nil {
		return *refusal
	}
	if !t.o.Tasks.Stop(info.ID, task.ByParent) {
		return refuse("Task %s is not running", info.ID)
	}
	what := info.Command
	if what == "" {
		what = info.Description
	}
	message := fmt.Sprintf("Successfully stopped task: %s (%s)", info.ID, what)
	return text(message, struct {
		Message string    `json:"message"`
		TaskID  string    `json:"task_id"`
		Type    task.Kind `json:"task_type"`
		Command string    `json:"command,omitempty"`
	}{message, info.ID, info.Kind, info.Command})
}

// Skill is a loaded skill: what the model reads, and what it may do unasked from
// there on.
type Skill struct {
	Text  string
	Tools []string
}

type skillInput struct {
	Skill string `json:"skill"`
	Args  string `json:"args"`
}

func skillTool() tool {
	return tool{
		name:        "Skill",
		description: "Loads a skill: instructions for a kind of work.",
		input:       schema{Type: "object", Open: true, Props: []prop{req("skill", str("Name of the skill")), opt("args", str("Arguments"))}},
		run:         traced(skill),
		check: typedCheck(func(t *Tools, in skillInput) *protocol.ToolResult {
			if t.o.CheckSkill == nil {
				return nil
			}
			if err := t.o.CheckSkill(in.Skill); err != nil {
				r := refuse("%v", err)
				return &r
			}
			return nil
		}),
	}
}

// skill answers with a line and puts the skill's text into the conversation
// behind it.
func skill(ctx context.Context, t *Tools, in skillInput) executor.Result {
	loaded, err := Skill{}, errors.New("Unknown skill: "+in.Skill)
	if t.o.Skill != nil {
		loaded, err = t.o.Skill(ctx, in.Skill, in.Args)
	}
	if err != nil {
		return executor.Plain(refuse("%v", err))
	}
	r := executor.Plain(text("Launching skill: "+in.Skill, struct {
		Success bool     `json:"success"`
		Name    string   `json:"commandName"`
		Tools   []string `json:"allowedTools,omitempty"`
	}{true, in.Skill, loaded.Tools}))
	r.After = append(r.After, &protocol.User{
		Message:     protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(loaded.Text)}}},
		IsSynthetic: true,
	})
	return r
}
