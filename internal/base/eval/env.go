package eval

import (
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/types"
)

// Env contains the variables that an expression may use, with their types. It is immutable.
type Env struct {
	types  types.Map
	keys   map[string][]string
	fields []string // field names of all structs and objects
}

// ExampleObject is an example value for a map[string]any with exactly these keys.
type ExampleObject map[string]any

// NewEnv creates an Env from an example value for each variable; nil means that the variable may have any type. The elements of a list may be
// structs, whose fields are named by the tag `expr:"name"`. A variable itself must not be a struct; use an [ExampleObject] instead.
func NewEnv(examples map[string]any) *Env {
	e := &Env{types: types.Map{budgetVariable: types.Any}}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		e.types[name] = exampleType(examples[name])
		e.fields = append(e.fields, exampleFieldNames(examples[name])...)
	}
	return e
}

func (e *Env) isTextMap(name string) bool {
	t, ok := e.types[name]
	return ok && t.Equal(types.TypeOf(map[string]string(nil)))
}

func exampleType(example any) types.Type {
	switch x := example.(type) {
	case nil:
		return types.Any
	case ExampleObject:
		m := types.Map{}
		for key, e := range x {
			m[key] = exampleType(e)
		}
		return m
	}
	return types.TypeOf(example)
}

// WithMapKeys returns an Env in which the map variable has only these string keys; other literal keys are errors.
func (e *Env) WithMapKeys(variable string, keys []string) *Env {
	n := &Env{types: e.types, keys: maps.Clone(e.keys), fields: e.fields}
	if n.keys == nil {
		n.keys = map[string][]string{}
	}
	n.keys[variable] = slices.Clone(keys)
	return n
}

// ToolCallEnv returns the Env of breakpoint conditions, evaluations at a pause and scripted decisions about a call.
func ToolCallEnv() *Env {
	return NewEnv(map[string]any{"tool": "", "phase": "", "session": "", "input": nil, "result": nil, "error": nil, "call": map[string]any{}, "vars": map[string]any{}})
}

// VariableNames lists the variables of an expression, sorted.
func (e *Env) VariableNames() []string {
	names := make([]string, 0, len(e.types))
	for name := range e.types {
		if name != budgetVariable {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// exampleFieldNames lists the names that may follow a dot: keys of an [ExampleObject], or fields of the structs in a list.
func exampleFieldNames(example any) []string {
	if o, ok := example.(ExampleObject); ok {
		return slices.Sorted(maps.Keys(o))
	}
	var fields []string
	if t := reflect.TypeOf(example); t != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		for field := range t.Elem().Fields() {
			fields = append(fields, field.Tag.Get("expr"))
		}
	}
	return fields
}

func isNumberOrBool(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.Bool || t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64)
}
