package screenscmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/screens/emulator"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

// Drive runs a program in a pseudo-terminal for a test.
type Drive struct {
	Size    string   `default:"110x36" placeholder:"COLSxROWS" help:"Size of the terminal (default 110x36)"`
	Real    bool     `help:"Write settings into CLAUDE_CONFIG_DIR that skip the first-start dialogs of the real claude"`
	Command []string `arg:"" passthrough:"" help:"The program and its arguments"`
}

// Run executes the requests on stdin, one line of JSON each, and stops the program at the end of stdin.
func (c *Drive) Run(ctx context.Context, s *process.System) error {
	size, err := emulator.ParseSize(c.Size)
	if err != nil {
		return inputError("--size: "+err.Error(), "for example --size 110x36")
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return inputError("missing command", "for example: claudeless screens drive -- claude")
	}
	if c.Real {
		if err := writeFirstStartSettings(s); err != nil {
			return err
		}
	}
	ctx, signals := s.Watch(ctx)
	defer signals.Stop()
	t, err := tape.StartTerminal(ctx, tape.TerminalOptions{
		Path: command[0], Args: command[1:], Env: s.Environ, Cols: size.Cols, Rows: size.Rows, Clock: machineClock{s},
	})
	if err != nil {
		return exitWith(exitScreensDiffer, fmt.Errorf("starting %s: %w", command[0], err))
	}
	defer t.Stop()
	served := make(chan error, 1)
	go func() { served <- tape.ServeTerminal(ctx, t, s.Stdin, s.Stdout) }() // returns at EOF of stdin or when this process exits
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	return process.SignalOr(ctx, err)
}

// writeFirstStartSettings writes the settings of a user who has started claude before and trusts the working directory.
// If a configuration file exists, it writes nothing.
func writeFirstStartSettings(s *process.System) error {
	dir := s.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		return inputError("--real needs CLAUDE_CONFIG_DIR", "set it to an empty directory")
	}
	if _, err := os.Stat(filepath.Join(dir, ".claude.json")); err == nil {
		return nil
	}
	cwd, err := s.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if err := (runner.FirstStart{TrustedDirs: []string{cwd}}).Write(dir, s.Getenv("ANTHROPIC_API_KEY")); err != nil {
		return fmt.Errorf("writing the settings of claude: %w", err)
	}
	return nil
}
