package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
	"github.com/claudeless/claudeless/scenarios/internal/toolname"
)

// Breakpoint stops calls of a tool and decides about them, as somebody at the
// debugger would (docs/debugging.md). Of the breakpoints that fit a call in a
// phase the first in file order decides. Calls that permission refuses do not
// get that far; those of sub-agents do. With `--debugger` as well these come
// first: the debugger is shown what they made of a call, and its result before
// they are.
type Breakpoint struct {
	// Tool is the name of the tool: a built-in (`Bash`), `mcp__server__tool`,
	// `server/tool` or the bare name of an MCP tool; or a glob over such names
	// (`mcp__fs__*`).
	Tool string `toml:"tool,required" empty:"no"`
	// Phase `before` stops calls before the tool runs, `after` when there is a
	// result: of the tool, failed or not, or of what was decided before.
	Phase string `toml:"phase" enum:"before,after" default:"before"`
	// When is an expression that must be true as well. It sees tool, phase,
	// input, session, call (id, tool_use_id, site.agent of a sub-agent, …),
	// and after the call result and error (null if it did not fail). One that
	// cannot be evaluated counts as false; a warning at the end of the run
	// tells of it.
	When string `toml:"when" empty:"no"`
	// MaxHits is how often it decides in a run; 0 = never, absent = always.
	// What comes after that is up to the breakpoints below it. Calls that count
	// run one after another.
	MaxHits *int `toml:"max_hits" min:"0"`
	// Action is what is decided: `continue`; `modify`, which needs `input` or,
	// after the call, `result`; `skip`, which needs `result`; `fail`, which
	// needs `message`; `replace`, which needs `replacement`. After the call
	// there is nothing to skip or to replace.
	Action string `toml:"action,required" enum:"continue,modify,skip,fail,replace"`
	// Input is the whole new input. In this and the keys below strings are
	// templates, which see the names of `when`.
	Input json.RawMessage `toml:"input" schema:"object|string"`
	// Result is the result of `skip`, and that of `modify` after the call: a
	// string is its text, anything else is shown as JSON; a list of content
	// blocks after the call is taken as such.
	Result json.RawMessage `toml:"result"`
	// Message is the text of the failed call.
	Message string `toml:"message"`
	// Replacement is the tool that runs instead, with the same input.
	Replacement string `toml:"replacement" empty:"no"`

	at     diag.Position
	index  int
	source *fill.Source
	lib    *fill.Library
}

// The phases and actions of a [Breakpoint].
const (
	BreakBefore   = "before"
	BreakAfter    = "after"
	BreakContinue = "continue"
	BreakModify   = "modify"
	BreakSkip     = "skip"
	BreakFail     = "fail"
	BreakReplace  = "replace"
)

// BindValue reads a breakpoint and checks that it has the keys of its action
// and no others.
func (k *Breakpoint) BindValue(v diag.Value, b *diag.Binding) {
	type plain Breakpoint
	b.Into(v, (*plain)(k))
	k.Phase = cmp.Or(k.Phase, BreakBefore)
	needs := ""
	switch {
	case k.Phase != BreakBefore && k.Phase != BreakAfter:
		return
	case k.Phase == BreakAfter && (k.Action == BreakSkip || k.Action == BreakReplace):
		action, _ := v.Field("action")
		b.Hintf(action, "it can be continue, modify or fail", "`%s` cannot come after the call: the tool has run", k.Action)
		return
	case k.Action == BreakModify && k.Phase == BreakBefore:
		needs = "input"
	case k.Action == BreakModify, k.Action == BreakSkip:
		needs = "result"
	case k.Action == BreakFail:
		needs = "message"
	case k.Action == BreakReplace:
		needs = "replacement"
	case k.Action != BreakContinue:
		return
	}
	what := fmt.Sprintf("a breakpoint with action `%s` %s the call", k.Action, k.Phase)
	for _, f := range v.Fields() {
		switch f.Key {
		case "input", "result", "message", "replacement":
			if f.Key != needs {
				b.KeyHintf(f, "", "%s has no `%s`", what, f.Key)
			}
		}
	}
	if _, there := v.Field(needs); !there && needs != "" {
		b.Errorf(v, "missing key `%s` in %s", needs, what)
	}
}

// Names are the names, and globs, of canonical tool names that Tool stands for.
func (k *Breakpoint) Names() []string { return toolname.Forms(k.Tool) }

// Place says where the breakpoint stands: "FILE:LINE", or its number in a
// scenario that is from no file.
func (k *Breakpoint) Place() string {
	if k.at.File == "" {
		return fmt.Sprintf("breakpoints[%d]", k.index)
	}
	return fmt.Sprintf("%s:%d", k.at.File, k.at.Line)
}

// Fill returns the breakpoint with the templates of its action filled in from
// the names at the pause, see [eval.Breakpoint].
func (k *Breakpoint) Fill(ctx context.Context, names map[string]any) (Breakpoint, error) {
	filled := *k
	ctx = eval.Together(ctx)
	s := &fill.Scope{Library: k.lib, Source: k.source, Groups: fill.AtBreakpoint, Vars: names}
	var err error
	if filled.Input, err = s.JSON(ctx, k.Input); err != nil {
		return filled, fmt.Errorf("input: %w", err)
	}
	if filled.Result, err = s.JSON(ctx, k.Result); err != nil {
		return filled, fmt.Errorf("result: %w", err)
	}
	if filled.Message, err = s.Text(ctx, k.Message); err != nil {
		return filled, fmt.Errorf("message: %w", err)
	}
	if filled.Replacement, err = s.Text(ctx, k.Replacement); err != nil {
		return filled, fmt.Errorf("replacement: %w", err)
	}
	return filled, nil
}
