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

type capability struct {
	Supported bool `json:"supported"`
}

type capabilities struct {
	Batch             capability            `json:"batch"`
	Citations         capability            `json:"citations"`
	CodeExecution     capability            `json:"code_execution"`
	ContextManagement contextEditCapability `json:"context_management"`
	Effort            effortCapability      `json:"effort"`
	ImageInput        capability            `json:"image_input"`
	PDFInput          capability            `json:"pdf_input"`
	ServerTools       serverToolCapability  `json:"server_tools"`
	StructuredOutputs capability            `json:"structured_outputs"`
	Thinking          thinkingCapability    `json:"thinking"`
}

type contextEditCapability struct {
	Supported     bool       `json:"supported"`
	ClearThinking capability `json:"clear_thinking_20251015"`
	ClearToolUses capability `json:"clear_tool_uses_20250919"`
	Compact       capability `json:"compact_20260112"`
}

type effortCapability struct {
	Supported bool       `json:"supported"`
	Low       capability `json:"low"`
	Medium    capability `json:"medium"`
	High      capability `json:"high"`
	XHigh     capability `json:"xhigh"`
	Max       capability `json:"max"`
}

type serverToolCapability struct {
	Supported     bool       `json:"supported"`
	CodeExecution capability `json:"code_execution"`
	WebSearch     capability `json:"web_search"`
}

type thinkingCapability struct {
	Supported bool          `json:"supported"`
	Types     thinkingTypes `json:"types"`
}

type thinkingTypes struct {
	Adaptive     capability `json:"adaptive"`
	BetweenTools capability `json:"between_tools"`
	Disabled     capability `json:"disabled"`
	Enabled      capability `json:"enabled"`
}

// ModelInfoFor describes any model; for an unknown model it uses the same defaults as the CLI.
func ModelInfoFor(id string) ModelInfo {
	f, yes := claudecode.FactsOfModel(id), capability{true}
	efforts := capability{f.EffortPerTurn}
	return ModelInfo{
		Type: "model", ID: id, DisplayName: "Claude " + claudecode.DisplayModel(claudecode.BareModel(id)), CreatedAt: "1970-01-01T00:00:00Z",
		MaxInput: f.ContextWindow, MaxTokens: f.MaxOutput, Lifecycle: "active", Line: modelFamily(id), Fallbacks: []string{},
		Capabilities: capabilities{
			Batch: yes, Citations: yes, CodeExecution: yes, ImageInput: yes, PDFInput: yes, StructuredOutputs: yes,
			ContextManagement: contextEditCapability{true, yes, yes, yes},
			Effort:            effortCapability{f.EffortPerTurn, efforts, efforts, efforts, efforts, efforts},
			ServerTools:       serverToolCapability{true, yes, yes},
			Thinking:          thinkingCapability{true, thinkingTypes{yes, yes, yes, yes}},
		},
	}
}

// modelFamily returns the family of a model; nil means unknown.
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
