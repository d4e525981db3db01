package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// probes are commands of the real CLI that hosts run at their start to see what they have. They answer as on a machine
// with an API key and nothing to do; what would change an account is refused.
func probes() map[string]runner {
	return map[string]runner{"auth": authStatus, "doctor": doctor, "plugin": pluginList, "plugins": pluginList, "update": update, "upgrade": update}
}

// realCommands are the words that the real CLI takes for a command and that have no counterpart here.
func realCommands() []string {
	return []string{
		"agents", "attach", "auto-mode", "gateway", "import", "install", "logs", "project", "purge", "respawn", "rm", "setup-token", "stop", "kill",
		"ultrareview",
	}
}

func notSimulated(command ...string) error {
	return errors.New(`the command "` + strings.Join(command, " ") + `" of claude is not simulated`)
}

// authReport is what auth status prints.
type authReport struct {
	LoggedIn          bool    `json:"loggedIn"`
	AuthMethod        string  `json:"authMethod"`
	APIProvider       string  `json:"apiProvider"`
	AnalyticsDisabled bool    `json:"analyticsDisabled"`
	Projects          string  `json:"projectsDirectory"`
	Config            string  `json:"configDirectory"`
	LoginExpires      *string `json:"loginExpiresAt"` // nil = never
	SignInOffered     bool    `json:"consoleProfileSignInOffered"`
	APIKeySource      string  `json:"apiKeySource"`
}

func authStatus(_ context.Context, s *process.System, words []string) error {
	if len(words) == 0 || words[0] != "status" {
		return notSimulated(append([]string{"auth"}, words[:min(1, len(words))]...)...)
	}
	if slices.Contains(words, "--text") {
		_, err := fmt.Fprintln(s.Stdout, "API key: ANTHROPIC_API_KEY")
		return err
	}
	plan, err := launch.Resolve(s, nil)
	if err != nil {
		return err
	}
	return printJSON(s, authReport{
		LoggedIn: true, AuthMethod: "api_key", APIProvider: "firstParty", AnalyticsDisabled: true, SignInOffered: true,
		Projects: filepath.Join(plan.State, "projects"), Config: plan.State, APIKeySource: "ANTHROPIC_API_KEY",
	})
}

func printJSON(s *process.System, value any) error {
	encoder := json.NewEncoder(s.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// pluginList has nothing to list: plugins come with a run's own flags.
func pluginList(_ context.Context, s *process.System, words []string) error {
	if len(words) == 0 || words[0] != "list" {
		return notSimulated(append([]string{"plugin"}, words[:min(1, len(words))]...)...)
	}
	if slices.Contains(words, "--json") {
		return printJSON(s, []struct{}{})
	}
	_, err := fmt.Fprintln(s.Stdout, "No plugins installed. Use `claude plugin install` to install a plugin.")
	return err
}

func doctor(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Claude Code doctor\n\nRunning: claudeless %s, simulating %s\nAuto-updates: disabled\n\nNo installation issues found.\n", version(), claudecode.DefaultVersion)
	return err
}

func update(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Current version: %[1]s\nChecking for updates to latest version…\nClaude Code is up to date (%[1]s)\n", claudecode.DefaultVersion)
	return err
}
