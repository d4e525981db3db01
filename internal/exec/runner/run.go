package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
)

type preparedRun struct {
	Options
	dir          string
	ownedTempDir *proc.TempDir // owns dir
	journal      string
	api          *loopbackServers
	apiKey       string          // an API key that is not valid anywhere
	realNames    <-chan []string // the names of real claudes on PATH
}

func setUpRunAndStartServers(ctx context.Context, o Options) (*preparedRun, error) {
	r := &preparedRun{Options: o}
	if len(o.Command) == 0 {
		return nil, process.WithHint("no command after --", "for example: claudeless exec -s FILE -- npm test")
	}
	names := make(chan []string, 1)
	go func() { names <- NamesOfLinksToRealCLI(o.System.Getenv("PATH"), o.Setup.Executable) }() // returns after the search
	var canary [12]byte
	_, _ = rand.Read(canary[:])                                                // never fails
	r.apiKey, r.realNames = fmt.Sprintf("claudeless-canary-%x", canary), names // a key that is valid nowhere, and recognizable in any output
	var err error
	if r.ownedTempDir, err = proc.MakeTempDirKillingMarked("claudeless-exec-", "CLAUDELESS_RUN"); err != nil {
		return nil, fmt.Errorf("creating the directory of the run: %w", err)
	}
	r.dir = r.ownedTempDir.Path
	if r.journal, err = filepath.Abs(o.Capture); o.Capture == "" || err != nil {
		r.journal = filepath.Join(r.dir, "journal.jsonl")
	}
	if o.RecordOutput {
		r.Setup.ExtraVariables = append(slices.Clone(r.Setup.ExtraVariables), "CLAUDELESS_CAPTURE_OUTPUT=1")
	}
	r.Setup.Journal, r.Setup.Config, r.Setup.RunID = r.journal, filepath.Join(r.dir, "config"), filepath.Base(r.dir)
	if err = r.createRunDirectoriesAndJournal(); err == nil {
		err = r.setUpLoopbackServers(ctx)
	}
	if err == nil {
		err = r.createConfigAndShims()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// setUpLoopbackServers starts the API. If the run has its own network namespace, the API starts later, inside the namespace.
func (r *preparedRun) setUpLoopbackServers(ctx context.Context) error {
	var err error
	if r.api, err = newLoopbackServers(r.Options, r.journal, r.claudelessFiles()); err != nil {
		return err
	}
	if r.Guard == guard.LevelStrict {
		r.api.url = "http://" + guard.APIAddrInNamespace
		if r.api.vendorProxy != nil {
			r.api.proxy = "http://" + guard.ProxyAddrInNamespace
		}
		return nil
	}
	return r.api.listenAndServeInBackground(ctx)
}

func (r *preparedRun) createRunDirectoriesAndJournal() error {
	for _, dir := range []string{r.Setup.Config, filepath.Join(r.dir, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the directory of the run: %w", err)
		}
	}
	file, err := os.OpenFile(r.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && r.Capture != "" && info.Size() > 0 {
		if r.JudgeLater {
			fmt.Fprintf(r.System.Stderr, "claudeless: warning: %s contained the journal of an earlier run and is replaced: give each run a separate file\n", r.Capture)
		}
		if err := os.Truncate(r.journal, 0); err != nil { // each run has its own journal
			return fmt.Errorf("opening the journal: %w", err)
		}
	}
	return nil
}

func (r *preparedRun) createConfigAndShims() error {
	r.Setup.Real.BaseURL, r.Setup.Real.Key = r.api.url, r.apiKey
	if r.Setup.FirstStart != nil {
		if err := r.Setup.FirstStart.Write(r.Setup.Config, r.apiKey); err != nil {
			return fmt.Errorf("preparing the configuration of claude: %w", err)
		}
	}
	if r.Setup.Real.Path != "" {
		if err := r.setUpRealClaudeFromScenario(); err != nil {
			return err
		}
	}
	if err := r.Setup.createShims(r.shimDir(), <-r.realNames); err != nil {
		return err
	}
	return createInstallBlockingShims(r.shimDir(), r.System.Getenv("PATH"))
}

func (r *preparedRun) claudelessFiles() guard.ClaudelessFiles {
	return guard.ClaudelessFiles{Executable: r.Setup.Executable, ShimDir: r.shimDir()}
}

func (r *preparedRun) shimDir() string { return filepath.Join(r.dir, "bin") }

func (r *preparedRun) close() {
	if r.api != nil {
		_ = r.api.close() // errors no longer matter
	}
	r.removeSessionTempFiles()
	_ = r.ownedTempDir.Remove() // a remaining directory in /tmp is harmless
}

// removeSessionTempFiles removes what the sessions of the run have left in the directory for temporary
// files: the output of background tasks, and the sockets of real claudes that were killed. It also
// removes the directories around both if they are empty. Errors do not matter.
func (r *preparedRun) removeSessionTempFiles() {
	temp := cmp.Or(r.System.Getenv("CLAUDE_CODE_TMPDIR"), r.System.Getenv("TMPDIR"), os.TempDir())
	transcripts, _ := filepath.Glob(filepath.Join(r.Setup.Config, "projects", "*", "*.jsonl"))
	for _, transcript := range transcripts {
		project := filepath.Join(temp, fmt.Sprintf("claude-%d", os.Getuid()), filepath.Base(filepath.Dir(transcript)))
		_ = os.RemoveAll(filepath.Join(project, strings.TrimSuffix(filepath.Base(transcript), ".jsonl")))
		_ = os.Remove(project)
		_ = os.Remove(filepath.Dir(project))
	}
	sockets := filepath.Join(cmp.Or(r.System.Getenv("TMPDIR"), "/tmp"), "cc-socks")
	killed, _ := filepath.Glob(filepath.Join(r.Setup.Config, "sessions", "*.json")) // PID.json; a claude that exits removes its file
	for _, session := range killed {
		_ = os.Remove(filepath.Join(sockets, strings.TrimSuffix(filepath.Base(session), ".json")+".sock"))
	}
	_ = os.Remove(sockets)
}

func (r *preparedRun) commandEnviron() []string {
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
		for name, value := range map[string]string{"HTTPS_PROXY": r.api.proxy, "NO_PROXY": noProxyWithLocalAddresses(r.System)} {
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
		set[claudePathVariableOfHost(host)] = filepath.Join(bin, "claude")
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

// withheldVariables returns the variables that the command must not inherit. Some lead to a real account. The others belong to a
// claude session, and are set if `claudeless exec` itself was started in such a session.
func withheldVariables() []string {
	return []string{
		"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_CUSTOM_HEADERS",
		"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT",
		"CLAUDE_PID", "CLAUDE_CODE_EXECPATH", "CLAUDE_EFFORT", "AI_AGENT",
		"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_CHILD_NOTES_DIR",
	}
}

// claudePathVariableOfHost returns the environment variable in which a known host, such as zed, looks for claude. Any other argument
// is the name of such a variable and returned unchanged.
func claudePathVariableOfHost(hostOrVariable string) string {
	switch hostOrVariable {
	case "acp", "claude-agent-acp", "claude-code-acp", "zed":
		return "CLAUDE_CODE_EXECUTABLE"
	case "vibe-kanban", "conductor":
		return "CLAUDE_CLI_PATH"
	}
	return hostOrVariable
}

// noProxyWithLocalAddresses returns the value of NO_PROXY in s, extended with the addresses of this machine.
func noProxyWithLocalAddresses(s *process.System) string {
	value := cmp.Or(s.Getenv("NO_PROXY"), s.Getenv("no_proxy"))
	local := "localhost,127.0.0.1,::1"
	if value == "" {
		return local
	}
	return value + "," + local
}

// FindRealClaude returns the real claude's path: explicitPath, else CLAUDE_BIN, else the claude on PATH that is not this program.
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

func (r *preparedRun) serverRecordsDir() string { return filepath.Join(r.dir, "mcp") }

// setUpRealClaudeFromScenario prepares the run for a real claude. It writes the MCP servers of the scenario to a
// configuration file. If an exit code is expected, this binary will stay the parent of claude to record the code.
func (r *preparedRun) setUpRealClaudeFromScenario() error {
	if r.Setup.Scenario == "" {
		return errors.New("--real requires a scenario: add -s FILE")
	}
	scenario, err := verdict.LoadScenario(r.Setup.Scenario)
	if err != nil {
		return err
	}
	r.Setup.Real.StaysParent = scenario.HasExpectationAboutExit()
	for _, name := range scenario.MCP.ServerNames() {
		if err := os.MkdirAll(filepath.Join(r.serverRecordsDir(), url.PathEscape(name)), 0o700); err != nil {
			return fmt.Errorf("preparing the real claude: %w", err)
		}
	}
	raw, err := scenario.MCPConfigJSON(r.Setup.Executable, r.serverRecordsDir())
	if raw == nil || err != nil {
		return err
	}
	file := filepath.Join(r.dir, "servers.json")
	r.Setup.MCPConfig = append(slices.Clip(r.Setup.MCPConfig), file) // copied because faults are tried in parallel
	return os.WriteFile(file, raw, 0o600)
}

const leftoverGrace = 500 * time.Millisecond

// errStrictGuardFailed is wrapped by the errors that occur before the command starts. The caller can then try a weaker guard.
var errStrictGuardFailed = errors.New("--guard=strict")

// ParseGuard parses the value of --guard.
func ParseGuard(s string) (guard.StrictnessLevel, error) { return guard.ParseLevel(s) }

// guardLinkFD connects a child with the guard. It is the number that [proc.StartForegroundCommand] gives the first file it passes on.
const guardLinkFD = 3

// ExecGuarded replaces this process, the first one of a guarded run, by the command. The first element of programPathThenArgv is
// the path of the program, and the others are its argv, including the program's name. ExecGuarded returns only if it fails.
func ExecGuarded(programPathThenArgv, environ []string) error {
	return guard.ExecWithSyscallWatch(guardLinkFD, programPathThenArgv[0], programPathThenArgv[1:], environ)
}

// ExecGuardedInOwnNetwork is like ExecGuarded for a run in its own network namespace.
func ExecGuardedInOwnNetwork(programPathThenArgv, environ []string) error {
	return guard.ExecWatchedInOwnNetwork(guardLinkFD, programPathThenArgv[0], programPathThenArgv[1:], environ)
}

type startedCommand struct {
	*proc.ForegroundCommand
	network      *guard.CommandWatch     // guard and network of the command; nil means that it runs without a guard in the network of this program
	poller       *guard.RealClaudePoller // nil means not polling
	ownProcesses []int
	hasOtherRuns bool                // this program runs other commands at the same time
	reaper       *guard.OrphanReaper // nil means none
}

func (r *preparedRun) startCommand(ctx context.Context, o proc.ForegroundOptions) (*startedCommand, error) {
	o.Command = proc.Command{Path: r.Command[0], Args: r.Command[1:], Env: r.commandEnviron()}
	c := &startedCommand{hasOtherRuns: len(r.Faults) > 0}
	if !c.hasOtherRuns {
		c.ownProcesses = guard.Descendants(os.Getpid())
		guard.AdoptOrphans()
	}
	var err error
	if r.Guard == guard.LevelStrict {
		err = r.startInNetworkNamespace(ctx, c, o)
	} else {
		err = r.startWithoutNetworkNamespace(ctx, c, o)
	}
	if err == nil && !c.hasOtherRuns {
		c.ownProcesses = append(c.ownProcesses, c.CommandAndGuardPIDs()...)
		c.reaper = guard.StartReaper(r.System.Notify, c.ownProcesses)
	}
	return c, err
}

// startWithoutNetworkNamespace starts the command in the network of this program, and looks for a real claude among
// the programs that the command starts. It watches system calls if that is permitted; otherwise it polls.
func (r *preparedRun) startWithoutNetworkNamespace(ctx context.Context, c *startedCommand, o proc.ForegroundOptions) error {
	wanted := r.Guard == guard.LevelPathAndProxy && r.Setup.Real.Path == "" && !c.hasOtherRuns
	if wanted && guard.HasSyscallWatchPrivilege() {
		if err := r.startSyscallWatchedChild(ctx, c, o); !errors.Is(err, errStrictGuardFailed) {
			return err
		}
	}
	var err error
	c.ForegroundCommand, err = proc.StartForegroundCommand(ctx, o)
	if err == nil && wanted {
		c.poller = guard.StartRealClaudePoller(&r.api.log, r.claudelessFiles())
	}
	return err
}

func (r *preparedRun) startInNetworkNamespace(ctx context.Context, c *startedCommand, o proc.ForegroundOptions) error {
	o.Network = true
	err := r.startSyscallWatchedChild(ctx, c, o)
	if errors.Is(err, errStrictGuardFailed) {
		return fmt.Errorf("%w; use --guard=path instead", err)
	}
	return err
}

// startSyscallWatchedChild starts this binary as a child. The child sends a descriptor with
// which its system calls can be watched, and then becomes the command.
func (r *preparedRun) startSyscallWatchedChild(ctx context.Context, c *startedCommand, o proc.ForegroundOptions) error {
	path, err := o.LookPath()
	if err != nil {
		return err
	}
	ours, theirs, err := guard.NewWatchLink()
	if err != nil {
		return fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	words := []string{"exec", "--inside"}
	if o.Network {
		words = append(words, "--own-network")
	}
	o.Args = append(append(words, "--", path), r.Command...)
	o.Path, o.Files = r.Setup.Executable, []*os.File{theirs}
	c.ForegroundCommand, err = proc.StartForegroundCommand(ctx, o)
	theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w; --guard=strict needs user namespaces or root", errStrictGuardFailed, err), ours.Close())
	}
	c.network, err = guard.StartWatching(ours, guard.WatchOptions{
		PID: c.PID(), Log: &r.api.log, OwnFiles: r.claudelessFiles(), ExpectsReal: r.Setup.Real.Path != "", OwnNetwork: o.Network, NoNetwork: guard.HasOnlyLoopbackInterfaces(),
	})
	if err == nil {
		if c.network.API != nil {
			r.api.startServingUntilClose(ctx, c.network.API, c.network.Proxy)
		}
		err = c.network.StartWaitingCommand()
	}
	if err != nil {
		c.StopGroupAndReclaimTerminal(leftoverGrace)
		c.close()
		c.network = nil
		return fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	return nil
}

func (c *startedCommand) close() {
	c.reaper.ReapOnceMoreAndStop()
	c.poller.ScanOnceMoreAndStop()
	if c.network != nil {
		c.network.Close()
	}
}

func (r *preparedRun) openTerminal() (*console.Console, proc.ForegroundOptions, error) {
	cwd, err := r.System.Getwd()
	if err != nil {
		return nil, proc.ForegroundOptions{}, fmt.Errorf("%w: finding the working directory: %w", errStrictGuardFailed, err)
	}
	c, err := console.OpenPseudoTerminal(console.Options{
		Settings: *r.Terminal, Keys: r.System.Stdin, Display: r.System.Stdout, Clock: systemClockWithIDs{r.System},
		Environ: r.System.Environ, Secrets: []string{r.apiKey}, Texts: map[string]string{"dir": cwd},
	})
	if err != nil {
		return nil, proc.ForegroundOptions{}, fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	return c, proc.ForegroundOptions{Stdin: c.Terminal(), Stdout: c.Terminal(), Stderr: c.Terminal(), OwnTerminal: true}, nil
}

// stopConsoleAndSummarizeScreens restores this program's terminal and returns the screens of the command.
func stopConsoleAndSummarizeScreens(commandConsole *console.Console) (*verdict.TerminalSummary, error) {
	summary, err := commandConsole.Stop()
	seen := &verdict.TerminalSummary{Screens: summary.Screens, States: summary.States, LostKeys: summary.LostKeys}
	for _, d := range summary.Dialogs {
		seen.Dialogs = append(seen.Dialogs, verdict.Dialog{State: d.State, Answer: d.Answer})
	}
	return seen, err
}

// resizeConsoleWithOwnTerminal passes the size of this program's terminal on to c until stop is called.
func (r *preparedRun) resizeConsoleWithOwnTerminal(c *console.Console) (stop func()) {
	resizes := process.ResizeSignals()
	if c == nil || !c.FollowsOwnTerminalSize() || resizes == nil {
		return func() {}
	}
	return process.OnSignals(r.System.Lifetime, func(os.Signal) { c.Resize() }, resizes...)
}
