package slash_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/slash"
)

func TestParse(t *testing.T) {
	tests := map[string]slash.Call{
		"/clear":                 {Name: "clear"},
		"/compact  keep names\n": {Name: "compact", Args: "keep names"},
		"  /compact":             {},
		"\n/compact":             {},
		"/plugin:cmd a":          {Name: "plugin:cmd", Args: "a"},
		"/mcp__s__p\nx":          {Name: "mcp__s__p", Args: "x"},
		"/usr/bin is a path":     {},
		"/":                      {},
		"/ x":                    {},
		"say /clear":             {},
		"":                       {},
	}
	for prompt, want := range tests {
		got, ok := slash.Parse(prompt)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.Name != "") {
			t.Errorf("%q: %v %s", prompt, ok, diff)
		}
	}
}

// cli-contract 9.6: the transcript lines of a custom command.
func TestTags(t *testing.T) {
	if got := (slash.Call{Name: "x"}).Tags(); got != "<command-message>x</command-message>\n<command-name>/x</command-name>" {
		t.Error(got)
	}
	if got := (slash.Call{Name: "x", Args: "a b"}).Tags(); !strings.HasSuffix(got, "\n<command-args>a b</command-args>") {
		t.Error(got)
	}
}

// fillPlaceholders fills in a body without shell commands (checklist row 67).
func fillPlaceholders(body, args string, names ...string) string {
	text, _ := slash.FillArgumentsAndRunShell(body, args, names, func(string, string) (string, error) { return "", nil })
	return text
}

func TestFill(t *testing.T) {
	tests := []struct{ body, args, want string }{
		{"Fix $ARGUMENTS.", "issue 7", "Fix issue 7."},
		{"$0 then $1, not $2.", `one "two and"`, "one then two and, not $2."},
		{"$ARGUMENTS[0]-$ARGUMENTS[1]", "a b", "a-b"},
		{"No place.\n", "x y", "No place.\n\n\nARGUMENTS: x y"},
		{"$0, $1, $2", `one it's two`, "one, it's two, $2"},
		{"No place.", "", "No place."},
		{`$0 and \$0, $1`, "a", "a and $0, $1"},
		{"$ARGUMENTS[1] $0", `c\ d`, "$ARGUMENTS[1] c d"},
		{`\\$0 \\\$0 $0x`, "a", `\\a \\\a $0x`},
		{"costs $99999999999999999999", "a", "costs $99999999999999999999\n\nARGUMENTS: a"},
	}
	for _, tt := range tests {
		if got := fillPlaceholders(tt.body, tt.args); got != tt.want {
			t.Errorf("Fill(%q, %q) = %q, want %q", tt.body, tt.args, got, tt.want)
		}
	}
}

// Arguments with names from the front matter are filled in as in the real CLI.
func TestFillNamed(t *testing.T) {
	tests := []struct{ names, body, args, want string }{
		{"first second", "A $first B $second C $third D $0 E ${first} F \\$first G $firsty H $ARGUMENTS[1]", `one "two three"`, "A one B two three C $third D one E ${first} F $first G $firsty H two three"},
		{"first second", "A $first B $second.", "one", "A one B ."},
		{"a b", "$b", "one", ""},
		{"a b", "A $a B $b", "", "A  B "},
		{"first", "A $second", "one", "A $second\n\nARGUMENTS: one"},
		{"first", "nothing", "one", "nothing\n\nARGUMENTS: one"},
		{"first, second", "A $first B $second $first,", "one two", "A $first B two one"},
		{"a ab a-b", "$a $ab $a-b $a-c $a_ $a[0] $a$ab $$a $aÄ $A", "1 2 3", "1 2 3 1-c $a_ $a[0] 12 $1 1Ä $A"},
		{"a b", "$a $0 $b", `'$1 $b' two`, "$1 $b $1 $b two"},
		{"x x y", "$x $y", "1 2 3", "1 3"},
		{"ARGUMENTS x", "$ARGUMENTS $x $ARGUMENTS[1]", "p q", "p q q"},
		{"x.y 1a", "$x.y $xzy $1a", "p q", "p $xzy q"},
		{"x y", `\$x $z`, "1 2", "$x $z\n\nARGUMENTS: 1 2"},
		{"a", `\\$a \\\$a \$c`, "1", `\\1 \\\1 \$c`},
	}
	for _, tt := range tests {
		if got := fillPlaceholders(tt.body, tt.args, strings.Fields(tt.names)...); got != tt.want {
			t.Errorf("Fill(%q, %q, %s) = %q, want %q", tt.body, tt.args, tt.names, got, tt.want)
		}
	}
}

