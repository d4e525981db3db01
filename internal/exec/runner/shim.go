package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/procio"
)

// ClaudeSetup is the configuration that a shim passes to claude.
type ClaudeSetup struct {
	// Self is the path of this binary, which plays claude.
	Self string
	// Scenario is the scripted model, a path or a name from the library; empty means the scenario that claude would find
	// without a shim.
	Scenario string
	// MCPConfig are further server configurations.
	MCPConfig []string
	// Journal is the file that processes write to.
	Journal string
	// Config is the CLAUDE_CONFIG_DIR for callers that have not set one.
	Config string
	// RunID marks the processes of one run; empty means no mark.
	RunID string
	// Lenient disables the effects of --strict.
	Lenient bool
	// Fault is the name of the fault to apply; empty means none.
	Fault string
	// Real is the real claude that runs instead of the simulated one.
	Real Real
	// FirstStart specifies which dialogs claude shows on a terminal; nil means its configuration is not prepared.
	FirstStart *FirstStart
	// ExtraVariables are further variables for claude, as "K=V".
	ExtraVariables []string
}

// Real is a real claude and its API access. The zero value means the simulated claude.
type Real struct {
	// Path is the path of its program; empty means none.
	Path string
	// BaseURL and Key give access to its API.
	BaseURL, Key string
	// StaysParent is set if the scenario expects an exit code: this binary then stays as the parent of the real claude
	// and waits for its end.
	StaysParent bool
}

// variables returns the variables for claude: forced ones are always set, defaults only if the caller has not set them.
func (s ClaudeSetup) variables() (forced, defaults []string) {
	forced = append([]string{"CLAUDELESS_CAPTURE=" + s.Journal, "CLAUDELESS_EXPECT=defer"}, s.ExtraVariables...)
	if s.Scenario != "" {
		forced = append(forced, "CLAUDELESS_SCENARIO="+s.Scenario)
	}
	if s.RunID != "" {
		forced = append(forced, "CLAUDELESS_RUN="+s.RunID)
	}
	if !s.Lenient {
		forced = append(forced, "CLAUDELESS_STRICT=1")
	}
	if s.Fault != "" && s.Real.Path == "" {
		forced = append(forced, "CLAUDELESS_FAILURE="+s.Fault)
	}
	if len(s.MCPConfig) > 0 && s.Real.Path == "" {
		forced = append(forced, "CLAUDELESS_MCP_CONFIG="+strings.Join(s.MCPConfig, "\n"))
	}
	if s.Real.Path != "" {
		forced = append(forced, "ANTHROPIC_BASE_URL="+s.Real.BaseURL, "ANTHROPIC_API_KEY="+s.Real.Key, "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
		if s.Fault != "" { // otherwise many retries would take too long
			forced = append(forced, "CLAUDE_CODE_MAX_RETRIES=2")
		}
	}
	return forced, []string{"CLAUDE_CONFIG_DIR=" + s.Config}
}

const shimProgramDir = ".claudeless"

// MakeShims creates a shim for claude in dir, and one for every name on path that leads to a real claude.
func MakeShims(dir string, s ClaudeSetup, path string) error {
	return s.createShims(dir, RealCLINames(path, s.Self))
}

func (s ClaudeSetup) createShims(dir string, names []string) error {
	if err := os.MkdirAll(filepath.Join(dir, shimProgramDir), 0o700); err != nil {
		return fmt.Errorf("creating shims: %w", err)
	}
	if runtime.GOOS == "windows" {
		return s.createWindowsShims(dir)
	}
	target := filepath.Join(dir, shimProgramDir, "claude")
	_ = os.Remove(target) // an earlier shim may have created a file in this directory
	if err := os.Symlink(s.Self, target); err != nil {
		return fmt.Errorf("creating shims: %w", err)
	}
	script := s.script(target)
	for _, name := range append([]string{"claude"}, names...) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := writeProgram(file, script); err != nil {
			return fmt.Errorf("creating shims: %w", err)
		}
	}
	return nil
}

