package slash

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// UsageItem is a part of the context. An agent has a Type, others have a Name. An MCP tool has a Server, but no tokens.
type UsageItem struct {
	Name        string `json:"name,omitempty"`
	Type        string `json:"agent_type,omitempty"`
	Server      string `json:"server_name,omitempty"`
	Source      string `json:"source,omitempty"`
	Tokens      int    `json:"tokens"`
	Path        string `json:"-"` // file of an agent or a skill; empty means none
	DisplayName string `json:"-"` // name of a skill for users; empty means Name
}

// MemoryFile is an instruction file, such as CLAUDE.md, in the output of /context.
type MemoryFile struct {
	Path   string `json:"path"`
	Type   string `json:"type"` // Project, User, Local
	Tokens int    `json:"tokens"`
}

// LoadedContextTokens is the part of the context that the session has loaded in addition to the conversation.
type LoadedContextTokens struct {
	SystemPrompt, SystemTools, DeferredTools  int // tokens; the system tools include the list of skills
	AddedByFirstRequest                       int // tokens of SystemTools that a session without requests lacks
	MCPInstructions, MCPTools, Agents, Skills []UsageItem
	MemoryFiles                               []MemoryFile
}

// EstimateTokensOfPart estimates the tokens of a text that is a separate part of the context (observed with 2.1.330).
func EstimateTokensOfPart(text string) int { return (len(text)+2)/4 + 8 }

// UsageCategory is one line of the table of context usage.
type UsageCategory struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Kind   string `json:"kind"` // used, deferred, buffer, free
}

// ContextUsage describes how much of the model's context window is in use.
type ContextUsage struct {
	Model       string          `json:"model"`
	TotalTokens int             `json:"total_tokens"`
	MaxTokens   int             `json:"raw_max_tokens"`
	Percentage  int             `json:"percentage"`
	Categories  []UsageCategory `json:"categories"`
	MCPTools    []UsageItem     `json:"mcp_tools"`
	MemoryFiles []MemoryFile    `json:"memory_files"`
	Agents      []UsageItem     `json:"agents"`
	Skills      []UsageItem     `json:"skills"`

	MCPInstructions []UsageItem       `json:"-"`
	LastReply       *ReplyUsage       `json:"-"` // nil means that no request has got a reply
	Window          ContextWindowSize `json:"-"`
}

// ContextWindowSize is the maximum size of a conversation.
type ContextWindowSize struct {
	Tokens        int
	IsRequested   bool // the size was configured, instead of taken from the model
	NoAutoCompact bool // a full conversation is not compacted automatically
	HasNoBuffer   bool // the CLI shows no buffer for compaction
}

// CompactBufferTokens is the number of tokens that are reserved for a summary.
const CompactBufferTokens = 33_000

