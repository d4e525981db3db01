package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/plugincmd"
)

// simulatedRealCLICommandsByName are commands of the real CLI that hosts run at their start to inspect it. They respond as on a
// machine with an API key and default settings; commands that would change an account are refused.
func simulatedRealCLICommandsByName() map[string]commandFunc {
	const list = ". Run 'claude agents' to list running sessions."
	stop := commandReportingMissingBackgroundSession("Usage: claude stop <id>", list)
	return map[string]commandFunc{
		"agents": runAgents, "auth": runAuth, "doctor": runDoctor, "install": runInstallReportingSuccess, "plugin": runPlugins, "plugins": runPlugins, "update": runUpdateReportingUpToDate, "upgrade": runUpdateReportingUpToDate,
		"attach": commandReportingMissingBackgroundSession("Usage: claude attach <id|name>", list), "logs": commandReportingMissingBackgroundSession("Usage: claude logs <id|name>", list), "stop": stop, "kill": stop,
		"respawn": commandReportingMissingBackgroundSession("usage: claude respawn <id>|--all", ""),
		"rm":      commandReportingMissingBackgroundSession("Usage: claude rm <id> [--discard-unpushed <commit>@<worktree-id>] [--force-remove-worktree <worktree-id>]", ""),
	}
}

func unsimulatedRealCLICommandNames() []string {
	return []string{
		"auto-mode", "gateway", "import", "project", "purge", "setup-token", "ultrareview",
	}
}

// commandReportingMissingBackgroundSession returns a command that takes the id of a background session and reports that it does
// not exist.
func commandReportingMissingBackgroundSession(usage, hint string) commandFunc {
	return func(_ context.Context, s *process.System, words []string) error {
		if len(words) == 0 {
			return process.Verbatimf("%s", usage)
		}
		if len(words) > 1 {
			fmt.Fprintln(s.Stderr, "warning: extra arguments ignored: "+strings.Join(words[1:], " "))
		}
		return process.Verbatimf("No session matching '%s'%s", words[0], hint)
	}
}

func notSimulatedError(command ...string) error {
	return errors.New(`the command "` + strings.Join(command, " ") + `" of claude is not simulated`)
}

type authReport struct {
	LoggedIn          bool    `json:"loggedIn"`
	AuthMethod        string  `json:"authMethod"`
	APIProvider       string  `json:"apiProvider"`
	AnalyticsDisabled bool    `json:"analyticsDisabled"`
	Projects          string  `json:"projectsDirectory"`
	Config            string  `json:"configDirectory"`
	LoginExpires      *string `json:"loginExpiresAt"` // nil means never
	SignInOffered     bool    `json:"consoleProfileSignInOffered,omitzero"`
	APIKeySource      string  `json:"apiKeySource,omitempty"`
}

// runAuth serves `auth status` and `auth logout`. There is no account, so logout has no effect.
func runAuth(_ context.Context, s *process.System, words []string) error {
	if slices.Equal(words, []string{"logout"}) {
		_, err := fmt.Fprintln(s.Stdout, "Successfully logged out from your Anthropic account.")
		return err
	}
	if len(words) == 0 || words[0] != "status" {
		return notSimulatedError(append([]string{"auth"}, words[:min(1, len(words))]...)...)
	}
	plan, err := launch.Resolve(s, nil)
	if err != nil {
		return err
	}
	report, lines := describeAuthStatus(s, plan)
	if slices.Contains(words, "--text") {
		_, err = fmt.Fprintln(s.Stdout, strings.Join(lines, "\n"))
	} else {
		err = s.PrintJSON(report)
	}
	if err == nil && !report.LoggedIn {
		return &process.ExitError{Code: 1}
	}
	return err
}

