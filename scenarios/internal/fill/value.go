package fill

import (
	"bytes"
	"encoding/json"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Result is one element of the variable `results`.
type Result struct {
	Text       string `expr:"text" json:"text"`
	IsError    bool   `expr:"is_error" json:"is_error"`
	Tool       string `expr:"tool" json:"tool"`
	ID         string `expr:"id" json:"id"`
	Content    any    `expr:"content" json:"content,omitempty"`
	Structured any    `expr:"structured" json:"structured,omitempty"`
}

func needsEvaluation(raw json.RawMessage, templates bool) bool {
	return bytes.Contains(raw, []byte(`"$file"`)) || (templates && bytes.Contains(raw, []byte("{{")))
}

// wrapInObjectUnderEmptyKey returns the object {"": raw}, because [diag.IndexJSON] accepts only objects.
func wrapInObjectUnderEmptyKey(raw json.RawMessage) []byte {
	return append(append([]byte(`{"":`), raw...), '}')
}

func referencedFileName(scenarioValue diag.Value) (fileName string, isReference bool) {
	name, ok := scenarioValue.Field("$file")
	return name.Text, ok && name.Kind == diag.KindString
}

// Decode decodes JSON for expressions. Integers become int, and other numbers become float64. Invalid JSON becomes nil.
func Decode(raw json.RawMessage) any {
	v, err := plainjson.Decode(raw)
	if err != nil {
		return nil
	}
	return plainjson.NormalizeNumbers(v)
}
