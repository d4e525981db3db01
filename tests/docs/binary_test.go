package docs

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The packages for Python and npm look for the binary in the same order: CLAUDELESS_BIN, the binary of the package, PATH.
func TestBinaryOrder(t *testing.T) {
	for file, steps := range map[string][]string{
		"../../packages/python/src/claudeless/_binary.py": {`os.environ.get("CLAUDELESS_BIN")`, `return given`, `with_name("bin")`, `return str(carried)`, `shutil.which("claudeless")`},
		"../../packages/npm/src/binary.ts":                {`process.env["CLAUDELESS_BIN"]`, `return given`, "const platform =", `.resolve(`, `onPath("claudeless"`},
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var at []int
		for _, step := range steps {
			at = append(at, strings.Index(string(source), step))
		}
		if at[0] < 0 || !slices.IsSorted(at) || slices.Contains(at, -1) {
			t.Errorf("%s looks for the binary in another order: %q are at %v", file, steps, at)
		}
	}
}
