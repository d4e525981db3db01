package scenarios_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The library has answers to the prompts of the Python SDK's examples. The test compares the first
// text or call of each answer.
func TestExamplesOfTheSDK(t *testing.T) {
	s, err := scenarios.LoadLibraryScenario("sdk-e2e")
	if err != nil {
		t.Fatal(err)
	}
	e := scenarios.NewEngine(s, scenarios.EngineOptions{CWD: "/w"})
	for _, test := range []struct{ prompt, want string }{
		{"What is 2+2?", "4"},
		{"What's 10*10?", "100"},
		{"What's 15 + 27?", "42"},
		{"Now multiply that result by 2", "84"},
		{"Divide that by 7 and round to 2 decimal places", "12"},
		{"What's the capital of France?", "Paris is the capital of France."},
		{"What's the population of that city?", "About 2 million people live there."},
		{"First, what's the capital of Japan?", "Tokyo is the capital of Japan."},
		{"Second, what's 15% of 200?", "30"},
		{"What is the square root of 144?", "12"},
		{"What are the primary colors?", "Red, yellow and blue."},
		{"List 2 programming languages and their main use cases", "Go: servers\nPython: data"},
		{"Just say 'Hello!'", "Hello!"},
		{"What tools do you have available? Just list them briefly.", "Bash, Read"},
		{"Create a simple hello.txt file with a greeting message", `Write {"file_path":"/w/hello.txt","content":"Hello!\n"}`},
		{"review the code in src/types.py", `Read {"file_path":"/w/src/types.py"}`},
		{"find all Python files in the examples/ directory", `Glob {"pattern":"examples/**/*.py"}`},
		{
			"Use the doc-writer agent to explain what AgentDefinition is used for",
			`Agent {"description":"Ask doc-writer","prompt":"explain what AgentDefinition is used for","subagent_type":"doc-writer","run_in_background":false}`,
		},
		{
			"Please do the following:\n1. List the files in the current directory\n2. Create a simple Python hello world script at hello.py\n3. Run the script to test it",
			"First the files.",
		},
	} {
		reply, err := e.Next(t.Context(), scenarios.Request{Prompt: test.prompt, Vars: scenarios.ExpressionVars{Tools: []string{"Bash", "Read"}}})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, b := range reply.Blocks {
			switch b := b.(type) {
			case protocol.TextBlock:
				got = b.Text
			case protocol.ToolUse:
				got = strings.TrimSpace(b.Name + " " + string(b.Input))
			default: // reasoning
				continue
			}
			break
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.prompt, diff)
		}
	}
}
