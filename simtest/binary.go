package simtest

import (
	"os"

	"github.com/claudeless/claudeless/internal/cli"
)

// runAsClaudeVariable is the environment variable that makes a test binary run as claude.
const runAsClaudeVariable = "CLAUDELESS_SIMTEST"

func init() { //nolint:gochecknoinits // so that importing the package is enough
	if os.Getenv(runAsClaudeVariable) != "" {
		os.Exit(cli.Main(nil))
	}
}
