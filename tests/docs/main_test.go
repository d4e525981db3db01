// Package docs runs the contents of the documents: the blocks of the README and of docs, the projects of examples, the
// action, and the tables that a test compares with the program.
package docs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudeless/claudeless/internal/cli"
)

// TestMain lets the test binary replace the programs that the documents call.
func TestMain(m *testing.M) {
	run := func() { os.Exit(cli.Main(nil)) }
	testscript.Main(m, map[string]func(){"claudeless": run, "claude": run})
}
