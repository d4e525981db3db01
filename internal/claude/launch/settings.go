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
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// IsSourceEnabled reports whether --setting-sources includes source, which is user, project or local.
func (s Settings) IsSourceEnabled(source string) bool {
	return s.Options.Sources == nil || slices.Contains(s.Options.Sources, source)
}

// OutputStyleName returns the name of the selected output style, whether or not a style with this name exists.
func (s Settings) OutputStyleName() string { return cmp.Or(s.OutputStyle, "default") }

// IsApproved reports whether the settings approve a server of .mcp.json.
func (s Settings) IsApproved(server string) bool {
	return s.EnableAllProjectMCPServers || slices.Contains(s.EnabledMCPJSONServers, server)
}

func (r *planResolver) settingsOptions() settings.Options {
	o := settings.Options{StateDir: r.plan.State, GlobalFile: r.plan.Store.File, CWD: r.plan.CWD, FlagValue: strings.Join(r.flags.Settings, ""), ManagedDir: r.sys.ManagedSettingsDir()}
	o.LocalRoot, o.TempDir = mainWorktreeOf(r.plan.CWD, r.plan.Home), filepath.Join(cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir()), fmt.Sprintf("claude-%d", r.sys.UID))
	if r.flags.WasGiven("setting-sources") {
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

// mainWorktreeOf returns the top of the main git worktree, whose local settings apply to all its directories and linked
// worktrees (observed with 2.1.330). The result is "" if dir is not in one or the home directory is its top.
func mainWorktreeOf(dir, home string) string {
	top := gitworktree.NearestDirectoryWithDotGit(dir)
	if top = cmp.Or(gitworktree.MainTopOfLinkedWorktree(top), top); top == home {
		return ""
	}
	return top
}

// readSettingsAndApplyEnvironment reads the settings and applies the environment that they set. From this environment, it determines the
// home and temporary directories, the identity of the run, the environment of programs and the options for MCP servers.
func (r *planResolver) readSettingsAndApplyEnvironment() error {
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
	r.resolveHomeAndTempDirs()
	if r.plan.VersionAndEntrypoint, err = resolveRunIdentity(r.sys, r.flags, r.plan); err != nil {
		return err
	}
	r.plan.Environ = environOfStartedPrograms(r.sys, r.plan)
	r.plan.Servers.Client = mcpOptions(r.sys, r.plan)
	if r.flags.PermissionMode == "" && r.plan.Scenario.PermissionMode == "" && initialPermissionMode(r.flags, r.plan) == string(protocol.ModeBypass) {
		return r.sys.PermissionBypassError()
	}
	return nil
}

// ClaudeJSONError is a .claude.json that cannot be read as JSON.
type ClaudeJSONError struct{ Path, backup, reason string }

func (e *ClaudeJSONError) Error() string {
	text := fmt.Sprintf("The configuration file %s is not valid JSON: %s.", e.Path, e.reason)
	if e.backup != "" {
		text += " It has been kept as " + e.backup + "."
	}
	return text
}

// rejectAndBackUpInvalidConfig returns an error for an invalid .claude.json and keeps a copy of the file. The real CLI does not start
// with such a file (spec: cli-observed 8).
func (r *planResolver) rejectAndBackUpInvalidConfig() error {
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
	bad := &ClaudeJSONError{Path: path, reason: broken.Error()}
	dir := filepath.Join(r.plan.State, "backups")
	backup := filepath.Join(dir, fmt.Sprintf("%s.corrupted.%d", filepath.Base(path), r.plan.Clock.Now().UnixMilli()))
	if os.MkdirAll(dir, 0o700) == nil && os.WriteFile(backup, raw, 0o600) == nil {
		bad.backup = backup
	}
	return bad
}

// AbsFromStartDir returns the absolute form of a path from the command line, the environment or a file.
func (p DirectoriesAndProcess) AbsFromStartDir(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cmp.Or(p.Start, p.CWD), path)
}

// AbsDirWithHomeExpanded returns the absolute path of a directory and whether it exists.
func (p DirectoriesAndProcess) AbsDirWithHomeExpanded(path string) (absolutePath string, isExistingDir bool) {
	if rest, found := strings.CutPrefix(path+"/", "~/"); found {
		path = filepath.Join(p.Home, rest)
	}
	abs := p.AbsFromStartDir(path)
	info, err := os.Stat(abs)
	return abs, err == nil && info.IsDir()
}

