package catalog

import (
	"slices"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// FillInit adds the entries of the catalog to an init event that [claudecode.Profile.InitEventTemplate] has created.
func (c *Catalog) FillInit(ev *protocol.InitEvent) {
	var commands, skills, plugged, pluggedSkills, activated []string
	for _, k := range c.Commands() {
		into, skillsInto := &commands, &skills
		switch {
		case k.HiddenFromUser:
			continue
		case k.PathGlobs != nil:
			activated = append(activated, k.Name)
			continue
		case k.Source == pluginSource:
			into, skillsInto = &plugged, &pluggedSkills
		}
		*into = append(*into, k.Name)
		if k.Skill && k.HasDescription {
			*skillsInto = append(*skillsInto, k.Name)
		}
	}
	// SlashCommands begins with the built-in skills, of which the first is the only built-in workflow. The commands of plugins follow it.
	ev.SlashCommands = slices.Concat(commands, ev.SlashCommands[:1], plugged, ev.SlashCommands[1:len(ev.Skills)], activated, ev.SlashCommands[len(ev.Skills):])
	ev.Skills = slices.Concat(skills, ev.Skills[:1], pluggedSkills, ev.Skills[1:], activated)
	ev.Agents = c.AgentNames()
	c.mu.Lock()
	defer c.mu.Unlock()
	ev.Plugins = append(slices.Clone(c.plugins), ev.Plugins...)
	ev.PluginErrors, ev.PluginWarnings = slices.Clone(c.pluginErrors), slices.Clone(c.pluginWarnings)
}

// DescribeCommands describes the commands with these names, then others. It leaves out unknown names. The result is never nil.
func (c *Catalog) DescribeCommands(profile claudecode.Profile, names []string, others ...claudecode.BuiltinCommand) []protocol.ShownCommand {
	all := []protocol.ShownCommand{}
	for _, name := range names {
		if k, ok := c.Command(name); ok {
			all = append(all, k.describe())
		} else if b, ok := claudecode.PrintModeCommandNamed(name); ok {
			all = append(all, describeBuiltin(profile, b))
		}
	}
	for _, b := range others {
		all = append(all, describeBuiltin(profile, b))
	}
	return all
}

func describeBuiltin(profile claudecode.Profile, b claudecode.BuiltinCommand) protocol.ShownCommand {
	return protocol.ShownCommand{Name: b.Name, Description: b.Description, ArgumentHint: b.ArgumentHint, Aliases: b.Aliases, Builtin: true, RunsForHost: b.RunsForHost && profile.Has(claudecode.FeatureCommandsRunForHosts)}
}

func (k Command) describe() protocol.ShownCommand {
	shown := protocol.ShownCommand{Name: k.DisplayName(), Description: k.DescriptionWithSource(), ArgumentHint: k.ArgumentHint}
	shown.Aliases = slices.DeleteFunc([]string{k.Title, k.Name}, func(alias string) bool { return alias == "" || alias == shown.Name })
	return shown
}

// ActivateSkillsForFile makes the skills available whose paths match a file that the model has read or changed. The patterns are relative
// to cwd. It reports whether there were any.
func (c *Catalog) ActivateSkillsForFile(cwd, file string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.commands)
	c.skillsForPaths = slices.DeleteFunc(c.skillsForPaths, func(k Command) bool {
		matches := matchesAnyPathGlob(k.PathGlobs, cwd, file)
		if matches {
			c.commands = append(slices.Clip(c.commands), k)
		}
		return matches
	})
	return len(c.commands) > before
}
