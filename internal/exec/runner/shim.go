package runner

import (
	_ "embed" // for package_manager_shim.sh
	"encoding/json"
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

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/procio"
)

// ClaudeSetup is the configuration that a shim passes to claude.
type ClaudeSetup struct {
	Executable     string            // path of this binary, which simulates claude
	Scenario       string            // the scripted model: a path, or a name from the library; if it is empty, claude itself looks for a scenario
	MCPConfig      []string          // additional configurations of MCP servers, as for --mcp-config
	Journal        string            // file that processes write to
	Config         string            // CLAUDE_CONFIG_DIR for callers that have not set one
	RunID          string            // id in the environment of all processes of one run; empty means none
	Lenient        bool              // disables the effects of --strict
	Fault          string            // name of the fault to apply; empty means none
	Real           RealClaude        // the real claude that runs instead of the simulated one; the zero value means none
	FirstStart     *ClaudeFirstStart // specifies which dialogs claude shows at its start on a terminal; nil writes no configuration files for it
	ExtraVariables []string          // further variables for claude, as "K=V"
}

// RealClaude is a real claude and its API access. The zero value means the simulated claude.
type RealClaude struct {
	Path string // path of the program; empty means none
	// BaseURL and Key give access to the API that the real claude uses.
	BaseURL, Key string
	StaysParent  bool // the scenario expects an exit code: this binary then stays the parent of the real claude
}

func (s ClaudeSetup) claudeVariables() []string {
	forced := append([]string{"CLAUDELESS_CAPTURE=" + s.Journal, "CLAUDELESS_EXPECT=defer"}, s.ExtraVariables...)
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
		forced = append(forced, "ANTHROPIC_BASE_URL="+s.Real.BaseURL, "ANTHROPIC_API_KEY="+s.Real.Key, "DISABLE_AUTOUPDATER=1", "DISABLE_UPDATES=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
		if s.Fault != "" { // otherwise many retries would take too long
			forced = append(forced, "CLAUDE_CODE_MAX_RETRIES=2")
		}
	}
	return forced
}

const shimProgramDir = ".claudeless"

// MakeShims creates a shim for claude in dir, and one for every name on path that leads to a real claude.
func MakeShims(dir string, s ClaudeSetup, pathVariable string) error {
	return s.createShims(dir, NamesOfLinksToRealCLI(pathVariable, s.Executable))
}

func (s ClaudeSetup) createShims(dir string, names []string) error {
	if err := os.MkdirAll(filepath.Join(dir, shimProgramDir), 0o700); err != nil {
		return fmt.Errorf("creating the claude command for PATH: %w", err)
	}
	if runtime.GOOS == "windows" {
		return s.createWindowsShims(dir)
	}
	target := filepath.Join(dir, shimProgramDir, "claude")
	_ = os.Remove(target) // an earlier shim may have created a file in this directory
	if err := os.Symlink(s.Executable, target); err != nil {
		return fmt.Errorf("creating the claude command for PATH: %w", err)
	}
	script := s.shimScript(target)
	for _, name := range append([]string{"claude"}, names...) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := writeExecutableFile(file, script); err != nil {
			return fmt.Errorf("creating the claude command for PATH: %w", err)
		}
	}
	return nil
}

// writeExecutableFile writes a program that is run immediately. The lock prevents this process from starting a child in the
// meantime: a child would inherit the file, still open for writing, and running the program would fail with "text file busy".
func writeExecutableFile(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(text), 0o700)
}

// shimScript returns the text of a shim. The shim does not depend on its environment.
func (s ClaudeSetup) shimScript(target string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Made by claudeless, in place of claude.\n")
	for _, kv := range s.claudeVariables() {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, quoteForShell(value))
	}
	fmt.Fprintf(&b, "[ -n \"${CLAUDE_CONFIG_DIR-}\" ] || export CLAUDE_CONFIG_DIR=%s\n", quoteForShell(s.Config))
	if s.Real.Path == "" {
		fmt.Fprintf(&b, "exec %s \"$@\"\n", quoteForShell(target))
		return b.String()
	}
	return b.String() + s.shellLinesStartingRealClaude()
}

func quoteForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// createWindowsShims creates claude.exe, claude.cmd and the settings file that [procio.WithShimEnvFile] reads.
func (s ClaudeSetup) createWindowsShims(dir string) error {
	exe := filepath.Join(dir, "claude.exe")
	return errors.Join(
		copyExecutable(s.Executable, exe),
		os.WriteFile(filepath.Join(dir, WindowsShimSettingsFileName), []byte(s.windowsShimSettingsText()), 0o600),
		os.WriteFile(filepath.Join(dir, "claude.cmd"), []byte("@\"%~dp0claude.exe\" %*\r\n"), 0o700),
	)
}

// windowsShimSettingsText returns the settings that a shim passes on, one K=V per line. "?K=V" applies only if the caller has not
// set K. A line feed in a value is written as a backslash and an n.
func (s ClaudeSetup) windowsShimSettingsText() string {
	lines := s.claudeVariables()
	if s.Real.Path != "" {
		lines = append(lines, "CLAUDELESS_REAL="+s.Real.Path, "CLAUDELESS_MCP_CONFIG="+strings.Join(s.MCPConfig, "\n"))
		if s.Fault != "" {
			lines = append(lines, "CLAUDELESS_FAILURE="+s.Fault)
		}
	}
	var b strings.Builder
	for _, line := range append(lines, "?CLAUDE_CONFIG_DIR="+s.Config) {
		b.WriteString(strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(line) + "\r\n")
	}
	return b.String()
}

// WindowsShimSettingsFileName is the file that holds the settings of a Windows shim, which is a copy of this binary in the same directory.
const WindowsShimSettingsFileName = "claude.env"

