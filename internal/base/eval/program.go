package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

const maxExpressionBytes = 16 << 10

// Error is a problem in an expression.
type Error struct {
	Message string
	Offset  int    // position in characters from the beginning of the source
	Name    string // the unknown name; "" means another problem
	// Known are the names that may have been intended.
	Known []string
	// Hint specifies what to write instead; "" means no hint.
	Hint string
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

// Unwrap returns the single errors.
func (l CompileErrors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

// ErrorsOf returns the single errors of an error of this package; nil for other errors.
func ErrorsOf(err error) []*Error {
	if list, ok := errors.AsType[CompileErrors](err); ok {
		return list
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return []*Error{e}
	}
	return nil
}

// Program is a compiled expression. It is immutable.
type Program struct {
	vm   *vm.Program
	path string // the source, if it is only a member access; otherwise empty
}

// Compile compiles an expression over the variables of env. The error is an
// [*Error], or [CompileErrors] if several names are unknown.
func Compile(src string, env *Env) (*Program, error) { return compile(src, env, expr.AsAny()) }

// CompileBool compiles a condition: its value must be a boolean.
func CompileBool(src string, env *Env) (*Program, error) { return compile(src, env, expr.AsBool()) }

func compile(src string, env *Env, as expr.Option) (*Program, error) {
	if len(src) > maxExpressionBytes {
		return nil, &Error{Message: "the expression is too long"}
	}
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Message: "the expression is empty"}
	}
	check := &nameChecker{env: env}
	opts := append(restrictedFunctions(), expr.Env(env.types), as, expr.Patch(check), expr.Patch(&costPatcher{}))
	p, err := expr.Compile(src, opts...)
	if check.err != nil {
		return nil, check.err
	}
	if all := check.unknownNames(src); len(all) > 0 || err != nil {
		return nil, joinErrors(all, compileError(src, err, env))
	}
	return &Program{vm: p, path: check.memberPath(src)}, nil
}

// Run evaluates the expression. vars has a value for every variable of the Env and
// is not changed. A run that exceeds a fixed number of steps or bytes fails.
func (p *Program) Run(ctx context.Context, vars map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := make(map[string]any, len(vars)+1)
	maps.Copy(all, vars)
	all[budgetVariable] = &budget{contextError: ctx.Err, steps: maxSteps, bytes: maxAllocatedBytes}
	v, err := vm.Run(p.vm, all)
	if err == nil {
		if v == nil && p.path != "" {
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
		return false, fmt.Errorf("the condition is %T, not a boolean", v)
	}
	return b, nil
}
