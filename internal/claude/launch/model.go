package launch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// ResolveModelName resolves an alias to the model that the environment defines for it. Empty means the default model.
func (a Aliases) ResolveModelName(name string) string {
	switch name {
	case "", "default":
		return cmp.Or(a.Default, claudecode.DefaultModel)
	case "opus":
		return cmp.Or(a.Opus, name)
	case "sonnet":
		return cmp.Or(a.Sonnet, name)
	case "haiku":
		return cmp.Or(a.Haiku, name)
	}
	return name
}

func systemPrompt(sys *process.System, f *flags.Flags) SystemPrompt {
	return SystemPrompt{System: f.SystemPrompt, Append: f.AppendSystemPrompt, Schema: f.JSONSchema, SchemaFlag: f.Has("json-schema"), SchemaAttempts: envInt(sys, "MAX_STRUCTURED_OUTPUT_RETRIES")}
}

// initialModel returns the model at the start: from a flag or agent, else the environment, settings or scenario.
func initialModel(sys *process.System, f *flags.Flags, p *Plan) Model {
	m := p.Model
	m.Aliases = Aliases{
		Default: sys.Getenv("ANTHROPIC_DEFAULT_MODEL"), Opus: sys.Getenv("ANTHROPIC_DEFAULT_OPUS_MODEL"),
		Sonnet: sys.Getenv("ANTHROPIC_DEFAULT_SONNET_MODEL"), Haiku: sys.Getenv("ANTHROPIC_DEFAULT_HAIKU_MODEL"),
	}
	m.IsExplicit = cmp.Or(m.Requested, sys.Getenv("ANTHROPIC_MODEL")) != ""
	m.Name = cmp.Or(m.Requested, sys.Getenv("ANTHROPIC_MODEL"), p.Settings.Model, p.Scenario.DefaultModel)
	if m.Name == "" && m.Aliases.Default == "" {
		m.Name = p.Profile.Environment().DefaultModel()
	}
	m.Name = m.Aliases.ResolveModelName(m.Name)
	m.Subagents = sys.Getenv("CLAUDE_CODE_SUBAGENT_MODEL")
	m.Betas = f.Betas
	for name := range strings.SplitSeq(f.FallbackModel, ",") {
		if name = strings.TrimSpace(name); name != "" {
			m.Fallbacks = append(m.Fallbacks, name)
		}
	}
	if level := strings.ToLower(cmp.Or(sys.Getenv("CLAUDE_CODE_EFFORT_LEVEL"), f.Effort)); slices.Contains(claudecode.EffortLevels(), level) {
		m.Effort = level
	}
	return m
}
