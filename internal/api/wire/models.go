package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

// ModelInfo is an entry of the list of models.
type ModelInfo struct {
	Type         string          `json:"type"`
	ID           string          `json:"id"`
	DisplayName  string          `json:"display_name"`
	CreatedAt    string          `json:"created_at"`
	MaxInput     int             `json:"max_input_tokens"`
	MaxTokens    int             `json:"max_tokens"`
	Lifecycle    string          `json:"lifecycle"`
	Line         *string         `json:"line"`
	DeprecatedAt *string         `json:"deprecated_at"`
	RetiresAt    *string         `json:"retires_at"`
	Capabilities json.RawMessage `json:"capabilities"`
	Fallbacks    []string        `json:"allowed_fallback_models"`
}

// capabilitiesFormat has the capabilities of every model. Only the support of efforts depends on the model.
const capabilitiesFormat = `{"batch":{"supported":true},"citations":{"supported":true},"code_execution":{"supported":true},` +
	`"context_management":{"supported":true,"clear_thinking_20251015":{"supported":true},"clear_tool_uses_20250919":{"supported":true},"compact_20260112":{"supported":true}},` +
	`"effort":{"supported":%[1]t,"low":{"supported":%[1]t},"medium":{"supported":%[1]t},"high":{"supported":%[1]t},"xhigh":{"supported":%[1]t},"max":{"supported":%[1]t}},` +
	`"image_input":{"supported":true},"pdf_input":{"supported":true},` +
	`"server_tools":{"supported":true,"code_execution":{"supported":true},"web_search":{"supported":true}},"structured_outputs":{"supported":true},` +
	`"thinking":{"supported":true,"types":{"adaptive":{"supported":true},"between_tools":{"supported":true},"disabled":{"supported":true},"enabled":{"supported":true}}}}`

// ModelInfoFor describes any model; for an unknown model it uses the same defaults as the CLI.
func ModelInfoFor(id string) ModelInfo {
	f := claudecode.FactsOfModel(id)
	return ModelInfo{
		Type: "model", ID: id, DisplayName: "Claude " + claudecode.ModelDisplayName(claudecode.CanonicalModelName(id)), CreatedAt: "1970-01-01T00:00:00Z",
		MaxInput: f.ContextWindow, MaxTokens: f.MaxOutput, Lifecycle: "active", Line: familyFoundInModelID(id), Fallbacks: []string{},
		Capabilities: json.RawMessage(fmt.Sprintf(capabilitiesFormat, f.EffortPerTurn)),
	}
}

func familyFoundInModelID(modelID string) (familyOrNil *string) {
	for _, line := range []string{"haiku", "sonnet", "opus", "fable"} {
		if strings.Contains(modelID, line) {
			return &line
		}
	}
	return nil
}

// ModelPage is the response to a request for a list of models. It contains one page of the list.
type ModelPage struct {
	Data    []ModelInfo `json:"data"`
	HasMore bool        `json:"has_more"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
}
