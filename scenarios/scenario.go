package scenarios

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
)

// Matcher returns the compiled pattern of the rule. Before the scenario is compiled, the result matches every text.
func (r *Rule) Matcher() match.Pattern { return r.match }

// DiagnosticAt returns a diagnostic at a key of the rule, with its file position. offset counts characters in a string value.
func (r *Rule) DiagnosticAt(path diag.Path, offset int, message string) diag.Diagnostic {
	return r.source.DiagnosticAtValue(append(diag.Path{"responses", r.index}, path...), offset, message)
}

// DiagnosticAt is like [Rule.DiagnosticAt] for a key of the scenario's own file.
func (s *Scenario) DiagnosticAt(path diag.Path, offset int, message string) diag.Diagnostic {
	return s.source.DiagnosticAtValue(path, offset, message)
}

// UsesPerRequestVariable reports whether an expression of the scenario may use a variable that can differ between requests with
// the same history: model, system, tools, schemas, context, permission_mode, session, cwd or a variable of [RequestProperties].
func (s *Scenario) UsesPerRequestVariable(name string) bool {
	return s.library != nil && s.library.UsesPerRequestVariable(name)
}

// TurnPositions returns the positions of the turns of the rule with this index, in order. It returns nil if no such rule exists.
func (s *Scenario) TurnPositions(ruleIndex int) []diag.Position {
	if ruleIndex < 0 || ruleIndex >= len(s.Responses) {
		return nil
	}
	r := &s.Responses[ruleIndex]
	turns := make([]diag.Position, len(r.Turns))
	for i := range turns {
		turns[i] = r.source.Index.Pos(diag.Path{"responses", r.index, "turns", i})
	}
	return turns
}

// ScriptsFailureOrFault reports whether the rule with this name scripts a failure or a fault, or the scenario
// has a fault. A program under test may have a good reason to kill claude after a failure or a fault.
func (s *Scenario) ScriptsFailureOrFault(ruleName string) bool {
	name, _, _ := strings.Cut(ruleName, ".")
	if s.Fault != "" || name == defaultRuleName && s.DefaultResponse.hasFailureOrFault() {
		return true
	}
	for i, r := range s.Responses {
		if zeroBasedRuleName(i) == name {
			return r.Failure != nil || r.Fault != "" || r.Response.hasFailureOrFault() ||
				slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Failure != nil || t.Response.hasFailureOrFault() })
		}
	}
	return false
}

func (r *Response) hasFailureOrFault() bool {
	return r != nil && slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Failure != nil || s.Fault != "" })
}

// ScriptsAgents reports whether a tool call of the scenario scripts the agent that it starts.
func (s *Scenario) ScriptsAgents() bool {
	return s.DefaultResponse.scriptsAgents() || slices.ContainsFunc(s.Responses, func(r Rule) bool {
		return r.Response.scriptsAgents() || slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Response.scriptsAgents() })
	})
}

func (r *Response) scriptsAgents() bool {
	scripts := func(c ToolCall) bool { return c.Subagent != nil && len(c.Subagent.Steps) > 0 }
	return r != nil && (slices.ContainsFunc(r.ToolCalls, scripts) || slices.ContainsFunc(r.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.ToolCalls, scripts) || slices.ContainsFunc(s.Blocks, func(b Block) bool { return scripts(b.ToolCall) })
	}))
}

const defaultRuleName = "default_response"

func zeroBasedRuleName(i int) string { return "responses[" + strconv.Itoa(i) + "]" }

// File returns the name of the scenario file; empty means none.
func (s *Scenario) File() string { return s.source.Index.Pos(nil).File }

