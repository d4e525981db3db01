package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/guard"
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
		if err != nil || target == self || guard.IsShim(target) {
			continue
		}
		return path, nil
	}
	return "", errors.New("there is no real claude on PATH: name it with --real=PATH or CLAUDE_BIN")
}

// seed prepares the private directory for a real claude: nothing is asked at its
// first start, and it gets the servers of the scenario by a configuration more.
func (s Setup) seed(dir string) (configs []string, err error) {
	config := map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "hasSeenAutoDefaultNotice": true,
		"customApiKeyResponses": map[string]any{"approved": []string{s.Key[max(0, len(s.Key)-20):]}, "rejected": []string{}},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.Config, ".claude.json"), raw, 0o600); err != nil {
		return nil, fmt.Errorf("preparing the real claude: %w", err)
	}
	if s.Scenario == "" {
		return nil, errors.New("--real needs a scenario: -s FILE")
	}
	scenario, err := verdict.LoadScenario(s.Scenario)
	if err != nil {
		return nil, err
	}
	raw, err = scenario.ServerConfig(s.Self)
	if raw == nil || err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "servers.json")
	return []string{file}, os.WriteFile(file, raw, 0o600)
}
