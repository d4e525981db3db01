// Package fill compiles the expressions and templates of a scenario when it is
// loaded, together with the files that values refer to, and evaluates them when
// a reply is made. Nothing is parsed or read from disk after loading.
package fill

import (
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/base/eval"
)

// Library holds what was compiled at load: expressions and templates by their
// source and the capture groups they may use, and files by path.
type Library struct {
	conditions map[snippet]*eval.Program
	templates  map[snippet]*eval.Template
	files      map[string]json.RawMessage
	texts      map[string]string         // files that stand for texts, by path
	envs       map[string]*eval.Compiler // by capture groups
	mentioned  map[string]bool           // of the names that cost time or change from request to request
}

// snippet is a piece of expression language in its surroundings.
type snippet struct {
	src    string
	groups string // names of the capture groups, each followed by a space
}

// NewLibrary makes an empty one.
func NewLibrary() *Library {
	return &Library{
		conditions: map[snippet]*eval.Program{}, templates: map[snippet]*eval.Template{},
		files: map[string]json.RawMessage{}, texts: map[string]string{}, envs: map[string]*eval.Compiler{}, mentioned: map[string]bool{},
	}
}

// mention notes which of the names that cost time src uses.
func (l *Library) mention(src string) {
	for _, name := range append(RequestNames(), "results") {
		if !l.mentioned[name] && strings.Contains(src, name) {
			l.mentioned[name] = true
		}
	}
}

// Mentions tells whether something that was compiled may look at a name, one of
// [RequestNames] or results.
func (l *Library) Mentions(name string) bool { return l.mentioned[name] }

// RequestNames are the names that may differ between two requests with the same
// history.
func RequestNames() []string {
	return append(CallNames(), "model", "system", "tools", "schemas", "context", "permission_mode", "session", "cwd")
}

// CallNames are the names under which expressions see the request itself.
func CallNames() []string {
	return []string{
		"max_tokens", "stream", "attempt", "agent", "betas", "headers", "attachments", "tool_choice", "thinking", "output_config", "metadata",
	}
}

// AtBreakpoint stands in place of capture groups for what is evaluated at a
// breakpoint.
const AtBreakpoint = "\x00breakpoint"

// env compiles with the names that expressions see where these groups were captured.
func (l *Library) env(groups string) *eval.Compiler {
	if e, ok := l.envs[groups]; ok {
		return e
	}
	if groups == AtBreakpoint {
		l.envs[groups] = eval.NewCompiler(eval.Breakpoint())
		return l.envs[groups]
	}
	e := eval.NewCompiler(eval.NewEnv(map[string]any{
		"prompt": "", "match": map[any]any{}, "results": []Result{}, "context": []string{}, "turn": 0, "tools": []string{}, "model": "",
		"permission_mode": "", "system_prompt": "", "cwd": "", "env": map[string]string{}, "args": []string{},
		"session": eval.Object{"id": "", "resumed": false, "turn": 0}, "schemas": map[string]any{},
		"system": "", "max_tokens": 0, "stream": false, "attempt": 0, "agent": "", "betas": []string{}, "headers": map[string]string{},
		"attachments": []string{}, "tool_choice": any(nil), "thinking": any(nil), "output_config": any(nil), "metadata": any(nil),
	}).WithKeys("match", strings.Fields(groups)))
	l.envs[groups] = e
	return e
}
