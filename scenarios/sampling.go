package scenarios

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/match"
)

// BindValue reads an answer and checks that it has either a text or an error.
func (a *Sampling) BindValue(v diag.Value, b *diag.Binding) {
	type plain Sampling
	b.Into(v, (*plain)(a))
	_, text := v.Field("text")
	failure, refused := v.Field("error")
	switch {
	case text && refused:
		b.Errorf(failure, "an answer has either `text` or `error`")
	case !text && !refused:
		b.Errorf(v, "an answer needs `text` or `error`")
	}
}

// sampling compiles the answers to sampling requests.
func (c *compiler) sampling(all []Sampling) {
	for i := range all {
		c.in(i, func() {
			a := &all[i]
			a.compiledRule = compiledRule{source: c.src, index: i, match: match.Any()}
			if a.Pattern != nil {
				a.match = c.pattern(a.Pattern, "pattern")
			}
			a.groups = groupsOf(a.match.GroupNames())
			c.groups = a.groups
			c.in("text", func() { c.template(a.Text) })
			c.in("error", func() { c.template(a.Error) })
			c.groups = ""
		})
	}
}

// Sampler answers what MCP servers ask of the model. It keeps no state and may
// be asked from many goroutines.
type Sampler struct{ engine *Engine }

// NewSampler makes the sampler of a scenario; nil when the scenario has no
// answers.
func NewSampler(s *Scenario, o EngineOptions) *Sampler {
	if len(s.MCP.Sampling) == 0 {
		return nil
	}
	return &Sampler{NewEngine(s, o)}
}

// Answer gives the first answer for a server, by its raw name, and the text of
// its last message, with the templates filled in; nil = there is none. The
// error is for expressions that fail while they run.
func (s *Sampler) Answer(ctx context.Context, server, prompt string) (*Sampling, error) {
	all := s.engine.s.MCP.Sampling
	for i := range all {
		a := all[i]
		if a.Server != "" && a.Server != server {
			continue
		}
		c, ok := a.match.Match(prompt)
		if !ok {
			continue
		}
		sc := s.engine.scope(&a.compiledRule, c, s.engine.vars(Request{Prompt: prompt}))
		var err error
		if a.Text, err = sc.text(ctx, a.Text); err == nil {
			a.Error, err = sc.text(ctx, a.Error)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp.sampling[%d]: %w", i, err)
		}
		return &a, nil
	}
	return nil, nil //nolint:nilnil // no answer is no error
}
