package slash

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// ID returns the name of the category in lower case, with underscores.
func (k UsageCategory) ID() string {
	return strings.NewReplacer(" ", "_", "(", "", ")", "").Replace(strings.ToLower(k.Name))
}

// Color returns the color of the category in the real CLI's theme, and its number in a palette of 256 colors.
func (k UsageCategory) Color() (name string, number int) {
	color := map[string]struct {
		name   string
		number int
	}{
		"System prompt": {"promptBorder", 244}, "Free space": {"promptBorder", 244}, "MCP server instructions": {"green_FOR_SUBAGENTS_ONLY", 35}, "Custom agents": {"permission", 153},
		"Memory files": {"claude", 174}, "Skills": {"warning", 220}, "Messages": {"purple_FOR_SUBAGENTS_ONLY", 140},
	}[k.Name]
	return cmp.Or(color.name, "inactive"), cmp.Or(color.number, inactiveColor)
}

const inactiveColor = 246

// ContextSquare is a square of the chart of context usage.
type ContextSquare struct {
	UsageCategory
	Fullness float64 // 0 to 1
}

// Squares returns the rows of the chart for a terminal with this number of columns: squares of the used categories, at
// least one for each, then of the free space and of the buffer for compaction.
func (c ContextUsage) Squares(terminalCols int) [][]ContextSquare {
	const narrowTerminal, largeWindow = 80, 1_000_000
	rows, cols := 10, 10
	switch isLarge := c.MaxTokens >= largeWindow; {
	case terminalCols < narrowTerminal && isLarge:
		cols = 5
	case terminalCols < narrowTerminal:
		rows, cols = 5, 5
	case isLarge:
		cols = 20
	}
	all := rows * cols
	squares := map[string][]ContextSquare{}
	for _, k := range c.Categories {
		exact := float64(k.Tokens) / float64(max(1, c.MaxTokens)) * float64(all)
		for i := range max(1, int(math.Round(exact))) {
			squares[k.Kind] = append(squares[k.Kind], ContextSquare{k, min(1, exact-float64(i))})
		}
	}
	line := squares["used"][:min(len(squares["used"]), all)]
	free := ContextSquare{UsageCategory{Name: "Free space"}, 1}
	for _, s := range squares["free"] {
		free.UsageCategory = s.UsageCategory
	}
	for len(line)+len(squares["buffer"]) < all {
		line = append(line, free)
	}
	return slices.Collect(slices.Chunk(append(line, squares["buffer"]...)[:all], cols))
}

// Chart draws the context usage as in the real CLI. The text has escape sequences for colors, because transcripts contain it.
func (c ContextUsage) Chart(modelName string, terminalCols int) string {
	const margin, gap = 5, 2 // columns to the left of the chart, and between the squares and the texts
	grid := c.Squares(terminalCols)
	width := 2 * len(grid[0])
	texts := c.chartTexts(modelName, terminalCols-margin-gap-width)
	rows := []string{" " + bold("Context usage")}
	for i := range max(len(grid), len(texts)) {
		row := strings.Repeat(" ", width)
		if i < len(grid) {
			row = drawSquares(grid[i]...)
		}
		if i < len(texts) && texts[i] != "" {
			row += strings.Repeat(" ", gap) + texts[i]
		}
		rows = append(rows, row)
	}
	if !c.Window.HasNoBuffer {
		rows = append(rows, "", bold("Auto-compact window:")+"  "+formatTokens(c.MaxTokens)+" tokens")
	}
	return strings.Join(rows, "\n")
}

// chartTexts returns the rows to the right of the squares.
func (c ContextUsage) chartTexts(modelName string, cols int) []string {
	withShare := func(text string, n int) string {
		percent := 100 * float64(n) / float64(max(1, c.MaxTokens))
		switch {
		case percent > 0 && percent < 0.05:
			return text + " tokens (<0.1%)"
		case percent < 0.95:
			return text + " tokens (" + strings.TrimSuffix(fmt.Sprintf("%.1f", percent), ".0") + "%)"
		}
		return fmt.Sprintf("%s tokens (%.0f%%)", text, percent)
	}
	texts := []string{modelName, dim(c.Model), dim(withShare(formatTokens(c.TotalTokens)+"/"+formatTokens(c.MaxTokens), c.TotalTokens)), "", dim("Estimated usage by category")}
	for _, kind := range []string{"used", "free", "buffer"} {
		for _, k := range c.Categories {
			square := strings.Replace(drawSquares(ContextSquare{k, 1}), " \x1b[39m", "\x1b[39m ", 1)
			switch name, tokens := k.Name+":", withShare(formatTokens(k.Tokens), k.Tokens); {
			case k.Kind != kind || k.Tokens == 0:
			case utf8.RuneCountInString("⛁ "+name+" "+tokens) > cols:
				texts = append(texts, square+name, "  "+dim(tokens))
			case kind == "buffer":
				texts = append(texts, square+dim(name+" "+tokens))
			default:
				texts = append(texts, square+name+" "+dim(tokens))
			}
		}
	}
	return texts
}

