package eval

import (
	"fmt"
	"math"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm/runtime"
)

// exprOptionsForLimitedFunctions returns options that replace functions that read the clock or create large values, and
// add the functions of [costCountingPatcher].
func exprOptionsForLimitedFunctions() []expr.Option {
	return []expr.Option{
		expr.DisableBuiltin("now"),
		expr.DisableBuiltin("timezone"),
		expr.Function("toJSON", toJSON, new(func(any) string)),
		expr.Function("string", func(args ...any) (any, error) { return Text(args[0]) }, new(func(any) string)),
		expr.Function("repeat", repeat, new(func(string, int) string)),
		expr.Function("join", join, new(func(any) string), new(func(any, string) string)),
		expr.Function("replace", replace, new(func(string, string, string) string), new(func(string, string, string, int) string)),
		// Each function has one type, because with several types the checker misses unknown names.
		expr.Function(overflowCheckedIntMathFunctionName, overflowCheckedArithmetic, new(func(any, string, int, int) int)),
		expr.Function(overflowCheckedMathFunctionName, overflowCheckedArithmetic, new(func(any, string, any, any) any)),
		expr.Function(countStepFunction, func(args ...any) (any, error) { return nil, args[0].(*budget).spendSteps(1) }, new(func(any) any)),
		expr.Function(countValueBytesFunctionName, countBytesOfArgument, new(func(any, any) any)),
		expr.Function(countStringBytesFunctionName, countBytesOfArgument, new(func(any, string) string)),
		expr.Function(countStepsOfNestedValuesFunctionName, func(args ...any) (any, error) { return args[1], args[0].(*budget).spendStepsOfNestedValues(args[1]) }, new(func(any, any) any)),
	}
}

func countBytesOfArgument(budgetAndArgument ...any) (any, error) {
	return budgetAndArgument[1], budgetAndArgument[0].(*budget).spendBytesOfValue(budgetAndArgument[1])
}

// overflowCheckedArithmetic evaluates +, - or *. If both operands are integers, an overflow is an error.
func overflowCheckedArithmetic(budgetOperatorAndOperands ...any) (any, error) {
	op, a, b := budgetOperatorAndOperands[1].(string), budgetOperatorAndOperands[2], budgetOperatorAndOperands[3]
	x, xIsInt := a.(int)
	if y, yIsInt := b.(int); xIsInt && yIsInt {
		return checkedIntArithmetic(op, x, y)
	}
	switch op {
	case "+":
		return runtime.Add(a, b), nil
	case "-":
		return runtime.Subtract(a, b), nil
	}
	return runtime.Multiply(a, b), nil
}

func checkedIntArithmetic(op string, x, y int) (int, error) {
	var z int
	var fits bool
	switch op {
	case "+":
		z = x + y
		fits = (z > x) == (y > 0)
	case "-":
		z = x - y
		fits = (z < x) == (y > 0)
	default:
		z = x * y
		fits = x == 0 || z/x == y && (x != -1 || y != math.MinInt)
	}
	if !fits {
		return 0, fmt.Errorf("integer overflow in %d %s %d", x, op, y)
	}
	return z, nil
}

func toJSON(args ...any) (any, error) {
	b, err := AppendJSON(nil, args[0])
	return string(b), err
}

func repeat(args ...any) (any, error) {
	s, n := args[0].(string), args[1].(int)
	if n < 0 {
		return nil, fmt.Errorf("repeat: the count must be 0 or more, not %d", n)
	}
	if len(s) > 0 && n > maxStringBytes/len(s) {
		return nil, errTooMuchMemory
	}
	return strings.Repeat(s, n), nil
}

func join(args ...any) (any, error) {
	glue := ""
	if len(args) > 1 {
		glue = args[1].(string)
	}
	var parts []string
	switch list := args[0].(type) {
	case []string:
		parts = list
	case []any:
		for _, e := range list {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("join: the list must contain only strings, not %T", e)
			}
			parts = append(parts, s)
		}
	default:
		return nil, fmt.Errorf("join: %T is not a list of strings", args[0])
	}
	size := 0
	for _, p := range parts {
		if size += len(p) + len(glue); size > maxStringBytes {
			return nil, errTooMuchMemory
		}
	}
	return strings.Join(parts, glue), nil
}

func replace(args ...any) (any, error) {
	s, old, with, n := args[0].(string), args[1].(string), args[2].(string), -1
	if len(args) > 3 {
		n = args[3].(int)
	}
	count := strings.Count(s, old)
	if n >= 0 {
		count = min(count, n)
	}
	if len(with) > 0 && count > (maxStringBytes-min(len(s), maxStringBytes))/len(with)+1 {
		return nil, errTooMuchMemory
	}
	return strings.Replace(s, old, with, n), nil
}
