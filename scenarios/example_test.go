package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// A scenario can be created in Go, with the keys of the file.
func ExampleNewEngine() {
	engine := scenarios.NewEngine(&scenarios.Scenario{
		Responses: []scenarios.Rule{{
			Pattern: scenarios.Pattern{Type: scenarios.PatternRegex, Pattern: `weather in (?P<city>\w+)`},
			Response: &scenarios.Response{Steps: []scenarios.Step{
				{ToolCalls: []scenarios.ToolCall{{Tool: "weather/forecast_get", Input: json.RawMessage(`{"city":"{{ match.city }}"}`)}}},
				{Text: "The forecast says: {{ results[0].text }}"},
			}},
		}},
	}, scenarios.EngineOptions{})

	reply, err := engine.Next(context.Background(), scenarios.Request{Prompt: "What is the weather in Oslo?"})
	if err != nil {
		panic(err)
	}
	call := reply.Blocks[0].(protocol.ToolUse)
	fmt.Println(call.Name, string(call.Input))

	reply, err = engine.Next(context.Background(), scenarios.Request{Results: []scenarios.ToolCallResult{{Text: "4 degrees, rain"}}})
	if err != nil {
		panic(err)
	}
	fmt.Println(reply.Blocks[0].(protocol.TextBlock).Text)
	// Output:
	// weather/forecast_get {"city":"Oslo"}
	// The forecast says: 4 degrees, rain
}

// All mistakes of a file are reported at once, with position and nearest name.
func ExampleParse() {
	_, err := scenarios.Parse("hello.toml", []byte(`
[[responses]]
patern = { type = "contains", text = "hi" }
response = 5
`), scenarios.LoadOptions{})
	fmt.Println(err)
	// Output:
	// hello.toml:2:1: missing key `pattern`
	// hello.toml:3:1: unknown key `patern`
	// hello.toml:4:12: a response must be a string or a table, not an integer
}

// A prompt that no rule answers is explained: the nearest rules come first.
func ExampleEngine_ExplainNearMisses() {
	s, err := scenarios.Parse("hello.toml", []byte(`
[[responses]]
pattern = { type = "contains", text = "weather in Oslo" }
response = "rain"

[[responses]]
pattern = { type = "exact", text = "bye" }
response = "see you"
`), scenarios.LoadOptions{})
	if err != nil {
		panic(err)
	}
	engine := scenarios.NewEngine(s, scenarios.EngineOptions{})
	for _, line := range engine.ExplainNearMisses(scenarios.Request{Prompt: "weather in oslo"}) {
		fmt.Println(line)
	}
	// Output:
	// no rule of the scenario matches the prompt "weather in oslo"
	// hello.toml:2: responses[0] (contains "weather in Oslo"): it contains "weather in Oslo" only in a different case; the match ends after "weather in ", where "oslo" follows instead of "Oslo"
	// hello.toml:6: responses[1] (exact "bye"): it is not "bye"
}

// A scripted failure is a value of the reply, not an error.
func ExampleFailureByName() {
	f := scenarios.FailureByName("rate_limit")
	fmt.Println(f.Type, scenarios.FailureByName("no such failure") == nil)
	// Output: rate_limit true
}
