package diag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// newValueFromDecoded converts a decoded value (map, slice or scalar) to a Value. valueWithPositions is the value at the same
// place in the index. Where the contents are equal, the result keeps the positions and the order of keys of valueWithPositions.
func newValueFromDecoded(decoded any, valueWithPositions Value) Value {
	v := Value{offset: valueWithPositions.offset}
	switch t := decoded.(type) {
	case nil:
	case string:
		v.Kind, v.Text = KindString, t
	case bool:
		v.Kind, v.Text = KindBool, strconv.FormatBool(t)
	case int64:
		v.Kind, v.Text = KindInt, strconv.FormatInt(t, 10)
	case int:
		v.Kind, v.Text = KindInt, strconv.Itoa(t)
	case float64:
		v.Kind, v.Text = KindFloat, formatFloat(t)
		if f, err := parseTOMLFloat(valueWithPositions.Text); valueWithPositions.Kind == KindFloat && err == nil && f == t {
			v.Text = valueWithPositions.Text
		}
	case json.Number:
		v.Kind, v.Text = KindFloat, t.String()
		if tomlIntegerPattern().MatchString(v.Text) {
			v.Kind = KindInt
		}
	case time.Time:
		v.Kind, v.Text = KindDateTime, t.Format(time.RFC3339Nano)
		if valueWithPositions.Kind == KindDateTime {
			v.Text = valueWithPositions.Text
		}
	case []any:
		v.Kind, v.list = KindArray, &tomlOrJSONArrayElements{newItemsFromDecoded(t, valueWithPositions)}
	case []map[string]any:
		tables := make([]any, len(t))
		for i := range t {
			tables[i] = t[i]
		}
		v.Kind, v.list = KindArray, &tomlOrJSONArrayElements{newItemsFromDecoded(tables, valueWithPositions)}
	case map[string]any:
		v.Kind, v.table = KindTable, newTableFromDecoded(t, valueWithPositions)
	default:
		v.Kind, v.Text = KindString, fmt.Sprint(t)
	}
	return v
}

func newItemsFromDecoded(decodedItems []any, arrayWithPositions Value) []Value {
	items := make([]Value, len(decodedItems))
	for i, x := range decodedItems {
		hint := Value{offset: arrayWithPositions.offset}
		if known := arrayWithPositions.Items(); i < len(known) {
			hint = known[i]
		}
		items[i] = newValueFromDecoded(x, hint)
	}
	return items
}

func newTableFromDecoded(decodedTable map[string]any, tableWithPositions Value) *table {
	t := &table{fields: make([]TableEntry, 0, len(decodedTable))}
	done := make(map[string]bool, len(decodedTable))
	for _, f := range tableWithPositions.Fields() {
		if x, ok := decodedTable[f.Key]; ok {
			done[f.Key] = true
			t.addField(TableEntry{Key: f.Key, offset: f.offset, Value: newValueFromDecoded(x, f.Value)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(decodedTable)) {
		if !done[key] {
			t.addField(TableEntry{Key: key, offset: tableWithPositions.offset, Value: newValueFromDecoded(decodedTable[key], Value{offset: tableWithPositions.offset})})
		}
	}
	return t
}

func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// AppendJSON appends the value as compact JSON: keys in file order, integers in decimal, date-times as strings.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.Kind {
	case KindInt:
		if n, err := parseTOMLInt(v.Text); err == nil {
			return strconv.AppendInt(dst, n, 10)
		}
		return append(dst, v.Text...)
	case KindFloat:
		return appendFloatOrNull(dst, v.Text)
	case KindBool:
		return append(dst, v.Text...)
	case KindString, KindDateTime:
		return appendJSONString(dst, v.Text)
	case KindArray:
		dst = append(dst, '[')
		for i, item := range v.list.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendJSON(dst)
		}
		return append(dst, ']')
	case KindTable:
		dst = append(dst, '{')
		for i := range v.table.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONString(dst, v.table.fields[i].Key)
			dst = append(dst, ':')
			dst = v.table.fields[i].Value.AppendJSON(dst)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}

// appendFloatOrNull writes a float; infinities, which JSON does not have, become null.
func appendFloatOrNull(dst []byte, text string) []byte {
	if json.Valid([]byte(text)) {
		return append(dst, text...)
	}
	f, err := parseTOMLFloat(text)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendJSONString(dst []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
		return append(append(append(dst, '"'), s...), '"')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