// resolveDirectoriesAndProcess finds the working and the state directory (design: state directory).
func (r *planResolver) resolveDirectoriesAndProcess() error {
	cwd, err := r.flags.AbsoluteWorkingDirectory(r.sys)
	if err != nil {
		return err
	}
	r.plan.CWD, r.plan.Start = cmp.Or(r.flags.WorktreeDir, cwd), cwd
	r.plan.UID, r.plan.PID, r.plan.Started = r.sys.UID, r.sys.PID, r.sys.Now()
	r.plan.AsClaude, r.plan.Stdout, r.plan.Stderr, r.plan.Progress = r.sys.CalledAsClaude(), r.sys.Stdout, r.sys.Stderr, r.sys.ProgressTerminalOrNil()
	if exe, err := r.sys.Executable(); err == nil {
		r.plan.Executable = exe
	}
	if home := r.sys.Getenv("HOME"); home != "" {
		r.plan.State = filepath.Join(home, ".claudeless")
	}
	for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := r.sys.Getenv(name); dir != "" {
			r.plan.State = r.plan.AbsFromStartDir(dir)
			break
		}
	}
	r.resolveHomeAndTempDirs()
	return nil
}

// resolveHomeAndTempDirs resolves the directories that variables in the `env` of settings can change.
func (r *planResolver) resolveHomeAndTempDirs() {
	r.plan.Home = r.sys.Getenv("HOME")
	r.plan.Temp = cmp.Or(r.sys.Getenv("TMPDIR"), "/tmp")
	if !r.flags.NoSessionPersistence {
		r.plan.TaskTemp = cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir())
	}
	r.plan.Store = r.mcpStore()
}

// mcpStore returns the store of the mcp command. Its file is in the state directory if an environment variable sets this
// directory, else in the home directory, as in the real CLI (spec: cli-observed 6). If neither is set, File is empty.
func (r *planResolver) mcpStore() mcpcmd.Store {
	const file = ".claude.json"
	home := r.plan.Home
	top := gitworktree.NearestDirectoryWithDotGit(r.plan.CWD)
	store := mcpcmd.Store{CWD: r.plan.CWD, Project: cmp.Or(gitworktree.MainTopOfLinkedWorktree(top), top)}
	switch {
	case r.plan.State != "" && r.plan.State != filepath.Join(home, ".claudeless"):
		store.File = filepath.Join(r.plan.State, file)
	case home != "":
		store.File = filepath.Join(home, file)
	}
	return store
}

// unknownMatcherToolMessages returns a message for each unknown tool that a matcher of a hook for tool events names.
func unknownMatcherToolMessages(sources []settings.Hooks) (texts []string) {
	for _, source := range sources {
		var events map[string][]struct{ Matcher string }
		_ = json.Unmarshal(source.Raw, &events) // an invalid value is reported when the hooks are loaded
		for _, event := range slices.Sorted(maps.Keys(events)) {
			if event != "PermissionRequest" && event != "PermissionDenied" && !strings.Contains(event, "ToolUse") {
				continue
			}
			for _, group := range events[event] {
				for _, name := range unknownTools(group.Matcher) {
					texts = append(texts, fmt.Sprintf("%s (hooks.%s): a matcher names the tool %s, which does not exist", source.Source, event, name))
				}
			}
		}
	}
	return texts
}

// unknownTools returns the unknown tools in a matcher; nil for a regular expression, because it may match any tool.
func unknownTools(matcher string) []string {
	if strings.ContainsAny(matcher, `.*+?^$()[]{}\-`) {
		return nil
	}
	names := strings.FieldsFunc(matcher, func(c rune) bool { return strings.ContainsRune("|, ", c) })
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "mcp__") || claudecode.ToolNamed(name).Name != ""
	})
}

// SourceReportedForDirectoriesFromSettings is the source that the real CLI reports for directories from any settings file.
const SourceReportedForDirectoriesFromSettings = "localSettings"

// IsDefault reports whether the tools are the default ones.
func (t ToolSelection) IsDefault() bool {
	return !t.Restricted || slices.Equal(t.Requested, []string{"default"})
}

