package launch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// HasSource reports whether --setting-sources includes a source: user, project or local.
func (s Settings) HasSource(source string) bool {
	return s.Options.Sources == nil || slices.Contains(s.Options.Sources, source)
}

// OutputStyleName returns the name of the output style, whether or not such a style exists.
func (s Settings) OutputStyleName() string { return cmp.Or(s.OutputStyle, "default") }

// IsApproved reports whether the settings approve a server of .mcp.json.
func (s Settings) IsApproved(server string) bool {
	return s.EnableAllProjectMCPServers || slices.Contains(s.EnabledMCPJSONServers, server)
}

func (r *planResolver) settingsOptions() settings.Options {
	o := settings.Options{StateDir: r.plan.State, GlobalFile: r.plan.Store.File, CWD: r.plan.CWD, FlagValue: strings.Join(r.flags.Settings, ""), ManagedDir: r.sys.ManagedSettingsDir()}
	if r.flags.Has("setting-sources") {
		o.Sources = append([]string{}, r.flags.SettingSources...)
	}
	if r.flags.Restricted {
		o.Sources = []string{} // only flags and managed settings apply (observed with 2.1.330)
	}
	if r.flags.ManagedSettings != "" {
		o.Managed = []byte(r.flags.ManagedSettings)
	}
	return o
}

// readSettings reads the settings; later steps use the environment that they set.
func (r *planResolver) readSettings() error {
	o := r.settingsOptions()
	loaded, err := settings.Load(o)
	if managed, ok := errors.AsType[*settings.InvalidManagedSettingsError](err); ok {
		return process.Verbatimf("%v", managed)
	}
	if err != nil {
		return process.Verbatimf("Error: %v", err)
	}
	r.plan.Settings = Settings{Settings: loaded, Options: o}
	if len(loaded.ManagedFaults) > 0 {
		fmt.Fprintln(r.sys.Stderr, "Managed settings contain invalid entries (remaining valid policies are still enforced):\n"+strings.Join(loaded.ManagedFaults, "\n"))
	}
	if loaded.TrustWarning != "" {
		fmt.Fprintln(r.sys.Stderr, loaded.TrustWarning)
	}
	r.sys = r.sys.WithEnv(loaded.Env)
	r.resolveEnvironmentDirs()
	if r.plan.Identity, err = resolveCLIVersionEntrypointAndAPIKeySource(r.sys, r.flags, r.plan); err != nil {
		return err
	}
	r.plan.Environ = childEnviron(r.sys, r.plan)
	r.plan.Servers.Client = mcpOptions(r.sys, r.plan)
	if r.flags.PermissionMode == "" && r.plan.Scenario.PermissionMode == "" && initialPermissionMode(r.flags, r.plan) == string(protocol.ModeBypass) {
		return r.sys.PermissionBypassError()
	}
	return nil
}

// ConfigError is a .claude.json that cannot be read as JSON.
type ConfigError struct{ Path, backup, reason string }

func (e *ConfigError) Error() string {
	text := fmt.Sprintf("The configuration file %s is not valid JSON: %s.", e.Path, e.reason)
	if e.backup != "" {
		text += " It has been kept as " + e.backup + "."
	}
	return text
}

// checkConfig returns an error for an invalid .claude.json and keeps a copy of the file. The real CLI does not start
// with such a file (spec: cli-observed 8).
func (r *planResolver) checkConfig() error {
	path := r.plan.Store.File
	raw, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	broken := json.Unmarshal(raw, &object)
	if broken == nil {
		return nil
	}
	bad := &ConfigError{Path: path, reason: broken.Error()}
	dir := filepath.Join(r.plan.State, "backups")
	backup := filepath.Join(dir, fmt.Sprintf("%s.corrupted.%d", filepath.Base(path), r.plan.Clock.Now().UnixMilli()))
	if os.MkdirAll(dir, 0o700) == nil && os.WriteFile(backup, raw, 0o600) == nil {
		bad.backup = backup
	}
	return bad
}

