package claudecode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// InitEventTemplate returns the init event of a version, without the values of a particular run.
func (p Profile) InitEventTemplate() protocol.InitEvent {
	ev := protocol.InitEvent{
		SlashCommands:         p.availableCommandNames(func(BuiltinCommand) bool { return true }),
		TerminalSlashCommands: []string{"doctor", "color", "focus", "reload-plugins"},
		ClaudeCodeVersion:     p.version,
		OutputStyle:           "default",
		Agents:                []string{"claude", "Explore", "general-purpose", "Plan", "statusline-setup"},
		Skills:                p.availableCommandNames(func(b BuiltinCommand) bool { return b.Skill }),
		Plugins:               p.plugins(),
		Capabilities:          p.namesAvailableInVersion(tableOfFirstVersions("capabilities")),
		MCPServers:            []protocol.MCPServer{},
		AdditionalDirectories: []string{},
		ViewMode:              "default",
	}
	ev.ServedByAnthropic, ev.AnalyticsDisabled = p.env.UsesDefaultURL, !p.env.AllowsTelemetry
	ev.ProductFeedbackDisabled = !p.env.AllowsTraffic && !p.env.usesAnthropicAPI()
	return ev
}

// AgentResultHasOnlyReport reports whether agents of this built-in type return only their report. The results of other types
// also have lines about id and usage.
func AgentResultHasOnlyReport(builtInAgentType string) bool {
	return builtInAgentType == "Explore" || builtInAgentType == "Plan"
}

func (p Profile) plugins() []protocol.Plugin {
	var list []protocol.Plugin
	for _, name := range p.namesAvailableInVersion(tableOfFirstVersions("plugins")) {
		if p.env.hasToolOrPlugin(name) {
			list = append(list, protocol.Plugin{Name: name, Path: "builtin", Source: name + "@builtin"})
		}
	}
	return list
}

// CapabilitiesToldToHost returns the capabilities in the answer to initialize.
func (p Profile) CapabilitiesToldToHost() []string {
	all := strings.Fields("ui_surface_v1 mcp_call_result_not_for_model_v1 mcp_call_soft_error_result_v1 mcp_call_check_permissions_v1 " +
		"voice_call_talk_line_v1 ui_pane_widget_v1 reload_plugins_refuse_if_busy_v1 get_usage_detached_v1")
	return slices.DeleteFunc(all, func(name string) bool { return !p.includes(tableOfFirstVersions("capabilities"), name) })
}

// HasTool reports whether the profile's version has a built-in tool in the profile's environment.
func (p Profile) HasTool(name string) bool {
	return p.isAtLeast(ToolNamed(name).Since) && p.env.hasToolOrPlugin(name)
}

// BehaviorSimulatedAsInNewerVersions describes known behaviour of the version that is not simulated: claudeless behaves like the
// newest version instead. The lines are in the order of the versions.
func (p Profile) BehaviorSimulatedAsInNewerVersions() []string {
	var lines []string
	for _, r := range tableOfFirstVersions("simulated in all versions") {
		if !p.isAtLeast(r.firstVersion) {
			lines = append(lines, r.name+" (since "+r.firstVersion+")")
		}
	}
	return lines
}

// FeaturesOnlyInNewerVersions describes features that newer measured versions have and this version lacks, in version order.
func (p Profile) FeaturesOnlyInNewerVersions() []string {
	tables := []struct {
		kind string
		rows []nameWithFirstVersion
	}{
		{"", tableOfFirstVersions("features")},
		{"key ", tableOfFirstVersions("event keys")},
		{"transcript key ", tableOfFirstVersions("transcript keys")},
		{"capability ", tableOfFirstVersions("capabilities")},
		{"tool ", toolsWithFirstVersions()},
		{"plugin ", tableOfFirstVersions("plugins")},
	}
	var missing []nameWithFirstVersion
	for _, t := range tables {
		for _, r := range t.rows {
			if !p.isAtLeast(r.firstVersion) {
				missing = append(missing, nameWithFirstVersion{fmt.Sprintf("%s%s (since %s)", t.kind, r.name, r.firstVersion), r.firstVersion})
			}
		}
	}
	slices.SortStableFunc(missing, func(a, b nameWithFirstVersion) int {
		return slices.Compare(versionNumbers(a.firstVersion), versionNumbers(b.firstVersion))
	})
	var lines []string
	for _, r := range missing {
		lines = append(lines, r.name)
	}
	return lines
}
