package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/debugcmd"
	"github.com/claudeless/claudeless/internal/cli/execcmd"
	"github.com/claudeless/claudeless/internal/cli/filecmd"
	"github.com/claudeless/claudeless/internal/cli/help"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/internal/cli/plugincmd"
	"github.com/claudeless/claudeless/internal/cli/screenscmd"
	"github.com/claudeless/claudeless/internal/cli/servecmd"
)

type commandFunc func(ctx context.Context, s *process.System, words []string) error

type commandEntry struct {
	name, usage, help string
	inClaude          bool // the real CLI also has the command
	run               commandFunc
}

func commandTable() []commandEntry {
	return []commandEntry{
		{name: "check", usage: "check FILE…", help: "Validate scenarios, fixtures and MCP configurations", run: kongCommand[filecmd.Check]("check")},
		{name: "fixture", usage: "fixture serve|check|clone|list|token", help: "Run, check or clone MCP servers defined in TOML files", run: kongCommand[filecmd.FixtureCommand]("fixture")},
		{name: "serve", usage: "serve SCENARIO | --record URL", help: "Serve a scenario as the Messages API, for the real claude and SDKs", run: kongCommand[servecmd.Serve]("serve")},
		{name: "debug", usage: "debug [serve|hook|proxy]", help: "Pause, inspect and change tool calls", run: kongCommand[debugcmd.Debug]("debug")},
		{name: "import", usage: "import FILE…", help: "Turn recorded sessions into a scenario, with secrets removed", run: kongCommand[importCmd]("import")},
		{name: "exec", usage: "exec [-s FILE] -- CMD…", help: "Run a command with claudeless instead of claude, and check the run", run: kongCommand[execcmd.Exec]("exec")},
		{name: "verify", usage: "verify JOURNAL…", help: "Check earlier runs again, from journals written with --capture", run: kongCommand[execcmd.VerifyJournalsCommand]("verify")},
		{name: "report", usage: "report JOURNAL… | report merge DIR…", help: "Write the HTML report of a run, or merge the shards of a run and check them together", run: kongCommand[execcmd.ReportCommand]("report")},
		{name: "journal", usage: "journal schema|explain", help: "Print the journal schema, or a journal in readable form", run: kongCommand[execcmd.JournalCommand]("journal")},
		{name: "gates", usage: "gates list|wait|release", help: "List, wait for or release gates (points at which scripted steps wait)", run: kongCommand[execcmd.GatesCommand]("gates")},
		{name: "parity", usage: "parity CASE…", help: "Compare claudeless with the real claude, case by case", run: kongCommand[parityCmd]("parity")},
		{name: "screens", usage: "screens capture|list|show|diff|check|…", help: "Capture and compare screens of the real claude, and check programs that read them", run: kongCommand[screenscmd.Screens]("screens")},
		{name: "shim", usage: "shim DIR -s FILE", help: "Create a directory with a claude command, for you to put first on PATH", run: kongCommand[execcmd.CreateShim]("shim")},
		{name: "init", usage: "init [DIR]", help: "Write a working scenario, MCP server and CI job", run: kongCommand[help.InitCommand]("init")},
		{name: "schema", usage: "schema scenario|fixture|journal", help: "Print the JSON Schema of a file format", run: kongCommand[help.SchemaCommand]("schema")},
		{name: "version", usage: "version [--json]", help: "Print the version of claudeless and of the claude it simulates", run: kongCommand[versionCmd]("version")},
		{name: "completion", usage: "completion bash|zsh|fish", help: "Print the completion script for a shell", run: commandWithOnlyHelpFlag("completion", runCompletion)},
		{name: "man", usage: "man", help: "Print the manual page", run: commandWithOnlyHelpFlag("man", func(_ context.Context, s *process.System, _ []string) error {
			return writeHelpText(s, help.TextManualPage)
		})},
		{name: "help", usage: "help [claude-flags|COMMAND]", help: "Print help", run: commandWithOnlyHelpFlag("help", runHelp)},
		{name: "mcp", usage: "mcp add|get|list|remove|call|…", help: "Configure, inspect and call MCP servers", inClaude: true, run: runMCP},
	}
}

// misspellingCandidates lists the words with which a misspelled command is compared. These are all commands of claudeless, and
// those of the real CLI except short ones such as rm, which many prompts resemble.
func misspellingCandidates() []string {
	var names []string
	for _, c := range commandTable() {
		names = append(names, c.name)
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(simulatedRealCLICommandsByName())), unsimulatedRealCLICommandNames()) {
		if len(name) > 4 || name == "auth" {
			names = append(names, name)
		}
	}
	return names
}

func commandEntryFor(name string) commandEntry {
	table := commandTable()
	return table[slices.IndexFunc(table, func(c commandEntry) bool { return c.name == name })]
}