func copyExecutable(from, to string) error {
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

// NamesOfLinksToRealCLI returns the names on path that are links into a package of the real CLI.
func NamesOfLinksToRealCLI(pathVariable, ownExecutable string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(pathVariable) {
		if at, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, at) { // /bin is often a link to /usr/bin
			dirs = append(dirs, at)
		}
	}
	found := make([][]string, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { found[i] = namesOfLinksToRealCLIIn(dir, ownExecutable) })
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

func namesOfLinksToRealCLIIn(dir, ownExecutable string) []string {
	file, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer file.Close()
	entries, _ := file.ReadDir(-1) // a directory that cannot be read counts as one without links
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
		if target, err := filepath.EvalSymlinks(file); err == nil && target != ownExecutable && guard.IsInRealCLIInstallation(target) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// shellLinesStartingRealClaude returns the end of a shim script: the command that runs the real claude through this binary. This
// binary records the start and is then replaced by claude, unless it must apply a fault or record the exit code. The
// --mcp-config options of claudeless come before the arguments of the caller, so that no variadic option of the caller
// can consume them. These options are omitted if the first argument is a subcommand of claude.
func (s ClaudeSetup) shellLinesStartingRealClaude() string {
	var configs strings.Builder
	for _, c := range s.MCPConfig {
		configs.WriteString(" " + quoteForShell("--mcp-config="+c))
	}
	fault := procio.FaultNone
	if s.Real.StaysParent {
		fault = procio.FaultStayParentToRecordExit
	}
	if f := procio.FaultByName(s.Fault); f != nil && f.Interface == "cli" {
		fault = s.Fault
	}
	claude := quoteForShell(s.Executable) + " exec --spoil=" + quoteForShell(fault) + " -- " + quoteForShell(s.Real.Path)
	if configs.Len() == 0 {
		return fmt.Sprintf("exec %s \"$@\"\n", claude)
	}
	return fmt.Sprintf("case \"${1-}\" in\n%s) exec %s \"$@\" ;;\nesac\nexec %s%s \"$@\"\n",
		procio.ClaudeSubcommandsShellPattern(), claude, claude, configs.String())
}

// createInstallBlockingShims creates shims for package managers in shimDir, so that the command does not change the
// claude of this machine. A shim ignores the global installation, update or removal of claude's package, and succeeds. For
// anything else, it runs the package manager found on pathVariable. A package manager that is not installed gets no shim.
func createInstallBlockingShims(shimDir, pathVariable string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	var errs []error
	for _, name := range []string{"npm", "pnpm", "yarn", "bun"} {
		for _, at := range filepath.SplitList(pathVariable) {
			program := filepath.Join(at, name)
			if info, err := os.Stat(program); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				errs = append(errs, writeExecutableFile(filepath.Join(shimDir, name), fmt.Sprintf(packageManagerShimFormatIgnoringClaudeChanges, quoteForShell(program))))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// packageManagerShimFormatIgnoringClaudeChanges is the script of a package manager's shim; %s is the real program.
//
//go:embed package_manager_shim.sh
var packageManagerShimFormatIgnoringClaudeChanges string

// ClaudeFirstStart specifies which dialogs claude shows when it starts on a terminal. With the zero value, claude shows only
// one: it asks whether to trust the directory, because no directory is trusted yet.
type ClaudeFirstStart struct {
	Dialogs     []string // dialogs that appear: trust, key, mcp, bypass, auto, all
	TrustedDirs []string // directories that are trusted
	Inline      bool     // selects the renderer that prints below the shell's prompt; false selects the one that fills the screen
}

// CheckFirstStartDialogNames returns an error if a name of a dialog is invalid.
func CheckFirstStartDialogNames(dialogNames []string) error {
	known := []string{"trust", "key", "mcp", "bypass", "auto", "all"}
	for _, name := range dialogNames {
		if name == "onboarding" {
			return process.WithHint("--fresh cannot show the onboarding dialog: claude would contact its vendor and exit with code 1", "choose from "+strings.Join(known, ", "))
		}
		if !slices.Contains(known, name) {
			return process.WithHint(fmt.Sprintf("--fresh: unknown dialog %q", name), "dialogs: "+strings.Join(known, ", "))
		}
	}
	return nil
}

func (f ClaudeFirstStart) isDialogShown(dialogName string) bool {
	return slices.Contains(f.Dialogs, dialogName) || slices.Contains(f.Dialogs, "all")
}

// Write writes .claude.json and settings.json for a claude with this API key.
func (f ClaudeFirstStart) Write(configDir, apiKey string) error {
	config := map[string]any{"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark"}
	settings := map[string]any{"tui": "fullscreen"}
	if f.Inline {
		settings["tui"] = "default"
	}
	if !f.isDialogShown("auto") {
		config["hasSeenAutoDefaultNotice"] = true
	}
	if !f.isDialogShown("bypass") {
		config["bypassPermissionsModeAccepted"] = true
	}
	if !f.isDialogShown("mcp") {
		settings["enableAllProjectMcpServers"] = true
	}
	if !f.isDialogShown("key") {
		config["customApiKeyResponses"] = map[string]any{"approved": []string{apiKey[max(0, len(apiKey)-20):]}, "rejected": []string{}}
	}
	if !f.isDialogShown("trust") {
		projects := map[string]any{}
		for _, dir := range f.TrustedDirs {
			projects[dir] = map[string]any{"hasTrustDialogAccepted": true}
			if resolved, err := filepath.EvalSymlinks(dir); err == nil {
				projects[resolved] = projects[dir]
			}
		}
		config["projects"] = projects
	}
	return errors.Join(writeJSON(filepath.Join(configDir, ".claude.json"), config), writeJSON(filepath.Join(configDir, "settings.json"), settings))
}

func writeJSON(file string, value any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
