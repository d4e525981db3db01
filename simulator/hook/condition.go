package hook

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolOf is the call an event is about; ok is false for other events.
func toolOf(in protocol.HookInput) (use protocol.ToolUse, ok bool) {
	switch in := in.(type) {
	case protocol.PreToolUseHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseFailureHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PermissionRequestHook:
		return protocol.ToolUse{Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PermissionDeniedHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	}
	return protocol.ToolUse{}, false
}

// ruleMatches compares a permission rule, Tool or Tool(spec), with a call: the
// names are equal and spec, with * for any text, is the call's main argument; a
// path may also end in it.
func ruleMatches(rule string, use protocol.ToolUse) bool {
	name, spec, hasSpec := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	switch {
	case name != use.Name:
		return false
	case !hasSpec || spec == "" || spec == "*":
		return true
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(use.Input, &args) != nil {
		return false
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "path", "url", "skill", "subagent_type", "query", "pattern"} {
		var value string
		if raw, ok := args[key]; ok && json.Unmarshal(raw, &value) == nil {
			return wildcard(spec, value) || strings.HasSuffix(key, "path") && wildcard("*/"+spec, value)
		}
	}
	return false
}

// wildcard matches text against a pattern in which * is any text. "x *" and
// "x:*" also match x alone.
func wildcard(pattern, text string) bool {
	for _, tail := range []string{" *", ":*"} {
		if head, ok := strings.CutSuffix(pattern, tail); ok {
			if wildcard(head, text) {
				return true
			}
			pattern = head + " *"
			break
		}
	}
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString(`(?s)\A`+strings.Join(parts, ".*")+`\z`, text)
	return err == nil && ok
}
