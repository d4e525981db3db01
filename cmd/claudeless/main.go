// Command claudeless is a test double for the claude command line: the same flags, protocol and exit codes, with a
// scripted model in place of the real one.
package main

import (
	"os"

	"github.com/claudeless/claudeless/internal/base/earlysignal"
	"github.com/claudeless/claudeless/internal/cli"
)

func main() { os.Exit(cli.Main(earlysignal.TerminationSignals())) }
