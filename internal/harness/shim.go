package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Setup is what a shim hands to claude.
type Setup struct {
	// Self is the binary that plays claude.
	Self string
	// Scenario is the scripted model, a path or a name of the library; empty = as
	// without a shim.
	Scenario string
	// MCPConfig are further server configurations.
	MCPConfig []string
	// Journal is the file that processes write to.
	Journal string
	// Config is CLAUDE_CONFIG_DIR of callers that have none.
	Config string
	// Run marks the processes of one run; empty = they are not marked.
	Run string
	// Lenient switches off what --strict switches on.
	Lenient bool
	// Fault spoils what claude does; empty = nothing does.
	Fault string
	// Real is the real claude, to be run in the place of the double; empty = the
	// double.
	Real string
	// BaseURL and Key are the API that the real one is given.
	BaseURL, Key string
	// Extra are further variables for claude, as "K=V".
	Extra []string
}

// variables are set for claude whatever its caller has; defaults only where the
// caller has none.
func (s Setup) variables() (forced, defaults []string) {
	forced = append([]string{"CLAUDELESS_CAPTURE=" + s.Journal, "CLAUDELESS_EXPECT=defer"}, s.Extra...)
	if s.Scenario != "" {
		forced = append(forced, "CLAUDELESS_SCENARIO="+s.Scenario)
	}
	if s.Run != "" {
		forced = append(forced, "CLAUDELESS_RUN="+s.Run)
	}
	if !s.Lenient {
		forced = append(forced, "CLAUDELESS_STRICT=1")
	}
	if s.Fault != "" {
		forced = append(forced, "CLAUDELESS_FAILURE="+s.Fault)
	}
	if len(s.MCPConfig) > 0 && s.Real == "" {
		forced = append(forced, "CLAUDELESS_MCP_CONFIG="+strings.Join(s.MCPConfig, "\n"))
	}
	if s.Real != "" {
		forced = append(forced, "ANTHROPIC_BASE_URL="+s.BaseURL, "ANTHROPIC_API_KEY="+s.Key, "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
	}
	return forced, []string{"CLAUDE_CONFIG_DIR=" + s.Config}
}

// inner is the directory of a shim directory that holds what shims start.
const inner = ".claudeless"

// MakeShims makes dir hold a claude, and one of every name on path that leads to
// a real one.
func MakeShims(dir string, s Setup, path string) error {
	if err := os.MkdirAll(filepath.Join(dir, inner), 0o700); err != nil {
		return fmt.Errorf("making shims: %w", err)
	}
	if runtime.GOOS == "windows" {
		return s.windows(dir)
	}
	target := filepath.Join(dir, inner, "claude")
	_ = os.Remove(target) // of an earlier shim in this place
	if err := os.Symlink(s.Self, target); err != nil {
		return fmt.Errorf("making shims: %w", err)
	}
	script := s.script(target)
	for _, name := range append([]string{"claude"}, RealNames(path, s.Self)...) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
			return fmt.Errorf("making shims: %w", err)
		}
	}
	return nil
}

// script is a shim: it needs nothing of its environment.
func (s Setup) script(target string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Made by claudeless, in the place of claude.\n")
	forced, defaults := s.variables()
	for _, kv := range forced {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(value))
	}
	for _, kv := range defaults {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "[ -n \"${%s-}\" ] || export %s=%s\n", name, name, quote(value))
	}
	if s.Real == "" {
		fmt.Fprintf(&b, "exec %s \"$@\"\n", quote(target))
		return b.String()
	}
	return b.String() + s.realLine()
}

// quote makes a word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// windows makes claude.cmd and claude.exe; what they hand over stands beside the
// second in a file that the binary reads when it is called so.
func (s Setup) windows(dir string) error {
	forced, defaults := s.variables()
	lines := strings.Join(append(forced, defaults...), "\r\n") + "\r\n"
	exe := filepath.Join(dir, "claude.exe")
	return errors.Join(
		copyFile(s.Self, exe),
		os.WriteFile(filepath.Join(dir, EnvFile), []byte(lines), 0o600),
		os.WriteFile(filepath.Join(dir, "claude.cmd"), []byte("@\"%~dp0claude.exe\" %*\r\n"), 0o700),
	)
}

// EnvFile stands beside a copy of the binary called claude and holds what a shim
// hands over, K=V a line.
const EnvFile = "claude.env"

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// RealNames are the names on path that are links into a package of the real CLI.
func RealNames(path, self string) []string {
	var names []string
	for _, dir := range filepath.SplitList(path) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Type()&os.ModeSymlink == 0 || slices.Contains(names, e.Name()) || e.Name() == "claude" {
				continue
			}
			file := filepath.Join(dir, e.Name())
			link, err := os.Readlink(file)
			if err != nil || !strings.Contains(strings.ToLower(link), "claude") {
				continue
			}
			if target, err := filepath.EvalSymlinks(file); err == nil && target != self && isReal(target) {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// isReal tells from its place that a file is part of the real CLI.
func isReal(path string) bool {
	path = filepath.ToSlash(path)
	return strings.Contains(path, "/@anthropic-ai/claude-") || strings.Contains(path, "/.local/share/claude/versions/") ||
		strings.Contains(path, "/claude_agent_sdk/_bundled/")
}
