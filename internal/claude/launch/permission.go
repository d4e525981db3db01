package launch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// SourceReportedForDirectoriesFromSettings is the source that the real CLI reports for a directory from settings, whichever
// file contains it.
const SourceReportedForDirectoriesFromSettings = "localSettings"

// IsDefault reports whether the tools are the default ones.
func (t Tools) IsDefault() bool {
	return !t.Restricted || slices.Equal(t.Requested, []string{"default"})
}

// withFlagRules returns the tools with the lists of --allowedTools and --disallowedTools. It also sets NoTasks,
// NoSearch and NoBackground from environment variables.
func (t Tools) withFlagRules(sys *process.System, f *flags.Flags) Tools {
	t.Allowed, t.Disallowed, t.NoTasks = f.AllowedTools, f.DisallowedTools, sys.Getenv("CLAUDE_CODE_ENABLE_TASKS") == "0"
	t.NoSearch = slices.Contains([]string{"0", "false"}, sys.Getenv("ENABLE_TOOL_SEARCH"))
	t.NoBackground = isEnvEnabled(sys, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
	return t
}

func initialPermission(f *flags.Flags, p *Plan) (Permission, error) {
	rules := RulesFrom(p.Settings.Settings, "")
	if !p.Settings.Permissions.ManagedOnly { // managed settings may forbid rules from other sources
		for _, text := range f.AllowedTools {
			if settings.ToolPatternError(claudecode.ParseRuleText(text).Tool) != "" {
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
	return Permission{
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
func additionalDirs(f *flags.Flags, p *Plan) []permission.Directory {
	var dirs []permission.Directory
	for _, d := range p.AbsolutePathsOfExistingDirs(p.Settings.Permissions.Directories) {
		dirs = append(dirs, permission.Directory{Path: d, Source: SourceReportedForDirectoriesFromSettings})
	}
	for _, d := range f.AddDirs {
		if abs, ok := p.ResolveDir(d); ok && !slices.ContainsFunc(dirs, func(d permission.Directory) bool { return d.Path == abs }) {
			dirs = append(dirs, permission.Directory{Path: abs, Source: "cliArg"})
		}
	}
	return dirs
}

// AbsolutePathsOfExistingDirs returns the paths of the given directories that exist.
func (p Directories) AbsolutePathsOfExistingDirs(settingsDirs []settings.AdditionalWorkingDirectory) []string {
	var dirs []string
	for _, d := range settingsDirs {
		if abs, ok := p.ResolveDir(d.Path); ok && !slices.Contains(dirs, abs) {
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

// DirectoryPaths returns the paths of Directories, never nil.
func (p Permission) DirectoryPaths() []string {
	list := []string{}
	for _, d := range p.Directories {
		list = append(list, d.Path)
	}
	return list
}

// noticesAboutIneffectiveRulesAndSettings returns notices about ineffective rules and settings. A run with text output prints
// them on stderr.
func noticesAboutIneffectiveRulesAndSettings(f *flags.Flags, p *Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, rule := range f.AllowedTools {
		if why := settings.ToolPatternError(claudecode.ParseRuleText(rule).Tool); why != "" {
			line("Ignoring --allowedTools rule %q: %s.", rule, why)
		}
	}
	for _, r := range p.Permission.Rules {
		if r.Behavior != permission.BehaviorAllow && !isKnownTool(r.Text) {
			line("Permission %s rule %q matches no known tool — check for typos.", r.Behavior, r.Text)
		}
	}
	for _, r := range p.Permission.Rules {
		text := claudecode.ParseRuleText(r.Text)
		instead, kind := "", ""
		switch text.Tool {
		case "Write", "NotebookEdit", "MultiEdit":
			instead, kind = "Edit", "file-editing"
		case "Glob":
			instead, kind = "Read", "file-reading"
		}
		if text.HasContent && instead != "" && text.Content != "*" && text.Content != "" {
			line("Permission %s rule (%s): %s is not matched by file permission checks — only %s(path) rules are. "+
				"Write %[4]s(%s): it covers all %[6]s tools.", r.Behavior, ruleOrigin(p, r), r.Text, instead, text.Content, kind)
		}
	}
	line("%s%s", incompleteRulesMessage("allow", "--allowedTools", f.AllowedTools), incompleteRulesMessage("deny", "--disallowedTools", f.DisallowedTools))
	said := strings.TrimRight(b.String(), "\n")
	if said != "" {
		said += "\n"
	}
	if p.Profile.Has(claudecode.FeatureSettingsSources) {
		return said + settings.FormatFaults(p.Settings.Faults)
	}
	return said + settings.FormatFaultsByFile(p.Settings.Faults)
}

// incompleteRulesMessage returns a message about the entries of a list that are not complete rules; empty means none.
func incompleteRulesMessage(behavior, flag string, list []string) string {
	odd := slices.DeleteFunc(slices.Clone(list), func(rule string) bool {
		text := claudecode.ParseRuleText(rule)
		return !strings.ContainsAny(rule, "()") || text.IsClosed && text.Tool != "" && !strings.Contains(text.Tool, ")")
	})
	if len(odd) == 0 {
		return ""
	}
	harm := "this list may allow more or less than you meant"
	if behavior == "deny" {
		harm = "a tool you meant to block may still run"
	}
	more := ""
	if n := len(odd) - 1; n > 0 {
		more = fmt.Sprintf(" This list has %d more like it.", n)
	}
	return fmt.Sprintf("%s: %q doesn't look like a complete rule, so %s. Rules are Bash or Bash(git *): look for a missing \")\", a space before \"(\", "+
		"text behind \")\". A rule that contains \")\" may have been split there: write it in permissions.%s of the settings.%s\n", flag, odd[0], harm, behavior, more)
}

func ruleOrigin(p *Plan, r permission.Rule) string {
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

// isKnownTool reports whether the tool of a rule exists. It returns true for MCP tools and patterns.
func isKnownTool(rule string) bool {
	text := claudecode.ParseRuleText(rule)
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
