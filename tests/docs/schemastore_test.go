package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// schemaEntry is one entry of SchemaStore's catalog.
type schemaEntry struct {
	Name, Description, URL string
	FileMatch              []string
}

func schemaEntries(t *testing.T) []schemaEntry {
	t.Helper()
	var catalog struct{ Schemas []schemaEntry }
	if err := json.Unmarshal([]byte(tree.ReadFile(t, "packages/schemastore/catalog.json")), &catalog); err != nil {
		t.Fatal(err)
	}
	return catalog.Schemas
}

// TestSchemaStoreCatalog compares the entries for SchemaStore with the schemas: each entry names a committed schema by
// its $id, and no file name belongs to two of them.
func TestSchemaStoreCatalog(t *testing.T) {
	t.Parallel()
	var schemas, patterns []string
	for _, e := range schemaEntries(t) {
		name := path.Base(e.URL)
		var schema struct {
			ID string `json:"$id"`
		}
		if err := json.Unmarshal([]byte(tree.ReadFile(t, "docs/schema/"+name)), &schema); err != nil {
			t.Fatal(err)
		}
		if schema.ID != e.URL {
			t.Errorf("%s: the entry %q names %s, the schema says %q", name, e.Name, e.URL, schema.ID)
		}
		if strings.Contains(strings.ToLower(e.Name+e.Description), "schema") || e.Description == "" {
			t.Errorf("%q: SchemaStore refuses names and descriptions with the word schema, and empty ones", e.Name)
		}
		schemas, patterns = append(schemas, name), append(patterns, e.FileMatch...)
	}
	if want := []string{"scenario.json", "fixture.json"}; !slices.Equal(schemas, want) {
		t.Errorf("entries for %v, want %v", schemas, want)
	}
	for _, pattern := range patterns {
		sample := strings.ReplaceAll(pattern, "*", "weather")
		var fits []string
		for _, other := range patterns {
			if ok, _ := path.Match(other, sample); ok {
				fits = append(fits, other)
			}
		}
		if len(fits) != 1 {
			t.Errorf("a file named %s belongs to %v", sample, fits)
		}
	}
}

// TestTaplo checks the library against the schemas with Taplo, the TOML tool of most editors. `make packages` runs it
// with TAPLO naming the program.
func TestTaplo(t *testing.T) {
	t.Parallel()
	taplo := os.Getenv("TAPLO")
	if taplo == "" {
		t.Skip("TAPLO is not set; make packages installs Taplo and sets it")
	}
	unknown := filepath.Join(t.TempDir(), "unknown.toml")
	if err := os.WriteFile(unknown, []byte("no_such_key = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lint := func(format string, files ...string) (string, error) {
		schema, err := filepath.Abs("../../docs/schema/" + format + ".json")
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), taplo, append([]string{"lint", "--no-auto-config", "--schema", "file://" + schema}, files...)...).CombinedOutput()
		return string(out), err
	}
	for format, library := range map[string]string{"scenario": "../../scenarios/library", "fixture": "../../fixtures/library"} {
		files, err := filepath.Glob(library + "/*.toml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds no file: %v", library, err)
		}
		if out, err := lint(format, files...); err != nil {
			t.Errorf("taplo refuses the library of %ss: %v\n%s", format, err, out)
		}
		if out, err := lint(format, unknown); err == nil || !strings.Contains(out, "no_such_key") {
			t.Errorf("taplo does not refuse an unknown key of a %s: %v\n%s", format, err, out)
		}
	}
}
