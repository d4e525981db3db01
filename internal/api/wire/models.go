package wire

import (
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

// ModelInfo is an entry of the list of models.
type ModelInfo struct {
	Type         string       `json:"type"`
	ID           string       `json:"id"`
	DisplayName  string       `json:"display_name"`
	CreatedAt    string       `json:"created_at"`
	MaxInput     int          `json:"max_input_tokens"`
	MaxTokens    int          `json:"max_tokens"`
	Lifecycle    string       `json:"lifecycle"`
	Line         *string      `json:"line"`
	DeprecatedAt *string      `json:"deprecated_at"`
	RetiresAt    *string      `json:"retires_at"`
	Capabilities capabilities `json:"capabilities"`
	Fallbacks    []string     `json:"allowed_fallback_models"`
}

type support struct {
	Supported bool `json:"supported"`
}

type capabilities struct {
	Batch             support      `json:"batch"`
	Citations         support      `json:"citations"`
	CodeExecution     support      `json:"code_execution"`
	ContextManagement contextEdits `json:"context_management"`
	Effort            effort       `json:"effort"`
	ImageInput        support      `json:"image_input"`
	PDFInput          support      `json:"pdf_input"`
	ServerTools       serverTools  `json:"server_tools"`
	StructuredOutputs support      `json:"structured_outputs"`
	Thinking          thinking     `json:"thinking"`
}

type contextEdits struct {
	Supported     bool    `json:"supported"`
	ClearThinking support `json:"clear_thinking_20251015"`
	ClearToolUses support `json:"clear_tool_uses_20250919"`
	Compact       support `json:"compact_20260112"`
}

type effort struct {
	Supported bool    `json:"supported"`
	Low       support `json:"low"`
	Medium    support `json:"medium"`
	High      support `json:"high"`
	XHigh     support `json:"xhigh"`
	Max       support `json:"max"`
}

type serverTools struct {
	Supported     bool    `json:"supported"`
	CodeExecution support `json:"code_execution"`
	WebSearch     support `json:"web_search"`
}

type thinking struct {
	Supported bool          `json:"supported"`
	Types     thinkingTypes `json:"types"`
}

type thinkingTypes struct {
	Adaptive     support `json:"adaptive"`
	BetweenTools support `json:"between_tools"`
	Disabled     support `json:"disabled"`
	Enabled      support `json:"enabled"`
}

// ModelInfoFor describes any model; for an unknown one it uses the CLI's
// assumptions.
func ModelInfoFor(id string) ModelInfo {
	f, yes := claudecode.FactsOfModel(id), support{true}
	efforts := support{f.Effort}
	return ModelInfo{
		Type: "model", ID: id, DisplayName: "Claude " + claudecode.DisplayModel(claudecode.BareModel(id)), CreatedAt: "1970-01-01T00:00:00Z",
		MaxInput: f.ContextWindow, MaxTokens: f.MaxOutput, Lifecycle: "active", Line: modelFamily(id), Fallbacks: []string{},
		Capabilities: capabilities{
			Batch: yes, Citations: yes, CodeExecution: yes, ImageInput: yes, PDFInput: yes, StructuredOutputs: yes,
			ContextManagement: contextEdits{true, yes, yes, yes},
			Effort:            effort{f.Effort, efforts, efforts, efforts, efforts, efforts},
			ServerTools:       serverTools{true, yes, yes},
			Thinking:          thinking{true, thinkingTypes{yes, yes, yes, yes}},
		},
	}
}

// modelFamily returns the family of a model; nil = unknown.
func modelFamily(id string) *string {
	for _, line := range []string{"haiku", "sonnet", "opus", "fable"} {
		if strings.Contains(id, line) {
			return &line
		}
	}
	return nil
}

// ModelPage is a page of the list of models.
type ModelPage struct {
	Data    []ModelInfo `json:"data"`
	HasMore bool        `json:"has_more"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
}
