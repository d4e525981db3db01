package match

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// Subset reports whether got contains want: all keys of the objects in want, equal scalars, and arrays of the same
// length, element by element. Numbers are compared by value, not by Go type. diff describes the first difference.
func Subset(want, got any) (diff string, ok bool) { return findSubsetDifference(want, got, "") }

func findSubsetDifference(want, got any, path string) (difference string, isSubset bool) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return describeDifference(path, want, got), false
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			sub := w[key]
			x, ok := g[key]
			if !ok {
				return fmt.Sprintf("`%s` is missing", joinPath(path, key)), false
			}
			if diff, ok := findSubsetDifference(sub, x, joinPath(path, key)); !ok {
				return diff, false
			}
		}
		return "", true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return describeDifference(path, want, got), false
		}
		for i := range w {
			if diff, ok := findSubsetDifference(w[i], g[i], fmt.Sprintf("%s[%d]", path, i)); !ok {
				return diff, false
			}
		}
		return "", true
	}
	if scalarEqual(want, got) {
		return "", true
	}
	return describeDifference(path, want, got), false
}

func scalarEqual(a, b any) bool {
	x, okA := toRational(a)
	if y, okB := toRational(b); okA || okB {
		return okA && okB && x.Cmp(y) == 0
	}
	switch a.(type) {
	case nil, string, bool:
		return a == b
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func toRational(x any) (*big.Rat, bool) {
	switch n := x.(type) {
	case json.Number:
		if len(n) > 64 { // an exponent could make the number huge
			return nil, false
		}
		if f, err := n.Float64(); err != nil || f > 1e100 || f < -1e100 || (f != 0 && f < 1e-100 && f > -1e-100) {
			return nil, false
		}
		return new(big.Rat).SetString(n.String())
	case int:
		return new(big.Rat).SetInt64(int64(n)), true
	case int64:
		return new(big.Rat).SetInt64(n), true
	case float64:
		r := new(big.Rat).SetFloat64(n)
		return r, r != nil
	}
	return nil, false
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func describeDifference(path string, want, got any) string {
	at := "it"
	if path != "" {
		at = "`" + path + "`"
	}
	return fmt.Sprintf("%s is %s, not %s", at, formatShortJSON(got), formatShortJSON(want))
}

func formatShortJSON(x any) string {
	const most = 80
	b, err := json.Marshal(x)
	if err != nil {
		return fmt.Sprint(x)
	}
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