// writeProgram writes a program that is run immediately. While the file is open for writing, this process must not
// start another process. The new process would inherit the open file until it calls exec, and running the file would
// fail with "text file busy".
func writeProgram(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(text), 0o700)
}

// script returns the text of a shim. The shim does not depend on its environment.
func (s ClaudeSetup) script(target string) string {
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
	if s.Real.Path == "" {
		fmt.Fprintf(&b, "exec %s \"$@\"\n", quote(target))
		return b.String()
	}
	return b.String() + s.realCommandLine()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// createWindowsShims creates claude.cmd and claude.exe. Their settings are in the file [EnvFile] next to claude.exe,
// which [procio.ApplyShimSettings] reads.
func (s ClaudeSetup) createWindowsShims(dir string) error {
	exe := filepath.Join(dir, "claude.exe")
	return errors.Join(
		copyFile(s.Self, exe),
		os.WriteFile(filepath.Join(dir, EnvFile), []byte(s.envFileText()), 0o600),
		os.WriteFile(filepath.Join(dir, "claude.cmd"), []byte("@\"%~dp0claude.exe\" %*\r\n"), 0o700),
	)
}

// envFileText returns the settings that a shim passes on, one K=V per line. "?K=V" applies only if the caller has not
// set K. A line feed in a value is written as a backslash and an n.
func (s ClaudeSetup) envFileText() string {
	forced, defaults := s.variables()
	if s.Real.Path != "" {
		forced = append(forced, "CLAUDELESS_REAL="+s.Real.Path, "CLAUDELESS_MCP_CONFIG="+strings.Join(s.MCPConfig, "\n"))
		if s.Fault != "" {
			forced = append(forced, "CLAUDELESS_FAILURE="+s.Fault)
		}
	}
	var b strings.Builder
	for i, kv := range append(forced, defaults...) {
		if i >= len(forced) {
			b.WriteString("?")
		}
		b.WriteString(strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(kv) + "\r\n")
	}
	return b.String()
}

// EnvFile is the name of the settings file next to a copy of the binary called claude.
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

// RealCLINames returns the names on path that are links into a package of the real CLI.
func RealCLINames(path, self string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if at, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, at) { // /bin is often a link to /usr/bin
			dirs = append(dirs, at)
		}
	}
	found := make([][]string, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { found[i] = realCLINamesIn(dir, self) })
	}
	all.Wait()
	var names []string
	for _, name := range slices.Concat(found...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func realCLINamesIn(dir, self string) []string {
	file, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer file.Close()
	entries, _ := file.ReadDir(-1) // the order is irrelevant, and an unreadable directory has no links
	var names []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 || e.Name() == "claude" {
			continue
		}
		file := filepath.Join(dir, e.Name())
		link, err := os.Readlink(file)
		if err != nil || !strings.Contains(strings.ToLower(link), "claude") {
			continue
		}
		if target, err := filepath.EvalSymlinks(file); err == nil && target != self && guard.IsRealCLI(target) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// realCommandLine returns the last line of a shim that runs the real claude. The server configurations of claudeless
// are the first arguments, so that no variadic option can consume them. If a subcommand of claude is called, they are
// omitted. This binary records the start and then becomes claude. It stays as the parent only under a process fault or
// if an exit code is expected.
func (s ClaudeSetup) realCommandLine() string {
	var configs strings.Builder
	for _, c := range s.MCPConfig {
		configs.WriteString(" " + quote("--mcp-config="+c))
	}
	fault := procio.FaultNone
	if s.Real.StaysParent {
		fault = procio.FaultRecordExit
	}
	if f := procio.FaultByName(s.Fault); f != nil && f.Interface == "cli" {
		fault = s.Fault
	}
	claude := quote(s.Self) + " exec --spoil=" + quote(fault) + " -- " + quote(s.Real.Path)
	if configs.Len() == 0 {
		return fmt.Sprintf("exec %s \"$@\"\n", claude)
	}
	return fmt.Sprintf("case \"${1-}\" in\n%s) exec %s \"$@\" ;;\nesac\nexec %s%s \"$@\"\n",
		procio.SubcommandPattern(), claude, claude, configs.String())
}