// drawSquares returns a text such as "⛁ ⛀ ⛶ ", with colors.
func drawSquares(squares ...ContextSquare) string {
	const half = 0.7 // fullness below which a square is drawn as half full
	var b strings.Builder
	previous := 0
	for _, s := range squares {
		_, color := s.Color()
		glyph := "⛁ "
		switch {
		case s.Kind == "buffer":
			glyph = "⛝ "
		case s.Kind != "used":
			color, glyph = inactiveColor, "⛶ "
		case s.Fullness < half:
			glyph = "⛀ "
		}
		if color != previous {
			fmt.Fprintf(&b, "\x1b[38;5;%dm", color)
		}
		b.WriteString(glyph)
		previous = color
	}
	return b.String() + "\x1b[39m"
}

type chartList struct {
	title, source, noun string
	items               []UsageItem
	tokens              func(int) string
}

// chartLists returns the lists below the chart. Memory files have names relative to cwd.
func (c ContextUsage) chartLists(cwd string) []chartList {
	var files []UsageItem
	for _, f := range c.MemoryFiles {
		item := UsageItem{Name: f.Path, Tokens: f.Tokens}
		if rel, err := filepath.Rel(cwd, f.Path); err == nil && filepath.IsLocal(rel) {
			item.Name = rel
		}
		files = append(files, item)
	}
	lists := []chartList{
		{"MCP tools", "/mcp", "tool", c.MCPTools, formatTokens},
		{"Custom agents", ".claude/agents/", "agent", c.Agents, formatTokens},
		{"Memory files", "/memory", "file", files, formatTokens},
		{"Skills", "/skills", "skill", c.Skills, formatSkillTokens},
	}
	return slices.DeleteFunc(lists, func(l chartList) bool { return len(l.items) == 0 })
}

func (l chartList) heading() string { return "\n\n" + bold(l.title) + dim(" · "+l.source) }

// ItemCounts returns the text below the chart with the number of tools, agents, files and skills.
func (c ContextUsage) ItemCounts() (text string) {
	for _, l := range c.chartLists("") {
		count := fmt.Sprintf("%d %ss", len(l.items), l.noun)
		if len(l.items) == 1 {
			count = "1 " + l.noun
		}
		if n := totalTokens(l.items); n > 0 {
			count += " · " + formatTokens(n) + " tokens"
		}
		text += l.heading() + "\n" + dim("└") + " " + dim(count)
	}
	if text == "" {
		return ""
	}
	return text + "\n\n" + dim("/context all to expand")
}

// ItemLists returns the text below the chart with all tools, agents, files and skills. The items of each source are sorted by their tokens.
func (c ContextUsage) ItemLists(cwd string) (text string) {
	sources := []string{"Built-in", "Plugin", "User", "Project"} // in reverse order; all other sources come last
	for _, l := range c.chartLists(cwd) {
		text += l.heading()
		items := slices.SortedStableFunc(slices.Values(withSourcesAsLabels(l.items)), func(x, y UsageItem) int {
			return cmp.Or(slices.Index(sources, y.Source)-slices.Index(sources, x.Source), y.Tokens-x.Tokens)
		})
		for i, item := range items {
			if item.Source != "" && (i == 0 || items[i-1].Source != item.Source) {
				text += "\n\n" + dim(item.Source)
			}
			glyph := "├"
			if i == len(items)-1 || items[i+1].Source != item.Source {
				glyph = "└"
			}
			text += "\n" + dim(glyph) + " " + item.Name + item.Type + ": " + dim(l.tokens(item.Tokens)+" tokens")
		}
	}
	return text
}

func bold(text string) string { return "\x1b[1m" + text + "\x1b[22m" }

func dim(text string) string { return fmt.Sprintf("\x1b[38;5;%dm%s\x1b[39m", inactiveColor, text) }
