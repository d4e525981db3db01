package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/verdict"
)

// FindReal finds the real claude: the path that was given, else CLAUDE_BIN, else
// what stands on PATH and is not this program.
func FindReal(given string, getenv func(string) string, self string) (string, error) {
	if given == "" {
		given = getenv("CLAUDE_BIN")
	}
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
		if err != nil || target == self || ours(target) {
			continue
		}
		return path, nil
	}
	return "", errors.New("there is no real claude on PATH: name it with --real=PATH or CLAUDE_BIN")
}

// ours tells a shim by its own words.
func ours(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return true // what cannot be read cannot be run
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(file, head)
	return (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) && bytes.Contains(head[:n], []byte("Made by claudeless"))
}

// seed prepares the private directory for a real claude: nothing is asked at its
// first start, and it gets the servers of the scenario.
func (r *run) seed(key string) error {
	config := map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "hasSeenAutoDefaultNotice": true,
		"customApiKeyResponses": map[string]any{"approved": []string{key[max(0, len(key)-20):]}, "rejected": []string{}},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.Setup.Config, ".claude.json"), raw, 0o600); err != nil {
		return fmt.Errorf("preparing the real claude: %w", err)
	}
	if r.Setup.Scenario == "" {
		return errors.New("--real needs a scenario: -s FILE")
	}
	scenario, err := verdict.LoadScenario(r.Setup.Scenario)
	if err != nil || len(scenario.MCP.ServerNames()) == 0 {
		return err
	}
	servers := map[string]any{}
	for _, name := range scenario.MCP.ServerNames() {
		entry := map[string]any{}
		maps.Copy(entry, scenario.MCP.Servers[name])
		if fixture, ok := entry["fixture"].(string); ok {
			delete(entry, "fixture")
			if !filepath.IsAbs(fixture) && strings.ContainsAny(fixture, "./") {
				fixture = filepath.Join(filepath.Dir(r.Setup.Scenario), fixture)
			}
			entry["command"], entry["args"] = r.Setup.Self, []string{"fixture", "serve", fixture}
		}
		servers[name] = entry
	}
	if raw, err = json.Marshal(map[string]any{"mcpServers": servers}); err != nil {
		return err
	}
	file := filepath.Join(r.dir, "servers.json")
	r.Setup.MCPConfig = append(r.Setup.MCPConfig, file)
	return os.WriteFile(file, raw, 0o600)
}

// realLine is the end of a shim that runs the real claude: our server
// configurations go in front, where no other option can swallow them, unless a
// command of claude is called.
func (s Setup) realLine() string {
	var configs strings.Builder
	for _, c := range s.MCPConfig {
		configs.WriteString(" " + quote("--mcp-config="+c))
	}
	if configs.Len() == 0 {
		return fmt.Sprintf("exec %s \"$@\"\n", quote(s.Real))
	}
	return fmt.Sprintf("case \"${1-}\" in\n%s) exec %s \"$@\" ;;\nesac\nexec %s%s \"$@\"\n",
		strings.Join(realCommands(), "|"), quote(s.Real), quote(s.Real), configs.String())
}

// realCommands are the commands of claude that take no server configurations.
func realCommands() []string {
	return []string{"mcp", "agents", "auth", "auto-mode", "doctor", "gateway", "install", "plugin", "plugins", "project", "setup-token", "update", "upgrade"}
}