// commandOfWord returns the command with this name; nil means that the word is a prompt or a flag instead. A program
// with the name claude has only the commands of the real CLI, unless a claudeless process started it.
func commandOfWord(s *process.System, word string) commandFunc {
	for _, c := range commandTable() {
		if c.name == word && (c.inClaude || !s.CalledAsClaude() || s.StartedByClaudeless()) {
			return c.run
		}
	}
	run := simulatedRealCLICommandsByName()[word]
	if slices.Contains(unsimulatedRealCLICommandNames(), word) {
		run = func(context.Context, *process.System, []string) error { return notSimulatedError(word) }
	}
	if run == nil {
		return nil
	}
	return func(ctx context.Context, s *process.System, words []string) error {
		if text := requestedRealCLIHelpText(slices.Concat([]string{word}, words)); text != "" {
			_, err := io.WriteString(s.Stdout, text)
			return err
		}
		if len(words) == 0 && slices.Contains([]string{"auth", "plugin", "plugins"}, word) {
			return process.Verbatimf("%s", strings.TrimSuffix(requestedRealCLIHelpText([]string{word, "--help"}), "\n"))
		}
		return run(ctx, s, words)
	}
}

// kongCommand runs the Run method of a kong struct. The methods may take a context.Context and a *process.System.
func kongCommand[C any](name string) commandFunc {
	return func(ctx context.Context, s *process.System, words []string) error {
		entry, full := commandEntryFor(name), s.InvokedProgramName()+" "+name
		usage := func(err error) error { return kongErrorWithHelpHint(err, full) }
		return mcpcmd.RunKong(new(C), words, usage, execcmd.CheckForRepeatedScenarioOrUnknownFlag,
			kong.Name(full), kong.Description(entry.help), kong.Help(helpPrinter(s.InvokedProgramName()+" "+entry.usage)), kong.Writers(s.Stdout, s.Stderr),
			kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s, debugcmd.ClaudelessVersion(claudelessVersion())))
	}
}

func kongErrorWithHelpHint(kongErr error, command string) error {
	text := kongErr.Error()
	if missing, ok := strings.CutPrefix(text, `expected "<`); ok {
		text = "missing argument <" + strings.TrimSuffix(missing, `"`)
	} else if choices, ok := strings.CutPrefix(text, "expected one of "); ok {
		text = "missing command: expected one of " + choices
	}
	if parse, ok := errors.AsType[*kong.ParseError](kongErr); ok && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	return process.WithHint(text, "see "+command+" --help")
}

func commandWithOnlyHelpFlag(name string, run commandFunc) commandFunc {
	return func(ctx context.Context, s *process.System, words []string) error {
		if len(words) == 1 && (words[0] == "-h" || words[0] == "--help") {
			entry := commandEntryFor(name)
			_, err := fmt.Fprintf(s.Stdout, "Usage: %s %s\n\n%s\n", s.InvokedProgramName(), entry.usage, entry.help)
			return err
		}
		return run(ctx, s, words)
	}
}

// helpPrinter prints kong's help with the usage line of the command table, and adds "--" where kong omits it.
func helpPrinter(usage string) kong.HelpPrinter {
	return func(o kong.HelpOptions, c *kong.Context) error {
		var b strings.Builder
		stdout := c.Stdout
		c.Stdout = &b
		err := kong.DefaultHelpPrinter(o, c)
		c.Stdout = stdout
		if err != nil {
			return err
		}
		line, rest, _ := strings.Cut(b.String(), "\n")
		if c.Selected() == nil {
			line = "Usage: " + usage
		} else if before, hasCommand := strings.CutSuffix(line, " <command> ... [flags]"); hasCommand {
			line = before + " [flags] -- CMD…"
		} else if before, hasCommand := strings.CutSuffix(line, " [<command> ...] [flags]"); hasCommand {
			line = before + " [flags] [-- CMD…]"
		}
		_, err = fmt.Fprintf(stdout, "%s\n%s", line, rest)
		return err
	}
}

// simulatedRealCLICommandsByName returns the commands of the real CLI that hosts run at their start to inspect it. They respond
// as on a machine with an API key and default settings. Commands that would change an account are refused.
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
	return []string{"auto-mode", "gateway", "import", "project", "purge", "remote-control", "setup-token", "ultrareview"}
}

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
		err = s.PrintIndentedJSON(report)
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
		if process.IsSetAndNotFalse(s.Getenv("CLAUDE_CODE_USE_" + p[0])) {
			return describeThirdPartyLogin(s, r, p[1], p[2])
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

// describeThirdPartyLogin returns r with a login at a cloud provider, and the login as text. It does not check credentials.
func describeThirdPartyLogin(s *process.System, r authReport, provider, title string) (authReport, []string) {
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
	operands, asJSON, err := flags.ParseAgentsCommand(words)
	switch {
	case err != nil:
		return process.Verbatimf("%v", err)
	case len(operands) > 0:
		return process.Verbatimf("error: too many arguments for 'agents'. Expected 0 arguments but got %d.", len(operands))
	case asJSON:
		return s.PrintIndentedJSON([]struct{}{})
	}
	const text = "'claude agents' requires an interactive terminal (output is piped or redirected) — " +
		"use 'claude agents --json' for a machine-readable list."
	return process.Verbatimf("%s", text)
}

func runDoctor(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Claude Code doctor\n\nRunning: claudeless %s, simulating %s\nAuto-updates: disabled\n\nNo installation issues found.\n", claudelessVersion(), claudecode.DefaultVersion)
	return err
}

func runUpdateReportingUpToDate(_ context.Context, s *process.System, _ []string) error {
	_, err := fmt.Fprintf(s.Stdout, "Current version: %[1]s\nChecking for updates to latest version…\nClaude Code is up to date (%[1]s)\n", claudecode.DefaultVersion)
	return err
}

// runInstallReportingSuccess reports a successful installation but installs nothing, so that programs that update claude continue.
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
