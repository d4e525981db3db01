// Package eval implements the expression language of scenarios, fixtures and the debugger: expr-lang with typed variables, and
// templates, which contain expressions in double braces.
//
// Evaluation has no side effects, depends only on the variables, and ends within a fixed number of steps and bytes.
package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

const maxExpressionBytes = 16 << 10

// Error is a problem in an expression.
type Error struct {
	Message string
	Offset  int      // position in characters from the beginning of the source
	Name    string   // the unknown name; "" means another problem
	Known   []string // existing names, from which a message can suggest a replacement for Name
	Hint    string   // what to write instead; "" means no hint
}

func (e *Error) Error() string { return e.Message }

// CompileErrors holds all problems of an expression or a template.
type CompileErrors []*Error

// Error joins the messages.
func (l CompileErrors) Error() string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = e.Message
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the individual errors.
func (l CompileErrors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

// CompileErrorsIn returns the individual errors that an error of this package contains; nil for other errors.
func CompileErrorsIn(err error) []*Error {
	list, _ := errors.AsType[CompileErrors](err)
	return list
}

// Program is a compiled expression. It is immutable.
type Program struct {
	vm   *vm.Program
	path string // the source, if it is only a member access; otherwise empty
	// owner and key are the map of texts and the key that path accesses, such as env.HOME; empty for other paths.
	owner, key string
}

// Compile compiles an expression over the variables of env. The error is [CompileErrors].
func Compile(src string, env *Env) (*Program, error) { return compile(src, env, expr.AsAny()) }

// CompileBool compiles a condition: its value must be a boolean.
func CompileBool(src string, env *Env) (*Program, error) { return compile(src, env, expr.AsBool()) }

func compile(src string, env *Env, resultType expr.Option) (*Program, error) {
	if len(src) > maxExpressionBytes {
		return nil, CompileErrors{{Message: "the expression is too long"}}
	}
	if strings.TrimSpace(src) == "" {
		return nil, CompileErrors{{Message: "the expression is empty"}}
	}
	check := &nameCheckingPatcher{env: env}
	opts := append(exprOptionsForLimitedFunctions(), expr.Env(env.types), resultType, expr.Patch(check), expr.Patch(&costCountingPatcher{}))
	p, err := expr.Compile(src, opts...)
	if check.err != nil {
		return nil, CompileErrors{check.err}
	}
	all := check.unknownNames(src)
	if err != nil { // an error about the first unknown name is already in the list
		if other := toCompileError(src, err, env); !slices.ContainsFunc(all, func(e *Error) bool { return e.Offset == other.Offset }) {
			all = append(all, other)
		}
	}
	if len(all) > 0 {
		slices.SortStableFunc(all, func(a, b *Error) int { return a.Offset - b.Offset })
		return nil, all
	}
	compiled := &Program{vm: p, path: check.sourceIfOnlyMemberAccess(src)}
	compiled.owner, compiled.key = check.mapAndKeyOfTextMapAccess(check.lastNode)
	return compiled, nil
}

// Run evaluates the expression. vars has a value for every variable of the Env and
// is not changed. A run that exceeds a fixed number of steps or bytes fails.
func (p *Program) Run(ctx context.Context, vars map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := make(map[string]any, len(vars)+1)
	maps.Copy(all, vars)
	all[budgetVariable] = &budget{contextError: ctx.Err, remainingSteps: maxSteps, remainingBytes: maxAllocatedBytes}
	v, err := vm.Run(p.vm, all)
	if err == nil {
		texts, isMap := vars[p.owner].(map[string]string)
		if _, found := texts[p.key]; p.path != "" && (v == nil || isMap && !found) {
			recordMissing(ctx, p.path)
		}
		return v, nil
	}
	if fe, ok := errors.AsType[*file.Error](err); ok {
		message, _, _ := strings.Cut(fe.Message, "\n")
		return nil, errors.New(message)
	}
	return nil, err
}

// Bool evaluates a condition.
func (p *Program) Bool(ctx context.Context, vars map[string]any) (bool, error) {
	v, err := p.Run(ctx, vars)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("the condition must be true or false, but its value is of type %T", v)
	}
	return b, nil
}

// nameCheckingPatcher finds errors that the type checker misses: internal names, and unknown keys of a map whose keys are known. It
// also collects all names: the type checker reports only the first unknown one, and none inside calls of some functions.
type nameCheckingPatcher struct {
	env        *Env
	err        *Error
	used       []*ast.IdentifierNode
	localNames map[string]bool // names that the expression declares
	lastNode   ast.Node        // the node visited last; children come first, so after the walk it is the whole expression
}

func isAccessToMember(node ast.Node, memberName string) bool {
	member, ok := node.(*ast.MemberNode)
	if !ok {
		return false
	}
	property, ok := member.Property.(*ast.StringNode)
	return ok && property.Value == memberName
}

// sourceIfOnlyMemberAccess returns the source of an expression that only accesses a member, such as `results[0].structured.n`. For
// every other expression it returns "", and also if the member may be missing, as with `?.`, `??` and the captures of match.
func (c *nameCheckingPatcher) sourceIfOnlyMemberAccess(src string) string {
	member, ok := c.lastNode.(*ast.MemberNode)
	for ok {
		if member.Optional {
			return ""
		}
		if name, isName := member.Node.(*ast.IdentifierNode); isName && name.Value != "match" { // captures, the members of match, may have no value
			return strings.TrimSpace(src)
		}
		member, ok = member.Node.(*ast.MemberNode)
	}
	return ""
}

