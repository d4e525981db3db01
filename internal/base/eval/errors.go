package eval

import (
	"errors"
	"slices"
	"strings"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
)

// joinErrors combines errors about unknown names with another error; nil means no other error.
func joinErrors(unknownNames CompileErrors, other *Error) error {
	if other != nil && !slices.ContainsFunc(unknownNames, func(e *Error) bool { return e.Offset == other.Offset }) {
		unknownNames = append(unknownNames, other)
		slices.SortStableFunc(unknownNames, func(a, b *Error) int { return a.Offset - b.Offset })
	}
	if len(unknownNames) == 1 {
		return unknownNames[0]
	}
	return unknownNames
}

// compileError converts an error of expr to one with an offset and a hint.
func compileError(src string, err error, env *Env) *Error {
	if err == nil {
		return nil
	}
	fe, ok := errors.AsType[*file.Error](err)
	if !ok {
		return &Error{Message: err.Error()}
	}
	message, _, _ := strings.Cut(fe.Message, "\n")
	e := &Error{Message: message, Offset: fe.From}
	if name, ok := strings.CutPrefix(fe.Message, "unknown name "); ok {
		e.Name, e.Known = name, nameCandidates(src, fe.From, name, env)
	}
	_, field, ok := strings.Cut(message, " has no field ")
	if !ok {
		field, ok = strings.CutPrefix(message, "unknown field ")
	}
	if ok {
		e.Message, e.Name, e.Known = "unknown field "+field, field, env.fields
	}
	e.Hint = syntaxHint(src, e)
	return e
}

// nameCandidates returns the names that may have been intended instead of an unknown name: only functions if the
// unknown name is called.
func nameCandidates(src string, offset int, name string, env *Env) []string {
	rest := []rune(src)
	if offset += len([]rune(name)); offset > len(rest) {
		return env.Names()
	}
	if !strings.HasPrefix(strings.TrimSpace(string(rest[offset:])), "(") {
		return env.Names()
	}
	all := slices.DeleteFunc(slices.Clone(builtin.Names), func(n string) bool { return !isFunction(n) })
	slices.Sort(all)
	return all
}

func isFunction(name string) bool {
	_, ok := builtin.Index[name]
	return ok && name != "now" && name != "timezone"
}

// wordOperators are infix operators that are functions or methods in other languages.
var wordOperators = []string{"contains", "startsWith", "endsWith", "matches"} // constant: only read

// syntaxHint returns a hint if the expression uses the syntax of another language.
func syntaxHint(src string, e *Error) string {
	runes := []rune(src)
	at := func(offset int) string {
		if offset < 0 || offset >= len(runes) {
			return ""
		}
		return string(runes[offset:])
	}
	_, method, isMethod := strings.Cut(e.Message, " has no method ")
	switch {
	case strings.HasPrefix(at(e.Offset), "=~"):
		return "write `x matches \"…\"` to match a regular expression"
	case strings.HasPrefix(at(e.Offset-2), "==="), strings.HasPrefix(at(e.Offset), "=") && e.Message == `unexpected token Operator("=")`:
		return "write `==` to compare"
	case isMethod && slices.Contains(wordOperators, method):
		return "write it between its operands: `x " + method + " \"…\"`"
	case isMethod && slices.Contains(builtin.Names, method):
		return "write it as a function: `" + method + "(x)`"
	case isMethod || e.Name == "length":
		return "values have no methods: write `len(x)` for the length; expr-lang.org lists the functions"
	case strings.HasPrefix(e.Message, "unexpected token Operator(") && slices.ContainsFunc(wordOperators, func(o string) bool { return strings.HasPrefix(at(e.Offset), o+"(") }):
		name, _, _ := strings.Cut(at(e.Offset), "(")
		return "write it between its operands: `x " + name + " \"…\"`"
	case strings.HasPrefix(e.Message, "invalid operation: in (mismatched types string and string)"):
		return "write `x contains \"…\"` to test whether a text contains another one"
	}
	return ""
}

func (c *nameChecker) unknownNames(src string) CompileErrors {
	var all CompileErrors
	for _, id := range c.used {
		if _, ok := c.env.types[id.Value]; ok || c.localNames[id.Value] || isFunction(id.Value) {
			continue
		}
		at := id.Location().From
		all = append(all, &Error{Message: "unknown name " + id.Value, Offset: at, Name: id.Value, Known: nameCandidates(src, at, id.Value, c.env)})
	}
	slices.SortStableFunc(all, func(a, b *Error) int { return a.Offset - b.Offset })
	return all
}
