package plainjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIssues(t *testing.T) {
	library := MustParseSchemas(`{
		"text": {"type": "string", "minLength": 2, "maxLength": 4},
		"address": {"type": "string", "format": "uri"},
		"count": {"type": "integer", "minimum": 1},
		"positive": {"type": "number", "exclusiveMinimum": 0},
		"list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "text"}},
		"record": {"type": "record", "items": {"$ref": "count"}},
		"closed": {"type": "object", "required": ["b", "a"], "additionalProperties": false, "properties": {"a": {"enum": ["x"]}, "b": {"enum": ["x", "y"]}}},
		"union": {"anyOf": [{"$ref": "count"}, {"type": "string", "format": "base64"}]},
		"any": {}
	}`)
	for _, tt := range []struct{ schema, value, want string }{
		{"text", `"äöü"`, ``},
		{"text", `"a"`, `[{"origin":"string","code":"too_small","minimum":2,"inclusive":true,"path":[],"message":"Too small: expected string to have >=2 characters"}]`},
		{"text", `"𝄞𝄞𝄞"`, `[{"origin":"string","code":"too_big","maximum":4,"inclusive":true,"path":[],"message":"Too big: expected string to have <=4 characters"}]`},
		{"text", ``, `[{"expected":"string","code":"invalid_type","path":[],"message":"Invalid input: expected string, received undefined"}]`},
		{"address", `"x"`, `[{"code":"invalid_format","format":"url","path":[],"message":"Invalid URL"}]`},
		{"count", `1.5`, `[{"expected":"int","format":"safeint","code":"invalid_type","path":[],"message":"Invalid input: expected int, received number"}]`},
		{"count", `0`, `[{"origin":"number","code":"too_small","minimum":1,"inclusive":true,"path":[],"message":"Too small: expected number to be >=1"}]`},
		{"positive", `0`, `[{"origin":"number","code":"too_small","minimum":0,"path":[],"message":"Too small: expected number to be >0"}]`},
		{"list", `[]`, `[{"origin":"array","code":"too_small","minimum":1,"inclusive":true,"path":[],"message":"Too small: expected array to have >=1 items"}]`},
		{"list", `["ab",1,"ab"]`, `[{"expected":"string","code":"invalid_type","path":[1],"message":"Invalid input: expected string, received number"},` +
			`{"origin":"array","code":"too_big","maximum":2,"inclusive":true,"path":[],"message":"Too big: expected array to have <=2 items"}]`},
		{"record", `[]`, `[{"expected":"record","code":"invalid_type","path":[],"message":"Invalid input: expected record, received array"}]`},
		{"record", `{"k":null}`, `[{"expected":"number","code":"invalid_type","path":["k"],"message":"Invalid input: expected number, received null"}]`},
		{"closed", `{"d":1,"b":"z","c":1}`, `[{"code":"invalid_value","values":["x"],"path":["a"],"message":"Invalid input: expected \"x\""},` +
			`{"code":"invalid_value","values":["x","y"],"path":["b"],"message":"Invalid option: expected one of \"x\"|\"y\""},` +
			`{"code":"unrecognized_keys","keys":["d","c"],"path":[],"message":"Unrecognized keys: \"d\", \"c\""}]`},
		{"union", `"!"`, `[{"code":"custom","path":[],"message":"Invalid Base64 string"}]`},
		{"union", `true`, `[{"code":"invalid_union","errors":[[{"expected":"number","code":"invalid_type","path":[],"message":"Invalid input: expected number, received boolean"}],` +
			`[{"expected":"string","code":"invalid_type","path":[],"message":"Invalid input: expected string, received boolean"}]],"path":[],"message":"Invalid input"}]`},
		{"any", `null`, ``},
	} {
		got := ""
		if issues := library[tt.schema].Issues(json.RawMessage(tt.value)); issues != nil {
			raw, err := json.Marshal(issues)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		var want, have any
		_, _ = json.Unmarshal([]byte(tt.want), &want), json.Unmarshal([]byte(got), &have)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s of %s: %s (-want +got):\n%s", tt.value, tt.schema, got, diff)
		}
	}
}

func TestPaths(t *testing.T) {
	i := Issue{Path: []any{"a", 0, "b"}}
	if i.DottedPath() != "a.0.b" || i.BracketedPath() != "a[0].b" || i.LastKey() != "b" {
		t.Errorf("%s, %s, %s", i.DottedPath(), i.BracketedPath(), i.LastKey())
	}
}

// A schema that refers to a missing one is a mistake in the program.
func TestMissingReference(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	MustParseSchemas(`{"a": {"items": {"$ref": "b"}}}`)
}
