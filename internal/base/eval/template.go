package eval

import (
	"context"
	"strings"
	"unicode/utf8"
)

// Template is a text that contains expressions in double braces. It is immutable.
type Template struct {
	parts []templatePart
}

type templatePart struct {
	text    string
	program *Program
}

// HasTemplate reports whether s contains an expression for [ParseTemplate].
func HasTemplate(s string) bool { return strings.Contains(s, "{{") }

// ParseTemplate compiles the expressions of src over the variables of env. The
// error is [CompileErrors], one for each problem, with offsets in src.
func ParseTemplate(src string, env *Env) (*Template, error) {
	return NewCompiler(env).CompileTemplate(src)
}

// Compiler compiles many templates over one Env and caches equal expressions. It is not safe for concurrent use.
type Compiler struct {
	Env   *Env
	cache map[string]*Program
}

// NewCompiler returns a compiler with an empty cache.
func NewCompiler(env *Env) *Compiler { return &Compiler{Env: env, cache: map[string]*Program{}} }

func (c *Compiler) compileExpression(src string) (*Program, error) {
	p, ok := c.cache[src]
	if ok {
		return p, nil
	}
	p, err := Compile(src, c.Env)
	if err == nil {
		c.cache[src] = p
	}
	return p, err
}

// CompileTemplate compiles a template as [ParseTemplate] does, with cached expressions.
func (c *Compiler) CompileTemplate(src string) (*Template, error) {
	t := &Template{}
	var wrong CompileErrors
	at := 0
	for start, end := nextExpression(src, 0); start >= 0; start, end = nextExpression(src, at) {
		if end < 0 {
			return nil, append(wrong, &Error{Message: "`{{` needs a closing `}}`", Offset: utf8.RuneCountInString(src[:start-2])})
		}
		if start-2 > at {
			t.parts = append(t.parts, templatePart{text: src[at : start-2]})
		}
		p, err := c.compileExpression(src[start:end])
		for _, e := range CompileErrorsIn(err) {
			e.Offset += utf8.RuneCountInString(src[:start])
			wrong = append(wrong, e)
		}
		t.parts = append(t.parts, templatePart{program: p})
		at = end + 2
	}
	if wrong != nil {
		return nil, wrong
	}
	if at < len(src) || len(t.parts) == 0 {
		t.parts = append(t.parts, templatePart{text: src[at:]})
	}
	return t, nil
}

// nextExpression finds the first expression {{ … }} of the template src that begins at the index from or later, and returns the
// bounds of the text between its braces. Without one, both results are -1. Without closing braces, end is -1.
func nextExpression(src string, from int) (start, end int) {
	open := strings.Index(src[from:], "{{")
	if open < 0 {
		return -1, -1
	}
	start = from + open + 2
	if size := findClosingBraces(src[start:]); size >= 0 {
		return start, start + size
	}
	return start, -1
}

// findClosingBraces returns the position of the "}}" that ends an expression; -1 means that none does. It skips "}}" in
// strings, and braces that close other braces of the expression.
func findClosingBraces(s string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}' && strings.HasPrefix(s[i:], "}}"):
			return i
		}
	}
	return -1
}

// Eval returns the value of a template that is a single expression. For other templates, it returns their text.
func (t *Template) Eval(ctx context.Context, vars map[string]any) (any, error) {
	if len(t.parts) == 1 && t.parts[0].program != nil {
		v, err := t.parts[0].program.Run(ctx, vars)
		if s, ok := v.(string); ok && err == nil {
			err = spendSharedOutputBytes(ctx, len(s))
		}
		return v, err
	}
	return t.Text(ctx, vars)
}

// Text evaluates the template as text; the function [Text] formats values.
func (t *Template) Text(ctx context.Context, vars map[string]any) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.program == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := p.program.Run(ctx, vars)
		if err != nil {
			return "", err
		}
		s, err := Text(v)
		if err != nil {
			return "", err
		}
		if b.Len()+len(s) > maxExpressionOutputBytesPerTemplate {
			return "", errTemplateTooLong
		}
		if err := spendSharedOutputBytes(ctx, len(s)); err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
