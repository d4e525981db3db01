package runner

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
)

// environ is the environment of the command.
func (r *run) environ() []string {
	bin := r.bin()
	set := map[string]string{
		"PATH":               bin + string(filepath.ListSeparator) + pathOf(r.System.Environ),
		"CLAUDE_CONFIG_DIR":  r.Setup.Config,
		"ANTHROPIC_BASE_URL": r.api.url, "ANTHROPIC_BEDROCK_BASE_URL": r.api.url, "ANTHROPIC_VERTEX_BASE_URL": r.api.url,
		"ANTHROPIC_API_KEY": r.key,
	}
	if r.api.proxy != "" {
		for name, value := range map[string]string{"HTTPS_PROXY": r.api.proxy, "NO_PROXY": bypassed(r.System)} {
			set[name], set[strings.ToLower(name)] = value, value
		}
	}
	forced, _ := r.Setup.variables()
	for _, kv := range forced {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	if r.FreshHome {
		set["HOME"] = filepath.Join(r.dir, "home")
	}
	for _, host := range r.EnvFor {
		set[variableOf(host)] = filepath.Join(bin, "claude")
	}
	var env []string
	for _, kv := range r.System.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := set[name]; !ours && !slices.Contains(withheld(), name) {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// withheld are variables that lead to a real account, or that belong to a session
// which exec itself is a part of.
func withheld() []string {
	return []string{
		"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_CUSTOM_HEADERS",
		"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT",
		"CLAUDE_PID", "CLAUDE_CODE_EXECPATH", "CLAUDE_EFFORT", "AI_AGENT",
	}
}

// variableOf is the variable by which a host finds claude: that of a known host,
// or the name itself.
func variableOf(host string) string {
	switch host {
	case "acp", "claude-agent-acp", "claude-code-acp", "zed":
		return "CLAUDE_CODE_EXECUTABLE"
	case "vibe-kanban", "conductor":
		return "CLAUDE_CLI_PATH"
	}
	return host
}

// bypassed is the value of NO_PROXY: what is on this machine needs none.
func bypassed(s *process.System) string {
	value := cmp.Or(s.Getenv("NO_PROXY"), s.Getenv("no_proxy"))
	local := "localhost,127.0.0.1,::1"
	if value == "" {
		return local
	}
	return value + "," + local
}
