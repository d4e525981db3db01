package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// Breakpoint stops calls of a tool and decides about them, like a person at the debugger (docs/debugging.md). If
// several breakpoints match a call in the same phase, the first in file order decides. Calls of sub-agents are stopped
// too. Calls that permissions deny are not stopped. With `--debugger`, a breakpoint and the debugger may both decide
// about a call: before the call, the breakpoint decides first; after the call, the debugger decides first.
type Breakpoint struct {
	// Tool is the name of the tool: a built-in (`Bash`), `mcp__server__tool`, `server/tool` or the bare name of an
	// MCP tool; or a glob over such names (`mcp__fs__*`).
	Tool string `toml:"tool,required" empty:"no"`
	// Phase is when calls are stopped: `before` the tool runs, or `after` it, when the result is available. The phase
	// `after` also includes calls that failed, and calls whose result comes from the decision before the call.
	Phase string `toml:"phase" enum:"before,after" default:"before"`
	// When is a condition that must also be true. Its variables are tool, phase, input, session and call (id,
	// tool_use_id, site.agent of a sub-agent, …); after the call also result and error (null if the call did not fail).
	// A condition that cannot be evaluated counts as false and is reported by a warning at the end of the run.
	When string `toml:"when" empty:"no"`
	// MaxHits limits how often the breakpoint decides in a run; 0 means never; the default is no limit. When the limit is reached, the
	// later breakpoints in the file decide. With a limit, calls of the tool run one after another.
	MaxHits *int `toml:"max_hits" min:"0"`
	// Action is the decision: `continue`; `modify` needs `input` or, after the call, `result`; `skip` needs `result`;
	// `fail` needs `message`; `replace` needs `replacement`. `skip` and `replace` are possible only before the call.
	Action string `toml:"action,required" enum:"continue,modify,skip,fail,replace"`
	// Input is the complete new input. In this and later keys, strings are templates with the variables of `when`.
	Input json.RawMessage `toml:"input" schema:"object|string"`
	// Result is the result of `skip`, and of `modify` after the call. A string becomes the text of the result. After
	// the call, a list of content blocks becomes its content. Any other value is shown as JSON.
	Result json.RawMessage `toml:"result"`
	// Message is the text of the failed call.
	Message string `toml:"message"`
	// Replacement is the tool that runs instead, with the same input.
	Replacement string `toml:"replacement" empty:"no"`

	at     diag.Position
	index  int
	source *fill.ScenarioFile
	lib    *fill.CompiledExpressions
}

// The phases and actions of a [Breakpoint].
const (
	BreakBefore      = "before"
	BreakAfter       = "after"
	BreakContinue    = "continue"
	BreakModify      = "modify"
	BreakSkip        = "skip"
	BreakFail        = "fail"
	BreakReplaceTool = "replace"
)

// BindValue reads a breakpoint and checks that it has exactly the keys of its action.
func (k *Breakpoint) BindValue(v diag.Value, b *diag.BindRun) {
	type plain Breakpoint
	b.BindInto(v, (*plain)(k))
	k.Phase = cmp.Or(k.Phase, BreakBefore)
	needs := ""
	switch {
	case k.Phase != BreakBefore && k.Phase != BreakAfter:
		return
	case k.Phase == BreakAfter && (k.Action == BreakSkip || k.Action == BreakReplaceTool):
		action, _ := v.Field("action")
		b.ErrorWithHintf(action, "use continue, modify or fail", "`%s` is not possible after the call: the tool has already run", k.Action)
		return
	case k.Action == BreakModify && k.Phase == BreakBefore:
		needs = "input"
	case k.Action == BreakModify, k.Action == BreakSkip:
		needs = "result"
	case k.Action == BreakFail:
		needs = "message"
	case k.Action == BreakReplaceTool:
		needs = "replacement"
	case k.Action != BreakContinue:
		return
	}
	what := fmt.Sprintf("a breakpoint with action `%s` %s the call", k.Action, k.Phase)
	for _, f := range v.Fields() {
		switch f.Key {
		case "input", "result", "message", "replacement":
			if f.Key != needs {
				b.KeyErrorWithHintf(f, "", "%s cannot have `%s`", what, f.Key)
			}
		}
	}
	if _, there := v.Field(needs); !there && needs != "" {
		b.Errorf(v, "missing key `%s` in %s", needs, what)
	}
}

// Names returns globs that match the canonical names of all tools that Tool selects.
func (k *Breakpoint) Names() (toolNameGlobs []string) { return globsForCanonicalToolNames(k.Tool) }

// SourcePosition returns where the breakpoint is: "FILE:LINE", or its number if the scenario has no file.
func (k *Breakpoint) SourcePosition() string {
	if k.at.File == "" {
		return fmt.Sprintf("breakpoints[%d]", k.index)
	}
	return fmt.Sprintf("%s:%d", k.at.File, k.at.Line)
}

// WithEvaluatedTemplates returns a copy of the breakpoint in which the templates of its action are evaluated. variables describe the stopped call, see
// [eval.ToolCallEnv].
func (k *Breakpoint) WithEvaluatedTemplates(ctx context.Context, variables map[string]any) (Breakpoint, error) {
	filled := *k
	ctx = eval.WithOutputLimitAndMissingPaths(ctx)
	s := &fill.Scope{Library: k.lib, Source: k.source, Groups: fill.GroupsMarkerOfBreakpointExpressions, Vars: variables}
	var err error
	if filled.Input, err = s.RenderJSON(ctx, k.Input); err != nil {
		return filled, fmt.Errorf("input: %w", err)
	}
	if filled.Result, err = s.RenderJSON(ctx, k.Result); err != nil {
		return filled, fmt.Errorf("result: %w", err)
	}
	if filled.Message, err = s.RenderText(ctx, k.Message); err != nil {
		return filled, fmt.Errorf("message: %w", err)
	}
	if filled.Replacement, err = s.RenderText(ctx, k.Replacement); err != nil {
		return filled, fmt.Errorf("replacement: %w", err)
	}
	return filled, nil
}

// globsForCanonicalToolNames returns globs for the canonical names of a tool. configuredName is a canonical name, a name in
// the form server/tool, or the bare name of an MCP tool. A bare name selects the tools of this name of all servers.
func globsForCanonicalToolNames(configuredName string) []string {
	if configuredName == "" {
		return nil
	}
	if server, tool, ok := strings.Cut(configuredName, "/"); ok {
		return []string{configuredName, "mcp__" + canonicalToolPart(server, punctuationKeptInToolNameGlobs) + "__" + canonicalToolPart(tool, punctuationKeptInToolNameGlobs)}
	}
	if strings.HasPrefix(configuredName, "mcp__") {
		return []string{configuredName}
	}
	return []string{configuredName, "mcp__*__" + configuredName}
}

// CanonicalToolName converts server/tool to the canonical name of the tool. Other names are returned unchanged.
func CanonicalToolName(name string) string {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return "mcp__" + canonicalToolPart(server, "-") + "__" + canonicalToolPart(tool, "-")
	}
	return name
}

// punctuationKeptInToolNameGlobs are the characters that [globsForCanonicalToolNames] does not replace by underscores.
const punctuationKeptInToolNameGlobs = "-*?[]!"

// canonicalToolPart replaces characters by underscores, except ASCII letters, digits, underscores and those in kept.
func canonicalToolPart(s, kept string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && isWordByte(byte(r)) || strings.ContainsRune(kept, r) {
			return r
		}
		return '_'
	}, s)
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
