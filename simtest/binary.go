package simtest

import (
	"os"

	"github.com/claudeless/claudeless/internal/cli"
)

// playClaudeVariable is the environment variable that makes a test binary run as claude.
const playClaudeVariable = "CLAUDELESS_SIMTEST"

func init() { //nolint:gochecknoinits // so that importing the package is enough
	if os.Getenv(playClaudeVariable) != "" {
		os.Exit(cli.Main(nil))
	}
}
