package tool

import (
	_ "embed" // for definitions.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// definition is an entry of definitions.json, which describes the tools for models.
type definition struct {
	Name, Alias, Description string
	ReadOnly                 bool
	InputSchema              json.RawMessage
	Messages                 map[string]map[string]string // messages that replace those of the validation, by key and code
}

//go:embed definitions.json
var definitionTable string

var definitionsByName = sync.OnceValue(func() map[string]definition {
	var all []definition
	if err := json.Unmarshal([]byte(definitionTable), &all); err != nil {
		panic("definitions.json: " + err.Error())
	}
	byName := map[string]definition{}
	for _, d := range all {
		d.InputSchema = plainjson.Compact(d.InputSchema)
		byName[d.Name] = d
		if d.Alias != "" {
			byName[d.Alias] = d
		}
	}
	return byName
})

// definitionWithFallback returns the entry of a tool. A tool without an entry is not simulated; its input can be any object.
func definitionWithFallback(toolName string) definition {
	if d, ok := definitionsByName()[toolName]; ok {
		return d
	}
	return definition{
		Description: "Listed for completeness; not simulated. Give calls a canned result.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":true}`),
	}
}

func (d definition) schema() (schema plainjson.Schema) {
	if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
		panic("definitions.json: " + d.Name + ": " + err.Error())
	}
	return schema
}

// NormalizeValuesToSchema returns a [Tool.RenameAliases] that reduces the values of an input to the schema of the tool.
func NormalizeValuesToSchema(toolName string) func(*OrderedObject) (note string, changed bool) {
	return func(in *OrderedObject) (note string, changed bool) {
		for _, p := range definitionWithFallback(toolName).schema().Properties {
			if value := in.Get(p.Name); value != nil {
				*in, changed = in.Set(p.Name, p.Schema.StripUnknownAndAddDefaults(value)), true
			}
		}
		return "", changed
	}
}

// Definition returns the tool's description as sessions list it.
func (t Tool) Definition() protocol.Tool {
	d := definitionWithFallback(t.Name)
	return protocol.Tool{Name: t.Name, Description: d.Description, InputSchema: d.InputSchema, ReadOnly: d.ReadOnly}
}

// Validate returns the result for an invalid input; nil for a valid one. The text for the model consists of sentences.
// Hosts receive the issues in the format of the real CLI's validator.
func (t Tool) Validate(call protocol.ToolUse) *protocol.ToolResult {
	raw := call.Input
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage("{}")
	}
	if !json.Valid(raw) {
		return new(protocol.UsageErrorResult(fmt.Sprintf("InputValidationError: %s failed: the input is not valid JSON", call.Name)))
	}
	d := definitionWithFallback(t.Name)
	schema := d.schema()
	schema.RemoveProperties(t.UnavailableKeys...)
	issues := schema.Issues(raw)
	for i := range issues {
		if message := d.Messages[issues[i].LastKey()][issues[i].Code]; message != "" {
			issues[i].Message = message
		}
	}
	r := InvalidInputResult(call.Name, issues)
	if t.Name == "AskUserQuestion" && slices.ContainsFunc(issues, func(i Issue) bool { return i.Code == plainjson.IssueTooSmall && i.LastKey() == "options" }) {
		r.Content.Text = strings.Replace(r.Content.Text, "InputValidationError: ", "InputValidationError: This call included a question with fewer than 2 options, "+
			"so it was rejected and the person never saw it. There is nothing to decide if a question has only one answer. Do not ask it again, "+
			"neither alone nor with a second answer that nobody would choose: say which way you take, and go on with your work. "+
			"Questions of the same call that had two, three or four different options can be asked again in another call without this one. In general, please ask only if the person can choose between several answers that really lead to different results in your work.\n\n", 1)
	}
	return r
}

// Issue is one problem of an input.
type Issue = plainjson.Issue

// CustomIssue returns an issue that is not about a type or limit of the schema.
func CustomIssue(message string, path ...any) Issue {
	return Issue{Code: "custom", Path: append([]any{}, path...), Message: message}
}

// InvalidInputResult returns the error result for an input of toolName with the issues found; nil if found is empty.
func InvalidInputResult(toolName string, found []Issue) *protocol.ToolResult {
	if len(found) == 0 {
		return nil
	}
	list := plainjson.IssuesJSON(found[:min(len(found), maxReportedIssues)])
	text := list
	if lines := issueSentences(found); len(lines) > 0 {
		noun := "issue"
		if len(lines) > 1 {
			noun = "issues"
		}
		text = fmt.Sprintf("%s failed due to the following %s:\n%s", toolName, noun, strings.Join(lines, "\n"))
	}
	r := protocol.UsageErrorResult("InputValidationError: " + text)
	r.Output = "InputValidationError: " + list
	return &r
}

const maxReportedIssues = 20

// issueSentences describes issues in sentences. Missing values, unknown keys and wrong types come first, then all other
// issues. If there are only other issues, it returns nothing, because the caller then shows them as JSON.
func issueSentences(found []Issue) []string {
	var missing, extra, wrong, others []string
	for _, i := range found {
		switch {
		case i.Code == plainjson.IssueUnknownKeys:
			for _, key := range i.Keys {
				extra = append(extra, fmt.Sprintf("An unexpected parameter `%s` was provided", key))
			}
		case i.Code == plainjson.IssueWrongType && i.Received == "undefined":
			missing = append(missing, fmt.Sprintf("The required parameter `%s` is missing", i.BracketedPath()))
		case i.Code == plainjson.IssueWrongType && len(i.Path) == 0:
			wrong = append(wrong, fmt.Sprintf("The input is expected as `%s` but provided as `%s`", i.Expected, i.Received))
		case i.Code == plainjson.IssueWrongType:
			wrong = append(wrong, fmt.Sprintf("The parameter `%s` type is expected as `%s` but provided as `%s`", i.BracketedPath(), i.Expected, i.Received))
		case len(i.Path) > 0:
			others = append(others, fmt.Sprintf("The parameter `%s` is invalid: %s", i.BracketedPath(), i.Message))
		}
	}
	lines := slices.Concat(missing, extra, wrong)
	if len(lines) > 0 {
		lines = append(lines, others...)
	}
	return lines[:min(len(lines), maxReportedIssues)]
}
