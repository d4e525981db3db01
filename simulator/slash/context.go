package slash

import (
	"fmt"
	"slices"
	"strings"
)

// UsageItem is a tool, an agent or a skill that uses a part of the context.
type UsageItem struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Tokens int    `json:"tokens"`
}

// MemoryFile is a file of instructions.
type MemoryFile struct {
	Path   string `json:"path"`
	Type   string `json:"type"` // Project, User, Local
	Tokens int    `json:"tokens"`
}

// LoadedContext is the part of the context that the session has loaded in addition to the conversation.
type LoadedContext struct {
	MCPTools       []UsageItem
	MemoryFiles    []MemoryFile
	Agents, Skills []UsageItem
}

// UsageCategory is one line of the table of context usage.
type UsageCategory struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Kind   string `json:"kind"` // used, buffer, free
}

// Context describes how much of the model's context window is in use.
type Context struct {
	Model       string          `json:"model"`
	TotalTokens int             `json:"total_tokens"`
	MaxTokens   int             `json:"raw_max_tokens"`
	Percentage  int             `json:"percentage"`
	Categories  []UsageCategory `json:"categories"`
	MCPTools    []UsageItem     `json:"mcp_tools"`
	MemoryFiles []MemoryFile    `json:"memory_files"`
	Agents      []UsageItem     `json:"agents"`
	Skills      []UsageItem     `json:"skills"`
	Window      ContextWindow   `json:"-"`
}

// ContextWindow is the maximum size of a conversation.
type ContextWindow struct {
	Tokens        int
	IsRequested   bool // the size was configured, instead of taken from the model
	NoAutoCompact bool // a full conversation is not compacted automatically
}

// CompactBufferTokens is the number of tokens that are reserved for a summary.
const CompactBufferTokens = 33_000

const (
	tokensReservedForCompactSummary = 3000 // reserved for the summary that /compact requests
	estimatedSystemPromptTokens     = 1000
	tokensOfEmptyConversation       = 100 // size of a conversation without messages
)

// NewContext computes a session's context: the model, its context window, and the conversation's tokens so far.
func NewContext(model string, room ContextWindow, messages int, l LoadedContext) Context {
	window := room.Tokens
	c := Context{Window: room, Model: model, MaxTokens: window, MCPTools: orEmpty(l.MCPTools), MemoryFiles: orEmpty(l.MemoryFiles), Agents: orEmpty(l.Agents), Skills: orEmpty(l.Skills)}
	used := func(name string, tokens int) {
		if tokens > 0 {
			c.Categories = append(c.Categories, UsageCategory{name, tokens, "used"})
			c.TotalTokens += tokens
		}
	}
	used("System prompt", estimatedSystemPromptTokens)
	used("MCP tools", totalTokens(l.MCPTools))
	used("Custom agents", totalTokens(l.Agents))
	memory := 0
	for _, f := range l.MemoryFiles {
		memory += f.Tokens
	}
	used("Memory files", memory)
	used("Skills", totalTokens(l.Skills))
	used("Messages", tokensOfEmptyConversation+messages)
	buffer := UsageCategory{"Autocompact buffer", CompactBufferTokens, "buffer"}
	if room.NoAutoCompact {
		buffer = UsageCategory{"Compact buffer", tokensReservedForCompactSummary, "buffer"}
	}
	c.Categories = append(c.Categories, buffer, UsageCategory{"Free space", max(0, window-buffer.Tokens-c.TotalTokens), "free"})
	if window > 0 {
		c.Percentage = c.TotalTokens * 100 / window
	}
	return c
}

func totalTokens(items []UsageItem) int {
	n := 0
	for _, i := range items {
		n += i.Tokens
	}
	return n
}

func orEmpty[T any](s []T) []T {
	return append([]T{}, s...)
}

// Text formats the context usage as Markdown tables.
func (c Context) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Context Usage\n\n**Model:** %s  \n**Tokens:** %s / %s (%d%%)\n", c.Model, formatTokens(c.TotalTokens), formatTokens(c.MaxTokens), c.Percentage)
	b.WriteString("\n### Estimated usage by category\n\n| Category | Tokens | Percentage |\n|----------|--------|------------|\n")
	rows := slices.Clone(c.Categories)
	if n := len(rows); n > 1 { // the table ends with the reserved tokens
		rows[n-1], rows[n-2] = rows[n-2], rows[n-1]
	}
	for _, k := range rows {
		fmt.Fprintf(&b, "| %s | %s | %.1f%% |\n", k.Name, formatTokens(k.Tokens), 100*float64(k.Tokens)/float64(max(1, c.MaxTokens)))
	}
	for _, part := range []struct {
		title string
		items []UsageItem
	}{{"MCP Tools", c.MCPTools}, {"Custom Agents", c.Agents}, {"Skills", c.Skills}} {
		if len(part.items) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| Name | Source | Tokens |\n|------|--------|--------|\n", part.title)
		for _, i := range part.items {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", i.Name, i.Source, formatTokens(i.Tokens))
		}
	}
	if len(c.MemoryFiles) > 0 {
		b.WriteString("\n### Memory Files\n\n| Type | Path | Tokens |\n|------|------|--------|\n")
		for _, f := range c.MemoryFiles {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Type, f.Path, formatTokens(f.Tokens))
		}
	}
	return b.String()
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
