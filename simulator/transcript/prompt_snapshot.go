package transcript

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// promptSnapshot is the attachment that records the system prompt and, after the first reply, also the tools.
type (
	promptSnapshot struct {
		Type         string   `json:"type"` // "prompt_snapshot"
		SystemPrompt []string `json:"systemPrompt"`
		*snapshotToolsAndIntroduction
		ReminderFold bool `json:"reminderFold"`
		*snapshotFlags
		EchoInputs       bool   `json:"echoWireToolInputs"`
		ContextRendering string `json:"contextRendering"`
	}
	snapshotToolsAndIntroduction struct {
		Tools              []promptSnapshotTool `json:"tools"`
		SystemIntroduction string               `json:"cliPrefix"`
	}
	snapshotFlags struct {
		SystemTurns      bool `json:"systemTurns"`
		ToolChangeHeader bool `json:"toolChangeHeader"`
		InlineTools      bool `json:"inlineTools"`
		KeptReminders    bool `json:"keptReminders"`
	}
	promptSnapshotTool struct {
		Name        string               `json:"name"`
		Description string               `json:"description"`
		Schema      protocol.RequestTool `json:"schema"`
	}
)

const (
	systemPromptIntroduction     = "You are a scripted model."
	systemPromptText             = "Answer as the scenario says."
	deferredToolsPlaceholderName = "DeferredToolPlaceholder"
)

func requestShape(now RequestContext) protocol.RequestShape {
	shape := protocol.RequestShape{System: []protocol.TextBlock{protocol.Text(systemPromptIntroduction), protocol.Text(systemPromptText)}, Tools: requestTools(now.Tools)}
	if now.VendorAPI {
		shape.System = append(shape.System, protocol.Text(systemPromptText))
	}
	if now.Placeholder {
		placeholder := protocol.RequestTool{Name: deferredToolsPlaceholderName, Description: "Stands for the tools that ToolSearch loads.", InputSchema: json.RawMessage(anyObjectInputSchema), DeferLoading: true}
		shape.Tools = slices.Insert(shape.Tools, max(len(shape.Tools)-1, 0), placeholder)
	}
	return shape
}

const anyObjectInputSchema = `{"type":"object"}`

func requestTools(list []protocol.Tool) []protocol.RequestTool {
	var tools []protocol.RequestTool
	for _, t := range list {
		schema := t.InputSchema
		if schema == nil {
			schema = json.RawMessage(anyObjectInputSchema)
		}
		tools = append(tools, protocol.RequestTool{Name: t.Name, Description: cmp.Or(t.Description, "The tool "+t.Name+"."), InputSchema: schema})
	}
	return tools
}
