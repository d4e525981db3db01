package claudecode

import (
	"cmp"
	_ "embed" // for models.json
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultModel is the model of a run that does not choose one.
const DefaultModel = "claude-opus-5-5"

// ModelFacts are the CLI's data about a model (observed with 2.1.329).
type ModelFacts struct {
	// Name is the model without date, provider or variant. Unknown models keep their full name.
	Name string
	// InputPrice, OutputPrice and CacheReadPrice are in dollars per million tokens.
	InputPrice, OutputPrice, CacheReadPrice float64
	// LongPrompt is the largest prompt in tokens that has these prices; a larger one costs LongPromptFactor times as much. 0 means no limit.
	LongPrompt               int
	LongPromptFactor         float64
	ContextWindow, MaxOutput int    // in tokens
	IsKnown                  bool   // false for models that the CLI warns about
	HasListPrice             bool   // true if the prices are from the price list of the model; the CLI assumes prices for other models
	EffortPerTurn            bool   // true if the effort can change from turn to turn
	HasTaskList              bool   // true if the model is offered the tools of the task list
	ReadsBeforeChange        bool   // true if the model must read a file before it changes it (observed with 2.1.330)
	RemindedOfSilence        bool   // true if the CLI reminds the model after several replies without text (observed with 2.1.330)
	DefaultEffort            string // the level without a setting; empty means the model has no effort levels
	HasFastMode              bool   // true if fast mode is available
	HasUltracode             bool   // true if the mode ultracode is available
	KnowledgeCutoff          string // a month; empty means unknown
	Context                  ContextTokenCounts
	Retirement               Retirement
	Prompts                  ModelPromptFacts
}

// ModelPromptFacts specify what the CLI tells a model (observed with 2.1.330).
type ModelPromptFacts struct {
	ToldRemainingTokens     bool   // each request says how many tokens are left
	PreferBash              string // how strongly the CLI asks the model to prefer Bash if nobody approves calls: "relaxed", "strict" or "" (not at all)
	AutoModeWithoutBashHint bool   // the explanation of mode auto does not ask the model to prefer Bash
	// TextAfterToolBlocks and NoConcurrencyNote are recorded in the lists of tools and agents.
	TextAfterToolBlocks, NoConcurrencyNote bool
}

// Retirement is the end of a model's availability, with the name that the CLI's notice uses; zero means unknown.
type Retirement struct{ Name, Date string }

// Notice returns the line about the retirement that runs with text output print on stderr; empty means none (observed with 2.1.330).
func (r Retirement) Notice(now time.Time) string {
	date, err := time.Parse(time.DateOnly, r.Date)
	if err != nil {
		return ""
	}
	verb := "was"
	if now.Before(date) {
		verb = "will be"
	}
	return fmt.Sprintf("⚠ %s %s retired on %s. Consider switching to a newer model.\n", r.Name, verb, date.Format("January 2, 2006"))
}

// ContextTokenCounts are what /context shows for a model, in tokens (observed with 2.1.330).
type ContextTokenCounts struct {
	// SystemPrompt is the CLI's prompt. AllTools are the tools and built-in skills, LoadedTools the same without the tools that ToolSearch
	// finds, and DeferredTools only the latter; if it is 0, the model has no ToolSearch. In the modes bypassPermissions, auto and plan,
	// the tools have LessInUnattendedModes fewer tokens.
	SystemPrompt, AllTools, LoadedTools, DeferredTools, LessInUnattendedModes int
	AddedByFirstRequest                                                       int  // part of the tools that a session without requests lacks
	CharsPerToken                                                             int  // how many characters of a skill's description count as one token
	NoBuffer                                                                  bool // true if no tokens are reserved for compaction
}

// SkillTokens estimates the tokens of a skill from the length of its description.
func (f ContextTokenCounts) SkillTokens(chars int) int {
	return (chars + f.CharsPerToken/2) / f.CharsPerToken
}

const defaultContextWindow, million = 200_000, 1_000_000

//go:embed models.json
var modelTable string

// knownModels are the models that the CLI knows. Opus 4.8 and all models since generation 5 have no task list.
var knownModels = tableFromJSON[ModelFacts](modelTable)

// FactsOfModel returns the facts of a model by its full name, with or without date, provider and variant.
func FactsOfModel(name string) ModelFacts {
	base, long := strings.CutSuffix(name, "[1m]")
	bare := CanonicalModelName(base)
	for _, f := range knownModels() {
		if f.Name == bare {
			if long {
				f.Context.NoBuffer, f.ContextWindow = f.Context.NoBuffer || f.ContextWindow < million, million
			}
			return f
		}
	}
	return ModelFacts{
		Name: name, InputPrice: 4, OutputPrice: 20, CacheReadPrice: 0.2, ContextWindow: million, MaxOutput: 32_000, DefaultEffort: "high", HasUltracode: true,
		Context: ContextTokenCounts{SystemPrompt: 1783, AllTools: 15_094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3},
	}
}

// ThinkingMode returns how the model may think: "adaptive", "enabled" with a budget of tokens, or "" if it does not.
func (f ModelFacts) ThinkingMode() (adaptiveEnabledOrEmpty string) {
	switch {
	case strings.HasPrefix(f.Name, "claude-3-"):
		return ""
	case strings.HasSuffix(f.Name, "-4-5"), strings.HasSuffix(f.Name, "-4-1"), strings.HasSuffix(f.Name, "-4-0"):
		return "enabled"
	}
	return "adaptive"
}

// Thinking is how a session lets models think. The zero value lets each model think as much as it can.
type Thinking struct {
	Off bool // means that no model thinks
	// Budget is the number of tokens for models whose mode is "enabled": 0 means that they do not think, and nil means the
	// largest budget. It has no effect on other models (observed with 2.1.330).
	Budget *int
}

// Mode returns how a model thinks: as [ModelFacts.ThinkingMode], or "disabled" for a model whose budget is 0.
func (t Thinking) Mode(f ModelFacts) string {
	mode := f.ThinkingMode()
	switch {
	case t.Off:
		return ""
	case mode == "enabled" && t.Budget != nil && *t.Budget == 0:
		return "disabled"
	}
	return mode
}

// LetsModelThink reports whether the session lets a model think, adaptively or with a budget.
func (t Thinking) LetsModelThink(f ModelFacts) bool {
	return !slices.Contains([]string{"", "disabled"}, t.Mode(f))
}

// HasAutoMode reports whether an interactive session with the model may be in permission mode auto (observed with
// 2.1.330). Only models that think adaptively may.
func (f ModelFacts) HasAutoMode() bool { return f.ThinkingMode() == "adaptive" }

// TokensOfSession is the number of tokens that the CLI tells a model at the start (observed with 2.1.330).
const TokensOfSession = 15_000_000

// KnownModels lists the models of the CLI, the newest first.
func KnownModels() []ModelFacts { return slices.Clone(knownModels()) }

// Cost returns the price of a reply in dollars. cacheRead and cacheCreated are the input tokens read from the prompt cache, and written to
// it for five minutes (at five quarters of the normal price). It adds in the same order as the real CLI, so that the last digits of the
// float64 are the same.
func (f ModelFacts) Cost(input, output, cacheRead, cacheCreated int) float64 {
	factor := 1.0
	if f.LongPrompt > 0 && input+cacheRead+cacheCreated > f.LongPrompt {
		factor = f.LongPromptFactor
	}
	return float64(input)/million*(f.InputPrice*factor) + float64(output)/million*(f.OutputPrice*factor) +
		float64(cacheRead)/million*(f.CacheReadPrice*factor) + float64(cacheCreated)/million*(f.InputPrice*factor*1.25)
}

// CanonicalModelName returns a model name in lower case, without provider, date and deployment version: claude-sonnet-4-5 for
// us.anthropic.claude-sonnet-4-5-20250929-v1:0.
func CanonicalModelName(name string) string {
	at := strings.LastIndex(strings.ToLower(name), "claude-")
	if at < 0 {
		return name
	}
	parts := strings.Split(strings.ToLower(name[at:]), "-")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		return part == "latest" || len(part) == len("20250929") && strings.Trim(part, "0123456789") == "" ||
			len(part) > 1 && part[0] == 'v' && strings.Trim(part[1:], "0123456789:") == ""
	})
	joined := strings.Join(parts, "-")
	if joined == "claude-sonnet-4" || joined == "claude-opus-4" {
		joined += "-0"
	}
	return joined
}

