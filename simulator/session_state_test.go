package simulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator"
)

// An agent has its own model, and the effort of the session only if its model is the same. All other values are those of the session.
func TestLiveOfAgent(t *testing.T) {
	live := &simulator.SessionState{}
	agent := live.ForAgent("haiku")
	live.BeginConversation("S", "/t/S.jsonl")
	live.SetModelAndClearTurnModel("opus")
	live.SetReportedEffort("low")
	live.SetOutputStyle("terse")
	live.SetTitle("T")
	want := simulator.SessionStateSnapshot{SessionID: "S", TranscriptPath: "/t/S.jsonl", Model: "haiku", Effort: "medium", OutputStyle: "terse", Title: "T"}
	if diff := cmp.Diff(want, agent.SessionStateSnapshot()); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	if got := live.ForAgent("claude-opus-5-5").SessionStateSnapshot().Effort; got != "low" {
		t.Errorf("an agent with the model of the session has effort %s", got)
	}
	agent.SetModelAndClearTurnModel("sonnet")
	if live.NextRequestModel() != "opus" || agent.NextRequestModel() != "sonnet" {
		t.Errorf("models %s and %s", live.NextRequestModel(), agent.NextRequestModel())
	}
	if live.SetModelAndClearTurnModel(""); live.NextRequestModel() == "" {
		t.Error("no default model")
	}
}
