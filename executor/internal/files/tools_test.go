package files

import (
	"context"
	"testing"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// testOptions configure [newTools]. The zero value is a session in a new directory.
type testOptions struct {
	CWD     string
	Environ []string
	Clock   tool.ClockWithIDs
	Access  tooltest.Access
}

// session has the tools of this package and the files that its model has seen.
type session struct {
	tracker *SeenFileTracker
	tools   map[string]tool.Tool
}

func newTools(t *testing.T, o testOptions) session {
	t.Helper()
	if o.CWD == "" {
		o.CWD = t.TempDir()
	}
	if o.Clock == nil {
		o.Clock = tooltest.Clock{ID: "id"}
	}
	shell := tool.NewShell(tool.ShellOptions{CWD: o.CWD, Environ: o.Environ})
	s := session{tracker: New(Options{Paths: shell, Clock: o.Clock, Access: o.Access}), tools: map[string]tool.Tool{}}
	finder := NewFinder(FinderOptions{Paths: shell, Clock: o.Clock, Access: o.Access})
	for _, x := range append(Tools(s.tracker), Glob(finder), Grep(finder)) {
		s.tools[x.Name] = x
	}
	return s
}

// Precheck returns the refusal of a call, or nil.
func (s session) Precheck(ctx context.Context, use protocol.ToolUse) *protocol.ToolResult {
	x := s.tools[use.Name]
	if r := x.Validate(use); r != nil || x.Check == nil {
		return r
	}
	return x.Check(WithCall(ctx, use), use.Input)
}

// Execute runs a call that has valid input.
func (s session) Execute(ctx context.Context, use protocol.ToolUse) tool.Result {
	x := s.tools[use.Name]
	if r := x.Validate(use); r != nil {
		return tool.ResultWithoutEvents(*r)
	}
	return x.Run(WithCall(ctx, use), use)
}

// call runs a tool; input is JSON or a value to marshal.
func call(t *testing.T, tools session, name string, input any) tool.Result {
	t.Helper()
	return tools.Execute(t.Context(), tooltest.Use(t, name, input))
}
