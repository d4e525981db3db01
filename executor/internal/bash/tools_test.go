package bash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/tests/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testOptions configure [newTools]. The zero value is a session in a new directory.
type testOptions struct {
	CWD            string
	AdditionalDirs []string
	Environ        []string
	OutputDir      string
	Tasks          *task.Set
}

// session has the tools of this package, and Read.
type session struct {
	*tool.Shell
	tracker *files.SeenFileTracker
	tools   map[string]tool.Tool
}

func newTools(t *testing.T, o testOptions) session {
	t.Helper()
	if o.CWD == "" {
		o.CWD = t.TempDir()
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	shell := tool.NewShell(tool.ShellOptions{CWD: o.CWD, Dirs: o.AdditionalDirs, Environ: append(o.Environ, "CLAUDECODE=1")})
	t.Cleanup(shell.Close)
	tracker := files.New(files.Options{Paths: shell, Clock: tooltest.Clock{ID: "id"}})
	s := session{shell, tracker, map[string]tool.Tool{}}
	for _, x := range append(Tools(New(Options{Shell: shell, Clock: tooltest.Clock{ID: "id"}, Files: tracker, Tasks: o.Tasks, OutputDir: o.OutputDir})), files.Read(tracker)) {
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
	return x.Check(files.WithCall(ctx, use), use.Input)
}

// Execute runs a call that has valid input.
func (s session) Execute(ctx context.Context, use protocol.ToolUse) tool.Result {
	x := s.tools[use.Name]
	if r := x.Validate(use); r != nil {
		return tool.ResultWithoutEvents(*r)
	}
	return x.Run(files.WithCall(ctx, use), use)
}

// call runs a tool.
func call(t *testing.T, tools session, name string, input tooltest.Input) tool.Result {
	t.Helper()
	return tools.Execute(t.Context(), tooltest.Use(t, name, input))
}

// commandOutput is the structured result of a command.
type commandOutput struct {
	Stdout, Stderr string
	TaskID         string `json:"backgroundTaskId"`
	PersistedPath  string `json:"persistedOutputPath"`
	PersistedSize  int    `json:"persistedOutputSize"`
}

func newTasks(t *testing.T) *task.Set {
	t.Helper()
	n := 0
	dir := t.TempDir()
	set := task.New(task.Options{
		NewID: func() string { n++; return fmt.Sprintf("%08d-0000-4000-8000-00000000%04d", n, n) },
		Now:   time.Now, Dir: func() string { return dir },
	})
	t.Cleanup(set.Close)
	return set
}

// waitFrames waits for n frames and returns the subtype and status of each.
func waitFrames(t *testing.T, set *task.Set, n int) []string {
	t.Helper()
	var out []string
	deadline := time.After(10 * time.Second)
	for len(out) < n {
		for _, ev := range set.TakeEvents(task.ConversationPhaseBetweenTurns) {
			out = append(out, frame(ev))
		}
		if len(out) >= n {
			break
		}
		select {
		case <-set.ChangeSignal():
		case <-deadline:
			t.Fatalf("%d frames after 10 s: %q", len(out), out)
		}
	}
	return out
}

func frame(ev protocol.Event) string {
	sys := ev.(*protocol.SystemEvent)
	var line strings.Builder
	line.WriteString(sys.Subtype)
	for _, f := range sys.Fields {
		switch f.Key {
		case "status", "summary", "task_type", "is_backgrounded":
			fmt.Fprintf(&line, " %v", f.Value)
		}
	}
	return line.String()
}
