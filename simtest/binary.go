package simtest

import (
	"os"

	"github.com/claudeless/claudeless/internal/cli"
)

// playClaude is the variable that makes a test binary claude.
const playClaude = "CLAUDELESS_SIMTEST"

func init() { //nolint:gochecknoinits // so that importing the package is enough
	if os.Getenv(playClaude) != "" {
		os.Exit(cli.Main(nil))
	}
}
