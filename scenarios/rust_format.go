package scenarios

import (
	"slices"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// convertRustClaudelessScenario converts a file in the format of claudeless-rs 0.4, which has rules with `on`, `say`, `tools` and
// `then`, and the tables `claude`, `default` and `tools`. As in claudeless-rs, templates are disabled, and tools run
// even if init does not list them. Values keep their positions. A file in another format is returned unchanged.
func convertRustClaudelessScenario(scenarioFile diag.Value) (currentForm diag.Value) {
	if !hasRustClaudelessFormat(scenarioFile) {
		return scenarioFile
	}
	hidden := scenarioFile.WithFields(diag.Field{Key: "hidden_tools", Value: scenarioFile.WithText(diag.KindBool, "true")})
	fields := []diag.Field{{Key: "templates", Value: scenarioFile.WithText(diag.KindBool, "false")}, {Key: "compat", Value: hidden}}
	for _, f := range scenarioFile.Fields() {
		switch f.Key {
		case "claude":
			fields = append(fields, renameKeys(f.Value, map[string]string{"model": "default_model", "version": "claude_version", "username": "user_name"}).Fields()...)
			continue
		case "default":
			f.Key, f.Value = "default_response", convertRustClaudelessResponse(f.Value)
		case "responses":
			f.Value = convertArrayItems(f.Value, func(rule diag.Value) diag.Value { return convertRustClaudelessRule(rule, "pattern") })
		case "tools":
			f.Key, f.Value = "tool_execution", convertRustClaudelessToolsTable(f.Value)
		}
		fields = append(fields, f)
	}
	return scenarioFile.WithFields(fields...)
}

// hasRustClaudelessFormat reports whether a file is in the Rust format: a rule has `on`, or the file has only keys of this
// format. A file with only `responses` is not, because both formats have this key.
func hasRustClaudelessFormat(scenarioFile diag.Value) bool {
	only, own := true, false
	for _, f := range scenarioFile.Fields() {
		only, own = only && slices.Contains([]string{"claude", "default", "responses", "tools"}, f.Key), own || f.Key != "responses"
		if f.Key == "responses" && slices.ContainsFunc(f.Value.Items(), func(rule diag.Value) bool { _, ok := rule.Field("on"); return ok }) {
			return true
		}
	}
	return only && own
}

// convertRustClaudelessRule converts a rule or a turn. pattern is the key that replaces `on`.
func convertRustClaudelessRule(rule diag.Value, pattern string) diag.Value {
	var fields, response []diag.Field
	for _, f := range rule.Fields() {
		switch f.Key {
		case "say", "tools", "usage", "delay_ms":
			response = append(response, f)
			continue
		case "on":
			f.Key, f.Value = pattern, convertRustClaudelessPattern(f.Value)
		case "max":
			f.Key = "max_matches"
		case "then":
			f.Key, f.Value = "turns", convertArrayItems(f.Value, func(turn diag.Value) diag.Value { return convertRustClaudelessRule(turn, "expect") })
		}
		fields = append(fields, f)
	}
	if response != nil {
		f := response[0] // the new table has the position of the first key
		f.Key, f.Value = "response", convertRustClaudelessResponse(rule.WithFields(response...))
		fields = append(fields, f)
	}
	return rule.WithFields(fields...)
}

func convertRustClaudelessResponse(response diag.Value) (currentForm diag.Value) {
	fields := slices.Clone(renameKeys(response, map[string]string{"say": "text", "tools": "tool_calls"}).Fields())
	for i, f := range fields {
		if f.Key == "tool_calls" {
			fields[i].Value = convertArrayItems(f.Value, func(call diag.Value) diag.Value { return renameKeys(call, map[string]string{"call": "tool"}) })
		}
	}
	return response.WithFields(fields...)
}

// convertRustClaudelessPattern converts a glob, { contains = … } or { regexp = … }. Other values are returned unchanged.
func convertRustClaudelessPattern(rustPattern diag.Value) (currentForm diag.Value) {
	kind, key, text := "glob", "pattern", rustPattern
	if fields := rustPattern.Fields(); len(fields) == 1 && fields[0].Key == "contains" {
		kind, key, text = "contains", "text", fields[0].Value
	} else if len(fields) == 1 && fields[0].Key == "regexp" {
		kind, text = "regex", fields[0].Value
	} else if rustPattern.Kind != diag.KindString {
		return rustPattern
	}
	return rustPattern.WithFields(diag.Field{Key: "type", Value: rustPattern.WithText(diag.KindString, kind)}, diag.Field{Key: key, Value: text})
}

func convertRustClaudelessToolsTable(rustTools diag.Value) (toolExecutionTable diag.Value) {
	var fields, tools []diag.Field
	for _, f := range rustTools.Fields() {
		if f.Key == "mode" {
			fields = append(fields, f)
			continue
		}
		f.Value = renameKeys(f.Value, map[string]string{"approve": "auto_approve"})
		tools = append(tools, f)
	}
	return rustTools.WithFields(append(fields, diag.Field{Key: "tools", Value: rustTools.WithFields(tools...)})...)
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

func convertArrayItems(arrayOrOtherValue diag.Value, convertItem func(diag.Value) diag.Value) diag.Value {
	if arrayOrOtherValue.Kind != diag.KindArray {
		return arrayOrOtherValue
	}
	items := slices.Clone(arrayOrOtherValue.Items())
	for i, item := range items {
		items[i] = convertItem(item)
	}
	return arrayOrOtherValue.WithItems(items)
}