// Digest returns the SHA-256 of the source texts, including included files. It is empty if s is nil or was built in Go.
func (s *Scenario) Digest() string {
	if s == nil || s.texts == nil {
		return ""
	}
	sum := sha256.New()
	for _, text := range s.texts {
		_, _ = io.WriteString(sum, text) // writing to a hash never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// HideSecrets makes messages redact the secrets of prompts and patterns. Call it before the scenario is used.
func (s *Scenario) HideSecrets(secrets SecretFinder) { s.excerpts.secrets = secrets }

// rankRulesBySimilarity returns the indexes of the rules, the most similar to the prompt first. Rules whose pattern matches come
// first, then rules with more matching parts, then rules with a smaller edit distance. Parts and distances are computed
// only for the 30 rules that share the most words with the prompt.
func rankRulesBySimilarity(rules []Rule, prompt string) (ruleIndexes []int) {
	type miss struct{ rule, words, passed, apart int }
	words := lowerCaseWordSet(prompt)
	misses := make([]miss, len(rules))
	for i := range misses {
		misses[i] = miss{rule: i, words: similarity(&rules[i], prompt, words)}
	}
	slices.SortStableFunc(misses, func(a, b miss) int { return cmp.Compare(b.words, a.words) })
	const measured = 30
	best := misses[:min(measured, len(misses))]
	for i := range best {
		r := &rules[best[i].rule]
		best[i].passed, _ = r.match.CountMatchingParts(prompt)
		if best[i].apart = match.MinEditDistanceToSubstring(r.Pattern.textForSimilarity(), prompt); r.Pattern.Type == PatternExact {
			best[i].apart = match.EditDistanceOfBeginnings(r.Pattern.textForSimilarity(), prompt)
		}
	}
	slices.SortStableFunc(best, func(a, b miss) int {
		return cmp.Or(cmp.Compare(b.words/similarityScoreOfMatchingPattern, a.words/similarityScoreOfMatchingPattern), cmp.Compare(b.passed, a.passed), cmp.Compare(a.apart, b.apart), cmp.Compare(b.words, a.words))
	})
	order := make([]int, len(misses))
	for i, m := range misses {
		order[i] = m.rule
	}
	return order
}

// similarityScoreOfMatchingPattern is the score of a rule with a matching pattern. It exceeds every score for shared words.
const similarityScoreOfMatchingPattern = 1 << 20

// similarity estimates how similar a rule is to a prompt. It returns similarityScoreOfMatchingPattern if the pattern matches,
// otherwise the total length of the words that they share.
func similarity(r *Rule, prompt string, promptWords map[string]bool) int {
	if _, ok := r.match.Match(prompt); ok {
		return similarityScoreOfMatchingPattern
	}
	score := 0
	for word := range lowerCaseWordSet(r.Pattern.String()) {
		if promptWords[word] {
			score += len(word)
		}
	}
	return score
}

func lowerCaseWordSet(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 0x80 && !isWordByte(byte(r)) }) {
		words[w] = true
	}
	return words
}

const maxRulesTriedWithoutIndex = 64

// candidateRules yields the indexes of the rules that may match a prompt, in order.
func (s *Scenario) candidateRules(prompt string) iter.Seq[int] {
	x := s.rules
	if x == nil || len(s.Responses) <= maxRulesTriedWithoutIndex || x.lookups.Add(1) == 1 {
		return func(yield func(int) bool) {
			for i := range s.Responses {
				if !yield(i) {
					return
				}
			}
		}
	}
	x.buildOnce.Do(func() {
		texts := make([]match.Pattern, len(s.Responses))
		for i := range s.Responses {
			texts[i] = s.Responses[i].match
		}
		x.index = match.NewPatternIndex(texts)
	})
	return x.index.Candidates(prompt)
}

// MCPConfigJSON returns the scenario's servers in the format of --mcp-config, for a claude that cannot read scenarios. Without
// servers, it is nil. A server with a fixture becomes a command of the program at the path executable. If recordsDir is not
// empty, each fixture records its messages in the subdirectory of recordsDir that has the URL-escaped name of the server.
func (s *Scenario) MCPConfigJSON(executable, recordsDir string) ([]byte, error) {
	if len(s.MCP.ServerNames()) == 0 {
		return nil, nil
	}
	servers := map[string]any{}
	for _, name := range s.MCP.ServerNames() {
		entry := maps.Clone(s.MCP.Servers[name])
		if fixture, ok := entry["fixture"].(string); ok {
			delete(entry, "fixture")
			if strings.ContainsAny(fixture, "./") {
				fixture = diag.JoinUnlessAbsolute(s.source.Dir, fixture)
			}
			args := []string{"fixture", "serve", fixture}
			if recordsDir != "" {
				args = append(args, "--record-dir", filepath.Join(recordsDir, url.PathEscape(name)))
			}
			entry["command"], entry["args"] = executable, args
		}
		servers[name] = entry
	}
	return json.Marshal(map[string]any{"mcpServers": servers})
}
