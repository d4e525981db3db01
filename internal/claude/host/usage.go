package host

import (
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

type getUsageAnswer struct {
	Behaviors        *struct{}    `json:"behaviors"` // unknown and therefore null, like rate_limits and subscription_type
	RateLimits       *struct{}    `json:"rate_limits"`
	LimitsAvailable  bool         `json:"rate_limits_available"`
	Session          sessionUsage `json:"session"`
	SubscriptionType *string      `json:"subscription_type"`
}

type sessionUsage struct {
	Models       map[string]protocol.ModelUsage `json:"model_usage"`
	APIMS        int                            `json:"total_api_duration_ms"`
	CostUSD      float64                        `json:"total_cost_usd"`
	WallMS       int                            `json:"total_duration_ms"`
	LinesAdded   int                            `json:"total_lines_added"`
	LinesRemoved int                            `json:"total_lines_removed"`
}

// usageAnswerFor returns the usage up to the end of the last turn.
func usageAnswerFor(s *session.Session) getUsageAnswer {
	cost := s.CostUntilLastTurnEnd()
	models := map[string]protocol.ModelUsage{}
	if last := s.LastResult(); last != nil {
		models = last.ModelUsage
	}
	return getUsageAnswer{Session: sessionUsage{Models: models, APIMS: cost.APIMS, CostUSD: cost.USD, WallMS: cost.WallMS, LinesAdded: cost.LinesAdded, LinesRemoved: cost.LinesRemoved}}
}

// usageCategory is one kind of context usage in get_context_usage.
type usageCategory struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Color  string `json:"color"`
	Kind   string `json:"kind"` // used, deferred, buffer, free

	IsDeferred bool `json:"isDeferred,omitempty"`
}

type usageSquare struct {
	Color      string  `json:"color"`
	IsFilled   bool    `json:"isFilled"`
	Category   string  `json:"categoryName"`
	Tokens     int     `json:"tokens"`
	Percentage int     `json:"percentage"`
	Fullness   float64 `json:"squareFullness"` // 0 to 1
}

// contextUsage is the answer to get_context_usage (spec: cli-contract 4.3).
type contextUsage struct {
	Agents           []contextUsageItem      `json:"agents"`
	APIUsage         *slash.ReplyUsage       `json:"apiUsage"`                       // nil means that no request got a reply
	CompactThreshold int                     `json:"autoCompactThreshold,omitempty"` // 0 means automatic compaction is off
	CompactSource    string                  `json:"autocompactSource"`
	Categories       []usageCategory         `json:"categories"`
	Grid             [][]usageSquare         `json:"gridRows"`
	CompactEnabled   bool                    `json:"isAutoCompactEnabled"`
	MaxTokens        int                     `json:"maxTokens"`
	MCPInstructions  []contextUsageItem      `json:"mcpInstructions"`
	MCPTools         []contextUsageItem      `json:"mcpTools"`
	MemoryFiles      []slash.MemoryFile      `json:"memoryFiles"`
	Breakdown        json.RawMessage         `json:"messageBreakdown"`
	Model            string                  `json:"model"`
	Percentage       int                     `json:"percentage"`
	RawMaxTokens     int                     `json:"rawMaxTokens"`
	Skills           *contextUsageOfSkills   `json:"skills,omitempty"` // nil means that the model has no tools
	Commands         *contextUsageOfCommands `json:"slashCommands,omitempty"`
	TotalTokens      int                     `json:"totalTokens"`
}

// contextUsageItem is a server, a tool, an agent or a skill in get_context_usage. Each kind has its own set of keys.
type contextUsageItem struct {
	AgentType string `json:"agentType,omitempty"`
	Name      string `json:"name,omitempty"`
	Path      string `json:"path,omitempty"`
	Server    string `json:"serverName,omitempty"`
	Source    string `json:"source,omitempty"`
	Tokens    int    `json:"tokens"`
	Loaded    *bool  `json:"isLoaded,omitempty"`
}

type contextUsageOfSkills struct {
	Included int                `json:"includedSkills"`
	Skills   []contextUsageItem `json:"skillFrontmatter"`
	Tokens   int                `json:"tokens"`
	Total    int                `json:"totalSkills"`
}

