// Package pickle writes JSON values as Python pickles (protocol 4) and reads pickles without running them.
//
// Reading never calls or imports anything and allocates at most a small multiple of the input's size. Objects that
// are not plain values are represented by the name and arguments of their constructor.
package pickle

import "math/big"

// The values a pickle can hold are nil, bool, *big.Int, float64, string, []byte and pointers to the types below.
// Containers may be shared and may contain themselves.

// List is a Python list.
type List struct{ Items []any }

// Tuple is a Python tuple.
type Tuple struct{ Items []any }

// Set is a Python set or frozenset.
type Set struct {
	Items  []any
	Frozen bool
}

// Dict is a Python dict in insertion order; of equal keys the last one is used.
type Dict struct{ Keys, Values []any }

// Get returns the value of a string key; ok is false if the key is missing.
func (d *Dict) Get(key string) (any, bool) {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if s, ok := d.Keys[i].(string); ok && s == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// Global is the name of a module member that Python would import.
type Global struct{ Module, Name string }

// String returns the dotted name, without "builtins".
func (g *Global) String() string {
	if g.Module == "builtins" || g.Module == "__builtin__" || g.Module == "" {
		return g.Name
	}
	return g.Module + "." + g.Name
}

// Object is the object that Python would create by calling Callee with Args.
type Object struct {
	Callee any // usually *Global
	Args   any // usually *Tuple
	State  any // argument of __setstate__; nil means none
}

func stringArgumentOfDillCall(callee, callArguments any, dillFunction string) (text string, ok bool) {
	g, ok := callee.(*Global)
	t, isTuple := callArguments.(*Tuple)
	if !ok || g.Module != "dill._dill" || g.Name != dillFunction || !isTuple || len(t.Items) != 1 {
		return "", false
	}
	text, ok = t.Items[0].(string)
	return text, ok
}

// TypeName returns the Python name of v's type.
func TypeName(v any) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *Set:
		if x.Frozen {
			return "frozenset"
		}
		return "set"
	case *Global:
		return "type"
	case *Object:
		if g, ok := x.Callee.(*Global); ok {
			return g.String()
		}
	}
	return "object"
}
