package host

import (
	"strings"

	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

type usageAnswer struct {
	Behaviors        *struct{}    `json:"behaviors"` // always null, like rate_limits and subscription_type, because the value is unknown
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

// usageFor returns the usage up to the end of the last turn.
func usageFor(s *session.Session) usageAnswer {
	cost := s.Cost()
	models := map[string]protocol.ModelUsage{}
	if last := s.LastResult(); last != nil {
		models = last.ModelUsage
	}
	return usageAnswer{Session: sessionUsage{Models: models, APIMS: cost.APIMS, CostUSD: cost.USD, WallMS: cost.WallMS, LinesAdded: cost.LinesAdded, LinesRemoved: cost.LinesRemoved}}
}

// usageCategory is one kind of context usage in get_context_usage.
type usageCategory struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Color  string `json:"color"`
	Kind   string `json:"kind"` // used, buffer, free
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
	Agents           []agentContextUsage   `json:"agents"`
	APIUsage         *requestUsage         `json:"apiUsage"`                       // nil means that no turn has finished
	CompactThreshold int                   `json:"autoCompactThreshold,omitempty"` // 0 means automatic compaction is off
	CompactSource    string                `json:"autocompactSource"`
	Categories       []usageCategory       `json:"categories"`
	Grid             [][]usageSquare       `json:"gridRows"`
	CompactEnabled   bool                  `json:"isAutoCompactEnabled"`
	MaxTokens        int                   `json:"maxTokens"`
	MCPInstructions  []struct{}            `json:"mcpInstructions"`
	MCPTools         []mcpToolContextUsage `json:"mcpTools"`
	MemoryFiles      []slash.MemoryFile    `json:"memoryFiles"`
	Breakdown        messageBreakdown      `json:"messageBreakdown"`
	Model            string                `json:"model"`
	Percentage       int                   `json:"percentage"`
	RawMaxTokens     int                   `json:"rawMaxTokens"`
	Skills           skillUsage            `json:"skills"`
	Commands         commandUsage          `json:"slashCommands"`
	TotalTokens      int                   `json:"totalTokens"`
}

// requestUsage is the usage of the last turn's requests, in tokens.
type requestUsage struct {
	Input         int `json:"input_tokens"`
	Output        int `json:"output_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
}

type agentContextUsage struct {
	Type   string `json:"agentType"`
	Source string `json:"source"`
	Tokens int    `json:"tokens"`
}

type mcpToolContextUsage struct {
	Name   string `json:"name"`
	Server string `json:"serverName"`
	Tokens int    `json:"tokens"`
	Loaded bool   `json:"isLoaded"`
}

type skillUsage struct {
	Included int               `json:"includedSkills"`
	Skills   []slash.UsageItem `json:"skillFrontmatter"`
	Tokens   int               `json:"tokens"`
	Total    int               `json:"totalSkills"`
}

type commandUsage struct {
	Included int `json:"includedCommands"`
	Tokens   int `json:"tokens"`
	Total    int `json:"totalCommands"`
}

// messageBreakdown counts tokens by kind of message. It stays zero because a simulation does not distinguish them.
type messageBreakdown struct {
	Assistant         int        `json:"assistantMessageTokens"`
	Attachments       int        `json:"attachmentTokens"`
	AttachmentsByType []struct{} `json:"attachmentsByType"`
	Redirected        int        `json:"redirectedContextTokens"`
	ToolCalls         int        `json:"toolCallTokens"`
	ToolCallsByType   []struct{} `json:"toolCallsByType"`
	ToolResults       int        `json:"toolResultTokens"`
	Unattributed      int        `json:"unattributedTokens"`
	User              int        `json:"userMessageTokens"`
}

func contextUsageFor(s *session.Session) contextUsage {
	c := s.ContextUsage()
	out := contextUsage{
		Agents: []agentContextUsage{}, CompactThreshold: c.MaxTokens - slash.CompactBufferTokens, CompactSource: "model-default", CompactEnabled: !c.Window.NoAutoCompact,
		Categories: []usageCategory{}, MaxTokens: c.MaxTokens, MCPInstructions: []struct{}{}, MCPTools: contextUsageOfMCPTools(s, c.MCPTools), MemoryFiles: c.MemoryFiles,
		Breakdown: messageBreakdown{AttachmentsByType: []struct{}{}, ToolCallsByType: []struct{}{}}, Model: c.Model, Percentage: c.Percentage,
		RawMaxTokens: c.MaxTokens, Skills: skillUsage{Included: len(c.Skills), Skills: c.Skills, Total: len(c.Skills)},
		Commands: commandUsage{Included: len(c.Skills), Total: len(c.Skills)}, TotalTokens: c.TotalTokens,
	}
	switch {
	case c.Window.NoAutoCompact:
		out.CompactThreshold, out.CompactSource = 0, "auto"
	case c.Window.IsRequested:
		out.CompactSource = "settings"
	}
	for _, k := range c.Categories {
		id := strings.ToLower(strings.ReplaceAll(k.Name, " ", "_"))
		out.Categories = append(out.Categories, usageCategory{ID: id, Name: k.Name, Tokens: k.Tokens, Color: categoryColor(id), Kind: k.Kind})
	}
	out.Grid = usageGrid(out.Categories, c.MaxTokens)
	for _, a := range c.Agents {
		out.Agents = append(out.Agents, agentContextUsage{a.Name, a.Source, a.Tokens})
	}
	for _, s := range c.Skills {
		out.Skills.Tokens += s.Tokens
	}
	if last := s.LastResult(); last != nil {
		u := last.Usage
		out.APIUsage = &requestUsage{u.InputTokens, u.OutputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens}
	}
	return out
}

// categoryColor returns the colour of a category in the real CLI's theme.
func categoryColor(id string) string {
	colors := map[string]string{
		"system_prompt": "promptBorder", "custom_agents": "permission", "memory_files": "claude", "skills": "warning",
		"messages": "purple_FOR_SUBAGENTS_ONLY", "free_space": "promptBorder",
	}
	if color, ok := colors[id]; ok {
		return color
	}
	return "inactive"
}

func contextUsageOfMCPTools(s *session.Session, toolItems []slash.UsageItem) []mcpToolContextUsage {
	servers := map[string]mcp.ServerStatus{}
	for _, st := range s.ServerStatuses() {
		for _, t := range st.Tools {
			servers[t.Name] = st
		}
	}
	list := []mcpToolContextUsage{}
	for _, i := range toolItems {
		st := servers[i.Name]
		list = append(list, mcpToolContextUsage{i.Name, st.Name, i.Tokens, st.Config.AlwaysLoad})
	}
	return list
}

const contextUsageGridRows, contextUsageGridColumns = 10, 20

// usageGrid returns the squares that show the use of the context: first the used categories, then free squares, at the
// end the buffer for compaction. A used category gets at least one square.
func usageGrid(categories []usageCategory, contextTokens int) [][]usageSquare {
	const all = contextUsageGridRows * contextUsageGridColumns
	perSquare := float64(max(1, contextTokens)) / all
	squares := func(k usageCategory) []usageSquare {
		exact := float64(k.Tokens) / perSquare
		n := int(exact)
		if float64(n) < exact && k.Kind != "free" {
			n++
		}
		var out []usageSquare
		for i := range n {
			out = append(out, usageSquare{k.Color, true, k.Name, k.Tokens, k.Tokens * 100 / max(1, contextTokens), min(1, exact-float64(i))})
		}
		return out
	}
	var used, buffer []usageSquare
	free := usageSquare{IsFilled: true, Fullness: 1}
	for _, k := range categories {
		switch k.Kind {
		case "free":
			free = usageSquare{k.Color, true, k.Name, k.Tokens, k.Tokens * 100 / max(1, contextTokens), 1}
		case "buffer":
			buffer = append(buffer, squares(k)...)
		default:
			used = append(used, squares(k)...)
		}
	}
	line := used[:min(len(used), all)]
	for len(line)+len(buffer) < all {
		line = append(line, free)
	}
	line = append(line, buffer...)[:all]
	var rows [][]usageSquare
	for i := range contextUsageGridRows {
		rows = append(rows, line[i*contextUsageGridColumns:(i+1)*contextUsageGridColumns])
	}
	return rows
}
