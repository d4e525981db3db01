package simulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator"
)

// An agent has a model of its own; all else is its session's, at any time.
func TestLiveOfAgent(t *testing.T) {
	live := &simulator.SessionState{}
	agent := live.Agent("haiku")
	live.Begin("S", "/t/S.jsonl")
	live.SetModel("opus")
	live.SetEffort("low")
	live.SetStyle("terse")
	live.SetTitle("T")
	want := simulator.Snapshot{SessionID: "S", Transcript: "/t/S.jsonl", Model: "haiku", Effort: "low", Style: "terse", Title: "T"}
	if diff := cmp.Diff(want, agent.Now()); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	agent.SetModel("sonnet")
	if live.Model() != "opus" || agent.Model() != "sonnet" {
		t.Errorf("models %s and %s", live.Model(), agent.Model())
	}
	if live.SetModel(""); live.Model() == "" {
		t.Error("no default model")
	}
}