// ReplyUsage is the usage of one request to the model, in tokens.
type ReplyUsage struct {
	Input         int `json:"input_tokens"`
	Output        int `json:"output_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
}

const (
	tokensReservedForCompactSummary = 3000 // reserved for the summary that /compact requests
	tokensOfEmptyConversation       = 9    // size of a conversation without messages
)

// NewContextUsage computes a session's context from the model, its context window, and the usage of the last request. As in the real
// CLI, the category Messages is the part of the request that belongs to no other category.
func NewContextUsage(model string, contextWindow ContextWindowSize, lastReply *ReplyUsage, loaded LoadedContextTokens) ContextUsage {
	window := contextWindow.Tokens
	c := ContextUsage{
		Window: contextWindow, Model: model, MaxTokens: window, LastReply: lastReply, MCPInstructions: loaded.MCPInstructions,
		MCPTools: orEmpty(loaded.MCPTools), MemoryFiles: orEmpty(loaded.MemoryFiles), Agents: orEmpty(loaded.Agents), Skills: orEmpty(loaded.Skills),
	}
	add := func(name string, tokens int, kind string) {
		if tokens > 0 {
			c.Categories = append(c.Categories, UsageCategory{name, tokens, kind})
		}
		if kind == "used" {
			c.TotalTokens += max(0, tokens)
		}
	}
	if lastReply == nil {
		loaded.SystemTools -= loaded.AddedByFirstRequest
	}
	memory := 0
	for _, f := range loaded.MemoryFiles {
		memory += f.Tokens
	}
	add("System prompt", loaded.SystemPrompt, "used")
	add("System tools", loaded.SystemTools-totalTokens(loaded.Skills), "used")
	add("MCP server instructions", totalTokens(loaded.MCPInstructions), "used")
	add("System tools (deferred)", loaded.DeferredTools, "deferred")
	add("Custom agents", totalTokens(loaded.Agents), "used")
	add("Memory files", memory, "used")
	add("Skills", totalTokens(loaded.Skills), "used")
	messages := tokensOfEmptyConversation
	if lastReply != nil {
		messages = lastReply.Input + lastReply.CacheCreation + lastReply.CacheRead - c.TotalTokens
	}
	add("Messages", messages, "used")
	buffer := UsageCategory{"Autocompact buffer", CompactBufferTokens, "buffer"}
	switch {
	case contextWindow.NoAutoCompact:
		buffer = UsageCategory{"Compact buffer", tokensReservedForCompactSummary, "buffer"}
	case contextWindow.HasNoBuffer:
		buffer.Tokens = 0
	}
	add(buffer.Name, buffer.Tokens, buffer.Kind)
	c.Categories = append(c.Categories, UsageCategory{"Free space", max(0, window-buffer.Tokens-c.TotalTokens), "free"})
	c.Percentage = (c.TotalTokens*200/max(1, window) + 1) / 2
	return c
}

func totalTokens(items []UsageItem) int {
	n := 0
	for _, i := range items {
		n += i.Tokens
	}
	return n
}

func orEmpty[T any](s []T) []T { return append([]T{}, s...) }

// UsageMarkdown formats the context usage as Markdown tables.
func (c ContextUsage) UsageMarkdown() string { return c.usageMarkdown(math.MaxInt) }

// UsageMarkdownOfLargestItems is [ContextUsage.UsageMarkdown] with at most ten items in each table. The tables keep the items with the most tokens.
func (c ContextUsage) UsageMarkdownOfLargestItems() string {
	const most = 10
	return c.usageMarkdown(most)
}

func (c ContextUsage) usageMarkdown(maxItems int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Context Usage\n\n**Model:** %s  \n**Tokens:** %s / %s (%d%%)\n", c.Model, formatTokens(c.TotalTokens), formatTokens(c.MaxTokens), c.Percentage)
	b.WriteString("\n### Estimated usage by category\n\n| Category | Tokens | Percentage |\n|----------|--------|------------|\n")
	rows := slices.Clone(c.Categories)
	if n := len(rows); n > 1 && rows[n-2].Kind == "buffer" { // the table ends with the reserved tokens
		rows[n-1], rows[n-2] = rows[n-2], rows[n-1]
	}
	for _, k := range rows {
		fmt.Fprintf(&b, "| %s | %s | %.1f%% |\n", k.Name, formatTokens(k.Tokens), 100*float64(k.Tokens)/float64(max(1, c.MaxTokens)))
	}
	table := func(title, nameColumn, sourceColumn string, items []UsageItem, tokens func(int) string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "\n### %s\n\n| %s | %s | Tokens |\n|%s|%s|--------|\n", title, nameColumn, sourceColumn, strings.Repeat("-", len(nameColumn)+2), strings.Repeat("-", len(sourceColumn)+2))
		}
		if n := len(items) - maxItems; n > 0 {
			items = slices.SortedStableFunc(slices.Values(items), func(x, y UsageItem) int { return cmp.Compare(y.Tokens, x.Tokens) })
			items = append(items[:maxItems:maxItems], UsageItem{Name: fmt.Sprintf("and %d more", n), Tokens: totalTokens(items[maxItems:])})
		}
		for _, i := range items {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", i.Name+i.Type, i.Server+i.Source, tokens(i.Tokens))
		}
	}
	table("MCP Tools", "Tool", "Server", c.MCPTools, formatTokens)
	table("Custom Agents", "Agent Type", "Source", withSourcesAsLabels(c.Agents), formatTokens)
	var files []UsageItem
	for _, f := range c.MemoryFiles {
		files = append(files, UsageItem{Name: f.Type, Source: f.Path, Tokens: f.Tokens})
	}
	table("Memory Files", "Type", "Path", files, formatTokens)
	table("Skills", "Skill", "Source", withSourcesAsLabels(c.Skills), formatSkillTokens)
	return b.String() + "\n"
}

func formatSkillTokens(n int) string {
	if n < 20 {
		return "< 20"
	}
	return "~" + formatTokens((n+5)/10*10)
}

// withSourcesAsLabels replaces the source of each item with a label: "Project" for projectSettings, "Built-in" for built-in.
func withSourcesAsLabels(items []UsageItem) []UsageItem {
	items = slices.Clone(items)
	for i, item := range items {
		if word := strings.TrimSuffix(item.Source, "Settings"); word != "" {
			items[i].Source = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return items
}

// formatTokens writes a number of tokens as 482, 2.1k or 1m.
func formatTokens(n int) string {
	text := func(v float64, unit string) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + unit }
	switch {
	case n >= 1_000_000:
		return text(float64(n)/1e6, "m")
	case n >= 1000:
		return text(float64(n)/1e3, "k")
	default:
		return fmt.Sprint(n)
	}
}
