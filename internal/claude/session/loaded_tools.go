package session

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// loadedTools contains the deferred tools whose schemas the model has received, from ToolSearch or in the error of a call.
// The value of each tool is the Round of the [protocol.ToolUse] with which the model received the schema.
type loadedTools struct{ sync.Map }

type loadedTool struct{ agentID, name string }

// newLoadedTools returns the tools that the main conversation had loaded before it was resumed.
func newLoadedTools(history []transcript.Message) *loadedTools {
	l, names := &loadedTools{}, regexp.MustCompile(`select:(mcp__[^\\",]+)\\"|"tool_name":"([^"]+)"`)
	for _, m := range history {
		text, _ := json.Marshal(m.Content) // it was read from JSON
		for _, name := range names.FindAllStringSubmatch(string(text), -1) {
			l.Store(loadedTool{name: name[1] + name[2]}, 0)
		}
	}
	return l
}

func (l *loadedTools) markLoaded(call protocol.ToolUse, names ...string) {
	for _, name := range names {
		l.LoadOrStore(loadedTool{call.CallerAgentID(), name}, call.Round)
	}
}

// setOrClearUnsentSchema adds the schema of a deferred tool to the result of a failed call, unless the model had it when it wrote the call.
func (t *toolbox) setOrClearUnsentSchema(call protocol.ToolUse, def protocol.Tool, result *protocol.ToolResult) {
	var schema bytes.Buffer
	round, isLoaded := t.loadedTools.Load(loadedTool{call.CallerAgentID(), call.Name})
	if result.UnsentSchema = nil; t.servers.isSearchable(def) && (!isLoaded || round == call.Round) && json.Compact(&schema, def.InputSchema) == nil {
		result.UnsentSchema = schema.Bytes()
	}
}

// runCallAndRecordLoadedTools runs a call and records the schemas that the model then has: those that ToolSearch finds, and the one in the
// error of an MCP call. If the model already had this one, it is removed from the error.
func (t *toolbox) runCallAndRecordLoadedTools(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
	result, err := next.Execute(ctx, call)
	if found, isSearch := result.Output.(executor.ToolSearchOutput); isSearch {
		t.loadedTools.markLoaded(call, found.Matches...)
	}
	if def, known := t.servers.findTool(call.Name); known && result.UnsentSchema != nil {
		t.setOrClearUnsentSchema(call, def, &result.ToolResult)
		t.loadedTools.markLoaded(call, call.Name)
	}
	if file := t.builtinToolsForCaller(call).TargetFile(call); file != "" && err == nil && !result.IsError {
		result.EventsBefore = append(result.EventsBefore, t.skills.activateForFile(t.options.CWD, file)...)
	}
	return result, err
}