func describeAuthStatus(s *process.System, plan launch.Plan) (report authReport, textLines []string) {
	env := plan.Profile.Environment()
	r := authReport{
		LoggedIn: true, AuthMethod: "api_key", APIProvider: "firstParty", AnalyticsDisabled: !env.AllowsTelemetry, SignInOffered: true,
		Projects: filepath.Join(plan.State, "projects"), Config: plan.State,
	}
	for _, p := range [][3]string{{"BEDROCK", "bedrock", "Amazon Bedrock"}, {"VERTEX", "vertex", "Google Vertex AI"}, {"FOUNDRY", "foundry", "Microsoft Foundry"}} {
		if process.IsEnabled(s.Getenv("CLAUDE_CODE_USE_" + p[0])) {
			return thirdPartyLogin(s, r, p[1], p[2])
		}
	}
	var lines []string
	switch usesKey := s.Getenv("ANTHROPIC_API_KEY") != ""; {
	case env.Credential == claudecode.CredentialNone:
		r.LoggedIn, r.AuthMethod = false, "none"
		return r, []string{"Not logged in. Run claude auth login to authenticate."}
	case env.TokenSource == "CLAUDE_CODE_OAUTH_TOKEN" && usesKey:
		lines = []string{"Auth token: " + env.TokenSource + " · not in use"}
	case env.TokenSource != "":
		r.AuthMethod, lines = "oauth_token", []string{"Auth token: " + env.TokenSource}
	}
	if env.TokenSource == "" || s.Getenv("ANTHROPIC_API_KEY") != "" {
		r.APIKeySource, lines = "ANTHROPIC_API_KEY", append(lines, "API key: ANTHROPIC_API_KEY")
	}
	for _, line := range [][2]string{{"Anthropic base URL", "ANTHROPIC_BASE_URL"}, {"Additional CA cert(s)", "NODE_EXTRA_CA_CERTS"}} {
		if value := s.Getenv(line[1]); value != "" {
			lines = append(lines, line[0]+": "+value)
		}
	}
	return r, lines
}

// thirdPartyLogin describes the login at a cloud that offers the models. Its credentials are not checked.
func thirdPartyLogin(s *process.System, r authReport, provider, title string) (authReport, []string) {
	r.AuthMethod, r.APIProvider, r.AnalyticsDisabled, r.SignInOffered = "third_party", provider, true, false
	if s.Getenv("ANTHROPIC_API_KEY") != "" {
		r.APIKeySource = "ANTHROPIC_API_KEY"
	}
	lines := []string{"API provider: " + title}
	switch region := cmp.Or(s.Getenv("AWS_REGION"), s.Getenv("AWS_DEFAULT_REGION")); {
	case provider == "bedrock" && region != "":
		lines = append(lines, "AWS region: "+region)
	case provider == "bedrock":
		lines = append(lines, "AWS region: us-east-1 (default — set AWS_REGION or add a region to your AWS config)")
	case provider == "vertex":
		if project := s.Getenv("ANTHROPIC_VERTEX_PROJECT_ID"); project != "" {
			lines = append(lines, "GCP project: "+project)
		}
		lines = append(lines, "Default region: "+cmp.Or(s.Getenv("CLOUD_ML_REGION"), "us-east5"))
	}
	return r, lines
}

func runPlugins(_ context.Context, s *process.System, words []string) error {
	plan, err := launch.Resolve(s, nil)
	if err != nil {
		return err
	}
	err = plugincmd.Run(plugincmd.Options{Dir: plan.State, CWD: plan.CWD, Now: s.Now, Stdout: s.Stdout, Stderr: s.Stderr}, words)
	if errors.Is(err, plugincmd.ErrNotSimulated) {
		return notSimulatedError(append([]string{"plugin"}, words[:min(1, len(words))]...)...)
	}
	return err
}

func runAgents(_ context.Context, s *process.System, words []string) error {
	if slices.Contains(words, "--json") {
		return s.PrintJSON([]struct{}{})
	}
	const text = "'claude agents' requires an interactive terminal (output is piped or redirected) — " +
		"use 'claude agents --json' for a machine-readable list."
	return process.Verbatimf("%s", text)
}

func runDoctor(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Claude Code doctor\n\nRunning: claudeless %s, simulating %s\nAuto-updates: disabled\n\nNo installation issues found.\n", version(), claudecode.DefaultVersion)
	return err
}

func runUpdateReportingUpToDate(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Current version: %[1]s\nChecking for updates to latest version…\nClaude Code is up to date (%[1]s)\n", claudecode.DefaultVersion)
	return err
}

// runInstallReportingSuccess answers like a successful installation, but installs nothing, so that programs that update claude
// go on.
func runInstallReportingSuccess(_ context.Context, s *process.System, words []string) error {
	target := "latest"
	for _, word := range words {
		if !strings.HasPrefix(word, "-") {
			target = word
		}
	}
	self, err := s.Executable()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "\nChecking installation…\nInstalling Claude Code native build %s…\nSetting up launcher and shell integration…\n"+
		"✔ Claude Code successfully installed!\n\n  Version: %s\n\n  Location: %s\n\n\n  Next: Run claude --help to get started\n", target, claudecode.DefaultVersion, self)
	return err
}
