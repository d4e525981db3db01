package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/bash"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolStates contains the states of a session's tools. Tools that share a state use the same field.
type toolStates struct {
	files     *files.SeenFileTracker
	finder    *files.Finder
	commands  *bash.CommandRunner
	worktrees *worktreeSwitcher
	cron      *cronJobs
	todos     *todoList
	tasks     *checklist
	planMode  *planTools
	skills    Skills // nil means none
	answers   scriptedAnswers
}

func (f toolStates) allBuiltinToolsSortedByName() []tool.Tool {
	list := f.implementedTools()
	for _, t := range claudecode.Tools() {
		if t.Unsimulated {
			list = append(list, unsimulatedTool(t.Name))
		}
	}
	slices.SortFunc(list, func(a, b tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (f toolStates) implementedTools() []tool.Tool {
	startAgent := failingRun("cannot start agents in this session") // another executor runs sub-agents
	return slices.Concat(
		bash.Tools(f.commands), f.cron.tools(), f.worktrees.tools(), f.worktrees.restrictFileWritesToWorktree(files.Tools(f.files)),
		f.planMode.tools(), []tool.Tool{files.Glob(f.finder), files.Grep(f.finder)}, f.tasks.tools(), []tool.Tool{
			webFetchTool(), unsimulatedWebSearchTool(),
			skillTool(f.skills),
			{Name: "Agent", Run: startAgent},
			{Name: "Task", Run: startAgent},
			askUserQuestionTool(f.answers),
			{Name: "ReportFindings", Run: tool.TypedRun(struct{}{}, reportFindings)},
			{Name: "TodoWrite", Run: tool.TypedRun(f.todos, todoWrite)},
		},
	)
}

// replaceTaskStopAlias returns TaskStop for the older names of that tool. Other names are returned unchanged.
func replaceTaskStopAlias(name string) string {
	if t := claudecode.ToolNamed(name); t.Name == "TaskStop" {
		return t.Name
	}
	return name
}

// Definitions returns the definitions of all built-in tools, sorted by name.
func Definitions() []protocol.Tool {
	tools := toolStates{}.allBuiltinToolsSortedByName()
	out := make([]protocol.Tool, len(tools))
	for i, t := range tools {
		out[i] = t.Definition()
	}
	return out
}

// ReadOnlyCall reports whether a call may run in parallel with others: its tool only reads, or it is a Bash command
// that only reads. The function does not know MCP tools, which declare this in [protocol.Tool.ReadOnly].
func ReadOnlyCall(use protocol.ToolUse) bool {
	return use.Name == "Bash" && bash.IsReadOnly(use.Input) || claudecode.ToolNamed(use.Name).ReadOnly
}

// ContentFromHookOutput returns the text that the model receives if a hook replaced the output of a tool. It returns false for
// tools other than Bash, and if the output does not have the structure of Bash output.
func ContentFromHookOutput(name string, output json.RawMessage) (bashText protocol.Content, isBashOutput bool) {
	if name != "Bash" {
		return protocol.Content{}, false
	}
	return bash.ModelTextFromHookOutput(output)
}

// ShapeResult returns a successful result with a canned text. For some tools it adds the structured output of the real
// tool. Values that the text does not contain, such as durations, get a default (spec: cli-contract 9.8).
func ShapeResult(call protocol.ToolUse, cannedText string) (resultWithStructuredOutput protocol.ToolResult) {
	r := tool.TextResult(cannedText, nil)
	switch call.Name {
	case "Bash":
		return bash.PrintedResult(cannedText)
	case "WebFetch":
		in, _ := tool.Decode[struct{ URL string }](call.Input)
		r.Output = struct {
			Bytes      int    `json:"bytes"`
			Code       int    `json:"code"`
			CodeText   string `json:"codeText"`
			Result     string `json:"result"`
			DurationMS int    `json:"durationMs"`
			URL        string `json:"url"`
		}{len(cannedText), 200, "OK", cannedText, 0, in.URL}
	case "WebSearch":
		in, _ := tool.Decode[struct{ Query string }](call.Input)
		r.Output = struct {
			Query    string   `json:"query"`
			Results  []string `json:"results"`
			Duration float64  `json:"durationSeconds"`
		}{in.Query, []string{cannedText}, 0}
	}
	return r
}

func unsimulatedTool(name string) tool.Tool {
	t := tool.Tool{Name: name, Run: failingRun("is not simulated")}
	if name == "SendMessage" {
		t.Prepare = addRecipientAndContentKeys
		t.Check = func(_ context.Context, raw json.RawMessage) *protocol.ToolResult {
			var in struct{ To, Message string }
			switch err := json.Unmarshal(raw, &in); {
			case err == nil && in.To == "*":
				return new(tool.Refuse(`broadcast (to: "*") is no longer supported — send a message per recipient`))
			case err == nil && in.Message == "":
				return new(tool.Refuse("message must not be empty"))
			}
			return nil
		}
	}
	return t
}

// addRecipientAndContentKeys adds the keys "type", "recipient", "recipient_kind" and "content", which the real CLI derives from
// the keys "to" and "message". If "to" or "message" is not a string, it adds nothing and returns false.
func addRecipientAndContentKeys(sendMessageInput *tool.OrderedObject) (hasAddedKeys bool) {
	var to, text string
	if json.Unmarshal(sendMessageInput.Get("to"), &to) != nil || json.Unmarshal(sendMessageInput.Get("message"), &text) != nil {
		return false
	}
	kind := "name"
	if to == "main" {
		kind = "main"
	}
	for _, add := range [][2]string{{"type", "message"}, {"recipient", to}, {"recipient_kind", kind}, {"content", text}} {
		*sendMessageInput = sendMessageInput.Set(add[0], tool.Quote(add[1]))
	}
	return true
}

// failingRun returns a Run that always fails, for a tool whose calls can only get their results from the scenario.
func failingRun(reason string) tool.Run {
	return func(_ context.Context, call protocol.ToolUse) tool.Result {
		return tool.ResultWithoutEvents(tool.FailUnsimulated(call.Name, reason))
	}
}
