package eval

import (
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/types"
)

// Env is the set of names an expression may use, with their types. It is
// immutable.
type Env struct {
	types types.Map
	keys  map[string][]string
}

// NewEnv makes an Env from an example of each name's value; nil is a value of
// any type. Structs show their fields by the tag `expr:"name"`.
func NewEnv(names map[string]any) *Env {
	return (&Env{}).With(names)
}

// With returns an Env that has names as well.
func (e *Env) With(names map[string]any) *Env {
	n := &Env{types: maps.Clone(e.types), keys: e.keys}
	if n.types == nil {
		n.types = types.Map{budgetName: types.Any}
	}
	for name, example := range names {
		if example == nil {
			n.types[name] = types.Any
		} else {
			n.types[name] = types.TypeOf(example)
		}
	}
	return n
}

// WithKeys returns an Env in which the map called name has only these string
// keys: another one written out in an expression is an error.
func (e *Env) WithKeys(name string, keys []string) *Env {
	n := &Env{types: e.types, keys: maps.Clone(e.keys)}
	if n.keys == nil {
		n.keys = map[string][]string{}
	}
	n.keys[name] = slices.Clone(keys)
	return n
}

// Names lists what an expression may use, sorted.
func (e *Env) Names() []string {
	names := make([]string, 0, len(e.types))
	for name := range e.types {
		if name != budgetName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Keys lists what may stand after "name."; nil = anything, or name has no keys.
func (e *Env) Keys(name string) []string { return e.keys[name] }

func isScalar(t reflect.Type) bool {
	if t == nil {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	default:
		return false
	}
}
