package launch

import (
	"cmp"

	"github.com/claudeless/claudeless/simulator/model"
)

// Name puts the model that the environment has for a short name in its place; no name at all is the default model.
func (a Aliases) Name(name string) string {
	switch name {
	case "", "default":
		return cmp.Or(a.Default, model.Default)
	case "opus":
		return cmp.Or(a.Opus, name)
	case "sonnet":
		return cmp.Or(a.Sonnet, name)
	case "haiku":
		return cmp.Or(a.Haiku, name)
	}
	return name
}

func (r *resolver) prompt() Prompt {
	return Prompt{
		System: r.f.SystemPrompt, Append: r.f.AppendSystemPrompt, Schema: r.f.JSONSchema, SchemaFlag: r.f.Has("json-schema"),
		SchemaTries: number(r.sys, "MAX_STRUCTURED_OUTPUT_RETRIES"),
	}
}

// model is flag or agent > environment > settings > scenario.
func (r *resolver) model() error {
	m := &r.p.Model
	m.Aliases = Aliases{
		Default: r.sys.Getenv("ANTHROPIC_DEFAULT_MODEL"), Opus: r.sys.Getenv("ANTHROPIC_DEFAULT_OPUS_MODEL"),
		Sonnet: r.sys.Getenv("ANTHROPIC_DEFAULT_SONNET_MODEL"), Haiku: r.sys.Getenv("ANTHROPIC_DEFAULT_HAIKU_MODEL"),
	}
	m.Name = m.Aliases.Name(cmp.Or(m.Asked, r.sys.Getenv("ANTHROPIC_MODEL"), r.p.Settings.Model, r.p.Scenario.DefaultModel))
	m.Fallback, m.Effort = r.f.FallbackModel, cmp.Or(r.f.Effort, "medium")
	return r.played()
}
