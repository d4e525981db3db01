package runner

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

func (r *run) commandEnviron() []string {
	bin := r.shimDir()
	set := map[string]string{
		"PATH":               bin + string(filepath.ListSeparator) + r.System.Getenv("PATH"),
		"CLAUDE_CONFIG_DIR":  r.Setup.Config,
		"ANTHROPIC_BASE_URL": r.api.url, "ANTHROPIC_BEDROCK_BASE_URL": r.api.url, "ANTHROPIC_VERTEX_BASE_URL": r.api.url,
		"ANTHROPIC_API_KEY": r.apiKey,
	}
	if r.System.Getenv("CLAUDELESS_ENVIRONMENT") == "" {
		set["CLAUDELESS_ENVIRONMENT"] = "no-traffic" // a real claude is also run without this traffic
	}
	if r.api.proxy != "" {
		for name, value := range map[string]string{"HTTPS_PROXY": r.api.proxy, "NO_PROXY": noProxyValue(r.System)} {
			set[name], set[strings.ToLower(name)] = value, value
		}
	}
	for _, kv := range r.Setup.claudeVariables() {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	if r.Terminal != nil && r.System.Getenv("TERM") == "" {
		set["TERM"] = "xterm-256color"
	}
	if r.FreshHome {
		set["HOME"] = filepath.Join(r.dir, "home")
	}
	for _, host := range r.EnvFor {
		set[claudePathVariable(host)] = filepath.Join(bin, "claude")
	}
	var env []string
	for _, kv := range r.System.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := set[name]; !ours && !slices.Contains(withheldVariables(), name) {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// withheldVariables are variables that the command must not inherit. Some lead to a real account. The others belong to
// a claude session, and are set if `claudeless exec` itself was started in such a session.
func withheldVariables() []string {
	return []string{
		"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_CUSTOM_HEADERS",
		"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT",
		"CLAUDE_PID", "CLAUDE_CODE_EXECPATH", "CLAUDE_EFFORT", "AI_AGENT",
		"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_CHILD_NOTES_DIR",
	}
}

// claudePathVariable returns the variable in which a host such as zed looks for claude, or any other word unchanged.
func claudePathVariable(host string) string {
	switch host {
	case "acp", "claude-agent-acp", "claude-code-acp", "zed":
		return "CLAUDE_CODE_EXECUTABLE"
	case "vibe-kanban", "conductor":
		return "CLAUDE_CLI_PATH"
	}
	return host
}

// noProxyValue returns the value of NO_PROXY, which exempts addresses of this machine.
func noProxyValue(s *process.System) string {
	value := cmp.Or(s.Getenv("NO_PROXY"), s.Getenv("no_proxy"))
	local := "localhost,127.0.0.1,::1"
	if value == "" {
		return local
	}
	return value + "," + local
}

// FindRealClaude returns the real claude's path: explicitPath, else CLAUDE_BIN, else the claude on PATH that is not
// this program.
func FindRealClaude(explicitPath string, getenv func(string) string, ownPath string) (string, error) {
	explicitPath = cmp.Or(explicitPath, getenv("CLAUDE_BIN"))
	if explicitPath != "" {
		path, err := filepath.Abs(explicitPath)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return "", fmt.Errorf("finding the real claude: %w", err)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		path := filepath.Join(dir, "claude")
		if target, err := filepath.EvalSymlinks(path); err != nil || target == ownPath || guard.IsShim(target) {
			continue
		}
		return path, nil
	}
	return "", errors.New("no real claude on PATH: install it, or set CLAUDE_BIN to its path")
}

func (r *run) serverRecordsDir() string { return filepath.Join(r.dir, "mcp") }

// prepareRealHome prepares the run for a real claude. It writes the MCP servers of the scenario to a configuration
// file. If an exit code is expected, this binary will stay the parent of claude to record the code.
func (r *run) prepareRealHome() error {
	if r.Setup.Scenario == "" {
		return errors.New("--real requires a scenario: add -s FILE")
	}
	scenario, err := verdict.LoadScenario(r.Setup.Scenario)
	if err != nil {
		return err
	}
	r.Setup.Real.StaysParent = scenario.ExpectsExit()
	for _, name := range scenario.MCP.ServerNames() {
		if err := os.MkdirAll(filepath.Join(r.serverRecordsDir(), url.PathEscape(name)), 0o700); err != nil {
			return fmt.Errorf("preparing the real claude: %w", err)
		}
	}
	raw, err := scenario.ServerConfig(r.Setup.Executable, r.serverRecordsDir())
	if raw == nil || err != nil {
		return err
	}
	file := filepath.Join(r.dir, "servers.json")
	r.Setup.MCPConfig = append(slices.Clip(r.Setup.MCPConfig), file) // copied because faults are tried in parallel
	return os.WriteFile(file, raw, 0o600)
}