// mapAndKeyOfTextMapAccess returns the map and key of an access to a map of strings, such as env.HOME; "" for others.
func (c *nameCheckingPatcher) mapAndKeyOfTextMapAccess(accessNode ast.Node) (mapName, key string) {
	member, _ := accessNode.(*ast.MemberNode)
	if member == nil {
		return "", ""
	}
	name, isName := member.Node.(*ast.IdentifierNode)
	property, isString := member.Property.(*ast.StringNode)
	if !isName || !isString || !c.env.isTextMap(name.Value) {
		return "", ""
	}
	return name.Value, property.Value
}

func (c *nameCheckingPatcher) Visit(node *ast.Node) {
	c.lastNode = *node
	if c.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		if c.localNames == nil {
			c.localNames = map[string]bool{}
		}
		c.localNames[n.Name] = true
	case *ast.IdentifierNode:
		c.used = append(c.used, n)
		if strings.HasPrefix(n.Value, "__") || n.Value == "$env" {
			c.err = &Error{Message: "unknown name " + n.Value, Offset: n.Location().From, Name: n.Value, Known: c.env.VariableNames()}
		}
	case *ast.BinaryNode: // env.NAME ?? VALUE: a missing key has an empty text, not nil
		if owner, key := c.mapAndKeyOfTextMapAccess(n.Left); n.Operator == "??" && owner != "" {
			found := &ast.BinaryNode{Operator: "in", Left: &ast.StringNode{Value: key}, Right: &ast.IdentifierNode{Value: owner}}
			*node = &ast.ConditionalNode{Cond: found, Exp1: n.Left, Exp2: n.Right}
			c.lastNode = *node
		}
	case *ast.MemberNode:
		if isAccessToMember(n, "structuredContent") && isAccessToMember(n.Node, "structured") { // structured.structuredContent is the older name of structured
			*node = n.Node
			c.lastNode = n.Node
			return
		}
		owner, ok := n.Node.(*ast.IdentifierNode)
		key, isString := n.Property.(*ast.StringNode)
		if !ok || !isString {
			return
		}
		if keys, ok := c.env.keys[owner.Value]; ok && !slices.Contains(keys, key.Value) {
			c.err = &Error{
				Message: fmt.Sprintf("`%s` has no `%s`", owner.Value, key.Value),
				Offset:  owner.Location().From + utf8.RuneCountInString(owner.Value) + 1,
				Name:    key.Value, Known: keys,
			}
		}
	}
}

func toCompileError(src string, err error, env *Env) *Error {
	fe, ok := errors.AsType[*file.Error](err)
	if !ok {
		return &Error{Message: err.Error()}
	}
	message, _, _ := strings.Cut(fe.Message, "\n")
	e := &Error{Message: message, Offset: fe.From}
	if name, ok := strings.CutPrefix(fe.Message, "unknown name "); ok {
		e.Name, e.Known = name, existingFunctionOrVariableNames(src, fe.From, name, env)
	}
	owner, field, ok := strings.Cut(message, " has no field ")
	if !ok {
		field, ok = strings.CutPrefix(message, "unknown field ")
	}
	switch {
	case ok && owner == "type string" && field != "length":
		e.Message, e.Name = "a text has no field "+field, field
	case ok:
		e.Message, e.Name, e.Known = "unknown field "+field, field, env.fields
	}
	e.Hint = syntaxHint(src, e)
	return e
}

// existingFunctionOrVariableNames returns the names that the user may have meant: functions if the expression calls
// unknownName, otherwise variables.
func existingFunctionOrVariableNames(src string, unknownNameOffset int, unknownName string, env *Env) []string {
	rest := []rune(src)
	if unknownNameOffset += len([]rune(unknownName)); unknownNameOffset > len(rest) {
		return env.VariableNames()
	}
	if !strings.HasPrefix(strings.TrimSpace(string(rest[unknownNameOffset:])), "(") {
		return env.VariableNames()
	}
	all := slices.DeleteFunc(slices.Clone(builtin.Names), func(n string) bool { return !isEnabledBuiltin(n) })
	slices.Sort(all)
	return all
}

func isEnabledBuiltin(name string) bool {
	_, ok := builtin.Index[name]
	return ok && name != "now" && name != "timezone"
}

// stringOperators are infix operators that are functions or methods in other languages.
var stringOperators = []string{"contains", "startsWith", "endsWith", "matches"} // constant: only read

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
	case isMethod && slices.Contains(stringOperators, method):
		return "write it between its operands: `x " + method + " \"…\"`"
	case isMethod && slices.Contains(builtin.Names, method):
		return "write it as a function: `" + method + "(x)`"
	case isMethod || e.Name == "length":
		return "values have no methods: write `len(x)` for the length; expr-lang.org lists the functions"
	case strings.HasPrefix(e.Message, "a text has no field "):
		return "write it without `." + e.Name + "`"
	case strings.HasPrefix(e.Message, "unexpected token Operator(") && slices.ContainsFunc(stringOperators, func(o string) bool { return strings.HasPrefix(at(e.Offset), o+"(") }):
		name, _, _ := strings.Cut(at(e.Offset), "(")
		return "write it between its operands: `x " + name + " \"…\"`"
	case strings.HasPrefix(e.Message, "invalid operation: in (mismatched types string and string)"):
		return "write `x contains \"…\"` to test whether a text contains another one"
	}
	return ""
}

func (c *nameCheckingPatcher) unknownNames(src string) CompileErrors {
	var all CompileErrors
	for _, id := range c.used {
		if _, ok := c.env.types[id.Value]; ok || c.localNames[id.Value] || isEnabledBuiltin(id.Value) {
			continue
		}
		at := id.Location().From
		all = append(all, &Error{Message: "unknown name " + id.Value, Offset: at, Name: id.Value, Known: existingFunctionOrVariableNames(src, at, id.Value, c.env)})
	}
	return all
}
