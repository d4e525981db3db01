package messages

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
)

// countTokens answers POST /v1/messages/count_tokens, by the estimate that usage
// is made of.
func (x *exchange) countTokens() {
	r, _, err := x.read(true)
	if err != nil {
		x.failed(err)
		return
	}
	n := len(r.system) + len(r.tools.raw)
	for _, m := range r.raw {
		n += len(m)
	}
	x.headers("")
	x.json(http.StatusOK, struct {
		InputTokens int `json:"input_tokens"`
	}{scenarios.Tokens(n)})
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.namespace, Session: x.session, Kind: "count_tokens", Path: x.path, Model: r.model, Status: x.status, MS: x.ms(),
	})
}

// modelInfo is a model of the list.
type modelInfo struct {
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

// infoOf describes any model: of one that nobody knows, what the CLI assumes.
func infoOf(id string) modelInfo {
	f, yes := model.Of(id), support{true}
	efforts := support{f.Effort}
	return modelInfo{
		Type: "model", ID: id, DisplayName: "Claude " + model.Display(model.Bare(id)), CreatedAt: "1970-01-01T00:00:00Z",
		MaxInput: f.ContextWindow, MaxTokens: f.MaxOutput, Lifecycle: "active", Line: lineOf(id), Fallbacks: []string{},
		Capabilities: capabilities{
			Batch: yes, Citations: yes, CodeExecution: yes, ImageInput: yes, PDFInput: yes, StructuredOutputs: yes,
			ContextManagement: contextEdits{true, yes, yes, yes},
			Effort:            effort{f.Effort, efforts, efforts, efforts, efforts, efforts},
			ServerTools:       serverTools{true, yes, yes},
			Thinking:          thinking{true, thinkingTypes{yes, yes, yes, yes}},
		},
	}
}

// lineOf is the family of a model; nil = none of the known ones.
func lineOf(id string) *string {
	for _, line := range []string{"haiku", "sonnet", "opus", "fable"} {
		if strings.Contains(id, line) {
			return &line
		}
	}
	return nil
}

// modelPage is a page of the list of models.
type modelPage struct {
	Data    []modelInfo `json:"data"`
	HasMore bool        `json:"has_more"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
}

// models answers GET /v1/models.
func (x *exchange) models() {
	query := x.r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			x.refuse(invalid("limit", "Input should be between 1 and 1000"))
			return
		}
		limit = n
	}
	var all []string
	for _, f := range model.Known() {
		all = append(all, f.Name)
	}
	from, to := 0, len(all)
	if at := slices.Index(all, query.Get("after_id")); at >= 0 {
		from = at + 1
	}
	if at := slices.Index(all, query.Get("before_id")); at >= 0 {
		to = max(from, at)
		from = max(from, to-limit)
	}
	page := modelPage{Data: []modelInfo{}}
	for _, id := range all[from:min(to, from+limit)] {
		page.Data = append(page.Data, infoOf(id))
	}
	page.HasMore = from+len(page.Data) < to
	if query.Get("before_id") != "" {
		page.HasMore = from > 0
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	x.side("models", func() { x.json(http.StatusOK, page) })
}

// model answers GET /v1/models/{id}; any model is there.
func (x *exchange) model(id string) {
	x.side("models", func() { x.json(http.StatusOK, infoOf(id)) })
}
