package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// shapes are the keys and types of every event, transcript line and hook input that the real CLI wrote, from
// testdata/cli-shapes.json: `key` is always present, `key?` only sometimes; a leaf names its types ("null|string{values
// seen}"); [x] is an array of x ([] = seen empty only); "*" represents arbitrary keys; oneOf is a union.
type shapes struct {
	Events map[string]struct {
		Shape any `json:"shape"`
	} `json:"stdout_events"`
	ToolResults map[string]struct {
		Shape any `json:"shape"`
	} `json:"tool_use_result_by_tool"`
	Lines map[string]struct {
		Shape any `json:"shape"`
	} `json:"transcript_lines"`
	Hooks map[string]any `json:"hook_stdin"`
}

// shapeOf returns the shape of an event, a transcript line or a hook's input.
func (sh *shapes) shapeOf(kind string, e any) (shape any, ok bool) {
	if name := str(valueAt(e, "hook_event_name")); name != "" {
		shape, ok = sh.Hooks[name]
		return shape, ok
	}
	if valueAt(e, "sessionId") != nil {
		entry, ok := sh.Lines[lineKind(e)]
		return entry.Shape, ok
	}
	entry, ok := sh.Events[kind]
	return entry.Shape, ok
}

// lineKind names a transcript line as the shapes file does.
func lineKind(line any) string {
	switch typ := str(valueAt(line, "type")); typ {
	case "attachment":
		return typ + ":" + str(valueAt(line, "attachment.type"))
	case "system":
		return typ + "/" + str(valueAt(line, "subtype"))
	default:
		return typ
	}
}

// check compares every event of a run with its shape: all required keys with their types, and no unknown key.
func (sh *shapes) check(events []any) error {
	var errs []error
	toolOf := map[string]string{}
	for i, e := range events {
		kind := kindOf(e)
		shape, ok := sh.shapeOf(kind, e)
		if !ok {
			errs = append(errs, fmt.Errorf("event %d: the real CLI writes no %s", i, kind))
			continue
		}
		for _, problem := range mismatches(shape, e, "") {
			errs = append(errs, fmt.Errorf("event %d, %s: %s", i, kind, problem))
		}
		switch kind {
		case "assistant[tool_use]":
			toolOf[str(valueAt(e, "message.content.0.id"))] = str(valueAt(e, "message.content.0.name"))
		case "user[tool_result]":
			for _, problem := range sh.toolResult(toolOf[str(valueAt(e, "message.content.0.tool_use_id"))], e) {
				errs = append(errs, fmt.Errorf("event %d: %s", i, problem))
			}
		}
	}
	return errors.Join(errs...)
}

func (sh *shapes) toolResult(tool string, event any) []string {
	result, ok := event.(map[string]any)["tool_use_result"]
	if _, isText := result.(string); !ok || isText {
		return nil
	}
	if strings.HasPrefix(tool, "mcp__") {
		tool = "mcp__*"
	}
	entry, ok := sh.ToolResults[tool]
	if !ok {
		return nil // a tool whose results were not captured
	}
	return mismatches(entry.Shape, result, "tool_use_result("+tool+")")
}

// kindOf names an event as the shapes file does.
func kindOf(e any) string {
	typ := str(valueAt(e, "type"))
	switch typ {
	case "assistant", "user":
		block := "string"
		if _, isList := valueAt(e, "message.content").([]any); isList {
			block = str(valueAt(e, "message.content.0.type"))
		}
		kind := typ + "[" + block + "]"
		if valueAt(e, "message.model") == "<synthetic>" {
			kind += "synthetic"
		}
		return kind
	case "stream_event":
		return typ + "/" + str(valueAt(e, "event.type"))
	case "control_request":
		return typ + "/" + str(valueAt(e, "request.subtype"))
	}
	if sub := str(valueAt(e, "subtype")); sub != "" {
		return typ + "/" + sub
	}
	return typ
}

func mismatches(shape, value any, path string) []string {
	switch shape := shape.(type) {
	case string:
		if types, _, _ := strings.Cut(shape, "{"); !leafMatches(types, value) {
			return []string{fmt.Sprintf("%s is %s, want %s", path, shortJSON(value), types)}
		}
		return nil
	case []any:
		list, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %s, want an array", path, shortJSON(value))}
		}
		var all []string
		for i, v := range list {
			if len(shape) == 1 && !isElision(v) {
				all = append(all, mismatches(shape[0], v, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
		return all
	case map[string]any:
		if union, ok := shape["oneOf"].([]any); ok {
			for _, form := range union {
				if len(mismatches(form, value, path)) == 0 {
					return nil
				}
			}
			return []string{fmt.Sprintf("%s is %s, which is none of its %d forms", path, shortJSON(value), len(union))}
		}
		return objectMismatches(shape, value, path)
	}
	return []string{fmt.Sprintf("%s: the shapes file has a %T", path, shape)}
}

// isElision reports whether a value is the "<10 more>" that replaces the rest of a long list in a recording.
func isElision(v any) bool {
	text, ok := v.(string)
	return ok && strings.HasPrefix(text, "<") && strings.HasSuffix(text, " more>")
}

func objectMismatches(shape map[string]any, value any, path string) []string {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %s, want an object", path, shortJSON(value))}
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(shape)) {
		if _, there := object[key]; !there && key != "*" && !strings.HasSuffix(key, "?") {
			all = append(all, path+"."+key+" is missing")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		inner, known := shape[key]
		for _, other := range []string{key + "?", "*"} {
			if !known {
				inner, known = shape[other]
			}
		}
		if !known {
			all = append(all, path+"."+key+" is a key that the real CLI does not write")
			continue
		}
		switch key {
		case "structured_output", "structuredContent", "tool_response", "toolUseResult": // for every tool and schema
		default:
			all = append(all, mismatches(inner, object[key], path+"."+key)...)
		}
	}
	return all
}

func leafMatches(types string, value any) bool {
	return slices.ContainsFunc(strings.Split(types, "|"), func(typ string) bool {
		switch v := value.(type) {
		case nil:
			return typ == "null" || strings.HasPrefix(typ, "any")
		case bool:
			return typ == "bool" || strings.HasPrefix(typ, "any")
		case string:
			return typ == "string" || strings.HasPrefix(typ, "any")
		case float64:
			return typ == "number" || typ == "float" || typ == "int" && v == math.Trunc(v) || strings.HasPrefix(typ, "any")
		}
		return strings.HasPrefix(typ, "any")
	})
}

// parseEvents reads stream-json, a JSON array of events, or one JSON object.
func parseEvents(text string) ([]any, error) {
	var events []any
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return events, nil
		} else if err != nil {
			return events, fmt.Errorf("event %d is no JSON: %w", len(events), err)
		}
		if list, ok := v.([]any); ok {
			events = append(events, list...)
			continue
		}
		events = append(events, v)
	}
}

// valueAt follows a dotted path; numbers are array indexes, negative ones count from the end. nil means missing or null.
func valueAt(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			var i int
			if _, err := fmt.Sscanf(key, "%d", &i); err != nil {
				return nil
			}
			if i < 0 {
				i += len(x)
			}
			if i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// compactJSON returns the JSON of a value on one line.
func compactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// shortJSON is like compactJSON, cut for a message.
func shortJSON(v any) string {
	s := compactJSON(v)
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
