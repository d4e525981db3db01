package claudecode_test

import (
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/google/go-cmp/cmp"
)

// Observed with 2.1.329: the names of init, of the API and of modelUsage.
func TestNames(t *testing.T) {
	tests := []struct{ given, resolved, wire, bare string }{
		{"", "claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5"},
		{"OPUS", "claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5"},
		{"sonnet[1m]", "claude-sonnet-5-5", "claude-sonnet-5-5", "claude-sonnet-5-5"},
		{" Sonnet ", "claude-sonnet-5-5", "claude-sonnet-5-5", "claude-sonnet-5-5"},
		{"claude-opus-5-5[1m]", "claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5"},
		{"opusplan", "claude-sonnet-5-5", "claude-sonnet-5-5", "claude-sonnet-5-5"},
		{"claude-opus-4-1-20250805", "claude-opus-4-1-20250805", "claude-opus-4-1-20250805", "claude-opus-4-1"},
		{"claude-opus-4-20250514", "claude-opus-4-20250514", "claude-opus-4-20250514", "claude-opus-4-0"},
		{"claude-opus-4-5-20251101", "claude-opus-4-5-20251101", "claude-opus-4-5-20251101", "claude-opus-4-5"},
		{"claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"},
		{"claude-sonnet-4-20250514", "claude-sonnet-4-20250514", "claude-sonnet-4-20250514", "claude-sonnet-4-0"},
		{"claude-3-5-haiku-latest", "claude-3-5-haiku-latest", "claude-3-5-haiku-latest", "claude-3-5-haiku"},
		{"anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5", "claude-sonnet-5"},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"},
		{"sonnet-4-5", "sonnet-4-5", "sonnet-4-5", "sonnet-4-5"},
	}
	for _, tt := range tests {
		resolved := claudecode.ResolveModel(tt.given)
		got := []string{resolved, claudecode.WireModel(resolved), claudecode.FactsOfModel(resolved).Name}
		if diff := cmp.Diff([]string{tt.resolved, tt.wire, tt.bare}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.given, diff)
		}
	}
}

