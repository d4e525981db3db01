package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fixedClock is a clock that does not advance, so that the run is repeatable.
type fixedClock struct{ ids int }

func (*fixedClock) Now() time.Time                             { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }
func (*fixedClock) Sleep(context.Context, time.Duration) error { return nil }
func (n *fixedClock) NewID() string {
	n.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n.ids)
}

// forecast is the only tool of the example.
type forecast struct{}

func (forecast) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{{Name: "Forecast", ReadOnly: true}}, nil
}

func (forecast) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	if use.Name != "Forecast" {
		return executor.Result{}, executor.ErrUnknownTool
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: "4 degrees, rain"}}), nil
}

// A conversation needs a model, tools, a clock and the session state. A turn is an iterator over its events; the last
// event is the result.
func ExampleSimulator_RunTurn() {
	live := &simulator.SessionState{}
	live.BeginConversation("11111111-1111-4111-8111-111111111111", "")
	sim, err := simulator.New(simulator.Options{
		Model: scenarios.NewEngine(&scenarios.Scenario{
			Responses: []scenarios.Rule{{
				Pattern: scenarios.Pattern{Type: scenarios.PatternContains, Text: "weather"},
				Response: &scenarios.Response{Steps: []scenarios.Step{
					{ToolCalls: []scenarios.ToolCall{{Tool: "Forecast", Input: json.RawMessage(`{}`)}}},
					{Text: "Take an umbrella: {{ results[0].text }}."},
				}},
			}},
		}, scenarios.EngineOptions{}),
		Tools: simulator.NonInspectingExecutor(forecast{}), Clock: &fixedClock{}, State: live,
	})
	if err != nil {
		panic(err)
	}
	for ev, err := range sim.RunTurn(context.Background(), protocol.UserMessage{Content: protocol.Content{Text: "How is the weather?"}}) {
		if err != nil {
			panic(err)
		}
		switch ev := ev.(type) {
		case *protocol.AssistantEvent:
			for _, b := range ev.Message.Content {
				if use, ok := b.(protocol.ToolUse); ok {
					fmt.Println("calls", use.Name)
				}
			}
		case *protocol.ToolExecuted:
			fmt.Println("reads", ev.Result.Content.Plain())
		case *protocol.ResultEvent:
			fmt.Println(ev.Subtype, *ev.Result)
		}
	}
	// Output:
	// calls Forecast
	// reads 4 degrees, rain
	// success Take an umbrella: 4 degrees, rain.
}
