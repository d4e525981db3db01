package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// diffHistory compares a scripted answer with the history. It returns "" if they are equal.
func (a *scriptedAnswer) diffHistory(g *historyGroupWithKeys, tools *history.Toolset) string {
	var text strings.Builder
	var calls []history.ToolUse
	for _, b := range a.blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			text.WriteString(b.Text)
		case protocol.ToolUse:
			calls = append(calls, history.ToolUse{Name: b.Name, Input: b.Input})
		}
	}
	if a.structured != nil {
		if len(g.Uses) == len(calls)+1 {
			calls = append(calls, history.ToolUse{Name: structuredOutputTool, Input: a.structured})
		} else if len(calls) == 0 && sameJSONOrEmptyObject(a.structured, json.RawMessage(g.Text)) {
			return ""
		}
	}
	where := "the scenario"
	if ref := a.reply.Rule; ref.Line > 0 {
		where = fmt.Sprintf("scenario line %d", ref.Line)
	}
	sameCalls := slices.EqualFunc(calls, g.Uses, func(a, b history.ToolUse) bool {
		return isSameTool(a.Name, b.Name) && (sameJSONOrEmptyObject(a.Input, b.Input) || equivalentInputs(a.Input, b, tools.Schemas()[b.Name]))
	})
	if !sameCalls {
		return fmt.Sprintf("%s says %s, history has %s", where, describeCalls(calls), describeCalls(g.Uses))
	}
	if said, has := strings.TrimSpace(text.String()), strings.TrimSpace(g.Text); said != has && (has == "" || !strings.HasPrefix(said, has)) {
		return fmt.Sprintf("%s says %s, history has %s", where, quoteShortened(said), quoteShortened(has))
	}
	return ""
}

// equivalentInputs reports whether a call in the history equals the scripted call. The call in the history may also
// contain defaults of its schema (Claude Code returns an Edit with `replace_all: false`), and texts that Claude Code has rewritten.
func equivalentInputs(scripted json.RawMessage, actual history.ToolUse, schema json.RawMessage) bool {
	var x, y, s map[string]any
	if json.Unmarshal(scripted, &x) != nil || json.Unmarshal(actual.Input, &y) != nil {
		return false
	}
	if len(schema) == 0 && actual.Name == "Edit" {
		schema = json.RawMessage(`{"properties":{"replace_all":{"default":false}}}`)
	}
	for name, value := range x {
		if text, ok := value.(string); ok && isScriptedTextRewrittenByClaudeCode(actual.Name+"."+name, text, y[name]) {
			x[name] = y[name]
		}
	}
	return maps.EqualFunc(x, y, reflect.DeepEqual) || len(schema) > 0 && json.Unmarshal(schema, &s) == nil && equalIgnoringDefaults(x, y, s)
}

// isScriptedTextRewrittenByClaudeCode reports whether Claude Code replaces a scripted text by this value before a call.
// Claude Code parses numbers and booleans, omits a leading `cd`, and trims written lines (observed with 2.1.330).
func isScriptedTextRewrittenByClaudeCode(toolAndInputKey, scriptedText string, actualValue any) bool {
	switch value := actualValue.(type) {
	case bool:
		return scriptedText == strconv.FormatBool(value)
	case float64:
		return scriptedText == strconv.FormatFloat(value, 'f', -1, 64)
	case string:
		switch toolAndInputKey {
		case "Bash.command":
			dir, rest, _ := strings.Cut(scriptedText, " && ")
			return strings.ReplaceAll(scriptedText, `\\;`, `\;`) == value || strings.HasPrefix(dir, "cd ") && strings.ReplaceAll(rest, `\\;`, `\;`) == value
		case "Edit.new_string", "Write.content":
			return spacesAtLineEndPattern().ReplaceAllString(scriptedText, "") == value
		}
	}
	return false
}

var spacesAtLineEndPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)[ \t]+$`) })

// equalIgnoringDefaults reports whether y equals x. y may also have keys that x lacks, with the defaults of the schema.
func equalIgnoringDefaults(x, y any, schema map[string]any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, value := range y {
			property, _ := properties[name].(map[string]any)
			given, said := x[name]
			if !said {
				given, said = property["default"]
			}
			ok = ok && said && equalIgnoringDefaults(given, value, property)
		}
		for name := range x {
			_, has := y[name]
			ok = ok && has
		}
		return ok
	case []any:
		y, ok := y.([]any)
		items, _ := schema["items"].(map[string]any)
		return ok && slices.EqualFunc(x, y, func(a, b any) bool { return equalIgnoringDefaults(a, b, items) })
	}
	return reflect.DeepEqual(x, y)
}

func isSameTool(scriptedName, actualName string) bool {
	scriptedName = scenarios.CanonicalToolName(scriptedName)
	return scriptedName == actualName || scriptedName == "Task" && actualName == "Agent" || scriptedName == "Agent" && actualName == "Task" ||
		strings.HasPrefix(actualName, "mcp__") && strings.HasSuffix(actualName, "__"+scriptedName)
}

func sameJSONOrEmptyObject(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y any
	if len(a) == 0 {
		a = json.RawMessage("{}")
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// describeCalls formats calls as in Bash(echo one). An input without a `command` is shown as a whole.
func describeCalls(calls []history.ToolUse) string {
	if len(calls) == 0 {
		return "no call"
	}
	texts := make([]string, len(calls))
	for i, c := range calls {
		var input map[string]any
		texts[i] = c.Name + "(" + string(c.Input) + ")"
		if json.Unmarshal(c.Input, &input) == nil {
			if text, ok := input["command"].(string); ok {
				texts[i] = c.Name + "(" + text + ")"
			}
		}
	}
	return strings.Join(texts, ", ")
}

func quoteShortened(text string) string {
	const most = 120
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
