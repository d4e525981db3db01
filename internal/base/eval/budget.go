package eval

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/expr-lang/expr/ast"
)

// Limits of expressions and templates. Each call of a closure is one step, and so is each value inside a structure that an
// expression compares or that a closure of reduce returns. maxAllocatedBytes limits the strings and lists that one run creates.
const (
	maxSteps                            = 1_000_000
	maxAllocatedBytes                   = 32 << 20
	maxStringBytes                      = 1 << 20 // maximum size of one string that repeat, replace, join or toJSON creates
	maxExpressionOutputBytesPerTemplate = 8 << 20 // maximum output of the expressions of one template
	maxAllTemplatesBytes                = 64 << 20
)

var (
	errTooManySteps        = errors.New("the expression takes too many steps")
	errTooMuchMemory       = errors.New("the expression needs too much memory")
	errTemplateTooLong     = fmt.Errorf("the output of the template is longer than %d bytes", maxExpressionOutputBytesPerTemplate)
	errAllTemplatesTooLong = fmt.Errorf("the output of all templates is longer than %d bytes", maxAllTemplatesBytes)
)

type outputLimitContextKey struct{}

type outputLimitAndMissingPaths struct {
	remainingOutputBytes atomic.Int64 // number of bytes that the templates may still write
	mu                   sync.Mutex
	missingPaths         []string
}

// WithOutputLimitAndMissingPaths returns a context in which all templates together, such as those of one answer, write no more
// than a fixed number of bytes. It also collects the paths for [MissingPathsOfEvaluatedExpressions].
func WithOutputLimitAndMissingPaths(ctx context.Context) context.Context {
	t := new(outputLimitAndMissingPaths)
	t.remainingOutputBytes.Store(maxAllTemplatesBytes)
	return context.WithValue(ctx, outputLimitContextKey{}, t)
}

// MissingPathsOfEvaluatedExpressions returns the paths, such as `results[0].structured.nmae`, that had no value when a template
// was evaluated with ctx, each once. It returns nil unless ctx comes from [WithOutputLimitAndMissingPaths].
func MissingPathsOfEvaluatedExpressions(ctx context.Context) []string {
	t, ok := ctx.Value(outputLimitContextKey{}).(*outputLimitAndMissingPaths)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.missingPaths)
}

func recordMissing(ctx context.Context, path string) {
	t, ok := ctx.Value(outputLimitContextKey{}).(*outputLimitAndMissingPaths)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.missingPaths, path) {
		t.missingPaths = append(t.missingPaths, path)
	}
}

// spendSharedOutputBytes subtracts n bytes from the shared limit of ctx, if it has one. It fails if fewer bytes remain.
func spendSharedOutputBytes(ctx context.Context, n int) error {
	if t, ok := ctx.Value(outputLimitContextKey{}).(*outputLimitAndMissingPaths); ok && t.remainingOutputBytes.Add(-int64(n)) < 0 {
		return errAllTemplatesTooLong
	}
	return nil
}

// Names of a variable and of functions that only [costCountingPatcher] puts into expressions. Users cannot use them.
const (
	budgetVariable                       = "__budget"
	countStepFunction                    = "__tick"
	countValueBytesFunctionName          = "__charge"
	countStringBytesFunctionName         = "__string"
	countStepsOfNestedValuesFunctionName = "__deep"
	overflowCheckedMathFunctionName      = "__math"
	overflowCheckedIntMathFunctionName   = "__ints"
)

// budget holds the number of steps and bytes that one run may still use.
type budget struct {
	contextError                   func() error
	remainingSteps, remainingBytes int
}

func (b *budget) spendSteps(n int) error {
	b.remainingSteps -= n
	if b.remainingSteps < 0 {
		return errTooManySteps
	}
	if b.remainingSteps%1024 == 0 {
		return b.contextError()
	}
	return nil
}

func (b *budget) spendBytesOfValue(value any) error {
	switch x := value.(type) {
	case string:
		b.remainingBytes -= len(x)
	default:
		if r := reflect.ValueOf(value); r.Kind() == reflect.Slice {
			b.remainingBytes -= 16 * r.Len()
		}
	}
	if b.remainingBytes < 0 {
		return errTooMuchMemory
	}
	return nil
}

