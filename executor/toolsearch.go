package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	selectPrefix          = "select:"
	maxToolSearchWords    = 32
	maxToolSearchSelected = 64
)

// ToolSearch is an executor with one tool, which returns the definitions of deferred tools. The model initially sees
// only the names of deferred tools (spec: cli-observed 6).
type ToolSearch struct {
	Catalogue func(ctx context.Context) ([]protocol.Tool, error) // lists all tools of the session
	Deferred  func(protocol.Tool) bool                           // reports whether a tool is deferred; nil means [DeferredByDefault]
}

// ToolSearchOutput is the tool_use_result of a search.
type ToolSearchOutput struct {
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
	d := tool.Tool{Name: toolSearchName}.Definition()
	d.ReadOnly = true
	return []protocol.Tool{d}, nil
}

// Execute runs a call of ToolSearch. For all other tools the error is [ErrUnknownTool].
func (s ToolSearch) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	if call.Name != toolSearchName {
		return Result{}, ErrUnknownTool
	}
	if refused := SearchOrResourceInputError(call); refused != nil {
		return ResultOf(*refused), nil
	}
	in := struct {
		Query string  `json:"query"`
		Limit float64 `json:"max_results"`
	}{Limit: 5}
	_ = json.Unmarshal(call.Input, &in) // the input is valid
	all, err := s.Catalogue(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("listing tools: %w", err)
	}
	isDeferred := s.Deferred
	if isDeferred == nil {
		isDeferred = DeferredByDefault
	}
	slices.SortFunc(all, func(a, b protocol.Tool) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name))
	})
	deferred := slices.DeleteFunc(slices.Clone(all), func(t protocol.Tool) bool { return !isDeferred(t) })
	const most = 1 << 20
	matches := searchTools(in.Query, int(math.Trunc(max(-most, min(in.Limit, most)))), all, deferred)
	result := ResultOf(searchResult(ToolSearchOutput{Matches: matches, Query: in.Query, Total: len(deferred)}))
	known := slices.DeleteFunc(selectTools(in.Query, all), func(name string) bool {
		return slices.Contains(matches, name) || slices.ContainsFunc(deferred, func(t protocol.Tool) bool { return t.Name == name })
	})
	if len(known) > 0 {
		text := protocol.InReminderTags("Already available in this conversation: " + strings.Join(known, ", ") + ". Call it directly.")
		note := protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}}
		result.EventsAfter = []protocol.Event{&protocol.UserEvent{Message: note, IsSynthetic: true, Companion: true}}
	}
	return result, nil
}

func searchResult(out ToolSearchOutput) protocol.ToolResult {
	if len(out.Matches) == 0 {
		return protocol.ToolResult{Content: protocol.Content{Text: "No matching deferred tools found"}, Output: out}
	}
	blocks := make([]protocol.Block, 0, len(out.Matches))
	for _, name := range out.Matches {
		blocks = append(blocks, protocol.RawBlock{JSON: []byte(`{"type":"tool_reference","tool_name":` + string(tool.Quote(name)) + `}`)})
	}
	return protocol.ToolResult{Content: protocol.Content{Blocks: blocks}, Output: out}
}

