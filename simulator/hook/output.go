package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// choiceError is a value that is none of those there are.
type choiceError struct {
	key, name, value string
	valid            []string
}

func (e *choiceError) Error() string {
	return "Unknown hook " + e.name + " type: " + e.value + ". Valid types are: " + strings.Join(e.valid, ", ")
}

// eventError is an answer that is for another event.
type eventError struct{ want, got, full string }

func (e *eventError) Error() string {
	return fmt.Sprintf("Hook returned incorrect event name: expected '%s' but got '%s'. Full stdout: %s", e.want, e.got, e.full)
}

// expects says what would have been valid; of event names only the first.
func (e *choiceError) expects() string {
	if e.name == "event" {
		return `expected one of "` + strings.Join(e.valid[:6], `" | "`) + `" | …`
	}
	return `Invalid option: expected one of "` + strings.Join(e.valid, `"|"`) + `"`
}

// specificEvents are the events whose hooks have keys of their own.
var specificEvents = [...]string{
	"PreToolUse", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "Setup", "PreModelSwitch", "PostModelSwitch",
	"SubagentStart", "SubagentStop", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop", "Notification",
	"PermissionRequest", "PermissionDenied", "Elicitation", "ElicitationResult", "CwdChanged", "FileChanged",
	"WorktreeCreate", "MessageDisplay",
}

// asObject reports whether text is a JSON object.
func asObject(text string) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// parseOutput reads the output object of a hook of the event. Nothing and null
// are an empty output. The error's text is what the real CLI says, where that
// is known.
func parseOutput(event string, raw json.RawMessage) (protocol.HookOutput, error) {
	var out protocol.HookOutput
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return protocol.HookOutput{}, fmt.Errorf("hook output: %w", err)
	}
	switch out.Decision {
	case "", "approve", "block":
	default:
		return protocol.HookOutput{}, &choiceError{"decision", "decision", out.Decision, []string{"approve", "block"}}
	}
	if out.Specific == nil {
		return out, nil
	}
	if got := out.Specific.HookEventName; got != event {
		if !slices.Contains(specificEvents[:], got) {
			return protocol.HookOutput{}, &choiceError{"hookSpecificOutput.hookEventName", "event", got, specificEvents[:]}
		}
		var full bytes.Buffer
		if err := json.Indent(&full, raw, "", "  "); err != nil {
			return protocol.HookOutput{}, err
		}
		return protocol.HookOutput{}, &eventError{event, got, full.String()}
	}
	return out, checkSpecific(out.Specific)
}

func checkSpecific(s *protocol.HookSpecific) error {
	switch s.PermissionDecision {
	case "", "allow", "deny", "ask", "defer":
	default:
		return &choiceError{"hookSpecificOutput.permissionDecision", "permissionDecision", s.PermissionDecision, []string{"allow", "deny", "ask", "defer"}}
	}
	if d := s.Decision; d != nil && d.Behavior != "allow" && d.Behavior != "deny" {
		return fmt.Errorf("hook output: decision.behavior is %q, not allow or deny", d.Behavior)
	}
	return nil
}

// isAsync reports whether the first line a command printed says that it goes
// on by itself, and for how long at most; 0 = unsaid.
func isAsync(line string) (limit time.Duration, async bool) {
	var out protocol.HookOutput
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &out) != nil {
		return 0, false
	}
	return milliseconds(out.AsyncTimeout), out.Async
}

func milliseconds(ms float64) time.Duration {
	const most = 24 * 60 * 60 * 1000 // keeps the product within a Duration
	if !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, most) * float64(time.Millisecond))
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z0-9_.]+)\}`) })

// expand copies a JSON tree and replaces placeholders in its strings.
func expand(tree, values any) any {
	switch t := tree.(type) {
	case string:
		return placeholder().ReplaceAllStringFunc(t, func(m string) string { return lookup(values, m[2:len(m)-1]) })
	case []any:
		out := make([]any, len(t))
		for i, v := range t {
			out[i] = expand(v, values)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, v := range t {
			out[k] = expand(v, values)
		}
		return out
	}
	return tree
}

// lookup follows a dotted path; what is not there is "".
func lookup(values any, path string) string {
	for key := range strings.SplitSeq(path, ".") {
		m, ok := values.(map[string]any)
		if !ok {
			return ""
		}
		values = m[key]
	}
	switch v := values.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := protocol.Marshal(values)
	if err != nil {
		return ""
	}
	return string(text)
}
