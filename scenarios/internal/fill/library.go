// Package fill compiles and evaluates the expressions and templates of a scenario. When a scenario is loaded, a [FileCompiler] compiles them
// and reads the files that values refer to. For each reply, a [Scope] evaluates them; it compiles no expression and reads no file.
package fill

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
)

// CompiledExpressions contains the compiled expressions and templates of a scenario; the source text and the names of the
// capture groups identify each. It also contains the files that values of the scenario refer to, by path.
type CompiledExpressions struct {
	conditions map[expressionKey]*eval.Program
	templates  map[expressionKey]*eval.Template
	files      map[string]json.RawMessage
	texts      map[string]string         // text files, by path
	compilers  map[string]*eval.Compiler // by capture groups
	used       map[string]bool           // which variables of [CompiledExpressions.UsesPerRequestVariable] occur in a compiled expression
}

type expressionKey struct {
	src    string
	groups string // names of the capture groups, separated by spaces
}

// NewCompiledExpressions returns a library that contains no compiled expressions yet.
func NewCompiledExpressions() *CompiledExpressions {
	return &CompiledExpressions{
		conditions: map[expressionKey]*eval.Program{}, templates: map[expressionKey]*eval.Template{},
		files: map[string]json.RawMessage{}, texts: map[string]string{}, compilers: map[string]*eval.Compiler{}, used: map[string]bool{},
	}
}

// recordUsedVariables records which of [PerRequestVariables] and "results" the
// expression may use. Callers compute the values of some variables only if an expression uses them.
func (l *CompiledExpressions) recordUsedVariables(expression string) {
	for _, name := range append(PerRequestVariables(), "results") {
		if !l.used[name] && strings.Contains(expression, name) {
			l.used[name] = true
		}
	}
}

// UsesPerRequestVariable reports whether a compiled expression may use name: one of [PerRequestVariables],
// or "results". For other variables it returns false, because their use is not recorded.
func (l *CompiledExpressions) UsesPerRequestVariable(name string) bool { return l.used[name] }

// PerRequestVariables returns the variables that may differ between two requests with the same history.
func PerRequestVariables() []string {
	return append(RequestPropertyVariables(), "model", "system", "tools", "schemas", "context", "permission_mode", "session", "cwd")
}

// RequestPropertyVariables returns the names of the variables that describe the request itself, such as max_tokens.
func RequestPropertyVariables() []string {
	return []string{"max_tokens", "stream", "attempt", "agent", "betas", "headers", "attachments", "tool_choice", "thinking", "output_config", "metadata"}
}

// GroupsMarkerOfBreakpointExpressions is the value of Groups for expressions of breakpoints. They
// have no capture groups, and their variables are those of [eval.ToolCallEnv].
const GroupsMarkerOfBreakpointExpressions = "\x00breakpoint"

func (l *CompiledExpressions) expressionCompilerForCaptureGroups(groupNames string) *eval.Compiler {
	if e, ok := l.compilers[groupNames]; ok {
		return e
	}
	if groupNames == GroupsMarkerOfBreakpointExpressions {
		l.compilers[groupNames] = eval.NewCompiler(eval.ToolCallEnv())
		return l.compilers[groupNames]
	}
	e := eval.NewCompiler(eval.NewEnv(map[string]any{
		"prompt": "", "match": map[any]any{}, "results": []ToolCallResult{}, "context": []string{}, "turn": 0, "tools": []string{}, "model": "",
		"permission_mode": "", "system_prompt": "", "cwd": "", "env": map[string]string{}, "args": []string{},
		"session": eval.ExampleObject{"id": "", "resumed": false, "turn": 0}, "schemas": map[string]any{},
		"system": "", "max_tokens": 0, "stream": false, "attempt": 0, "agent": "", "betas": []string{}, "headers": map[string]string{},
		"attachments": []string{}, "tool_choice": any(nil), "thinking": any(nil), "output_config": any(nil), "metadata": any(nil),
	}).WithMapKeys("match", strings.Fields(groupNames)))
	l.compilers[groupNames] = e
	return e
}

// ToolCallResult is one element of the variable `results`.
type ToolCallResult struct {
	Text       string `expr:"text" json:"text"`
	IsError    bool   `expr:"is_error" json:"is_error"`
	Tool       string `expr:"tool" json:"tool"`
	ID         string `expr:"id" json:"id"`
	Content    any    `expr:"content" json:"content,omitempty"`
	Structured any    `expr:"structured" json:"structured,omitempty"`
}

func mayContainTemplateOrFile(raw json.RawMessage, templates bool) bool {
	return bytes.Contains(raw, []byte(`"$file"`)) || (templates && bytes.Contains(raw, []byte("{{")))
}

// wrapInObjectUnderEmptyKey returns the object {"": raw}. [diag.IndexJSON] accepts only objects.
func wrapInObjectUnderEmptyKey(raw json.RawMessage) []byte {
	return append(append([]byte(`{"":`), raw...), '}')
}

func referencedFileName(scenarioValue diag.Value) (fileName string, isReference bool) {
	name, ok := scenarioValue.Field("$file")
	return name.Text, ok && name.Kind == diag.KindString
}
