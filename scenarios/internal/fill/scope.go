package fill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
)

// Scope evaluates the expressions of one response. Vars and Match must not be nil, because methods write to them.
type Scope struct {
	Library *CompiledExpressions
	Source  *ScenarioFile
	Groups  string         // names of the captures that expressions can use, separated by spaces
	Vars    map[string]any // all variables except match and results
	Match   map[any]any    // captures, by number and by name
	Results []ToolCallResult
}

// EvaluateCondition evaluates a condition; an empty one is true.
func (s *Scope) EvaluateCondition(ctx context.Context, src string) (bool, error) {
	if src == "" {
		return true, nil
	}
	p := s.Library.conditions[expressionKey{src, s.Groups}]
	if p == nil {
		return false, fmt.Errorf("the condition %q was not compiled when the file was loaded (a bug in claudeless)", src)
	}
	s.Vars["match"], s.Vars["results"] = s.Match, s.Results
	ok, err := p.Bool(ctx, s.Vars)
	if err != nil {
		return false, fmt.Errorf("condition %q: %w", src, err)
	}
	return ok, nil
}

// RenderText returns a string with its templates evaluated.
func (s *Scope) RenderText(ctx context.Context, src string) (string, error) {
	v, err := s.evaluateTextOrExpression(ctx, src)
	if err != nil {
		return "", err
	}
	return eval.Text(v)
}

// LoadedTextFile returns the content of a text file that was read when the scenario was loaded, or "" for another file.
func (s *Scope) LoadedTextFile(name string) string {
	return s.Library.texts[diag.JoinUnlessAbsolute(s.Source.Dir, name)]
}

// evaluateTextOrExpression is like RenderText, but returns a value of its own type if src is a single expression.
func (s *Scope) evaluateTextOrExpression(ctx context.Context, src string) (any, error) {
	if !s.Source.Templates || !eval.HasTemplate(src) {
		return src, nil
	}
	t := s.Library.templates[expressionKey{src, s.Groups}]
	if t == nil {
		return "", fmt.Errorf("the template %q was not compiled when the file was loaded (a bug in claudeless)", src)
	}
	s.Vars["match"], s.Vars["results"] = s.Match, s.Results
	v, err := t.Eval(ctx, s.Vars)
	if err != nil {
		const enough = 200 // number of characters shown to identify the string
		if whole := []rune(src); len(whole) > enough {
			src = string(whole[:enough]) + "…"
		}
		return "", fmt.Errorf("template %q: %w", src, err)
	}
	return v, nil
}

// RenderJSON returns a JSON value with its templates evaluated and references to files replaced by their content.
func (s *Scope) RenderJSON(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	if !mayContainTemplateOrFile(raw, s.Source.Templates) {
		return raw, nil
	}
	v, _ := diag.IndexJSON("", wrapInObjectUnderEmptyKey(raw)).Root().Field("")
	return s.appendRenderedJSON(ctx, nil, v)
}

// NamedGroups returns the captures that have a name.
func (s *Scope) NamedGroups() map[string]string {
	groups := map[string]string{}
	for key, text := range s.Match {
		if name, ok := key.(string); ok {
			groups[name], _ = text.(string)
		}
	}
	return groups
}

// InheritGroups adds captures of earlier patterns to the scope of a turn: those of the turn's rule, and those of the rule's
// preceding turns. If names are equal, a capture of the scope itself takes precedence.
func (s *Scope) InheritGroups(groups map[string]string) {
	own := s.Match
	for name, text := range groups {
		if _, ok := own[name]; !ok {
			own[name] = text
		}
	}
}

// Fork returns a copy of the scope. The original and the copy share only Match.
func (s *Scope) Fork() (copySharingMatch *Scope) {
	n := *s
	n.Vars, n.Results = maps.Clone(s.Vars), slices.Clip(s.Results)
	return &n
}

func (s *Scope) appendRenderedJSON(ctx context.Context, dst []byte, v diag.Value) ([]byte, error) {
	var err error
	switch v.Kind {
	case diag.KindString:
		filled, err := s.evaluateTextOrExpression(ctx, v.Text)
		if err != nil {
			return dst, err
		}
		return eval.AppendJSON(dst, filled)
	case diag.KindArray:
		dst = append(dst, '[')
		for i, item := range v.Items() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = s.appendRenderedJSON(ctx, dst, item); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case diag.KindTable:
		if name, ok := referencedFileName(v); ok {
			return append(dst, s.Library.files[diag.JoinUnlessAbsolute(s.Source.Dir, name)]...), nil
		}
		dst = append(dst, '{')
		for i, f := range v.Fields() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = eval.AppendJSON(dst, f.Key); err != nil {
				return dst, err
			}
			dst = append(dst, ':')
			if dst, err = s.appendRenderedJSON(ctx, dst, f.Value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	default:
		return v.AppendJSON(dst), nil
	}
}

// ScenarioFile is one scenario file.
type ScenarioFile struct {
	Index     *diag.SourceIndex
	Dir       string // directory to which file names are relative
	Templates bool   // strings may contain templates
}

// DiagnosticAtValue returns a diagnostic at a value of the file. characterOffset counts characters within a string
// value. In a response that is only a string, the path to `text` leads to that string.
func (s *ScenarioFile) DiagnosticAtValue(path diag.Path, characterOffset int, message string) diag.Diagnostic {
	if s == nil {
		return diag.Diagnostic{Message: message}
	}
	if last := len(path) - 1; last >= 0 && path[last] == "text" {
		if whole, ok := s.Index.Lookup(path[:last]); ok && whole.Kind == diag.KindString {
			path = path[:last]
		}
	}
	return s.Index.DiagnosticAtText(path, characterOffset, message)
}
