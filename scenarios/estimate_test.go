package scenarios

import (
	"encoding/json"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// The estimate for a call is the same under every name of its tool.
func TestEstimateNames(t *testing.T) {
	count := func(name string) Usage {
		return EstimateUsage(Request{Prompt: "go"}, []protocol.Block{protocol.ToolUse{Type: "tool_use", Name: name, Input: json.RawMessage(`{}`)}})
	}
	if short, long := count("my db/list rows"), count("mcp__my_db__list_rows"); short != long {
		t.Errorf("my db/list rows counts %+v, mcp__my_db__list_rows %+v", short, long)
	}
}
