package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/settings"
)

// resolveRunIdentity returns the identity of the run. planWithScenario must already contain the
// scenario, and sys must contain the environment variables of the settings.
func resolveRunIdentity(sys *process.System, f *flags.Flags, planWithScenario *Plan) (VersionAndEntrypoint, error) {
	env, err := claudecode.ReadEnvironment(func(name string) string { return sys.Getenv(name) })
	env.RequestsFastMode = slices.ContainsFunc(planWithScenario.Settings.Layers, func(l settings.Layer) bool {
		var keys struct{ FastMode bool }
		return l.Source == settings.SourceFlag && json.Unmarshal(l.Raw, &keys) == nil && keys.FastMode
	})
	id := planWithScenario.VersionAndEntrypoint
	id.Version = cmp.Or(f.ClaudeVersion, sys.Getenv("CLAUDELESS_CLAUDE_VERSION"), planWithScenario.Scenario.ClaudeVersion, claudecode.DefaultVersion)
	id.Profile = claudecode.ProfileForExactVersion(id.Version).WithEnvironment(env).WithFastModeAllowedModels(planWithScenario.Settings.AvailableModels)
	id.Entrypoint = entrypoint(sys, f)
	id.RustCompat = sys.Getenv("CLAUDELESS_COMPAT") == flags.CompatValueForOlderRustTool
	id.APIKeySource = "none"
	if sys.Getenv("ANTHROPIC_API_KEY") != "" {
		id.APIKeySource = "ANTHROPIC_API_KEY"
	}
	return id, err
}

// entrypoint returns the name of the program that started the CLI. Without a terminal, "cli" does not count (observed with 2.1.330).
func entrypoint(sys *process.System, f *flags.Flags) string {
	set := sys.Getenv("CLAUDE_CODE_ENTRYPOINT")
	switch {
	case set != "" && set != "cli":
		return set
	case set == "" && isEnvEnabled(sys, "CLAUDE_CODE_ACTION"):
		return "claude-code-github-action"
	case f.Interactive:
		return "cli"
	}
	return "sdk-cli"
}

// environOfStartedPrograms returns the environment of this process with CLAUDE_CODE_ENTRYPOINT and CLAUDELESS_BIN added.
func environOfStartedPrograms(sys *process.System, p *Plan) []string {
	env := slices.Clone(sys.Environ)
	if sys.Getenv("CLAUDELESS_BIN") == "" && p.Executable != "" {
		env = append(env, "CLAUDELESS_BIN="+p.Executable)
	}
	return append(env, "CLAUDE_CODE_ENTRYPOINT="+p.Entrypoint)
}

