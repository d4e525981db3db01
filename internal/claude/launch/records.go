package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/telemetry"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

func recordOptionsAndWarn(sys *process.System, f *flags.Flags, p *Plan) RecordOptions {
	o := RecordOptions{
		Run: journalRunLine(sys, f, p), Gates: gate.Dir(sys.Environ), Debug: f.Debug || f.DebugFile != "" || f.DebugToStderr, DebugToStderr: f.DebugToStderr,
		DebuggerURL: f.Debugger, DebuggerToken: sys.Getenv("CLAUDELESS_DEBUGGER_TOKEN"),
	}
	if f.Capture != "" {
		o.Capture = p.AbsFromStartDir(f.Capture)
	}
	if f.DebugFile != "" {
		o.DebugFile = p.AbsFromStartDir(f.DebugFile)
	}
	var warnings []string
	o.Telemetry, warnings = telemetry.ReadConfig(func(name string) string { return sys.Getenv(name) })
	for _, text := range warnings {
		p.warn(text)
	}
	return o
}

func journalRunLine(sys *process.System, f *flags.Flags, p *Plan) journal.Run {
	line := journal.Run{
		Argv: sys.Args, CWD: p.CWD, Env: map[string]string{}, Model: claudecode.ResolveModel(p.Model.Name),
		PermissionMode: string(p.Permission.Mode), Scenario: p.Scenario.Name, ScenarioFile: p.Scenario.Path,
		InputFormat: f.InputFormat, Interactive: f.Interactive, SkipsPermissions: f.DangerouslySkipPermissions && !process.IsSetAndNotFalse(sys.Getenv("IS_SANDBOX")), Settings: []string{},
	}
	for _, layer := range p.Settings.Layers {
		line.Settings = append(line.Settings, string(layer.Source))
	}
	for _, fault := range p.Settings.Faults {
		line.IgnoredSettings = append(line.IgnoredSettings, fault.String())
	}
	line.IgnoredSettings = append(line.IgnoredSettings, unknownMatcherToolMessages(p.Settings.Hooks)...)
	line.IgnoredSettings = append(line.IgnoredSettings, settings.MisspellingMessages(p.Settings.Settings)...)
	for name := range strings.FieldsSeq("ANTHROPIC_BASE_URL ANTHROPIC_MODEL CLAUDE_CODE_ENTRYPOINT CLAUDE_AGENT_SDK_VERSION CLAUDE_CONFIG_DIR CLAUDE_CODE_MAX_RETRIES " +
		"CLAUDELESS_SCENARIO CLAUDELESS_STRICT_MCP CLAUDELESS_COMPAT HOME PWD MCP_TIMEOUT MCP_TOOL_TIMEOUT MAX_THINKING_TOKENS") {
		if value := sys.Getenv(name); value != "" {
			line.Env[name] = value
		}
	}
	if f.WasGiven("system-prompt") || f.WasGiven("system-prompt-file") {
		line.SystemPrompt = &p.Prompt.System
	}
	if f.AppendSystemPrompt != "" {
		line.AppendPrompt = &p.Prompt.Append
	}
	for _, server := range p.Servers.Configs {
		line.MCPServers = append(line.MCPServers, server.Name)
	}
	return line
}

func transcriptOptions(sys *process.System, f *flags.Flags, p *Plan) transcript.Options {
	o := transcript.Options{
		StateDir: p.State, CWD: cmp.Or(p.Scenario.WorkingDirectory, p.CWD), Project: p.Scenario.ProjectPath,
		ID: f.SessionID, DefaultID: p.Scenario.SessionID, Resume: f.Resume, ResumeAt: f.ResumeSessionAt,
		Continue: f.Continue, Fork: f.ForkSession, NoPersist: f.NoSessionPersistence || p.State == "",
		Version: p.Version, Entrypoint: p.Entrypoint, Clock: p.Clock,
		Agent: p.Customization.Agent, Title: f.SessionName, Commit: p.Settings.Attribution.Commit, PR: p.Settings.Attribution.PR,
	}
	if p.Scenario.Seed != nil {
		o.RestartIDs = p.Clock.ReseedForNthRunOfSession
	}
	o.Machine = platformShellAndGitFacts(sys, p)
	o.Machine.IsTerminal, o.Machine.IsBare = f.Interactive, f.Bare
	if f.WasGiven("resume-drops-turn") {
		o.DropsTurn = &f.ResumeDropsTurn
	}
	return o
}

// SavedSessions returns the sessions of the project that can be continued, the most recently changed first.
func SavedSessions(p *Plan) []transcript.SessionInfo { return transcript.Sessions(p.Transcript) }

func platformShellAndGitFacts(sys *process.System, p *Plan) transcript.SessionEnvironment {
	git := findCheckout(p.CWD)
	m := transcript.SessionEnvironment{Platform: runtime.GOOS, Shell: "unknown", IsGitRepo: git.isRepository, IsWorktree: git.isLinkedWorktree, GitBranch: cmp.Or(git.branch, "HEAD")}
	if shell := sys.Getenv("SHELL"); shell != "" {
		if m.Shell = filepath.Base(shell); m.Shell != "bash" && m.Shell != "zsh" {
			m.Shell = "bash (login shell: " + m.Shell + ")"
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OSVersion = "Linux " + strings.TrimSpace(string(release))
	}
	return m
}

// gitCheckoutInfo is what transcripts record about the session's git repository.
type gitCheckoutInfo struct {
	isRepository, isLinkedWorktree bool
	branch                         string // "HEAD" if no branch is checked out
}

// findCheckout looks for a repository around dir without running git.
func findCheckout(dir string) gitCheckoutInfo {
	top := gitworktree.NearestDirectoryWithDotGit(dir)
	git := filepath.Join(top, ".git")
	info, err := os.Stat(git)
	if top == "" || err != nil {
		return gitCheckoutInfo{}
	}
	return readCheckout(git, info.IsDir())
}

func readCheckout(gitPath string, isDir bool) gitCheckoutInfo {
	c := gitCheckoutInfo{isRepository: true}
	if !isDir {
		pointer, err := os.ReadFile(gitPath)
		target, ok := strings.CutPrefix(strings.TrimSpace(string(pointer)), "gitdir: ")
		if err != nil || !ok {
			return gitCheckoutInfo{}
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(gitPath), target)
		}
		c.isLinkedWorktree = filepath.Base(filepath.Dir(target)) == "worktrees"
		gitPath = target
	}
	head, err := os.ReadFile(filepath.Join(gitPath, "HEAD"))
	if err != nil {
		return gitCheckoutInfo{}
	}
	c.branch = "HEAD"
	if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/"); ok {
		c.branch = branch
	}
	return c
}
