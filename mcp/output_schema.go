package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type calledTool struct {
	protocol.Tool
	modern bool                 // results are those of revision 2026-07-28
	output *outputschema.Schema // nil means any structured content
}

// outputSchema returns the schema that the results of a tool must match; nil means any result, as for servers of older
// revisions. A tool with an invalid schema is not called, and the error has the text of the real CLI.
func (s *server) outputSchema(tool string) (*outputschema.Schema, error) {
	st, _ := s.snapshot()
	if st.initResult.ProtocolVersion != connection.ModernVersion {
		return nil, nil
	}
	for i, t := range st.lists.tools {
		definition := plainjson.DecodeOrZero[struct{ OutputSchema json.RawMessage }](st.lists.rawTools[i])
		if t.RawName != tool || definition.OutputSchema == nil {
			continue
		}
		schema, err := outputschema.CompileResult(definition.OutputSchema)
		if err != nil {
			return nil, &RPCError{Code: connection.CodeInvalidParams, Message: fmt.Sprintf("Tool '%s' has an invalid outputSchema: %v", tool, err)}
		}
		return schema, nil
	}
	return nil, nil
}

// outputDefect returns, in the words of the real CLI, why the structured content of a successful result does not match
// the output schema of its tool; "" means that it matches.
func (t calledTool) outputDefect(structured json.RawMessage) string {
	switch {
	case t.output == nil:
		return ""
	case structured == nil:
		return fmt.Sprintf("Tool %s has an output schema but did not return structured content", t.RawName)
	}
	if err := t.output.Validate(structured); err != nil {
		return "Structured content does not match the tool's output schema: " + err.Error()
	}
	return ""
}
