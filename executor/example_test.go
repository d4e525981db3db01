package executor_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// tool is an executor with one tool, which answers with its name.
type tool string

func (t tool) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{{Name: string(t)}}, nil
}

func (t tool) Execute(_ context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Name != string(t) {
		return executor.Result{}, executor.ErrUnknownTool
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: "I am " + call.Name}}), nil
}

// A middleware wraps every call; the first one is the outermost.
func ExampleChain() {
	log := executor.NewMiddleware(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		fmt.Println("before", call.Name)
		r, err := next.Execute(ctx, call)
		fmt.Println("after", r.Content.Text)
		return r, err
	})
	tools := executor.Chain(tool("Forecast"), log)
	if _, err := tools.Execute(context.Background(), protocol.ToolUse{Name: "Forecast", Input: json.RawMessage(`{}`)}); err != nil {
		panic(err)
	}
	// Output:
	// before Forecast
	// after I am Forecast
}

// Executors are asked in order; ErrUnknownTool means "ask the next".
func ExampleComposite() {
	tools := executor.Composite{tool("Forecast"), tool("Tides")}
	for _, name := range []string{"Tides", "Stars"} {
		r, err := tools.Execute(context.Background(), protocol.ToolUse{Name: name})
		fmt.Printf("%s: %q, %v\n", name, r.Content.Text, err)
	}
	// Output:
	// Tides: "I am Tides", <nil>
	// Stars: "", unknown tool
}
