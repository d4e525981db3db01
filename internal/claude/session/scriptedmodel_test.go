package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const gated = `
[[responses]]
pattern = { type = "any" }
response = { steps = [{ text = "late", gate = "door" }] }
`

type testRecords struct {
	notes    []journal.Body
	warnings int
}

func (r *testRecords) WriteJournal(b journal.Body)  { r.notes = append(r.notes, b) }
func (r *testRecords) WarnOnStderr(string)          { r.warnings++ }
func (r *testRecords) WarnUnlessRunAsClaude(string) { r.warnings++ }

type names struct{}

func (names) ModelNameAfterOverrides(name string) string { return name }

func newTestModel(t *testing.T, m scriptedModel) (*scriptedModel, *testRecords) {
	t.Helper()
	s, err := scenarios.Parse("s.toml", []byte(gated), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &testRecords{}
	m.engine, m.modelNameOverrider, m.records = scenarios.NewEngine(s, scenarios.EngineOptions{}), names{}, r
	return &m, r
}

// A message waits at its gate, and the journal contains the end of the wait.
func TestGates(t *testing.T) {
	finding := func(why string) journal.Finding {
		return journal.Finding{
			ID: "T01", Level: "error", Text: "the gate door was not released: " + why,
			Advice: "release it: claudeless gates release door", File: "s.toml", Line: 2,
		}
	}
	for _, test := range []struct {
		name     string
		dir      bool
		released time.Duration // time until the release; 0 means never
		took     time.Duration
		notes    []journal.Body
		warnings int
	}{
		{"released", true, time.Second, time.Second, []journal.Body{journal.Gate{Name: "door", Event: "reached"}, journal.Gate{Name: "door", Event: "released"}}, 0},
		{"never", true, 0, gate.DefaultMaxWaitAtGate, []journal.Body{
			journal.Gate{Name: "door", Event: "reached"}, journal.Gate{Name: "door", Event: "timeout"}, finding(gate.ErrGateWaitTimedOut.Error()),
		}, 1},
		{"released for an agent", true, time.Second, time.Second, []journal.Body{journal.Gate{Name: "door", Event: "reached"}, journal.Gate{Name: "door", Event: "released"}}, 0},
		{"no gates", false, 0, 0, []journal.Body{finding("the scenario waits at a gate, but CLAUDELESS_GATES is not set: use claudeless exec, or set the variable to a directory")}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := scriptedModel{}
				if test.dir {
					m.gates = dir
				}
				p, r := newTestModel(t, m)
				if test.released > 0 {
					time.AfterFunc(test.released, func() {
						if err := os.WriteFile(filepath.Join(dir, "door.released"), nil, 0o600); err != nil {
							t.Error(err)
						}
					})
				}
				began := time.Now()
				next := p.ArmFaultAndSelectMainModel().Next
				if strings.HasSuffix(test.name, "agent") {
					next = p.AgentModel(nil).Next
				}
				reply, err := next(t.Context(), scenarios.Request{Prompt: "x"})
				if err != nil || len(reply.Blocks) != 1 {
					t.Fatal(reply, err)
				}
				if took := time.Since(began); took < test.took || took > test.took+time.Second {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if diff := cmp.Diff(test.notes, r.notes); diff != "" {
					t.Error(diff)
				}
				if r.warnings != test.warnings {
					t.Errorf("%d warnings", r.warnings)
				}
			})
		})
	}
}

// An interrupt stops waiting at a gate.
func TestInterruptedAtGate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p, r := newTestModel(t, scriptedModel{gates: dir})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.ArmFaultAndSelectMainModel().Next(ctx, scenarios.Request{Prompt: "x"}); !errors.Is(err, context.DeadlineExceeded) || r.warnings > 0 {
			t.Errorf("%v, %d warnings", err, r.warnings)
		}
	})
}

// A failure of the whole run applies to the session and its agents.
func TestFailure(t *testing.T) {
	failure := scenarios.FailureByName("rate_limit")
	p, _ := newTestModel(t, scriptedModel{failure: failure})
	for _, m := range []interface {
		Next(context.Context, scenarios.Request) (scenarios.Reply, error)
	}{p.ArmFaultAndSelectMainModel(), p.AgentModel(&protocol.SubagentScript{})} {
		if reply, err := m.Next(t.Context(), scenarios.Request{Prompt: "x"}); err != nil || reply.Failure != failure {
			t.Errorf("%+v, %v", reply, err)
		}
	}
}
