package executor_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// upper is an executor with one tool.
type upper struct{}

func (upper) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{{Name: "Upper"}}, nil
}

func (upper) Execute(_ context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Name != "Upper" {
		return executor.Result{}, executor.ErrUnknownTool
	}
	return executor.Plain(protocol.ToolResult{Content: protocol.Content{Text: "RAIN"}}), nil
}

// What happens around every call is a middleware; the first one is the
// outermost.
func ExampleChain() {
	log := executor.Func(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		fmt.Println("before", call.Name)
		r, err := next.Execute(ctx, call)
		fmt.Println("after", r.Content.Text)
		return r, err
	})
	tools := executor.Chain(upper{}, log)
	if _, err := tools.Execute(context.Background(), protocol.ToolUse{Name: "Upper", Input: json.RawMessage(`{}`)}); err != nil {
		panic(err)
	}
	// Output:
	// before Upper
	// after RAIN
}

// Executors are asked in order; ErrUnknownTool means "ask the next".
func ExampleComposite() {
	tools := executor.Composite{upper{}, upper{}}
	_, err := tools.Execute(context.Background(), protocol.ToolUse{Name: "Lower"})
	fmt.Println(err)
	// Output: unknown tool
}
