package session

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain makes this binary the MCP server of the sessions that it tests.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCPTEST_MODE"); mode != "" {
		os.Exit(mcptest.Serve(mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}))
	}
	goleak.VerifyTestMain(m)
}
