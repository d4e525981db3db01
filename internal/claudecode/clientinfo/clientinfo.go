// Package clientinfo is what the simulated CLI says about itself: the lists and
// constants of the init event that depend on flags and environment only.
//
// The values are those of CLI 2.1.329 (spec: cli-observed 2), and where later
// versions were seen to differ, those of the version that is asked for. The
// package decides nothing about a run.
package clientinfo

import (
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Version is the simulated version of the real CLI.
const Version = "2.1.329"

// v330 is the first version that names what has begun and what was withdrawn.
const v330 = "2.1.330"

// NamesBegun tells whether results of a version name the messages that have
// begun to stream.
func NamesBegun(version string) bool { return atLeast(version, v330) }

// v232 is the first version that asks MCP servers for revision 2026-07-28.
const v232 = "2.1.232"

// ProbesServers tells whether a version asks MCP servers for revision 2026-07-28
// before it falls back to the handshake of the older ones.
func ProbesServers(version string) bool { return atLeast(version, v232) }

// atLeast tells whether a version has what came with another one. Versions that
// are none have nothing new.
func atLeast(version, since string) bool {
	return slices.Compare(numbers(version), numbers(since)) >= 0
}

func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// Init is the init event of a session before anything of a run is filled in, as
// a version of the real CLI has it.
func Init(version string) protocol.Init {
	return protocol.Init{
		SlashCommands:         builtinNames(func(Builtin) bool { return true }),
		TerminalSlashCommands: []string{"doctor", "color", "focus", "reload-plugins"},
		ClaudeCodeVersion:     version,
		OutputStyle:           "default",
		Agents:                []string{"claude", "Explore", "general-purpose", "Plan", "statusline-setup"},
		Skills:                builtinNames(func(b Builtin) bool { return b.Skill }),
		Plugins:               plugins(),
		Capabilities:          capabilities(version),
		MCPServers:            []protocol.MCPServer{},
		AnalyticsDisabled:     true, ProductFeedbackDisabled: true,
		AdditionalDirectories:  []string{},
		FastModeState:          "off",
		FastModeDisabledReason: "sdk_opt_in_required",
		ViewMode:               "default",
	}
}

func plugins() []protocol.Plugin {
	var list []protocol.Plugin
	for _, name := range []string{"cc-plugin-agents-md", "cc-plugin-privacy", "cc-plugin-plugin-authoring"} {
		list = append(list, protocol.Plugin{Name: name, Path: "builtin", Source: name + "@builtin"})
	}
	return list
}

func capabilities(version string) []string {
	list := []string{
		"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "interrupt_send_now_v1", "interrupt_requeue_taken_v1",
		"msg_lifecycle_v1", "request_marker_lists_v1", "ask_user_question_unanswered_v1", "lifecycle_wakeup_source_v1",
		"sdk_mcp_tools_list_changed", "sdk_mcp_manifests", "mcp_read_resource_v1", "mcp_tool_ui_meta_v1", "ui_surface_v1",
		"mcp_call_result_not_for_model_v1", "mcp_call_check_permissions_v1", "voice_call_talk_line_v1",
		"withdrawn_files_note_v2", "ui_pane_widget_v1", "reload_plugins_refuse_if_busy_v1", "get_usage_detached_v1",
		"silent_resend_files_v1",
	}
	if atLeast(version, v330) {
		list = slices.Insert(list, slices.Index(list, "ui_pane_widget_v1"), "withdrawn_tools_v1")
	}
	return list
}
