package scenarios

import (
	"slices"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// convertRustFormat converts a file in the format of claudeless-rs 0.4, which has rules with `on`, `say`, `tools` and
// `then`, and the tables `claude`, `default` and `tools`. As in claudeless-rs, templates are disabled, and tools run
// even if init does not list them. Values keep their positions. A file in another format is returned unchanged.
func convertRustFormat(root diag.Value) diag.Value {
	if !isRustFormat(root) {
		return root
	}
	hidden := root.WithFields(diag.Field{Key: "hidden_tools", Value: root.WithText(diag.KindBool, "true")})
	fields := []diag.Field{{Key: "templates", Value: root.WithText(diag.KindBool, "false")}, {Key: "compat", Value: hidden}}
	for _, f := range root.Fields() {
		switch f.Key {
		case "claude":
			fields = append(fields, renameKeys(f.Value, map[string]string{"model": "default_model", "version": "claude_version", "username": "user_name"}).Fields()...)
			continue
		case "default":
			f.Key, f.Value = "default_response", convertRustResponse(f.Value)
		case "responses":
			f.Value = convertItems(f.Value, func(rule diag.Value) diag.Value { return convertRustRule(rule, "pattern") })
		case "tools":
			f.Key, f.Value = "tool_execution", convertRustTools(f.Value)
		}
		fields = append(fields, f)
	}
	return root.WithFields(fields...)
}

// isRustFormat reports whether a file is in the Rust format: a rule has `on`, or the file has only keys of this format.
// A file with only `responses` is not, because both formats have this key.
func isRustFormat(root diag.Value) bool {
	only, own := true, false
	for _, f := range root.Fields() {
		only, own = only && slices.Contains([]string{"claude", "default", "responses", "tools"}, f.Key), own || f.Key != "responses"
		if f.Key == "responses" && slices.ContainsFunc(f.Value.Items(), func(rule diag.Value) bool { _, ok := rule.Field("on"); return ok }) {
			return true
		}
	}
	return only && own
}

// convertRustRule converts a rule or a turn. pattern is the key that replaces `on`.
func convertRustRule(rule diag.Value, pattern string) diag.Value {
	var fields, response []diag.Field
	for _, f := range rule.Fields() {
		switch f.Key {
		case "say", "tools", "usage", "delay_ms":
			response = append(response, f)
			continue
		case "on":
			f.Key, f.Value = pattern, convertRustPattern(f.Value)
		case "max":
			f.Key = "max_matches"
		case "then":
			f.Key, f.Value = "turns", convertItems(f.Value, func(turn diag.Value) diag.Value { return convertRustRule(turn, "expect") })
		}
		fields = append(fields, f)
	}
	if response != nil {
		f := response[0] // the new table has the position of the first key
		f.Key, f.Value = "response", convertRustResponse(rule.WithFields(response...))
		fields = append(fields, f)
	}
	return rule.WithFields(fields...)
}

func convertRustResponse(response diag.Value) diag.Value {
	fields := slices.Clone(renameKeys(response, map[string]string{"say": "text", "tools": "tool_calls"}).Fields())
	for i, f := range fields {
		if f.Key == "tool_calls" {
			fields[i].Value = convertItems(f.Value, func(call diag.Value) diag.Value { return renameKeys(call, map[string]string{"call": "tool"}) })
		}
	}
	return response.WithFields(fields...)
}

// convertRustPattern converts a glob, { contains = … } or { regexp = … }. Other values are returned unchanged.
func convertRustPattern(on diag.Value) diag.Value {
	kind, key, text := "glob", "pattern", on
	if fields := on.Fields(); len(fields) == 1 && fields[0].Key == "contains" {
		kind, key, text = "contains", "text", fields[0].Value
	} else if len(fields) == 1 && fields[0].Key == "regexp" {
		kind, text = "regex", fields[0].Value
	} else if on.Kind != diag.KindString {
		return on
	}
	return on.WithFields(diag.Field{Key: "type", Value: on.WithText(diag.KindString, kind)}, diag.Field{Key: key, Value: text})
}

func convertRustTools(settings diag.Value) diag.Value {
	var fields, tools []diag.Field
	for _, f := range settings.Fields() {
		if f.Key == "mode" {
			fields = append(fields, f)
			continue
		}
		f.Value = renameKeys(f.Value, map[string]string{"approve": "auto_approve"})
		tools = append(tools, f)
	}
	return settings.WithFields(append(fields, diag.Field{Key: "tools", Value: settings.WithFields(tools...)})...)
}

func renameKeys(table diag.Value, names map[string]string) diag.Value {
	if table.Kind != diag.KindTable {
		return table
	}
	fields := slices.Clone(table.Fields())
	for i, f := range fields {
		if name := names[f.Key]; name != "" {
			fields[i].Key = name
		}
	}
	return table.WithFields(fields...)
}

func convertItems(array diag.Value, convert func(diag.Value) diag.Value) diag.Value {
	if array.Kind != diag.KindArray {
		return array
	}
	items := slices.Clone(array.Items())
	for i, item := range items {
		items[i] = convert(item)
	}
	return array.WithItems(items)
}
