package session

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAssignAgents: agents with the same prompt get their calls in the same order in every import, and a call whose
// result contains the agent's id wins over an earlier one that has only its prompt.
func TestAssignAgents(t *testing.T) {
	input := json.RawMessage(`{"prompt":"count"}`)
	for range 50 {
		b := newSessionBuilder("s")
		for i := range 8 {
			id := fmt.Sprintf("toolu_%d", 9-i)
			b.calls[id] = &Call{Input: input, At: Place{Line: i + 1}}
			if agent := fmt.Sprintf("a%d", i); i < 7 {
				b.agents["agent:"+agent] = &Agent{ID: agent, Prompt: "count"}
			}
		}
		b.agents["toolu_4"] = &Agent{ID: "a0", Background: true}
		b.assignAgentsToStartingCalls()
		got := map[string]string{}
		for id, a := range b.agents {
			got[id] = a.ID
		}
		want := map[string]string{"toolu_4": "a0", "toolu_9": "a1", "toolu_8": "a2", "toolu_7": "a3", "toolu_6": "a4", "toolu_5": "a5", "toolu_3": "a6"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("agents by call (-want +got):\n%s", diff)
		}
		if !b.agents["toolu_4"].Background {
			t.Fatal("the agent that is known by its id lost that it ran in the background")
		}
	}
}