// Commands run with their arguments filled in. Their output, and text inside arguments, is neither run nor expanded.
func TestRun(t *testing.T) {
	var ran []string
	echo := func(command, pattern string) (string, error) {
		ran = append(ran, command+" as "+pattern)
		if command == "fail" {
			return "", errors.New("it failed")
		}
		return "<" + command + " $0>", nil
	}
	got, err := slash.FillArgumentsAndRunShell("a !`x $0` b$1, not!`this`\n```!\ntwo\nlines\n```\nend", "1 '!`y`'", nil, echo)
	if want := "a <x 1 $0> b!`y`, not!`this`\n<two\nlines $0>\nend"; err != nil || got != want {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	if diff := cmp.Diff([]string{"x 1 as !`x 1`", "two\nlines as ```!\ntwo\nlines\n```"}, ran); diff != "" {
		t.Error(diff)
	}
	if got, err := slash.FillArgumentsAndRunShell("!`x $who`", "me", []string{"who"}, echo); err != nil || got != "<x me $0>" {
		t.Errorf("got %q, error %v", got, err)
	}
	if _, err := slash.FillArgumentsAndRunShell("!`fail` !`never`", "", nil, echo); err == nil || len(ran) != 4 {
		t.Errorf("error %v, ran %q", err, ran)
	}
}

func TestWords(t *testing.T) {
	want := []string{"a", "b c", "", "d'e", "f g", "h", "i", `k"l`, `"j`}
	if diff := cmp.Diff(want, slash.SplitWords(" a 'b c'  '' d\"'\"e f\\ g h;i \"k\\\"l\" \"j")); diff != "" {
		t.Error(diff)
	}
}

func FuzzFill(f *testing.F) {
	f.Add("a $ARGUMENTS b $1", "x 'y z")
	f.Add("$ARGUMENTS[0]$2", "")
	f.Fuzz(func(_ *testing.T, body, args string) {
		fillPlaceholders(body, args, slash.SplitWords(args)...)
		slash.Parse(body)
		slash.SplitWords(args)
	})
}

// The categories and their order (observed with 2.1.330).
func TestContext(t *testing.T) {
	loaded := slash.LoadedContextTokens{SystemPrompt: 1857, SystemTools: 7761, AddedByFirstRequest: 155, DeferredTools: 3960, Skills: []slash.UsageItem{{Name: "dataviz", Source: "built-in", Tokens: 2067}, {Name: "s", Source: "projectSettings", Tokens: 2}}}
	c := slash.NewContextUsage("claude-opus-5-5", slash.ContextWindowSize{Tokens: 1_000_000}, nil, loaded)
	want := []slash.UsageCategory{
		{"System prompt", 1857, "used"},
		{"System tools", 5537, "used"},
		{"System tools (deferred)", 3960, "deferred"},
		{"Skills", 2069, "used"},
		{"Messages", 9, "used"},
		{"Autocompact buffer", 33000, "buffer"},
		{"Free space", 957_528, "free"},
	}
	if diff := cmp.Diff(want, c.Categories); diff != "" || c.TotalTokens != 9472 || c.Percentage != 1 {
		t.Errorf("%+v\n%s", c, diff)
	}
	for _, part := range []string{"**Tokens:** 9.5k / 1m (1%)", "| Free space | 957.5k | 95.8% |", "| Skill | Source | Tokens |\n|-------|", "| dataviz | Built-in | ~2.1k |", "| s | Project | < 20 |"} {
		if !strings.Contains(c.UsageMarkdown(), part) {
			t.Errorf("%q is missing in:\n%s", part, c.UsageMarkdown())
		}
	}
	small := slash.NewContextUsage("claude-haiku-4-5", slash.ContextWindowSize{Tokens: 200_000, HasNoBuffer: true}, nil, loaded)
	if diff := cmp.Diff([]slash.UsageCategory{{"Messages", 9, "used"}, {"Free space", 190_528, "free"}}, small.Categories[4:]); diff != "" || !strings.HasSuffix(strings.SplitAfter(small.UsageMarkdown(), "| 95.3% |\n")[0], "| Free space | 190.5k | 95.3% |\n") {
		t.Errorf("a model with a small window has no buffer:\n%s\n%s", diff, small.UsageMarkdown())
	}
	full := slash.NewContextUsage("m", slash.ContextWindowSize{Tokens: 1000}, &slash.ReplyUsage{Input: 5000, CacheRead: 100, Output: 7}, slash.LoadedContextTokens{
		MCPTools: []slash.UsageItem{{Name: "mcp__a__b", Server: "a"}}, Agents: []slash.UsageItem{{Tokens: 2}}, MemoryFiles: []slash.MemoryFile{{Path: "CLAUDE.md", Type: "Project", Tokens: 3}},
	})
	if full.TotalTokens != 5100 || full.Categories[len(full.Categories)-1].Tokens != 0 || !strings.Contains(full.UsageMarkdown(), "| Project | CLAUDE.md | 3 |") || !strings.Contains(full.UsageMarkdown(), "| mcp__a__b | a | 0 |") {
		t.Errorf("%+v", full)
	}
}

// A table of the bounded text keeps the ten items with the most tokens, and sums up the others (observed with 2.1.330).
func TestContextBoundedText(t *testing.T) {
	var skills []slash.UsageItem
	for i := range 12 {
		skills = append(skills, slash.UsageItem{Name: "s" + strconv.Itoa(i), Source: "built-in", Tokens: 100 * (i + 1)})
	}
	c := slash.NewContextUsage("m", slash.ContextWindowSize{Tokens: 1_000_000}, nil, slash.LoadedContextTokens{SystemTools: 9000, AddedByFirstRequest: 155, Skills: skills})
	got := c.UsageMarkdownOfLargestItems()
	if !strings.Contains(got, "|--------|\n| s11 | Built-in | ~1.2k |\n| s10 |") || !strings.HasSuffix(got, "| s2 | Built-in | ~300 |\n| and 2 more |  | ~300 |\n\n") {
		t.Error(got)
	}
	if !strings.HasSuffix(c.UsageMarkdown(), "| s11 | Built-in | ~1.2k |\n\n") || c.Skills[0].Name != "s0" {
		t.Error(c.UsageMarkdown())
	}
}

// The squares of the used categories come first, those of the buffer last.
func TestContextSquares(t *testing.T) {
	c := slash.NewContextUsage("m", slash.ContextWindowSize{Tokens: 1_000_000}, nil, slash.LoadedContextTokens{SystemPrompt: 1000, SystemTools: 12_155, AddedByFirstRequest: 155})
	for _, tt := range []struct {
		window, terminalCols, rows, cols int
	}{{1_000_000, 80, 10, 20}, {1_000_000, 79, 10, 5}, {200_000, 80, 10, 10}, {200_000, 79, 5, 5}} {
		c.MaxTokens = tt.window
		if rows := c.Squares(tt.terminalCols); len(rows) != tt.rows || len(rows[tt.rows-1]) != tt.cols {
			t.Errorf("%+v: %d rows", tt, len(rows))
		}
	}
	c.MaxTokens = 1_000_000
	rows := c.Squares(110)
	var names []string
	for _, s := range append(rows[0][:5:5], rows[9][11:15]...) {
		names = append(names, s.Name)
	}
	want := []string{"System prompt", "System tools", "System tools", "Messages", "Free space", "Free space", "Free space", "Autocompact buffer", "Autocompact buffer"}
	if diff := cmp.Diff(want, names); diff != "" || rows[0][0].Fullness != 0.2 || rows[0][1].Fullness != 1 {
		t.Errorf("%v %s", rows[0][:3], diff)
	}
	full := slash.NewContextUsage("m", slash.ContextWindowSize{Tokens: 1_000_000}, nil, slash.LoadedContextTokens{SystemPrompt: 5_000_000})
	for _, c := range []slash.ContextUsage{{MaxTokens: 1_000_000}, full} {
		if rows := c.Squares(80); len(rows) != 10 || len(rows[9]) != 20 {
			t.Errorf("%d rows", len(rows))
		}
	}
}

// The chart on a terminal (observed with 2.1.330).
func TestContextChart(t *testing.T) {
	loaded := slash.LoadedContextTokens{
		SystemPrompt: 1857, SystemTools: 8900, AddedByFirstRequest: 155, MCPInstructions: []slash.UsageItem{{Name: "s", Tokens: 44}},
		MCPTools: []slash.UsageItem{{Name: "mcp__s__a", Server: "s"}}, Agents: []slash.UsageItem{{Type: "helper", Source: "projectSettings", Tokens: 14}},
		MemoryFiles: []slash.MemoryFile{{Path: "/w/CLAUDE.md", Type: "Project", Tokens: 11}, {Path: "/h/CLAUDE.md", Type: "User", Tokens: 12}},
		Skills:      []slash.UsageItem{{Name: "init", Source: "built-in", Tokens: 20}, {Name: "dataviz", Source: "built-in", Tokens: 482}, {Name: "one", Source: "projectSettings", Tokens: 4}},
	}
	c := slash.NewContextUsage("claude-opus-5-5", slash.ContextWindowSize{Tokens: 1_000_000}, nil, loaded)
	chart := c.Chart("Opus 5.5", 110) + c.ItemCounts()
	row := strings.Repeat("⛶ ", 20)
	const wide = "                                        "
	want := strings.Join([]string{
		" Context usage",
		"⛀ ⛁ ⛀ ⛀ ⛀ ⛀ ⛀ ⛀ " + row[:12*len("⛶ ")] + "  Opus 5.5", row + "  claude-opus-5-5", row + "  10.7k/1m tokens (1%)", row, row + "  Estimated usage by category",
		row + "  ⛁ System prompt: 1.9k tokens (0.2%)", row + "  ⛁ System tools: 8.2k tokens (0.8%)", row + "  ⛁ MCP server instructions: 44 tokens (<0.1%)", row + "  ⛁ Custom agents: 14 tokens (<0.1%)",
		row[:13*len("⛶ ")] + "⛝ ⛝ ⛝ ⛝ ⛝ ⛝ ⛝   ⛁ Memory files: 23 tokens (<0.1%)", wide + "  ⛁ Skills: 506 tokens (0.1%)", wide + "  ⛁ Messages: 9 tokens (<0.1%)",
		wide + "  ⛶ Free space: 956.3k tokens (96%)", wide + "  ⛝ Autocompact buffer: 33k tokens (3%)", "", "Auto-compact window:  1m tokens",
		"", "MCP tools · /mcp", "└ 1 tool", "", "Custom agents · .claude/agents/", "└ 1 agent · 14 tokens", "", "Memory files · /memory", "└ 2 files · 23 tokens",
		"", "Skills · /skills", "└ 3 skills · 506 tokens", "", "/context all to expand",
	}, "\n")
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	if diff := cmp.Diff(want, plain.ReplaceAllString(chart, "")); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{
		" \x1b[1mContext usage\x1b[22m\n\x1b[38;5;244m⛀ \x1b[38;5;246m⛁ ⛀ \x1b[38;5;35m⛀ ", "\x1b[38;5;246m⛶ ⛶ ", "⛝ \x1b[39m  \x1b[38;5;174m⛁\x1b[39m Memory files: \x1b[38;5;246m23 tokens",
		"\x1b[38;5;246m⛝\x1b[39m \x1b[38;5;246mAutocompact buffer: 33k tokens (3%)\x1b[39m", "\x1b[1mSkills\x1b[22m\x1b[38;5;246m · /skills\x1b[39m",
	} {
		if !strings.Contains(chart, part) {
			t.Errorf("%q is missing in %q", part, chart)
		}
	}
	want = "\n\nMCP tools · /mcp\n└ mcp__s__a: 0 tokens\n\nCustom agents · .claude/agents/\n\nProject\n└ helper: 14 tokens\n\nMemory files · /memory\n├ /h/CLAUDE.md: 12 tokens\n└ CLAUDE.md: 11 tokens" +
		"\n\nSkills · /skills\n\nProject\n└ one: < 20 tokens\n\nBuilt-in\n├ dataviz: ~480 tokens\n└ init: ~20 tokens"
	if diff := cmp.Diff(want, plain.ReplaceAllString(c.ItemLists("/w"), "")); diff != "" {
		t.Error(diff)
	}
	small := slash.NewContextUsage("claude-haiku-4-5", slash.ContextWindowSize{Tokens: 200_000, HasNoBuffer: true}, nil, loaded)
	if got := plain.ReplaceAllString(small.Chart("Haiku 4.5", 60), ""); !strings.Contains(got, "\n⛶ ⛶ ⛶ ⛶ ⛶   10.7k/200k tokens (5%)\n") || strings.Contains(got, "Auto-compact") {
		t.Error(got)
	}
}

func TestCost(t *testing.T) {
	c := slash.Cost{
		USD: 0.0123, APIMS: 1500, WallMS: 3_723_000, LinesAdded: 1, LinesRemoved: 2, Requests: 1,
		Models: []slash.ModelCost{{Name: "claude-opus-5-5", Input: 10, Output: 5, USD: 0.0123}},
	}
	want := "Estimated cost:        $0.0123\nTotal duration (API):  1s\nTotal duration (wall): 1h 2m 3s\n" +
		"Total code changes:    1 line added, 2 lines removed\nUsage by model:\n" +
		"     claude-opus-5-5:  10 input, 5 output, 0 cache read, 0 cache write ($0.0123)\n" +
		"Prompt cache (main):   1 request · 0% of input tokens from cache · no misses · no prompt caching reported by the API"
	if diff := cmp.Diff(want, c.Text()); diff != "" {
		t.Error(diff)
	}
}
