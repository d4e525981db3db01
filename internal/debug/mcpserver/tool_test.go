package mcpserver

import (
	"encoding/json"
	"testing"
)

// Every tool of tools.json has a handler.
func TestToolsHaveHandlers(t *testing.T) {
	var tools []debuggerToolDefinition
	if err := json.Unmarshal([]byte(toolsJSON), &tools); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if handlerOf(tool.Name) == nil {
			t.Errorf("no handler for %s", tool.Name)
		}
	}
}
