package launch

import (
	"slices"

	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// FromSettings is what the real CLI names as the source of the directories of all settings.
const FromSettings = "localSettings"

// Default tells whether the tools are those that there are by default.
func (t Tools) Default() bool { return !t.Given || slices.Equal(t.Named, []string{"default"}) }

// withRules is which built-in tools there are, by the rules that flags give.
func (t Tools) withRules(sys *process.System, f *flags.Flags) Tools {
	t.Allowed, t.Disallowed, t.NoTasks = f.AllowedTools, f.DisallowedTools, sys.Getenv("CLAUDE_CODE_ENABLE_TASKS") == "0"
	return t
}

// startPermission is what may be done without asking at start.
func startPermission(f *flags.Flags, p *Plan) (Permission, error) {
	rules := Rules(p.Settings.Settings, "")
	if !p.Settings.Permissions.ManagedOnly { // else the machine does not let them count
		for _, text := range f.AllowedTools {
			rules = append(rules, permission.Rule{Behavior: permission.BehaviorAllow, Source: "cliArg", Text: text})
		}
	}
	for _, text := range f.DisallowedTools {
		rules = append(rules, permission.Rule{Behavior: permission.BehaviorDeny, Source: "cliArg", Text: text})
	}
	mode, err := permission.ParseMode(startMode(f, p))
	return Permission{
		Mode: mode, Rules: rules, Directories: workspace(f, p), NoPrompts: f.PermissionPrompts == "none", PromptTool: f.PermissionPromptTool,
		BypassAllowed: f.DangerouslySkipPermissions || f.AllowDangerouslySkipPermissions,
	}, err
}

// startMode is the permission mode at start, unless the settings forbid it.
func startMode(f *flags.Flags, p *Plan) string {
	mode, forbidden := wantedMode(f, p), p.Settings.Permissions
	if parsed, err := permission.ParseMode(mode); err == nil &&
		(parsed == protocol.ModeBypass && forbidden.DisableBypass || parsed == protocol.ModeAuto && forbidden.DisableAuto) {
		return string(protocol.ModeDefault)
	}
	return mode
}

// wantedMode is the mode that is asked for: flag, scenario, settings.
func wantedMode(f *flags.Flags, p *Plan) string {
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
	return string(protocol.ModeDefault)
}

// workspace lists the working directories beside the first at start: those of the settings, then those of the flags, as
// far as there are any.
func workspace(f *flags.Flags, p *Plan) []permission.Directory {
	var dirs []permission.Directory
	for _, d := range p.Found(p.Settings.Permissions.Directories) {
		dirs = append(dirs, permission.Directory{Path: d, Source: FromSettings})
	}
	for _, d := range f.AddDirs {
		if abs, ok := p.Directory(d); ok && !slices.ContainsFunc(dirs, func(d permission.Directory) bool { return d.Path == abs }) {
			dirs = append(dirs, permission.Directory{Path: abs, Source: "cliArg"})
		}
	}
	return dirs
}

// Found are the directories of settings that there are.
func (p Places) Found(given []settings.Directory) []string {
	var dirs []string
	for _, d := range given {
		if abs, ok := p.Directory(d.Path); ok && !slices.Contains(dirs, abs) {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// Rules are the rules of one source of settings, or of all when it is empty.
func Rules(s settings.Settings, source settings.Source) []permission.Rule {
	var rules []permission.Rule
	for _, r := range s.Permissions.Rules {
		if source == "" || r.Source == source {
			rules = append(rules, permission.Rule{Behavior: r.Behavior, Source: string(r.Source), Text: r.Text, Root: r.Root})
		}
	}
	return rules
}

// Paths are those of Directories, never nil.
func (p Permission) Paths() []string {
	list := []string{}
	for _, d := range p.Directories {
		list = append(list, d.Path)
	}
	return list
}
