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
	// Real is the real claude, to be run in the place of the double.
	Real Real
	// Extra are further variables for claude, as "K=V".
	Extra []string
}

// Real is a real claude and what it is given. The zero value is none.
type Real struct {
	// Path of its program; empty = there is none.
	Path string
	// BaseURL and Key are its API.
	BaseURL, Key string
	// Attended says that its exit code is expected: somebody waits for its end.
	Attended bool
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
	if s.Fault != "" && s.Real.Path == "" {
		forced = append(forced, "CLAUDELESS_FAILURE="+s.Fault)
	}
	if len(s.MCPConfig) > 0 && s.Real.Path == "" {
		forced = append(forced, "CLAUDELESS_MCP_CONFIG="+strings.Join(s.MCPConfig, "\n"))
	}
	if s.Real.Path != "" {
		forced = append(forced, "ANTHROPIC_BASE_URL="+s.Real.BaseURL, "ANTHROPIC_API_KEY="+s.Real.Key, "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
		if s.Fault != "" { // or a storm is longer than anybody waits
			forced = append(forced, "CLAUDE_CODE_MAX_RETRIES=2")
		}
	}
	return forced, []string{"CLAUDE_CONFIG_DIR=" + s.Config}
}

// inner is the directory of a shim directory that holds what shims start.
const inner = ".claudeless"

// MakeShims makes dir hold a claude, and one of every name on path that leads to
// a real one.
func MakeShims(dir string, s Setup, path string) error {
	return s.shims(dir, RealNames(path, s.Self))
}

// shims makes shims of claude and of further names.
func (s Setup) shims(dir string, names []string) error {
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
	for _, name := range append([]string{"claude"}, names...) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := writeProgram(file, script); err != nil {
			return fmt.Errorf("making shims: %w", err)
		}
	}
	return nil
}

// writeProgram writes a program that is run at once. No process may be started
// meanwhile: it would have the file open for writing until it has become itself, and
// nobody could run it ("text file busy").
func writeProgram(file, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(text), 0o700)
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
	if s.Real.Path == "" {
		fmt.Fprintf(&b, "exec %s \"$@\"\n", quote(target))
		return b.String()
	}
	return b.String() + s.realLine()
}

// quote makes a word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// windows makes claude.cmd and claude.exe; what they hand over stands beside the
// second, where [witness.Handed] reads it.
func (s Setup) windows(dir string) error {
	exe := filepath.Join(dir, "claude.exe")
	return errors.Join(
		copyFile(s.Self, exe),
		os.WriteFile(filepath.Join(dir, EnvFile), []byte(s.handed()), 0o600),
		os.WriteFile(filepath.Join(dir, "claude.cmd"), []byte("@\"%~dp0claude.exe\" %*\r\n"), 0o700),
	)
}

// handed is what a shim hands over, K=V a line: "?K=V" counts only where the caller
// has none of that name. Line ends in values are written as \n.
func (s Setup) handed() string {
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

// EnvFile stands beside a copy of the binary called claude.
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
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if at, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, at) { // /bin is often /usr/bin
			dirs = append(dirs, at)
		}
	}
	found := make([][]string, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { found[i] = realNamesIn(dir, self) })
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

func realNamesIn(dir, self string) []string {
	file, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer file.Close()
	entries, _ := file.ReadDir(-1) // in no order; what cannot be read has no links
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
		if target, err := filepath.EvalSymlinks(file); err == nil && target != self && guard.IsReal(target) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// realLine is the end of a shim that runs the real claude: our server
// configurations go in front, where no other option can swallow them, unless a
// command of claude is called. This binary notes the start and becomes that claude;
// it stays between it and its caller under a fault of the process, and where an exit
// code is expected.
func (s Setup) realLine() string {
	var configs strings.Builder
	for _, c := range s.MCPConfig {
		configs.WriteString(" " + quote("--mcp-config="+c))
	}
	fault := procio.NoFault
	if s.Real.Attended {
		fault = procio.Attended
	}
	if f := procio.FaultByName(s.Fault); f != nil && f.Face == "cli" {
		fault = s.Fault
	}
	claude := quote(s.Self) + " exec --spoil=" + quote(fault) + " -- " + quote(s.Real.Path)
	if configs.Len() == 0 {
		return fmt.Sprintf("exec %s \"$@\"\n", claude)
	}
	return fmt.Sprintf("case \"${1-}\" in\n%s) exec %s \"$@\" ;;\nesac\nexec %s%s \"$@\"\n",
		strings.Join(realCommands(), "|"), claude, claude, configs.String())
}

// realCommands are the commands of claude that take no server configurations.
func realCommands() []string {
	return []string{"mcp", "agents", "auth", "auto-mode", "doctor", "gateway", "install", "plugin", "plugins", "project", "setup-token", "update", "upgrade"}
}