// spendStepsOfNestedValues spends one step each for v, every value inside v, and every 256 bytes of a string.
func (b *budget) spendStepsOfNestedValues(v any) error {
	if err := b.spendSteps(1); err != nil {
		return err
	}
	switch x := v.(type) {
	case string:
		return b.spendSteps(len(x) / 256)
	case []any:
		for _, e := range x {
			if err := b.spendStepsOfNestedValues(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range x {
			if err := b.spendStepsOfNestedValues(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// costCountingPatcher changes an expression so that its cost is counted. The cost is made up of each call of a closure, the
// size of each string or list that is created, and each value inside structures that are compared.
type costCountingPatcher struct{}

func (l *costCountingPatcher) Visit(expressionNode *ast.Node) {
	switch n := (*expressionNode).(type) {
	case *ast.PredicateNode:
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{newCallWithBudget(countStepFunction), n.Node}}
	case *ast.BuiltinNode:
		if n.Name == "reduce" && len(n.Arguments) > 1 {
			if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
				p.Node = newCallWithBudget(countStepsOfNestedValuesFunctionName, p.Node)
			}
		}
		wrapInCallThatCountsValueBytes(expressionNode)
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); !ok || id.Value[0] != '_' {
			wrapInCallThatCountsValueBytes(expressionNode)
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "+", "-", "*":
			l.patchOverflowCheck(expressionNode, n)
		case "==", "!=", "in", "not in":
			if !isNumberOrBool(n.Left.Type()) && !isNumberOrBool(n.Right.Type()) {
				n.Left, n.Right = wrapOperandInCallThatCountsSteps(n.Left), wrapOperandInCallThatCountsSteps(n.Right)
			}
		}
	}
}

// patchOverflowCheck makes the integer operators +, - and * fail if the result overflows. It also makes + count the sizes of
// the strings and lists that it creates.
func (l *costCountingPatcher) patchOverflowCheck(node *ast.Node, n *ast.BinaryNode) {
	left, right := n.Left.Type(), n.Right.Type()
	if !mayBeInt(left) || !mayBeInt(right) {
		if n.Operator == "+" {
			wrapInCallThatCountsValueBytes(node)
		}
		return
	}
	name := overflowCheckedMathFunctionName
	if isNumberOrBool(left) && isNumberOrBool(right) {
		name = overflowCheckedIntMathFunctionName
	}
	ast.Patch(node, newCallWithBudget(name, &ast.StringNode{Value: n.Operator}, n.Left, n.Right))
	if name == overflowCheckedMathFunctionName {
		wrapInCallThatCountsValueBytes(node)
	}
}

func mayBeInt(t reflect.Type) bool {
	return t == nil || t.Kind() == reflect.Int || t.Kind() == reflect.Interface
}

// wrapInCallThatCountsValueBytes wraps a node in a call that counts its value's bytes. It skips numbers and booleans.
func wrapInCallThatCountsValueBytes(node *ast.Node) {
	t := (*node).Type()
	switch {
	case isNumberOrBool(t):
	case t != nil && t.Kind() == reflect.String:
		ast.Patch(node, newCallWithBudget(countStringBytesFunctionName, *node))
	default:
		ast.Patch(node, newCallWithBudget(countValueBytesFunctionName, *node))
	}
}

// wrapOperandInCallThatCountsSteps wraps an operand of a comparison in a call that counts one step for each value in the operand.
// Literals and strings are not wrapped, because they count nothing.
func wrapOperandInCallThatCountsSteps(comparisonOperand ast.Node) ast.Node {
	switch comparisonOperand.(type) {
	case *ast.StringNode, *ast.NilNode, *ast.ArrayNode, *ast.ConstantNode:
		return comparisonOperand
	}
	if t := comparisonOperand.Type(); t != nil && t.Kind() == reflect.String {
		return comparisonOperand
	}
	wrapped := newCallWithBudget(countStepsOfNestedValuesFunctionName, comparisonOperand)
	wrapped.SetLocation(comparisonOperand.Location())
	return wrapped
}

func newCallWithBudget(name string, args ...ast.Node) ast.Node {
	all := append([]ast.Node{&ast.IdentifierNode{Value: budgetVariable}}, args...)
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: all}
}
