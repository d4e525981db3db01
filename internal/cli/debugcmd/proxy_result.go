package debugcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type toolResult struct {
	Content    protocol.Content
	Structured json.RawMessage // an object; nil means none
	IsError    bool
}

func errorResult(text string) toolResult {
	return toolResult{Content: protocol.Content{Text: text}, IsError: true}
}

func encodeResponse(id json.RawMessage, r toolResult) json.RawMessage {
	var content any = r.Content
	if r.Content.Blocks == nil {
		content = []protocol.Block{protocol.Text(r.Content.Text)}
	}
	result := map[string]any{"content": content}
	if r.Structured != nil {
		result["structuredContent"] = r.Structured
	}
	if r.IsError {
		result["isError"] = true
	}
	line, err := protocol.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil { // not expected, because the content was parsed from valid JSON
		line = []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32603,"message":"result cannot be encoded"}}`)
	}
	return line
}

type toolOutputSchema struct {
	isDeclared          bool
	wrappedResultSchema *struct{ Type any } // schema of "result", in which servers wrap values that are not objects; nil means none
}

func outputSchemaOf(raw json.RawMessage) toolOutputSchema {
	var in struct {
		Properties map[string]*struct{ Type any }
	}
	if json.Unmarshal(raw, &in) != nil || !isObject(raw) {
		return toolOutputSchema{}
	}
	s := toolOutputSchema{isDeclared: true}
	if len(in.Properties) == 1 {
		s.wrappedResultSchema = in.Properties["result"]
	}
	return s
}

// buildResult builds the tool result for a decision of the debugger. An object also becomes structuredContent. Clients require
// structuredContent if the tool declares an output schema. If the schema has a wrapper (wrappedResultSchema), the value is put
// into the wrapper. With any other schema, the result is an error if neither the value nor the text of content is an object.
func (s toolOutputSchema) buildResult(value json.RawMessage, content protocol.Content) toolResult {
	r := toolResult{Content: content}
	plain := json.RawMessage(content.Plain())
	switch {
	case s.wrappedResultSchema != nil:
		r.Structured = s.wrapInResultObject(value, content)
	case isObject(value):
		r.Structured = value
	case s.isDeclared && isObject(plain) && json.Valid(plain):
		r.Structured = plain
	case s.isDeclared:
		return errorResult("debugger: the output schema of the tool requires a JSON object; got " + content.Plain())
	}
	return r
}

// wrapInResultObject puts a value into the object that a wrapping schema requires, unless the value is already such an object.
func (s toolOutputSchema) wrapInResultObject(value json.RawMessage, content protocol.Content) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) == nil && len(members) == 1 && members["result"] != nil {
		return value
	}
	var inner any = value
	if s.wrappedResultSchema.Type == "string" || len(value) == 0 {
		inner = content.Plain()
	}
	wrapped, err := protocol.Marshal(map[string]any{"result": inner})
	if err != nil {
		return nil
	}
	return wrapped
}

func isObject(v json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(v), []byte("{")) }

func withReplacedParam(line []byte, key string, value json.RawMessage) ([]byte, error) {
	var whole, in map[string]json.RawMessage
	if err := json.Unmarshal(line, &whole); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(whole["params"], &in); err != nil {
		return nil, err
	}
	if in == nil {
		return nil, errors.New("cannot change the input of the MCP request: it has no params")
	}
	in[key] = value
	var err error
	if whole["params"], err = protocol.Marshal(in); err != nil {
		return nil, err
	}
	return protocol.Marshal(whole)
}

// outcomeOf converts a server's response for the hub. A single text becomes a string; other content stays unchanged.
func outcomeOf(serverAnswer json.RawMessage) debug.CallOutcome {
	var m struct {
		Result struct {
			Content json.RawMessage `json:"content"`
			IsError bool            `json:"isError"`
		} `json:"result"`
		Error *struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(serverAnswer, &m) != nil {
		return debug.CallOutcome{Failed: true, Error: "the server's answer cannot be read"}
	}
	if m.Error != nil {
		return debug.CallOutcome{Failed: true, Error: m.Error.Message, ErrorType: "Error"}
	}
	o := debug.CallOutcome{Failed: m.Result.IsError, Result: m.Result.Content}
	var blocks []struct{ Type, Text string }
	var text strings.Builder
	if json.Unmarshal(m.Result.Content, &blocks) == nil {
		for i, b := range blocks {
			if i > 0 {
				text.WriteString("\n")
			}
			text.WriteString(b.Text)
		}
		if len(blocks) == 1 && blocks[0].Type == "text" {
			if quoted, err := protocol.Marshal(text.String()); err == nil {
				o.Result = quoted
			}
		}
	}
	if o.Failed {
		o.Error = text.String()
	}
	return o
}
