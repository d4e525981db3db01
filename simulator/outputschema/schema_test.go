package outputschema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/outputschema"
)

// Error texts of the validator of 2.1.329 for schemas and for values that do not match.
func TestSchema(t *testing.T) {
	type object = map[string]string
	for schema, values := range map[string]object{
		`{"type":"wibble"}`:                                                    {"": "data/type must be equal to one of the allowed values, data/type must be array, data/type must match a schema in anyOf"},
		`{"properties":3}`:                                                     {"": "data/properties must be object"},
		`{"properties":{"x":{"minLength":"x"}}}`:                               {"": "data/properties/x/minLength must be integer"},
		`{"properties":{"x":{"enum":[]}}}`:                                     {"": "data/properties/x/enum must NOT have fewer than 1 items"},
		`{"properties":{"x":{"minItems":-1}}}`:                                 {"": "data/properties/x/minItems must be >= 0"},
		`{"properties":{"x":{"prefixItems":[]}}}`:                              {"": `strict mode: unknown keyword: "prefixItems"`},
		`{"properties":{"x":{"id":"x"}}}`:                                      {"": `NOT SUPPORTED: keyword "id", use "$id" for schema ID`},
		`{"if":{"const":1}}`:                                                   {"": `strict mode: "if" without "then" and "else" is ignored`},
		`{"nullable":true}`:                                                    {"": `"nullable" cannot be used without "type"`},
		`{"properties":{"n":{"$ref":"#/$defs/Z"}}}`:                            {"": "can't resolve reference #/$defs/Z from id #"},
		`{"$ref":"http://x.y/z"}`:                                              {"": "can't resolve reference http://x.y/z from id #"},
		`{"$schema":3}`:                                                        {"": "$schema must be a string"},
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`:           {"": `no schema with key or ref "https://json-schema.org/draft/2020-12/schema"`},
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array"}`: {`[]`: "", `3`: "root: must be array"},
		`{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":["integer","null"]}}}`: {
			`{"n":1}`: "", `{"n":"x"}`: "/n: must be integer,null",
		},
		`{"required":["b","a"],"additionalProperties":false,"properties":{"a":{},"b":{}}}`: {
			`{"a":1}`: "root: must have required property 'b'", `{"a":1,"b":2,"z":1}`: "root: must NOT have additional properties ('z' is not allowed)",
		},
		`{"properties":{"c":{"enum":["a","b"]},"k":{"const":3},"m":{"minimum":5},"p":{"pattern":"^x","minLength":3},"a":{"minItems":2,"uniqueItems":true},` +
			`"o":{"anyOf":[{"type":"string"},{"type":"null"}]},"q":{"oneOf":[{"type":"integer"},{"type":"number"}]},"r":{"not":{"type":"null"}}},"additionalProperties":false}`: {
			`{"c":"z","k":1}`: `/c: must be equal to one of the allowed values: ["a","b"], /k: must be equal to constant: 3`,
			`{"m":4.5}`:       "/m: must be >= 5",
			`{"r":null,"zz":1,"a":[],"yy":2,"c":1}`: `root: must NOT have additional properties ('zz' is not allowed), root: must NOT have additional properties ('yy' is not allowed), /c: must be equal to one of the allowed values: ["a","b"], ` +
				"/a: must NOT have fewer than 2 items (got 0), /r: must NOT be valid",
			`{"p":"xy"}`:    "/p: must NOT have fewer than 3 characters (got 2)",
			`{"p":"abc"}`:   `/p: must match pattern "^x"`,
			`{"a":[1]}`:     "/a: must NOT have fewer than 2 items (got 1)",
			`{"a":[1,1]}`:   "/a: must NOT have duplicate items (items ## 1 and 0 are identical)",
			`{"o":3}`:       "/o: must be string, /o: must be null, /o: must match a schema in anyOf",
			`{"q":2,"r":1}`: "/q: must match exactly one schema in oneOf",
			`{"r":null}`:    "/r: must NOT be valid",
		},
		`{"properties":{"p":{"pattern":"^(?!\\.)(?!.*\\.\\.)[a-z.]+$"}}}`: { // as in zod's pattern for e-mail addresses
			`{"p":"a.b"}`: "", `{"p":"a..b"}`: `/p: must match pattern "^(?!\.)(?!.*\.\.)[a-z.]+$"`,
		},
	} {
		for value, want := range values {
			got := ""
			compiled, err := outputschema.CompileJSONSchemaFlag(schema)
			if err == nil && value != "" {
				err = compiled.Validate([]byte(value))
			}
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "--json-schema is not a valid JSON Schema: ")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s for %s (-want +got):\n%s", value, schema, diff)
			}
		}
	}
}