// Abs returns the absolute form of a path from the command line, the environment or a file.
func (p Directories) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cmp.Or(p.Start, p.CWD), path)
}

// ResolveDir returns the absolute path of a directory and whether it exists.
func (p Directories) ResolveDir(path string) (absolutePath string, isExistingDir bool) {
	if rest, found := strings.CutPrefix(path+"/", "~/"); found {
		path = filepath.Join(p.Home, rest)
	}
	abs := p.Abs(path)
	info, err := os.Stat(abs)
	return abs, err == nil && info.IsDir()
}

// resolveDirectories finds the working and the state directory (design: state directory).
func (r *planResolver) resolveDirectories() error {
	cwd, err := r.flags.AbsoluteWorkingDirectory(r.sys)
	if err != nil {
		return err
	}
	r.plan.CWD, r.plan.Start = cmp.Or(r.flags.WorktreeDir, cwd), cwd
	r.plan.UID, r.plan.PID, r.plan.Started = r.sys.UID, r.sys.PID, r.sys.Now()
	r.plan.AsClaude, r.plan.Stdout, r.plan.Stderr, r.plan.Progress = r.sys.CalledAsClaude(), r.sys.Stdout, r.sys.Stderr, r.sys.Progress()
	if exe, err := r.sys.Executable(); err == nil {
		r.plan.Executable = exe
	}
	if home := r.sys.Getenv("HOME"); home != "" {
		r.plan.State = filepath.Join(home, ".claudeless")
	}
	for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := r.sys.Getenv(name); dir != "" {
			r.plan.State = r.plan.Abs(dir)
			break
		}
	}
	r.resolveEnvironmentDirs()
	return nil
}

// resolveEnvironmentDirs resolves the directories that the environment of settings can change.
func (r *planResolver) resolveEnvironmentDirs() {
	r.plan.Home = r.sys.Getenv("HOME")
	r.plan.Temp = cmp.Or(r.sys.Getenv("TMPDIR"), "/tmp")
	if !r.flags.NoSessionPersistence {
		r.plan.TaskTemp = cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir())
	}
	r.plan.Store = r.mcpStore()
}

// mcpStore returns the store of the command mcp. Its file is in the state directory if a variable sets that, else in
// the home directory, as in the real CLI (spec: cli-observed 6). If neither is set, File is empty.
func (r *planResolver) mcpStore() mcpcmd.Store {
	const file = ".claude.json"
	home := r.plan.Home
	store := mcpcmd.Store{CWD: r.plan.CWD}
	switch {
	case r.plan.State != "" && r.plan.State != filepath.Join(home, ".claudeless"):
		store.File = filepath.Join(r.plan.State, file)
	case home != "":
		store.File = filepath.Join(home, file)
	}
	return store
}

// unmatchedHooks checks the matchers of hooks for tools. It returns a message for each name in them that no tool has.
func unmatchedHooks(sources []settings.Hooks) (texts []string) {
	for _, source := range sources {
		var events map[string][]struct{ Matcher string }
		_ = json.Unmarshal(source.Raw, &events) // an invalid value is reported when the hooks are loaded
		for _, event := range slices.Sorted(maps.Keys(events)) {
			if event != "PermissionRequest" && event != "PermissionDenied" && !strings.Contains(event, "ToolUse") {
				continue
			}
			for _, group := range events[event] {
				for _, name := range unknownTools(group.Matcher) {
					texts = append(texts, fmt.Sprintf("%s (hooks.%s): no tool has the name %s of a matcher", source.Source, event, name))
				}
			}
		}
	}
	return texts
}

// unknownTools returns the names in a matcher that are not names of tools. A regular expression may match any tool.
func unknownTools(matcher string) []string {
	if strings.ContainsAny(matcher, `.*+?^$()[]{}\-`) {
		return nil
	}
	names := strings.FieldsFunc(matcher, func(c rune) bool { return strings.ContainsRune("|, ", c) })
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "mcp__") || claudecode.ToolNamed(name).Name != ""
	})
}
