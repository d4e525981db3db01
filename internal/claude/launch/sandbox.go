package launch

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// SandboxError means that the settings require a sandbox for commands, and that this machine lacks programs for it.
type SandboxError struct{ reason string }

// Error returns the error of the result.
func (e *SandboxError) Error() string {
	return "Sandbox required but unavailable: " + e.reason + ". Set sandbox.failIfUnavailable=false to allow unsandboxed execution."
}

// StderrText returns what the real CLI writes to stderr.
func (e *SandboxError) StderrText() string {
	return "\nError: sandbox required but unavailable: " + e.reason + "\n  Refusing to start without a working sandbox (see sandbox.failIfUnavailable).\n"
}

// checkSandbox looks for the programs with which the real CLI isolates commands on Linux, if the settings ask for this. Without
// them it returns an error or writes a warning, as the settings say. Commands run without isolation in any case.
func (r *planResolver) checkSandbox() error {
	sandbox, _ := r.plan.Settings.Merged()["sandbox"].(map[string]any)
	if sandbox["enabled"] != true || runtime.GOOS != "linux" {
		return nil
	}
	var missing []string
	for program, shown := range map[string]string{"bwrap": "bubblewrap (bwrap) not installed", "socat": "socat not installed"} {
		if _, err := (proc.Command{Path: program, Env: r.sys.Environ, Dir: r.plan.CWD}).LookPath(); err != nil {
			missing = append(missing, shown)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	reason := "sandbox is enabled but dependencies are missing: " + strings.Join(missing, ", ") +
		" · install missing tools (e.g. apt install bubblewrap socat) or see https://code.claude.com/docs/en/sandboxing"
	if sandbox["failIfUnavailable"] == true {
		return &SandboxError{reason}
	}
	fmt.Fprintf(r.sys.Stderr, "\n⚠ Sandbox disabled: %s\n  Commands will run WITHOUT sandboxing. Network and filesystem restrictions will NOT be enforced.\n\n", reason)
	return nil
}