// withFlagsAndEnvironment returns the tools with the lists of --allowedTools and --disallowedTools, and with NoTasks,
// NoSearch and NoBackground from environment variables.
func (t ToolSelection) withFlagsAndEnvironment(sys *process.System, f *flags.Flags) ToolSelection {
	t.Allowed, t.Disallowed, t.NoTasks = f.AllowedTools, f.DisallowedTools, sys.Getenv("CLAUDE_CODE_ENABLE_TASKS") == "0"
	t.NoSearch, t.SearchFrom = toolSearchMode(sys.Getenv("ENABLE_TOOL_SEARCH"))
	t.NoBackground = isEnvEnabled(sys, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
	return t
}

// toolSearchMode reads ENABLE_TOOL_SEARCH: on, off, auto or auto:PERCENT (observed with 2.1.330). See [ToolSelection] for the results.
func toolSearchMode(value string) (isOff bool, fromPercent float64) {
	if strings.HasPrefix(value, "auto") && (value == "auto" || value[len("auto")] == ':') {
		fromPercent = 10 // also if PERCENT is not a number
		if n, err := strconv.ParseFloat(value[min(len("auto:"), len(value)):], 64); err == nil {
			fromPercent = max(0, n)
		}
	}
	const all = 100
	return fromPercent >= all || slices.Contains([]string{"0", "false", "no", "off"}, strings.ToLower(strings.TrimSpace(value))), fromPercent
}

func initialPermission(f *flags.Flags, p *Plan) (InitialPermissions, error) {
	rules := RulesFrom(p.Settings.Settings, "")
	if !p.Settings.Permissions.ManagedOnly { // managed settings may forbid rules from other sources
		for _, text := range f.AllowedTools {
			if settings.AllowRulePatternError(claudecode.ParsePermissionRule(text).Tool) != "" {
				continue // an invalid pattern would allow more tools than the rule specifies
			}
			rules = append(rules, permission.Rule{Behavior: permission.BehaviorAllow, Source: "cliArg", Text: text})
		}
	}
	for _, text := range f.DisallowedTools {
		rules = append(rules, permission.Rule{Behavior: permission.BehaviorDeny, Source: "cliArg", Text: text})
	}
	mode, err := permission.ParseMode(initialPermissionMode(f, p))
	asks := f.PermissionPromptTool
	if f.PermissionPrompts == "none" {
		asks = ""
	} else if f.Interactive {
		asks = cmp.Or(asks, "stdio")
	}
	return InitialPermissions{
		Mode: mode, Rules: rules, Directories: additionalDirs(f, p), NoPrompts: f.PermissionPrompts == "none", PromptTool: asks,
		BypassAllowed: f.DangerouslySkipPermissions || f.AllowDangerouslySkipPermissions,
	}, err
}

// initialPermissionMode returns the initial permission mode: the requested one or, if settings forbid it, the default.
func initialPermissionMode(f *flags.Flags, p *Plan) string {
	mode, forbidden := requestedPermissionMode(f, p), p.Settings.Permissions
	if parsed, err := permission.ParseMode(mode); err == nil &&
		(parsed == protocol.ModeBypass && forbidden.DisableBypass || parsed == protocol.ModeAuto && forbidden.DisableAuto) {
		return string(protocol.ModeDefault)
	}
	return mode
}

// requestedPermissionMode returns the mode of a flag, else the scenario, else the settings, else the version's default.
func requestedPermissionMode(f *flags.Flags, p *Plan) string {
	fromSettings := p.Settings.Permissions.DefaultMode
	switch {
	case f.DangerouslySkipPermissions:
		return string(protocol.ModeBypass)
	case f.PermissionMode != "":
		return f.PermissionMode
	case p.Scenario.PermissionMode != "":
		return p.Scenario.PermissionMode
	case fromSettings != "":
		if _, err := permission.ParseMode(fromSettings); err == nil {
			return fromSettings
		}
	}
	if f.Interactive {
		return string(p.Profile.DefaultMode(claudecode.ResolveModel(p.Model.Name)))
	}
	return string(p.Profile.DefaultMode(""))
}

// additionalDirs lists the existing initial directories other than CWD: first those of settings, then those of flags.
func additionalDirs(f *flags.Flags, p *Plan) []permission.WorkingDirectory {
	var dirs []permission.WorkingDirectory
	for _, d := range p.AbsolutePathsOfExistingDirs(p.Settings.Permissions.Directories) {
		dirs = append(dirs, permission.WorkingDirectory{Path: d, Source: SourceReportedForDirectoriesFromSettings})
	}
	for _, d := range f.AddDirs {
		if abs, ok := p.AbsDirWithHomeExpanded(d); ok && !slices.ContainsFunc(dirs, func(d permission.WorkingDirectory) bool { return d.Path == abs }) {
			dirs = append(dirs, permission.WorkingDirectory{Path: abs, Source: "cliArg"})
		}
	}
	return dirs
}

// AbsolutePathsOfExistingDirs returns the paths of the given directories that exist.
func (p DirectoriesAndProcess) AbsolutePathsOfExistingDirs(settingsDirs []settings.AdditionalWorkingDirectory) []string {
	var dirs []string
	for _, d := range settingsDirs {
		if abs, ok := p.AbsDirWithHomeExpanded(d.Path); ok && !slices.Contains(dirs, abs) {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// RulesFrom returns the rules of one source of settings, or of all sources if source is empty.
func RulesFrom(s settings.Settings, source settings.Source) []permission.Rule {
	var rules []permission.Rule
	for _, r := range s.Permissions.Rules {
		if source == "" || r.Source == source {
			rules = append(rules, permission.Rule{Behavior: r.Behavior, Source: string(r.Source), Text: r.Text, Root: r.Root})
		}
	}
	return rules
}

// ineffectiveSettingNotices returns notices about ineffective rules and settings. A run with text output prints them on stderr.
func ineffectiveSettingNotices(f *flags.Flags, p *Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, dir := range f.AddDirs {
		if abs, ok := p.AbsDirWithHomeExpanded(dir); dir == "" {
			line("Give a directory path.")
		} else if _, err := os.Stat(abs); err == nil && !ok {
			line("%s is not a directory. Did you mean to add the parent directory %s?", dir, filepath.Dir(abs))
		}
	}
	for _, rule := range f.AllowedTools {
		if why := settings.AllowRulePatternError(claudecode.ParsePermissionRule(rule).Tool); why != "" {
			line("Ignoring --allowedTools rule %q: %s.", rule, why)
		}
	}
	for _, r := range p.Permission.Rules {
		if r.Behavior != permission.BehaviorAllow && !ruleHasKnownToolOrPattern(r.Text) {
			line("Permission %s rule \"%s\" matches no known tool — check for typos.", r.Behavior, r.Text)
		}
	}
	for _, r := range p.Permission.Rules {
		text := claudecode.ParsePermissionRule(r.Text)
		instead, kind := "", ""
		switch text.Tool {
		case "Write", "NotebookEdit", "MultiEdit":
			instead, kind = "Edit", "file-editing"
		case "Glob":
			instead, kind = "Read", "file-reading"
		}
		if text.HasContent && instead != "" && text.Content != "*" && text.Content != "" {
			line("Permission %s rule (%s): %s is not matched by file permission checks — only %s(path) rules are. "+
				"Write %[4]s(%s): it covers all %[6]s tools.", r.Behavior, ruleOriginText(p, r), r.Text, instead, text.Content, kind)
		}
	}
	for _, list := range []struct {
		flag, harm, advice string
		rules              []string
	}{
		{"--allowedTools", "a complete rule, so this list may allow more or less than you meant", fmt.Sprintf(incompleteRuleAdvice, "allow"), f.AllowedTools},
		{"--disallowedTools", "a complete rule, so a tool you meant to block may still run", fmt.Sprintf(incompleteRuleAdvice, "deny"), f.DisallowedTools},
		{"--tools", "a tool name, so this list may not give you the tools you meant", "Use plain names such as Bash or Read, without parentheses.", f.Tools},
	} {
		b.WriteString(incompleteRulesMessage(list.flag, list.harm, list.advice, list.rules))
	}
	said := strings.TrimRight(b.String(), "\n")
	if said != "" {
		said += "\n"
	}
	if p.Profile.Has(claudecode.FeatureSettingsProblemsBySource) {
		return said + settings.FormatFaults(p.Settings.Faults)
	}
	return said + settings.FormatFaultsForOldVersions(p.Settings.Faults)
}

const incompleteRuleAdvice = `Rules are Bash or Bash(git *): look for a missing ")", a space before "(", text after ")". ` +
	`A rule that contains ")" may have been split there: write it in permissions.%s of the settings.`

// incompleteRulesMessage returns a message about the entries of a list that are not complete rules; empty means none.
func incompleteRulesMessage(flag, harm, advice string, list []string) string {
	odd := slices.DeleteFunc(slices.Clone(list), func(rule string) bool {
		text := claudecode.ParsePermissionRule(rule)
		return !strings.ContainsAny(rule, "()") || text.IsClosed && text.Tool != "" && !strings.Contains(text.Tool, ")")
	})
	if len(odd) == 0 {
		return ""
	}
	more := ""
	if n := len(odd) - 1; n > 0 {
		more = fmt.Sprintf(" This list has %d more like it.", n)
	}
	return fmt.Sprintf("%s: \"%s\" doesn't look like %s. %s%s\n", flag, odd[0], harm, advice, more)
}

func ruleOriginText(p *Plan, r permission.Rule) string {
	if r.Source == "cliArg" {
		if r.Behavior == permission.BehaviorAllow {
			return "--allowed-tools"
		}
		return "--disallowed-tools"
	}
	for _, layer := range p.Settings.Layers {
		if string(layer.Source) != r.Source || layer.Path == "" {
			continue
		}
		if relative, err := filepath.Rel(p.CWD, layer.Path); err == nil {
			return relative
		}
		return layer.Path
	}
	return r.Source
}

// ruleHasKnownToolOrPattern reports whether the tool of a rule exists. It returns true for MCP tools and patterns.
func ruleHasKnownToolOrPattern(rule string) bool {
	text := claudecode.ParsePermissionRule(rule)
	name := text.Tool
	if strings.Contains(rule, "*") || strings.HasPrefix(name, "mcp__") {
		return true
	}
	if text.HasContent && !text.IsClosed {
		name = rule
	}
	t := claudecode.ToolNamed(name)
	return t.Name != "" && !t.UnknownToRules
}

// MissingSandboxError means that the settings require a sandbox for commands, and that this machine lacks programs for it.
type MissingSandboxError struct{ reason string }

// Error returns the error text in the result event.
func (e *MissingSandboxError) Error() string {
	return "Sandbox required but unavailable: " + e.reason + ". Set sandbox.failIfUnavailable=false to allow unsandboxed execution."
}

// StderrText returns what the real CLI writes to stderr.
func (e *MissingSandboxError) StderrText() string {
	return "\nError: sandbox required but unavailable: " + e.reason + "\n  Refusing to start without a working sandbox (see sandbox.failIfUnavailable).\n"
}

// refuseOrWarnWithoutSandboxPrograms looks for the programs with which the real CLI isolates commands on Linux, if the settings ask for this. Without
// them it returns an error or writes a warning, as the settings say. Commands run without isolation in any case.
func (r *planResolver) refuseOrWarnWithoutSandboxPrograms() error {
	sandbox, _ := r.plan.Settings.Merged()["sandbox"].(map[string]any)
	if sandbox["enabled"] != true || runtime.GOOS != "linux" {
		return nil
	}
	var missing []string
	for program, shown := range map[string]string{"bwrap": "bubblewrap (bwrap) not installed", "socat": "socat not installed"} {
		isInDir := func(dir string) bool {
			info, err := os.Stat(filepath.Join(dir, program))
			return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
		}
		if !slices.ContainsFunc(filepath.SplitList(r.sys.Getenv("PATH")), isInDir) {
			missing = append(missing, shown)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	reason := "sandbox is enabled but dependencies are missing: " + strings.Join(missing, ", ") +
		" · install missing tools (e.g. apt install bubblewrap socat) or see https://code.claude.com/docs/en/sandboxing"
	if sandbox["failIfUnavailable"] == true {
		return &MissingSandboxError{reason}
	}
	fmt.Fprintf(r.sys.Stderr, "\n⚠ Sandbox disabled: %s\n  Commands will run WITHOUT sandboxing. Network and filesystem restrictions will NOT be enforced.\n\n", reason)
	return nil
}
