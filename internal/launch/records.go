package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/claudeless/claudeless/internal/gate"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/transcript"
)

func (r *resolver) records() error {
	f := r.f
	r.p.Records = Records{
		Run: r.journalRun(), Gates: gate.Dir(r.sys.Getenv), Debug: f.Debug || f.DebugFile != "" || f.DebugToStderr, DebugToStderr: f.DebugToStderr,
		DebuggerURL: f.Debugger, DebuggerToken: r.sys.Getenv("CLAUDELESS_DEBUGGER_TOKEN"),
	}
	if f.Capture != "" {
		r.p.Records.Capture = r.p.Abs(f.Capture)
	}
	if f.DebugFile != "" {
		r.p.Records.DebugFile = r.p.Abs(f.DebugFile)
	}
	return nil
}

func (r *resolver) journalRun() journal.Run {
	line := journal.Run{
		Argv: r.sys.Args, CWD: r.p.CWD, Env: map[string]string{}, Model: model.Resolve(r.p.Model.Name),
		PermissionMode: string(r.p.Permission.Mode), Scenario: r.p.Scenario.Name, ScenarioFile: r.p.Scenario.Path,
		InputFormat: r.f.InputFormat, SkipsPermissions: r.f.DangerouslySkipPermissions && !process.On(r.sys.Getenv("IS_SANDBOX")), Settings: []string{},
	}
	for _, layer := range r.p.Settings.Layers {
		line.Settings = append(line.Settings, string(layer.Source))
	}
	for _, name := range journalEnv() {
		if value := r.sys.Getenv(name); value != "" {
			line.Env[name] = value
		}
	}
	if r.f.Has("system-prompt") || r.f.Has("system-prompt-file") {
		line.SystemPrompt = &r.p.Prompt.System
	}
	if r.f.AppendSystemPrompt != "" {
		line.AppendPrompt = &r.p.Prompt.Append
	}
	for _, server := range r.p.Servers.Configs {
		line.MCPServers = append(line.MCPServers, server.Name)
	}
	return line
}

// journalEnv are the variables whose values a test wants to see.
func journalEnv() []string {
	return []string{
		"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_MAX_RETRIES", "CLAUDELESS_SCENARIO", "CLAUDELESS_STRICT_MCP", "CLAUDELESS_COMPAT", "HOME", "PWD",
		"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_THINKING_TOKENS",
	}
}

// transcript says which conversation it is and what its lines tell.
func (r *resolver) transcript() error {
	f := r.f
	o := transcript.Options{
		StateDir: r.p.State, CWD: cmp.Or(r.p.Scenario.WorkingDirectory, r.p.CWD), Project: r.p.Scenario.ProjectPath,
		ID: f.SessionID, DefaultID: r.p.Scenario.SessionID, Resume: f.Resume, ResumeAt: f.ResumeSessionAt,
		Continue: f.Continue, Fork: f.ForkSession, NoPersist: f.NoSessionPersistence || r.p.State == "",
		Version: r.p.Version, Entrypoint: r.p.Entrypoint, Clock: r.p.Clock,
		Agent: r.p.Custom.Agent, Title: f.SessionName,
	}
	if r.p.Scenario.Seed != nil {
		o.Again = r.p.Clock.Again
	}
	if r.p.State == "" && !f.NoSessionPersistence {
		r.warn("HOME is not set: the session is not saved (set HOME or CLAUDELESS_CONFIG_DIR)")
	}
	o.Machine = r.machine()
	if f.Has("resume-drops-turn") {
		o.DropsTurn = &f.ResumeDropsTurn
	}
	r.p.Transcript = o
	return nil
}

// machine is what transcripts say of the surroundings.
func (r *resolver) machine() transcript.Machine {
	git := findCheckout(r.p.CWD)
	m := transcript.Machine{
		Platform: runtime.GOOS, Shell: "unknown", IsGitRepo: git.repo, IsWorktree: git.worktree, AdditionalDirs: r.p.Permission.Paths(),
		GitBranch: cmp.Or(git.branch, "HEAD"),
	}
	if shell := r.sys.Getenv("SHELL"); shell != "" {
		m.Shell = filepath.Base(shell)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OSVersion = "Linux " + strings.TrimSpace(string(release))
	}
	return m
}
