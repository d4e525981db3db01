package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/eval"
)

// library holds what was compiled at load: expressions and templates by their
// source and the capture groups they may use, and files by path.
type library struct {
	conditions map[snippet]*eval.Program
	templates  map[snippet]*eval.Template
	files      map[string]json.RawMessage
	envs       map[string]*eval.Env // by capture groups
	schemas    bool                 // something mentions `schemas`
	results    bool                 // something mentions `results`
	mentioned  map[string]bool      // of the names that cost time or change from request to request
}

// snippet is a piece of expression language in its surroundings.
type snippet struct {
	src    string
	groups string // names of the capture groups, each followed by a space
}

func newLibrary() *library {
	return &library{
		conditions: map[snippet]*eval.Program{}, templates: map[snippet]*eval.Template{},
		files: map[string]json.RawMessage{}, envs: map[string]*eval.Env{}, mentioned: map[string]bool{},
	}
}

// mention notes which of the names that cost time src uses.
func (l *library) mention(src string) {
	l.schemas = l.schemas || strings.Contains(src, "schemas")
	l.results = l.results || strings.Contains(src, "results")
	for _, name := range requestNames() {
		if !l.mentioned[name] && strings.Contains(src, name) {
			l.mentioned[name] = true
		}
	}
}

// requestNames are the names that may differ between two requests with the same
// history.
func requestNames() []string {
	return append(callNames(), "model", "system", "tools", "schemas", "context", "permission_mode", "session", "cwd")
}

// callNames are the names under which expressions see a [Call].
func callNames() []string {
	return []string{
		"max_tokens", "stream", "attempt", "agent", "betas", "headers", "attachments", "tool_choice", "thinking", "output_config", "metadata",
	}
}

// Mentions tells whether an expression of the scenario may look at a name, one of
// those that can differ between requests with the same history: model, system,
// tools, schemas, context, permission_mode, session, cwd and those of [Call].
func (s *Scenario) Mentions(name string) bool { return s.library != nil && s.library.mentioned[name] }

// vars are the call as expressions see it.
func (c Call) vars(into map[string]any) {
	into["max_tokens"], into["stream"], into["attempt"], into["agent"] = c.MaxTokens, c.Stream, max(1, c.Attempt), c.Agent
	into["betas"], into["headers"], into["attachments"] = c.Betas, c.Headers, c.Attachments
	for name, raw := range map[string]json.RawMessage{
		"tool_choice": c.ToolChoice, "thinking": c.Thinking, "output_config": c.OutputConfig, "metadata": c.Metadata,
	} {
		into[name] = decode(raw)
	}
}

// resultVar is one element of `results`.
type resultVar struct {
	Text       string `expr:"text" json:"text"`
	IsError    bool   `expr:"is_error" json:"is_error"`
	Tool       string `expr:"tool" json:"tool"`
	ID         string `expr:"id" json:"id"`
	Content    any    `expr:"content" json:"content,omitempty"`
	Structured any    `expr:"structured" json:"structured,omitempty"`
}

// env returns the names that expressions see where these groups were captured.
func (l *library) env(groups string) *eval.Env {
	if e, ok := l.envs[groups]; ok {
		return e
	}
	if groups == atBreakpoint {
		l.envs[groups] = eval.Breakpoint()
		return l.envs[groups]
	}
	e := eval.NewEnv(map[string]any{
		"prompt": "", "match": map[any]any{}, "results": []resultVar{}, "context": []string{}, "turn": 0, "tools": []string{}, "model": "",
		"permission_mode": "", "system_prompt": "", "cwd": "", "env": map[string]string{}, "args": []string{},
		"session": eval.Object{"id": "", "resumed": false, "turn": 0}, "schemas": map[string]any{},
		"system": "", "max_tokens": 0, "stream": false, "attempt": 0, "agent": "", "betas": []string{}, "headers": map[string]string{},
		"attachments": []string{}, "tool_choice": any(nil), "thinking": any(nil), "output_config": any(nil), "metadata": any(nil),
	}).WithKeys("match", strings.Fields(groups))
	l.envs[groups] = e
	return e
}

