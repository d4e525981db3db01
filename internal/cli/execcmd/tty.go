package execcmd

import (
	"fmt"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
)

// Terminal are the flags of exec for the interactive claude.
type Terminal struct {
	TTY      bool     `name:"tty" help:"Run the command in a new pseudo-terminal, for an interactive claude"`
	Size     string   `placeholder:"COLSxROWS" help:"Size of the pseudo-terminal, 20x5 to 500x200 (default: that of this terminal, or 110x36)"`
	Renderer string   `placeholder:"inline|fullscreen" help:"How claude draws its screen: inline or fullscreen (default)"`
	Fresh    []string `placeholder:"DIALOG|all" help:"Show these dialogs, as on a first start: trust, key, mcp, bypass, auto (with --tty or --real)"`
	Trust    []string `sep:"none" placeholder:"DIR" help:"Also trust this directory; the working directory is always trusted (with --tty or --real)"`
	Screens  string   `placeholder:"DIR" help:"Write the screens and a recording (asciicast) to DIR, with secrets masked (with --tty)"`
}

// terminalOptions checks the flags and returns the pseudo-terminal of the command; nil means none.
func (f *Terminal) terminalOptions(s *process.System, withReal, withFaults bool) (*runner.Terminal, error) {
	switch {
	case f.TTY && withFaults:
		return nil, usageError("--tty cannot be used with --faults", "run the command once without --faults")
	case !f.TTY && (f.Size != "" || f.Screens != ""):
		return nil, usageError("--size and --screens need --tty", "add --tty")
	case !withReal && !f.TTY && (f.Renderer != "" || len(f.Fresh) > 0 || len(f.Trust) > 0):
		return nil, usageError("--renderer, --fresh and --trust need --tty or --real", "add --tty to run claude in a pseudo-terminal, or --real to run the real one")
	case f.Renderer != "" && f.Renderer != "inline" && f.Renderer != "fullscreen":
		return nil, usageError(fmt.Sprintf("unknown renderer %q", f.Renderer), "use --renderer=inline or --renderer=fullscreen")
	case !f.TTY:
		return nil, nil
	}
	screens := f.Screens
	if screens != "" && !filepath.IsAbs(screens) {
		dir, err := s.Getwd()
		if err != nil {
			return nil, fmt.Errorf("finding the working directory: %w", err)
		}
		screens = filepath.Join(dir, screens)
	}
	t, err := runner.ParseTerminal(f.Size, screens)
	if err != nil {
		return nil, usageError("--size: "+err.Error(), "for example --size 110x36")
	}
	return t, nil
}

// firstStart returns which dialogs claude shows.
func (f *Terminal) firstStart(s *process.System) (*runner.FirstStart, error) {
	cwd, err := s.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	start := &runner.FirstStart{Dialogs: f.Fresh, Inline: f.Renderer == "inline", TrustedDirs: []string{cwd}}
	for _, dir := range f.Trust {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		start.TrustedDirs = append(start.TrustedDirs, dir)
	}
	if err := runner.CheckDialogs(f.Fresh); err != nil {
		return nil, &process.ExitError{Code: exitUsage, Err: err}
	}
	return start, nil
}

// exitUsage is the exit code for invalid combinations of terminal flags.
const exitUsage = 2

func usageError(message, hint string) error {
	return &process.ExitError{Code: exitUsage, Err: process.WithHint(message, hint)}
}
