package scenarios

import (
	"bytes"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// The committed JSON Schema accepts the library and refuses unknown keys.
func TestLibraryFitsTheSchema(t *testing.T) {
	raw, err := os.ReadFile("../docs/schema/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(src []byte) error {
		tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(diag.IndexTOML("", src).Root().AppendJSON(nil)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(tree)
	}
	for _, name := range LibraryNames() {
		src, err := libraryFiles.ReadFile("library/" + name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		if err := check(src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{
		`nme = "x"`, `trusted = "yes"`, `unmatched = "never"`, "[[responses]]\nresponse = 'x'",
		"[[responses]]\npattern = { type = 'any', x = 1 }", "[stream]\njitter = 2",
		"[[breakpoints]]\ntool = 'x'", "[[breakpoints]]\ntool = 'x'\naction = 'stop'", "[[breakpoints]]\ntool = 'x'\naction = 'continue'\nmax_hits = -1",
	} {
		if check([]byte(bad)) == nil {
			t.Errorf("%s: passes", bad)
		}
	}
}