// scope evaluates what one response holds.
type scope struct {
	lib     *library
	src     *source
	groups  string
	vars    map[string]any
	results []resultVar
}

func (s *scope) condition(ctx context.Context, src string) (bool, error) {
	if src == "" {
		return true, nil
	}
	p := s.lib.conditions[snippet{src, s.groups}]
	if p == nil {
		return false, fmt.Errorf("condition %q was not compiled", src)
	}
	s.vars["results"] = s.results
	ok, err := p.Bool(ctx, s.vars)
	if err != nil {
		return false, fmt.Errorf("condition %q: %w", src, err)
	}
	return ok, nil
}

// text fills in the templates of a string.
func (s *scope) text(ctx context.Context, src string) (string, error) {
	v, err := s.value(ctx, src)
	if err != nil {
		return "", err
	}
	return eval.Text(v)
}

// value is text, but a string that is one expression keeps its type.
func (s *scope) value(ctx context.Context, src string) (any, error) {
	if !s.src.templates || !eval.HasTemplate(src) {
		return src, nil
	}
	t := s.lib.templates[snippet{src, s.groups}]
	if t == nil {
		return "", fmt.Errorf("template %q was not compiled", src)
	}
	s.vars["results"] = s.results
	v, err := t.Eval(ctx, s.vars)
	if err != nil {
		return "", fmt.Errorf("template %q: %w", src, err)
	}
	return v, nil
}

// json fills in the templates and files of a JSON value.
func (s *scope) json(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	if !dynamic(raw, s.src.templates) {
		return raw, nil
	}
	return s.appendValue(ctx, nil, diag.IndexJSON("", wrapJSON(raw)).Root())
}

// dynamic tells whether a JSON value holds anything to fill in.
func dynamic(raw json.RawMessage, templates bool) bool {
	return bytes.Contains(raw, []byte(`"$file"`)) || (templates && bytes.Contains(raw, []byte("{{")))
}

// wrapJSON makes any JSON value an object's field "", which is what an index
// can hold.
func wrapJSON(raw json.RawMessage) []byte {
	return append(append([]byte(`{"":`), raw...), '}')
}

func (s *scope) appendValue(ctx context.Context, dst []byte, root diag.Value) ([]byte, error) {
	v, _ := root.Field("")
	return s.append(ctx, dst, v)
}

func (s *scope) append(ctx context.Context, dst []byte, v diag.Value) ([]byte, error) {
	var err error
	switch v.Kind {
	case diag.String:
		filled, err := s.value(ctx, v.Text)
		if err != nil {
			return dst, err
		}
		return eval.AppendJSON(dst, filled)
	case diag.Array:
		dst = append(dst, '[')
		for i, item := range v.Items() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = s.append(ctx, dst, item); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case diag.Table:
		if name, ok := fileRef(v); ok {
			return append(dst, s.lib.files[resolve(s.src.dir, name)]...), nil
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
			if dst, err = s.append(ctx, dst, f.Value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	default:
		return v.AppendJSON(dst), nil
	}
}

// fileRef returns the path of a { "$file" = "path" } table.
func fileRef(v diag.Value) (string, bool) {
	name, ok := v.Field("$file")
	return name.Text, ok && name.Kind == diag.String
}

// decode reads JSON for expressions: integers are int, other numbers float64.
// What cannot be read is nil.
func decode(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return plainNumbers(v)
}

func plainNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(x.String()); err == nil {
			return n
		}
		if f, err := x.Float64(); err == nil {
			return f
		}
		return x.String()
	case []any:
		for i := range x {
			x[i] = plainNumbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = plainNumbers(x[k])
		}
	}
	return v
}

// resultVars is what expressions see of results. Their content is decoded only
// where something asks for it.
func (l *library) resultVars(results []Result) []resultVar {
	vars := make([]resultVar, len(results))
	for i, r := range results {
		vars[i] = resultVar{Text: r.Text, IsError: r.IsError, Tool: r.Tool, ID: r.ToolUseID}
		if !l.results {
			continue
		}
		vars[i].Content = decode(r.Content)
		if raw, err := json.Marshal(r.Structured); err == nil && r.Structured != nil {
			vars[i].Structured = decode(raw)
		}
	}
	return vars
}