// IsLegacyOpus reports whether the CLI replaces a model by the latest Opus, unless a variable forbids it (observed with 2.1.330).
func IsLegacyOpus(name string) bool {
	return slices.Contains([]string{"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-20250514", "claude-opus-4-1-20250805"}, strings.TrimSuffix(strings.ToLower(name), "[1m]"))
}

// ResolveModel returns the full name of the model that a user has named. A short name, such as opus, may be in upper or lower
// case. It returns other names unchanged, except that it removes a suffix [1m] that makes no difference.
func ResolveModel(name string) string {
	name = strings.TrimSpace(name)
	alias := strings.TrimSuffix(strings.ToLower(name), "[1m]")
	alias = cmp.Or(map[string]string{"": "default", "best": "opus", "opusplan": "sonnet"}[alias], alias)
	for _, m := range pickerModels() {
		if m.Value == alias {
			return m.ResolvedModel
		}
	}
	if base, long := strings.CutSuffix(name, "[1m]"); long && FactsOfModel(base).IsKnown && FactsOfModel(base).ContextWindow == million {
		return base // the model has this context window anyway
	}
	return name
}

var modelFamilies = [...]string{"fable", "haiku", "opus", "sonnet"}

// IsFamilyAliasOfModel reports whether alias names the family of a model. An agent whose model is such an alias of the session's model
// uses the session's model (observed with 2.1.330).
func IsFamilyAliasOfModel(alias, model string) bool {
	alias = strings.ToLower(alias)
	return slices.Contains(modelFamilies[:], alias) && strings.Contains(ResolveModel(model), alias)
}