func newLimits(sys *process.System, f *flags.Flags, p *Plan) Limits {
	t := p.Scenario.Timeouts
	var pace claudecode.StartAndAnswerDelays
	if cmp.Or(sys.Getenv("CLAUDELESS_PACE"), p.Scenario.Pace) == "real" {
		pace = p.Profile.MinimumStartAndAnswerDelays()
	}
	return Limits{
		Pace:     pace,
		MaxTurns: f.MaxTurns, MaxBudgetUSD: f.MaxBudgetUSD, MaxRetries: maxRetries(sys), RetryScale: retryWaitScale(sys, f), GatewayHost: apiGatewayHost(sys), IsSandbox: sys.Getenv("IS_SANDBOX") != "",
		ResponseDelay:    scenarioOrEnvDuration(sys, t.ResponseDelayMS, "CLAUDELESS_RESPONSE_DELAY_MS", 0),
		StopBlockCap:     envInt(sys, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
		HookTimeout:      scenarioOrEnvDuration(sys, t.HookTimeoutMS, "CLAUDELESS_HOOK_TIMEOUT_MS", 0),
		CompactDelay:     scenarioOrEnvDuration(sys, t.CompactDelayMS, "CLAUDELESS_COMPACT_DELAY_MS", 20*time.Millisecond),
		ContextWindow:    flags.ParseContextWindow(f.Autocompact),
		NoAutoCompact:    isEnvEnabled(sys, "DISABLE_AUTO_COMPACT") || isEnvEnabled(sys, "DISABLE_COMPACT") || p.Settings.Merged()["autoCompactEnabled"] == false,
		NoCompactCommand: isEnvEnabled(sys, "DISABLE_COMPACT"),
		BackgroundLimit:  envMillis(sys, "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", 10*time.Minute),
	}
}

func isEnvEnabled(sys *process.System, name string) bool {
	return process.IsSetAndNotFalse(sys.Getenv(name))
}

// envInt reads a whole number from the environment; 0 means it is not a number.
func envInt(sys *process.System, name string) int {
	n, err := strconv.Atoi(sys.Getenv(name))
	if err != nil {
		return 0
	}
	return n
}

func envMillis(sys *process.System, name string, fallback time.Duration) time.Duration {
	const year = 365 * 24 * time.Hour // a longer duration could overflow
	if n := envInt(sys, name); n > 0 {
		return time.Duration(min(n, int(year/time.Millisecond))) * time.Millisecond
	}
	return fallback
}

func scenarioOrEnvDuration(sys *process.System, scenarioMS *int, variable string, fallback time.Duration) time.Duration {
	if scenarioMS != nil {
		return time.Duration(*scenarioMS) * time.Millisecond
	}
	return envMillis(sys, variable, fallback)
}

// maxRetries returns how often a failed request is retried; 0 means the default and -1 means never.
func maxRetries(sys *process.System) int {
	if sys.Getenv("CLAUDE_CODE_MAX_RETRIES") == "0" {
		return -1
	}
	return envInt(sys, "CLAUDE_CODE_MAX_RETRIES")
}

// retryWaitScale returns the factor for the waits between retries, from CLAUDELESS_RETRY_SCALE: 1 means the waits of
// the real CLI, 0 no waits. If the variable is not set, it returns 1 for an interactive run and 0 for other runs.
func retryWaitScale(sys *process.System, f *flags.Flags) float64 {
	if f.Interactive && sys.Getenv("CLAUDELESS_RETRY_SCALE") == "" {
		return 1
	}
	var scale float64
	if _, err := fmt.Sscanf(sys.Getenv("CLAUDELESS_RETRY_SCALE"), "%g", &scale); err != nil || scale < 0 {
		return 0
	}
	return scale
}

// mcpOptions returns the options for connecting to MCP servers, without callbacks.
func mcpOptions(sys *process.System, p *Plan) mcp.Options {
	environ, negotiation := p.Environ, mcp.NegotiateAuto
	if sys.Getenv("CLAUDELESS_RUN") != "" { // so that `claudeless exec` recognises a process that is left over as an MCP server
		environ = append(slices.Clone(environ), "CLAUDELESS_PART=mcp")
	}
	// Of the values of MCP_PROTOCOL_NEGOTIATION only "legacy" has an effect.
	if sys.Getenv("MCP_PROTOCOL_NEGOTIATION") == "legacy" || !p.Profile.Has(claudecode.FeatureAsksServersForNewMCPRevisionFirst) {
		negotiation = mcp.NegotiateLegacy
	}
	return mcp.Options{
		ClientVersion: p.Version, Negotiation: negotiation, Environ: environ, CWD: p.CWD, ConnectTimeout: envMillis(sys, "MCP_TIMEOUT", 0), ToolTimeout: mcpToolTimeout(sys, p.Scenario),
		Credentials: mcp.CredentialStorage{Path: p.credentialsPath(), Time: sys.Now},
		Batch:       mcp.ParallelConnectionLimits{Local: envInt(sys, "MCP_SERVER_CONNECTION_BATCH_SIZE"), Remote: envInt(sys, "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE")},
	}
}

func (p *Plan) credentialsPath() string {
	if p.State == "" {
		return ""
	}
	return filepath.Join(p.State, ".credentials.json")
}

// mcpToolTimeout returns the limit of MCP calls; an MCP_TOOL_TIMEOUT below a second counts as one second (spec: mcp 4.1).
func mcpToolTimeout(sys *process.System, s Scenario) time.Duration {
	if d := envMillis(sys, "MCP_TOOL_TIMEOUT", 0); d > 0 {
		return max(d, time.Second)
	}
	return scenarioOrEnvDuration(sys, s.Timeouts.MCPTimeoutMS, "CLAUDELESS_MCP_TIMEOUT_MS", 0)
}

// apiGatewayHost returns the host in ANTHROPIC_BASE_URL, for error texts. It returns "" for the vendor's own API.
func apiGatewayHost(sys *process.System) string {
	u, err := url.Parse(sys.Getenv("ANTHROPIC_BASE_URL"))
	if err != nil || u.Hostname() == "api.anthropic.com" {
		return ""
	}
	return u.Host
}

// ModelNameAfterOverrides resolves an alias to the model that the environment defines for it. An empty name means the default model.
func (a ModelAliases) ModelNameAfterOverrides(name string) string {
	if name == "" || name == "default" {
		return cmp.Or(a.Default, a.latestOpus())
	}
	if !a.KeepsLegacyOpus && claudecode.IsLegacyOpus(name) {
		return cmp.Or(a.Opus, "opus")
	}
	return cmp.Or(map[string]string{"opus": a.Opus, "sonnet": a.Sonnet, "haiku": a.Haiku}[name], name)
}

func (a ModelAliases) latestOpus() string { return cmp.Or(a.Opus, claudecode.DefaultModel) }

// noticeAboutModel returns a notice about a requested model that is replaced or retired; empty means none.
func (a ModelAliases) noticeAboutModel(name string, now time.Time) string {
	name = cmp.Or(name, a.Default, a.latestOpus())
	if !a.KeepsLegacyOpus && claudecode.IsLegacyOpus(name) {
		return fmt.Sprintf("⚠ %s is automatically remapped to %s (the latest Opus). Set CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP=1 to keep the requested model.\n",
			name, claudecode.ModelDisplayName(a.latestOpus()))
	}
	return claudecode.FactsOfModel(claudecode.ResolveModel(name)).Retirement.Notice(now)
}

// initialModel returns the model at the start: from a flag or agent, else the environment, settings or scenario.
func initialModel(sys *process.System, f *flags.Flags, p *Plan) ModelChoice {
	m := p.Model
	m.Aliases = ModelAliases{
		Default: sys.Getenv("ANTHROPIC_DEFAULT_MODEL"), Opus: sys.Getenv("ANTHROPIC_DEFAULT_OPUS_MODEL"),
		Sonnet: sys.Getenv("ANTHROPIC_DEFAULT_SONNET_MODEL"), Haiku: sys.Getenv("ANTHROPIC_DEFAULT_HAIKU_MODEL"),
		KeepsLegacyOpus: isEnvEnabled(sys, "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP"),
	}
	m.IsExplicit = cmp.Or(m.Requested, sys.Getenv("ANTHROPIC_MODEL")) != ""
	m.Name = cmp.Or(m.Requested, sys.Getenv("ANTHROPIC_MODEL"), p.Settings.Model, p.Scenario.DefaultModel)
	if m.Name == "" && m.Aliases.Default == "" {
		m.Name = p.Profile.Environment().SubscriptionDefaultModel()
	}
	if instead, isReplaced := claudecode.AvailableModels(p.Settings.AvailableModels).ReplacementIfUnavailable(m.Name); isReplaced {
		m.Notice = fmt.Sprintf("Model %q is restricted by your organization's settings. Using %s instead.\n", m.Name, instead)
		m.Name = instead
	} else if !f.Interactive && !f.InitOnly {
		m.Notice = m.Aliases.noticeAboutModel(m.Name, p.Clock.Now())
	}
	m.Name = m.Aliases.ModelNameAfterOverrides(m.Name)
	m.Subagents = sys.Getenv("CLAUDE_CODE_SUBAGENT_MODEL")
	m.Betas, m.Fallbacks = f.Betas, nil
	for name := range strings.SplitSeq(f.FallbackModel, ",") {
		if name = strings.TrimSpace(name); name != "" {
			m.Fallbacks = append(m.Fallbacks, name)
		}
	}
	if level := strings.ToLower(cmp.Or(sys.Getenv("CLAUDE_CODE_EFFORT_LEVEL"), f.Effort)); slices.Contains(claudecode.EffortLevels(), level) {
		m.Effort = level
	}
	return m
}
