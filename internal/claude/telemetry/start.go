package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// recordSessionStart records the start of the session, once.
func (r *Recorder) recordSessionStart(init *protocol.Init) {
	if !r.state.started {
		r.state.started = true
		r.recordEvent("managed_settings_resolved", nil, attributeValues{
			"managed_settings.trigger": "startup", "managed_settings.sources": []string{}, "managed_settings.source_behavior": "first-wins",
			"managed_settings.helper.state": "none", "managed_settings.helper.applied": "none",
		})
		kind := "fresh"
		if r.o.Resumed {
			kind = "resume"
		}
		r.addToMetric("session.count", 1, attributeValues{"start_type": kind})
		if init != nil {
			r.recordInitialState(init)
		}
	}
	if r.state.prompt != nil {
		r.recordPrompt()
	}
}

func (r *Recorder) recordInitialState(init *protocol.Init) {
	for _, h := range r.o.Hooks {
		v := attributeValues{"hook_event": h.Event, "hook_type": h.Kind, "hook_source": h.Source, "safe_mode": "false"}
		if r.o.ToolDetails {
			v["hook_matcher"] = h.Matcher
		}
		r.recordEvent("hook_registered", nil, v)
	}
	for _, p := range init.Plugins {
		name, market, _ := strings.Cut(p.Source, "@")
		scope, enabled := "user", "user-install"
		builtin := market == "builtin" || p.Path == "builtin"
		if builtin {
			scope, enabled, market = "default-bundle", "default-enable", "builtin"
		}
		r.recordEvent("plugin_loaded", nil, attributeValues{
			"plugin.name": cmp.Or(p.Name, name), "marketplace.name": market, "plugin.scope": scope, "enabled_via": enabled, "plugin_id_hash": hash(p.Source),
			"has_hooks": builtin, "has_mcp": false, "host_owned_mcp": false, "skill_path_count": 0, "command_path_count": 0, "agent_path_count": 0, "safe_mode": "false",
		})
	}
	for _, s := range init.MCPServers {
		r.state.servers[s.Name] = s.Source
		if s.Status != "pending" {
			r.recordConnection(s.Name, s.Status)
		}
	}
}

func (r *Recorder) recordConnection(server, status string) {
	v := attributeValues{"status": status, "transport_type": "stdio", "server_scope": r.state.servers[server], "duration_ms": "0", "is_plugin": false}
	if began := r.state.connected[server]; !began.IsZero() {
		v["duration_ms"] = strconv.Itoa(milliseconds(r.o.Clock.Now().Sub(began)))
	}
	if r.o.ToolDetails {
		v["server_name"] = server
	}
	if status == "connected" {
		r.state.connected[server] = r.o.Clock.Now()
	}
	r.recordEvent("mcp_server_connection", nil, v)
}

func (r *Recorder) recordDisconnects() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(r.state.connected)) {
		r.recordConnection(server, "disconnected")
	}
}

// RecordHooks records the hooks that ran for an event.
func (r *Recorder) RecordHooks(run HookRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := strconv.Itoa
	v := attributeValues{
		"hook_event": run.Event, "hook_name": run.Name, "num_hooks": number(run.Hooks), "num_success": number(run.Hooks - run.Blocked - run.Failed - run.Cancelled),
		"num_blocking": number(run.Blocked), "num_non_blocking_error": number(run.Failed), "num_cancelled": number(run.Cancelled), "total_duration_ms": number(milliseconds(run.Duration)),
		"stdout_chars": number(run.Output), "additional_context_chars": number(run.Context), "system_message_chars": "0", "initial_user_message_chars": "0", "num_outputs_persisted": "0",
		"managed_only": "false", "hook_source": "merged", "safe_mode": "false",
	}
	r.recordEvent("hook_execution_start", r.state.interaction.SpanID, v)
	r.recordEvent("hook_execution_complete", r.state.interaction.SpanID, v)
}