// searchTools returns the names of the tools that a query finds (observed with 2.1.330). A query `select:` with a list
// of names finds the tools with these names. A query that is the name of a tool finds this tool. Both also find tools
// that are not deferred. A query that begins with `mcp__` finds the deferred tools whose names begin with it. Other
// queries search the deferred tools, best ones first. If limit is negative, -limit tools are left out at the end.
func searchTools(query string, limit int, all, deferred []protocol.Tool) []string {
	if len(query) > len(selectPrefix) && strings.EqualFold(query[:len(selectPrefix)], selectPrefix) {
		return selectTools(query[len(selectPrefix):], all)
	}
	words := strings.Fields(strings.ToLower(query))
	words = words[:min(maxToolSearchWords, len(words))]
	phrase := strings.Join(words, " ")
	if i := slices.IndexFunc(all, func(t protocol.Tool) bool { return strings.EqualFold(nameInCalls(t), phrase) }); i >= 0 {
		return []string{nameInCalls(all[i])}
	}
	terms, scores, names := searchTermsOf(words), map[string]int{}, []string{}
	for _, t := range deferred {
		if strings.HasPrefix(strings.ToLower(t.Name), phrase) && strings.HasPrefix(phrase, mcpPrefix) && phrase != mcpPrefix {
			terms, scores[t.Name] = nil, 1
		}
	}
	for _, t := range deferred {
		scores[t.Name] += terms.score(t)
		if scores[t.Name] > 0 {
			names = append(names, t.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })
	if limit < 0 {
		limit += len(names)
	}
	return names[:max(0, min(limit, len(names)))]
}

// nameInCalls returns the name that calls use. It differs from the name in the init event only for Agent.
func nameInCalls(t protocol.Tool) string { return cmp.Or(claudecode.ToolNamed(t.Name).Name, t.Name) }

// selectTools returns the names of the listed tools. The list may contain aliases, and MCP tool names without a server.
func selectTools(commaSeparatedNames string, all []protocol.Tool) []string {
	names := strings.Split(commaSeparatedNames, ",")
	matches := []string{}
	for _, name := range names[:min(maxToolSearchSelected, len(names))] {
		name = strings.TrimSpace(name)
		called := cmp.Or(claudecode.ToolNamed(name).Name, name)
		isNamed := func(t protocol.Tool) bool { return nameInCalls(t) == called }
		if !slices.ContainsFunc(all, isNamed) {
			isNamed = func(t protocol.Tool) bool {
				return t.Server != "" && (t.RawName == name || strings.HasSuffix(t.Name, "__"+name))
			}
		}
		for _, t := range all {
			if isNamed(t) && !slices.Contains(matches, nameInCalls(t)) {
				matches = append(matches, nameInCalls(t))
			}
		}
	}
	return matches
}

// A searchTerm is a word of a query. A tool that does not match every required term is not found.
type searchTerm struct {
	word       string
	wholeWord  *regexp.Regexp
	isRequired bool
}

type searchTerms []searchTerm

func searchTermsOf(words []string) searchTerms {
	var terms searchTerms
	for _, word := range words {
		isRequired := len(word) > 1 && word[0] == '+'
		if isRequired {
			word = word[1:]
		}
		terms = append(terms, searchTerm{word, regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`), isRequired})
	}
	return terms
}

// score rates how well the terms describe a tool: by the parts of its name, its whole name, its search hint and its description.
// The score is 0 if no term matches, or if a required one does not.
func (terms searchTerms) score(t protocol.Tool) (total int) {
	hint, description := claudecode.ToolSearchWords(t.Name)
	parts, names, isWhole, isInPart, isInName := partsOfBuiltinName(t.Name), []string{strings.ToLower(t.Name)}, 10, 5, 3
	if t.Server != "" {
		description, isWhole, isInPart, isInName = strings.ToLower(t.Description), 12, 6, 4
		names = []string{strings.ToLower(t.Server), strings.ToLower(t.RawName)}
		parts = strings.FieldsFunc(strings.Join(names, " "), func(r rune) bool { return r == '_' || r == '.' || unicode.IsSpace(r) })
	}
	for _, term := range terms {
		score := term.scoreIn(parts, isWhole, isInPart) + term.scoreIn(names, isWhole, isInName)
		if term.wholeWord.MatchString(hint) {
			score += 4
		}
		if term.wholeWord.MatchString(description) {
			score += 2
		}
		if term.isRequired && score == 0 {
			return 0
		}
		total += score
	}
	return total
}

func (t searchTerm) scoreIn(names []string, wholeNameScore, partScore int) int {
	switch {
	case slices.Contains(names, t.word):
		return wholeNameScore
	case slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, t.word) }):
		return partScore
	}
	return 0
}

// partsOfBuiltinName splits a name before its capital letters.
func partsOfBuiltinName(name string) []string {
	var spaced strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(spaced.String()))
}
