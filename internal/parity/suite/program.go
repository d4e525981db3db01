package suite

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/parity"
)

// Program is one of the two programs to compare: claudeless, or a real claude.
type Program struct {
	Path    string // empty means claudeless
	Version string // 2.1.330
}

// ErrNoClaude means that no real claude was found.
var ErrNoClaude = errors.New("no usable real claude")

// modulePath is the module path in the build information of claudeless binaries.
const modulePath = "github.com/claudeless/claudeless"

// FindClaude returns the real claude: the program at explicitPath, at CLAUDE_BIN, or on PATH, but never claudeless.
func FindClaude(ctx context.Context, s *process.System, explicitPath, ownPath string) (Program, error) {
	path, err := runner.FindRealClaude(explicitPath, s.Getenv, ownPath)
	if err != nil {
		return Program{}, fmt.Errorf("%w: %w", ErrNoClaude, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		if info, err := buildinfo.ReadFile(target); err == nil && (info.Main.Path == modulePath || strings.HasPrefix(info.Path, modulePath+"/")) {
			return Program{}, fmt.Errorf("%w: %s is claudeless itself", ErrNoClaude, path)
		}
	}
	return identifyProgram(ctx, s, path)
}

var versionLinePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+\.\d+\.\d+\S*) \(Claude Code\)\s*$`) })

func identifyProgram(ctx context.Context, s *process.System, path string) (Program, error) {
	res, err := runOption(ctx, s, path, "--version")
	if err != nil {
		return Program{}, fmt.Errorf("%w: %w", ErrNoClaude, err)
	}
	said := strings.TrimSpace(string(res.Stdout) + string(res.Stderr))
	switch m := versionLinePattern().FindStringSubmatch(string(res.Stdout)); {
	case res.TimedOut:
		return Program{}, fmt.Errorf("%w: %s --version did not exit within 20 s", ErrNoClaude, path)
	case m != nil:
		return Program{Path: path, Version: m[1]}, nil
	case strings.Contains(said, "claudeless"):
		return Program{}, fmt.Errorf("%w: %s is claudeless itself", ErrNoClaude, path)
	}
	return Program{}, fmt.Errorf("%w: %s is not claude: its --version prints %q", ErrNoClaude, path, diag.Shorten(said, 80))
}

// runOption runs a program with one option in an empty home directory and returns its output.
func runOption(ctx context.Context, s *process.System, path, option string) (proc.Result, error) {
	home, err := proc.MakeTempDir("claudeless-parity-")
	if err != nil {
		return proc.Result{}, err
	}
	defer func() { _ = home.Remove() }() // an empty directory in /tmp is harmless
	return proc.Run(ctx, proc.RunOptions{Command: proc.Command{Path: path, Args: []string{option}, Env: []string{"PATH=" + s.Getenv("PATH"), "HOME=" + home.Path}, Dir: home.Path}, Timeout: 20 * time.Second})
}

var helpOptionOrCommandPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^  (?:-\w, )?(?:(--[\w-]+)|([a-z][\w-]*))`) })

func listOptionsAndCommandsInHelp(ctx context.Context, s *process.System, p Program) parity.HelpEntries {
	line := parity.HelpEntries{Version: p.Version, Words: map[string][]string{}}
	res, err := runOption(ctx, s, p.Path, "--help")
	if err != nil || res.TimedOut {
		return line
	}
	for _, m := range helpOptionOrCommandPattern().FindAllStringSubmatch(string(res.Stdout), -1) {
		if m[1] != "" {
			line.Words["options"] = append(line.Words["options"], m[1])
		} else {
			line.Words["commands"] = append(line.Words["commands"], m[2])
		}
	}
	return line
}

// FetchClaude installs a version of the real claude from npm in the cache, unless it is already there.
func FetchClaude(ctx context.Context, s *process.System, version string) (Program, error) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[\w.]+)?$`).MatchString(version) {
		return Program{}, process.WithHint(fmt.Sprintf("invalid version %q", version), "a version is three numbers: MAJOR.MINOR.PATCH")
	}
	cache := cmp.Or(s.Getenv("XDG_CACHE_HOME"), filepath.Join(s.Getenv("HOME"), ".cache"))
	name := "@anthropic-ai/claude-code-" + strings.NewReplacer("windows", "win32", "amd64", "x64").Replace(runtime.GOOS+"-"+runtime.GOARCH)
	dir := filepath.Join(cache, "claudeless-parity", version)
	bin := filepath.Join(dir, "node_modules", filepath.FromSlash(name), "claude")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	if _, err := os.Stat(bin); err == nil {
		return identifyProgram(ctx, s, bin)
	}
	if err := installNPMPackage(ctx, s, dir, name+"@"+version); err != nil {
		return Program{}, fmt.Errorf("%w: fetching %s from npm: %w", ErrNoClaude, version, err)
	}
	return identifyProgram(ctx, s, bin)
}

// installNPMPackage installs a package in a directory, completely or not at all.
func installNPMPackage(ctx context.Context, s *process.System, dir, spec string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	fmt.Fprintf(s.Stderr, "fetching %s\n", spec)
	res, err := proc.Run(ctx, proc.RunOptions{
		Command: proc.Command{Path: "npm", Dir: part, Env: s.Environ, Args: []string{"install", "--prefix", part, "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--force", spec}},
		Timeout: 10 * time.Minute,
	})
	if err == nil && res.Exit.Code != 0 {
		err = fmt.Errorf("npm: %s %s", res.Exit, diag.Shorten(strings.TrimSpace(string(res.Stderr)+string(res.Stdout)), 80))
	}
	if err != nil {
		return err
	}
	_ = os.RemoveAll(dir) // the directory of an interrupted install
	return os.Rename(part, dir)
}
