package runner

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// FindReal returns the path of the real claude: the given path, or else CLAUDE_BIN, or else the claude on PATH that
// is not this program.
func FindReal(given string, getenv func(string) string, self string) (string, error) {
	given = cmp.Or(given, getenv("CLAUDE_BIN"))
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return "", fmt.Errorf("the real claude: %w", err)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		path := filepath.Join(dir, "claude")
		target, err := filepath.EvalSymlinks(path)
		if err != nil || target == self || guard.IsShim(target) {
			continue
		}
		return path, nil
	}
	return "", errors.New("no real claude on PATH: name it with --real=PATH or CLAUDE_BIN")
}

// serverRecords returns the directory of [procio.ServerRecords].
func (r *run) serverRecords() string { return filepath.Join(r.dir, "mcp") }

// seed prepares the private directory for a real claude: it adds the servers of the scenario as a further configuration, and records the exit code if an expectation needs it.
func (r *run) seed() error {
	if r.Setup.Scenario == "" {
		return errors.New("--real needs a scenario: -s FILE")
	}
	scenario, err := verdict.LoadScenario(r.Setup.Scenario)
	if err != nil {
		return err
	}
	r.Setup.Real.Attended = scenario.ExpectsExit()
	for _, name := range scenario.MCP.ServerNames() {
		if err := os.MkdirAll(filepath.Join(r.serverRecords(), url.PathEscape(name)), 0o700); err != nil {
			return fmt.Errorf("preparing the real claude: %w", err)
		}
	}
	raw, err := scenario.ServerConfig(r.Setup.Self, r.serverRecords())
	if raw == nil || err != nil {
		return err
	}
	file := filepath.Join(r.dir, "servers.json")
	r.Setup.MCPConfig = append(slices.Clip(r.Setup.MCPConfig), file) // copied because faults are tried in parallel
	return os.WriteFile(file, raw, 0o600)
}