type contextUsageOfCommands struct {
	Included int `json:"includedCommands"`
	Tokens   int `json:"tokens"`
	Total    int `json:"totalCommands"`
}

// emptyMessageBreakdown lists tokens by kind of message. All are zero, because a simulation does not distinguish the kinds.
const emptyMessageBreakdown = `{"assistantMessageTokens":0,"attachmentTokens":0,"attachmentsByType":[],"redirectedContextTokens":0,"toolCallTokens":0,"toolCallsByType":[],"toolResultTokens":0,"unattributedTokens":0,"userMessageTokens":0}`

func contextUsageFor(s *session.Session) contextUsage {
	c := s.ContextUsage()
	out := contextUsage{
		Agents: []contextUsageItem{}, CompactThreshold: c.MaxTokens - slash.CompactBufferTokens + max(0, 20_000-claudecode.FactsOfModel(c.Model).MaxOutput), CompactSource: "model-default", CompactEnabled: !c.Window.NoAutoCompact,
		Categories: []usageCategory{}, MaxTokens: c.MaxTokens, MCPInstructions: []contextUsageItem{}, MCPTools: contextUsageOfMCPTools(s, c.MCPTools), MemoryFiles: c.MemoryFiles,
		Breakdown: json.RawMessage(emptyMessageBreakdown), Model: c.Model, Percentage: c.Percentage, Grid: contextUsageGrid(c),
		RawMaxTokens: c.MaxTokens, TotalTokens: c.TotalTokens, APIUsage: c.LastReply,
	}
	switch {
	case c.Window.NoAutoCompact:
		out.CompactThreshold, out.CompactSource = 0, "auto"
	case c.Window.HasNoBuffer:
		out.CompactSource = "auto"
	case c.Window.IsRequested:
		out.CompactSource = "settings"
	}
	for _, k := range c.Categories {
		color, _ := k.Color()
		out.Categories = append(out.Categories, usageCategory{ID: k.ID(), Name: k.Name, Tokens: k.Tokens, Color: color, Kind: k.Kind, IsDeferred: k.Kind == "deferred"})
	}
	for _, a := range c.Agents {
		out.Agents = append(out.Agents, contextUsageItem{AgentType: a.Type, Path: a.Path, Source: a.Source, Tokens: a.Tokens})
	}
	for _, i := range c.MCPInstructions {
		out.MCPInstructions = append(out.MCPInstructions, contextUsageItem{Server: i.Name, Tokens: i.Tokens})
	}
	if n := len(c.Skills); n > 0 {
		out.Skills, out.Commands = &contextUsageOfSkills{Included: n, Total: n}, &contextUsageOfCommands{n, claudecode.CommandListTokens, n}
		for _, k := range c.Skills {
			out.Skills.Tokens += k.Tokens
			out.Skills.Skills = append(out.Skills.Skills, contextUsageItem{Name: k.Name, Path: k.Path, Source: k.Source, Tokens: k.Tokens})
		}
	}
	return out
}

func contextUsageOfMCPTools(s *session.Session, toolItems []slash.UsageItem) []contextUsageItem {
	list := []contextUsageItem{}
	for _, i := range toolItems {
		list = append(list, contextUsageItem{Name: i.Name, Server: i.Server, Tokens: i.Tokens, Loaded: new(slices.ContainsFunc(s.ServerStatuses(), func(st mcp.ServerStatus) bool { return st.Name == i.Server && st.Config.AlwaysLoad }))})
	}
	return list
}

// contextUsageGrid returns the squares of the chart, as on a wide terminal.
func contextUsageGrid(c slash.ContextUsage) (rows [][]usageSquare) {
	const terminalCols = 80
	for _, squares := range c.Squares(terminalCols) {
		var row []usageSquare
		for _, s := range squares {
			color, _ := s.Color()
			row = append(row, usageSquare{color, true, s.Name, s.Tokens, (s.Tokens*200/max(1, c.MaxTokens) + 1) / 2, s.Fullness})
		}
		rows = append(rows, row)
	}
	return rows
}