func TestFacts(t *testing.T) {
	tests := map[string]claudecode.ModelFacts{
		"claude-haiku-5-5":               {"claude-haiku-5-5", 0.1, 0.5, 0.01, 100_000, 5, 1_000_000, 128_000, true, true, true, false, false, false, "medium", false, true, "June 2026", claudecode.ContextTokenCounts{SystemPrompt: 2511, AllTools: 15094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{ToldRemainingTokens: true}},
		"claude-haiku-4-5-20251001":      {"claude-haiku-4-5", 1, 5, 0.1, 0, 0, 200_000, 32_000, true, true, false, true, true, false, "", false, false, "February 2025", claudecode.ContextTokenCounts{SystemPrompt: 7265, AllTools: 21788, LoadedTools: 11774, DeferredTools: 4627, AddedByFirstRequest: 164, CharsPerToken: 4, NoBuffer: true}, claudecode.Retirement{}, claudecode.ModelPromptFacts{ToldRemainingTokens: true}},
		"claude-sonnet-4-5-20250929[1m]": {"claude-sonnet-4-5", 3, 15, 0.3, 0, 0, 1_000_000, 32_000, true, true, false, true, true, false, "", false, false, "January 2025", claudecode.ContextTokenCounts{SystemPrompt: 7265, AllTools: 21788, LoadedTools: 11774, DeferredTools: 4627, AddedByFirstRequest: 164, CharsPerToken: 4, NoBuffer: true}, claudecode.Retirement{Name: "Claude Sonnet 4.5", Date: "2026-11-30"}, claudecode.ModelPromptFacts{ToldRemainingTokens: true}},
		"claude-opus-4-8":                {"claude-opus-4-8", 5, 25, 0.5, 0, 0, 1_000_000, 64_000, true, true, false, false, false, false, "high", true, true, "January 2026", claudecode.ContextTokenCounts{SystemPrompt: 1787, AllTools: 15091, LoadedTools: 7758, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{ToldRemainingTokens: true, TextAfterToolBlocks: true}},
		"claude-mythos-5-2":              {"claude-mythos-5-2", 8, 40, 0.2, 0, 0, 1_000_000, 128_000, true, true, true, false, false, false, "medium", true, true, "June 2026", claudecode.ContextTokenCounts{SystemPrompt: 2842, AllTools: 15094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{}},
		"claude-fable-5-1":               {"claude-fable-5-1", 10, 50, 0.25, 0, 0, 1_000_000, 64_000, true, true, true, false, false, true, "high", false, true, "June 2026", claudecode.ContextTokenCounts{SystemPrompt: 3361, AllTools: 15094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{ToldRemainingTokens: true, PreferBash: "strict"}},
		"claude-sonnet-4-6":              {"claude-sonnet-4-6", 3, 15, 0.3, 0, 0, 200_000, 32_000, true, true, false, true, false, false, "high", false, false, "August 2025", claudecode.ContextTokenCounts{SystemPrompt: 7265, AllTools: 21788, LoadedTools: 11774, DeferredTools: 4627, AddedByFirstRequest: 164, CharsPerToken: 4}, claudecode.Retirement{}, claudecode.ModelPromptFacts{ToldRemainingTokens: true, AutoModeWithoutBashHint: true}},
		"claude-3-opus-20240229":         {"claude-3-opus", 4, 20, 0.2, 0, 0, 200_000, 4096, true, false, false, true, false, false, "", false, false, "", claudecode.ContextTokenCounts{SystemPrompt: 7245, AllTools: 22087, LoadedTools: 11774, AddedByFirstRequest: 100, CharsPerToken: 4, NoBuffer: true}, claudecode.Retirement{Name: "Claude 3 Opus", Date: "2026-01-05"}, claudecode.ModelPromptFacts{ToldRemainingTokens: true}},
		"claude-haiku-5":                 {"claude-haiku-5", 4, 20, 0.2, 0, 0, 1_000_000, 32_000, false, false, false, false, false, false, "high", false, true, "", claudecode.ContextTokenCounts{SystemPrompt: 1783, AllTools: 15094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{}},
		"made-up":                        {"made-up", 4, 20, 0.2, 0, 0, 1_000_000, 32_000, false, false, false, false, false, false, "high", false, true, "", claudecode.ContextTokenCounts{SystemPrompt: 1783, AllTools: 15094, LoadedTools: 7761, DeferredTools: 3960, AddedByFirstRequest: 155, CharsPerToken: 3}, claudecode.Retirement{}, claudecode.ModelPromptFacts{}},
	}
	for name, want := range tests {
		if diff := cmp.Diff(want, claudecode.FactsOfModel(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRetirementNotice(t *testing.T) {
	r := claudecode.FactsOfModel("claude-3-5-haiku-20241022").Retirement
	day := time.Date(2026, 2, 19, 0, 0, 0, 0, time.UTC)
	for now, verb := range map[time.Time]string{day: "was", day.Add(-time.Second): "will be"} {
		if got := r.Notice(now); got != "⚠ Claude 3.5 Haiku "+verb+" retired on February 19, 2026. Consider switching to a newer model.\n" {
			t.Errorf("at %v: %q", now, got)
		}
	}
}

func TestDisplay(t *testing.T) {
	for name, want := range map[string]string{"claude-opus-5-5": "Opus 5.5", "claude-haiku-4-5-20251001": "Haiku 4.5", "claude-sonnet-4-0": "Sonnet 4", "claude-3-opus": "claude-3-opus", "made-up": "made-up"} {
		if got := claudecode.ModelDisplayName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Observed with 2.1.329: how a change of the model names the requested model.
func TestRequestedModelLabel(t *testing.T) {
	for given, want := range map[string]string{
		"": "", " default": "", "Sonnet": "sonnet", "opus[1m]": "opus[1m]", "claude-opus-4-1": "claude-opus-4-1", "nosuch": "nosuch",
	} {
		if got := claudecode.RequestedNameUnlessDefault(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// Observed with 2.1.330: only the short names have another model in plan mode.
func TestPlanningModel(t *testing.T) {
	for given, want := range map[string]string{
		"haiku": "claude-sonnet-5-5", "OpusPlan": "claude-opus-5-5", "claude-haiku-5-5": "claude-haiku-5-5", "sonnet": "claude-sonnet-5-5",
	} {
		if got := claudecode.ResolveModelInPlanMode(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// The costs equal those of the real CLI to the last digit (observed with 2.1.330). A long prompt of Haiku 5.5 costs five times as much.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		model                       string
		input, output, read, create int
		want                        float64
	}{
		{"claude-opus-5-5", 10, 5, 0, 0, 0.00014000000000000001},
		{"claude-opus-5-5", 0, 0, 1_000_000, 0, 0.2},
		{"claude-sonnet-5-5", 0, 0, 1_000_000, 0, 0.1},
		{"claude-fable-5-2", 0, 0, 1_000_000, 0, 0.2},
		{"claude-fable-5-1", 0, 0, 1_000_000, 0, 0.25},
		{"claude-opus-4-5", 0, 0, 1_000_000, 1_000_000, 6.75},
		{"claude-haiku-5-5", 40_000, 0, 30_000, 30_000, 0.00805},
		{"claude-haiku-5-5", 40_001, 10, 30_000, 30_000, 0.040275500000000006},
	} {
		if got := claudecode.FactsOfModel(test.model).Cost(test.input, test.output, test.read, test.create); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

// TestThinkingMode checks how a model with a budget and one without think under each setting (observed with 2.1.330).
func TestThinkingMode(t *testing.T) {
	budget, adaptive := claudecode.FactsOfModel("claude-sonnet-4-5"), claudecode.FactsOfModel("claude-opus-5-5")
	for _, test := range []struct {
		thinking               claudecode.Thinking
		wantBudget, wantOthers string
	}{
		{claudecode.Thinking{}, "enabled", "adaptive"},
		{claudecode.Thinking{Budget: new(3000)}, "enabled", "adaptive"},
		{claudecode.Thinking{Budget: new(0)}, "disabled", "adaptive"},
		{claudecode.Thinking{Off: true}, "", ""},
	} {
		got := [2]string{test.thinking.Mode(budget), test.thinking.Mode(adaptive)}
		if got != [2]string{test.wantBudget, test.wantOthers} {
			t.Errorf("%+v: %q", test.thinking, got)
		}
		if shown := test.thinking.LetsModelThink(budget); shown != (test.wantBudget == "enabled") {
			t.Errorf("%+v: shown %v", test.thinking, shown)
		}
	}
}