// ResolveModelInPlanMode is [ResolveModel] for requests in plan mode. There, haiku means sonnet and opusplan means opus.
func ResolveModelInPlanMode(requestedName string) string {
	return ResolveModel(cmp.Or(map[string]string{"haiku": "sonnet", "opusplan": "opus"}[strings.ToLower(strings.TrimSpace(requestedName))], requestedName))
}

// AvailableModels are the models that the settings let a user choose: families such as "sonnet", or beginnings of model names. nil means
// all models. The default model is always available (observed with 2.1.330).
type AvailableModels []string

// ReplacementIfUnavailable returns the model that replaces a requested one that is not available. If the user requested a family, it is the newest
// listed model of the family that is not retired, else the default model.
func (a AvailableModels) ReplacementIfUnavailable(requested string) (model string, isReplaced bool) {
	requested = strings.ToLower(strings.TrimSpace(requested))
	if a == nil || slices.Contains([]string{"", "default", "opus", DefaultModel}, requested) || a.includes(CanonicalModelName(ResolveModel(requested))) {
		return "", false
	}
	for _, f := range knownModels() {
		if IsFamilyAliasOfModel(requested, f.Name) && f.Retirement.Date == "" && a.includes(f.Name) {
			return f.Name, true
		}
	}
	return DefaultModel, true
}

// includes reports whether the list has a beginning of a model's name or, without names of other models of the family, its family.
func (a AvailableModels) includes(model string) bool {
	hasFamily, hasOtherModel := false, false
	for _, entry := range a {
		entry = strings.ToLower(strings.TrimSpace(entry))
		isOfFamily := slices.ContainsFunc(modelFamilies[:], func(family string) bool { return strings.Contains(entry, family) && strings.Contains(model, family) })
		switch {
		case slices.Contains(modelFamilies[:], entry):
			hasFamily = hasFamily || isOfFamily
		case entry == model, strings.HasPrefix(model+"-", "claude-"+strings.TrimPrefix(entry, "claude-")+"-"):
			return true
		default:
			hasOtherModel = hasOtherModel || isOfFamily
		}
	}
	return hasFamily && !hasOtherModel
}

// RequestedNameUnlessDefault returns the name by which the user requested a model, which the CLI shows next to the resolved name. The
// result is empty if the user requested the default model.
func RequestedNameUnlessDefault(name string) string {
	name = strings.TrimSpace(name)
	lower := strings.ToLower(name)
	switch strings.TrimSuffix(lower, "[1m]") {
	case "", "default":
		return ""
	case "opus", "best", "sonnet", "opusplan", "haiku", "fable":
		return lower
	}
	return name
}

// WireModel returns the name of a resolved model in requests and responses: without the variant [1m].
func WireModel(resolved string) string { return strings.TrimSuffix(resolved, "[1m]") }

// ModelDisplayName returns a model's display name: "Opus 5.5" for claude-opus-5-5, dated or not. Unknown names are kept.
func ModelDisplayName(name string) string {
	bare := strings.TrimPrefix(CanonicalModelName(name), "claude-")
	if parts := strings.Split(bare, "-"); len(parts) == 3 && parts[0] == "3" { // 3-7-sonnet
		bare = parts[2] + "-3-" + parts[1]
	}
	family, version, ok := strings.Cut(bare, "-")
	if !ok || !strings.HasPrefix(name, "claude-") || strings.Trim(version, "0123456789-") != "" {
		return name
	}
	return strings.ToUpper(family[:1]) + family[1:] + " " + strings.ReplaceAll(strings.TrimSuffix(version, "-0"), "-", ".")
}
