package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const toolSearchName = "ToolSearch"

const defaultMaxToolSearchResults = 5

// ToolSearch is an executor with one tool, which returns the definitions of deferred tools. The model initially sees
// only the names of deferred tools (spec: cli-observed 6).
type ToolSearch struct {
	Catalogue func(ctx context.Context) ([]protocol.Tool, error) // lists all tools of the session
	Deferred  func(protocol.Tool) bool                           // reports whether a tool is deferred; nil means [DeferredByDefault]
}

// SearchOutput is the tool_use_result of a search.
type SearchOutput struct {
	Matches []string `json:"matches"` // never null
	Query   string   `json:"query"`
	Total   int      `json:"total_deferred_tools"`
}

// DeferredByDefault reports whether a tool is an MCP tool or a rarely used built-in tool.
func DeferredByDefault(listedTool protocol.Tool) (isMCPToolOrRarelyUsedBuiltin bool) {
	return claudecode.ToolNamed(listedTool.Name).Deferred || strings.HasPrefix(listedTool.Name, mcpPrefix)
}

// Tools returns the definition of ToolSearch.
func (s ToolSearch) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{{
		Name: toolSearchName, ReadOnly: true,
		Description: "Finds deferred tools and loads their definitions. The query is `select:Name,Name` for exact names, or search words. " +
			"A word with a leading `+` must be part of the name.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"select:NAME,NAME or search words"},` +
			`"max_results":{"type":"number","description":"Maximum number of tools","default":5}},` +
			`"required":["query"],"additionalProperties":false}`),
	}}, nil
}

// Execute runs a call of ToolSearch. For all other tools the error is [ErrUnknownTool].
func (s ToolSearch) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	if call.Name != toolSearchName {
		return Result{}, ErrUnknownTool
	}
	query, limit, refused := decodeSearch(call)
	if refused != nil {
		return ResultOf(*refused), nil
	}
	all, err := s.Catalogue(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("listing tools: %w", err)
	}
	isDeferred := s.Deferred
	if isDeferred == nil {
		isDeferred = DeferredByDefault
	}
	deferred := slices.DeleteFunc(slices.Clone(all), func(t protocol.Tool) bool { return !isDeferred(t) })
	matches := searchTools(query, limit, all, deferred)
	return ResultOf(searchResult(SearchOutput{Matches: matches, Query: query, Total: len(deferred)})), nil
}

func decodeSearch(call protocol.ToolUse) (query string, limit int, refused *protocol.ToolResult) {
	fields, problems := inputFields(call.Input, []string{"query"})
	if v, ok := fields["query"]; ok && json.Unmarshal(v, &query) != nil {
		problems = append(problems, "The parameter `query` type is expected as `string`")
	}
	results := float64(defaultMaxToolSearchResults)
	if v, ok := fields["max_results"]; ok && json.Unmarshal(v, &results) != nil {
		problems = append(problems, "The parameter `max_results` type is expected as `number`")
	}
	const most = 1 << 20
	return query, int(max(1, min(results, most))), invalidInputResult(call.Name, problems)
}

func searchResult(out SearchOutput) protocol.ToolResult {
	if len(out.Matches) == 0 {
		return protocol.ToolResult{Content: protocol.Content{Text: "No matching deferred tools found"}, Output: out}
	}
	blocks := make([]protocol.Block, 0, len(out.Matches))
	var failed error
	for _, name := range out.Matches {
		ref, err := protocol.Marshal(struct {
			Type string `json:"type"`
			Name string `json:"tool_name"`
		}{"tool_reference", name})
		failed = errors.Join(failed, err)
		blocks = append(blocks, protocol.RawBlock{JSON: ref})
	}
	if failed != nil {
		return protocol.ErrorResult(failed.Error())
	}
	return protocol.ToolResult{Content: protocol.Content{Blocks: blocks}, Output: out}
}

// searchTools returns the names of the tools that match a query. A query `select:` with a list of names returns all of
// these tools, deferred or not. A query with one exact name returns this tool, deferred or not. Any other query
// searches the deferred tools and returns at most limit names, best first.
func searchTools(query string, limit int, all, deferred []protocol.Tool) []string {
	if names, ok := strings.CutPrefix(query, "select:"); ok {
		return namesOfToolsInCommaSeparatedList(names, all)
	}
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 1 {
		if t, ok := findTool(words[0], all); ok && claudecode.ToolNamed(t.Name).Name != "Agent" { // init's name "Task" is not the tool's name
			return []string{t.Name}
		}
	}
	type hit struct {
		name  string
		score int
	}
	var hits []hit
	for _, t := range deferred {
		if n := matchScore(t, words); n > 0 {
			hits = append(hits, hit{t.Name, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	matches := []string{}
	for _, h := range hits[:min(limit, len(hits))] {
		matches = append(matches, h.name)
	}
	return matches
}

func namesOfToolsInCommaSeparatedList(commaSeparatedNames string, availableTools []protocol.Tool) []string {
	matches := []string{}
	for name := range strings.SplitSeq(commaSeparatedNames, ",") {
		if t, ok := findTool(strings.TrimSpace(name), availableTools); ok && !slices.Contains(matches, t.Name) {
			matches = append(matches, t.Name)
		}
	}
	return matches
}

func findTool(name string, all []protocol.Tool) (protocol.Tool, bool) {
	i := slices.IndexFunc(all, func(t protocol.Tool) bool { return t.Name == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(t protocol.Tool) bool { return strings.EqualFold(t.Name, name) })
	}
	if i < 0 {
		return protocol.Tool{}, false
	}
	return all[i], true
}

// matchScore rates how well words describe a tool; a higher score is better. A word counts most if it is a part of the
// name, less if it is a substring of the name, and least if the description contains it. The result is 0 if no word
// matches, or if the name does not contain each word that begins with `+`.
func matchScore(t protocol.Tool, words []string) int {
	const wholePart, piece, described = 10, 5, 2
	name := strings.ToLower(t.Name)
	parts := nameParts(t.Name)
	total := 0
	for _, word := range words {
		word, required := strings.CutPrefix(word, "+")
		switch {
		case word == "":
		case slices.Contains(parts, word):
			total += wholePart
		case strings.Contains(name, word):
			total += piece
		case required:
			return 0
		case strings.Contains(strings.ToLower(t.Description), word):
			total += described
		}
	}
	return total
}

// nameParts splits a name at underscores, hyphens and capital letters, and converts the parts to lower case.
func nameParts(name string) []string {
	var spaced strings.Builder
	lower := false
	for _, r := range strings.TrimPrefix(name, mcpPrefix) {
		upper := r >= 'A' && r <= 'Z'
		if upper && lower {
			spaced.WriteByte(' ')
		}
		lower = !upper
		spaced.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToLower(spaced.String()), func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
}
