package simtest

import (
	"fmt"
	"maps"
	"strings"
)

// ToolCall is a call of a tool; see [Call].
type ToolCall struct {
	Tool  string `json:"tool"`
	Input any    `json:"input"` // an object
}

// Call makes the model call a tool: a built-in such as "Bash", "server/tool", or "mcp__server__tool". The input is a
// map or a struct with JSON tags; nil means {}.
func Call(tool string, input any) ToolCall {
	if input == nil {
		input = map[string]any{}
	}
	return ToolCall{Tool: tool, Input: input}
}

// Failure is a failed request to the model; see [Fail].
type Failure struct {
	kind string
	keys map[string]any
}

// Fail makes the request to the model fail. kind is a failure type of scenarios, such as "rate_limit" or "overloaded".
// All requests fail unless Times limits their number.
func Fail(kind string) Failure { return Failure{kind: kind, keys: defaultKeys(kind)} }

// Times sets how many requests fail before one succeeds.
func (f Failure) Times(n int) Failure { return f.With("times", n) }

// With sets another key of the failure, such as status, retry_after or message.
func (f Failure) With(key string, value any) Failure {
	keys := map[string]any{key: value}
	for k, v := range f.keys {
		if k != key {
			keys[k] = v
		}
	}
	return Failure{kind: f.kind, keys: keys}
}

// defaultKeys returns default values of the keys that a failure requires.
func defaultKeys(kind string) map[string]any {
	switch kind {
	case "rate_limit":
		return map[string]any{"retry_after": 1}
	case "auth_error":
		return map[string]any{"message": "Invalid API key"}
	case "connection_timeout":
		return map[string]any{"after_ms": 5000}
	case "partial_response":
		return map[string]any{"partial_text": ""}
	case "malformed_json":
		return map[string]any{"raw": "{"}
	case "api_error":
		return map[string]any{"status": 500}
	}
	return nil
}

// Message is one message of the model; see [Say].
type Message []any

// Say combines texts and calls into one message. The calls must follow the texts.
func Say(parts ...any) Message { return parts }

// scenarioSteps converts a script to scenario steps, one for each message. A failure becomes a part of the next
// message.
func scenarioSteps(script []any) ([]map[string]any, error) {
	var out []map[string]any
	var failure map[string]any
	for i, step := range script {
		if f, ok := step.(Failure); ok {
			if failure != nil {
				out = append(out, map[string]any{"failure": failure})
			}
			failure = map[string]any{"type": f.kind}
			maps.Copy(failure, f.keys)
			continue
		}
		m, err := messageStep(step)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		if failure != nil {
			m["failure"], failure = failure, nil
		}
		out = append(out, m)
	}
	if failure != nil {
		out = append(out, map[string]any{"failure": failure})
	}
	return out, nil
}

func messageStep(step any) (map[string]any, error) {
	parts, ok := step.(Message)
	if !ok {
		parts = Message{step}
	}
	var texts []string
	var calls []ToolCall
	for _, part := range parts {
		switch part := part.(type) {
		case ToolCall:
			calls = append(calls, part)
		case string:
			if calls != nil {
				return nil, fmt.Errorf("the text %q comes after a call; put text after the results into its own step", part)
			}
			texts = append(texts, part)
		default:
			return nil, fmt.Errorf("%#v is not a step: use a string, a Call, a Say or a Fail", part)
		}
	}
	m := map[string]any{}
	if texts != nil {
		m["text"] = strings.Join(texts, "\n")
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return m, nil
}
