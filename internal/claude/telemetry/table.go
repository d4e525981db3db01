package telemetry

import "strings"

// metricEventOrSpanRow describes one metric, event or span. It has the names of the attributes in the order of the real CLI,
// without the attributes that all rows share. Attributes that have no value are not sent.
type metricEventOrSpanRow struct {
	name, attributeNames string
	description          string // description of a metric, shortened if that of the real CLI is long
	unit                 string
}

func metricTable() []metricEventOrSpanRow {
	return []metricEventOrSpanRow{
		{"session.count", "start_type", "Count of CLI sessions started", ""},
		{"lines_of_code.count", "type model", "Count of lines of code added and removed", ""},
		{"pull_request.count", "", "Number of pull requests created", ""},
		{"commit.count", "", "Number of git commits created", ""},
		{"cost.usage", costAndTokenUsageAttributeNames, "Cost of the Claude Code session", "USD"},
		{"token.usage", costAndTokenUsageAttributeNames + " type", "Number of tokens used", "tokens"},
		{"code_edit_tool.decision", "decision source tool_name language", "Count of permission decisions on calls of editing tools", ""},
		{"active_time.total", "type", "Total active time in seconds", "s"},
	}
}

const (
	costAndTokenUsageAttributeNames  = "model query_source effort agent.name skill.name mcp_server.name mcp_tool.name"
	firstHookExecutionAttributeNames = "hook_event hook_name num_hooks"
	lastHookExecutionAttributeNames  = " managed_only hook_source safe_mode"
)

func eventTable() []metricEventOrSpanRow {
	return []metricEventOrSpanRow{
		{name: "managed_settings_resolved", attributeNames: "managed_settings.trigger managed_settings.sources managed_settings.source_behavior managed_settings.helper.state managed_settings.helper.applied"},
		{name: "hook_registered", attributeNames: "hook_event hook_type hook_source safe_mode hook_matcher"},
		{name: "plugin_loaded", attributeNames: "plugin.name marketplace.name plugin.scope enabled_via plugin_id_hash has_hooks has_mcp host_owned_mcp skill_path_count command_path_count agent_path_count safe_mode"},
		{name: "mcp_server_connection", attributeNames: "status transport_type server_scope duration_ms is_plugin server_name"},
		{name: "user_prompt", attributeNames: "prompt_length prompt prompt_text message.uuid"},
		{name: "api_request", attributeNames: "model input_tokens output_tokens cache_read_tokens cache_creation_tokens cache_creation_5m_tokens cache_creation_1h_tokens cost_usd cost_usd_micros duration_ms ttft_ms request_id speed query_source effort agent.name agent_id skill.name mcp_server.name mcp_tool.name"},
		{name: "api_error", attributeNames: "model error status_code duration_ms attempt request_id speed query_source effort"},
		{name: "api_retries_exhausted", attributeNames: "model error status_code total_attempts total_retry_duration_ms speed query_source effort"},
		{name: "assistant_response", attributeNames: "response_length response request_id message.uuid model query_source agent_id"},
		{name: "tool_decision", attributeNames: "decision source tool_name tool_use_id tool_source tool_parameters permission_mode request_id"},
		{name: "tool_result", attributeNames: "tool_name tool_use_id success duration_ms error_type error tool_parameters tool_input tool_input_size_bytes tool_result_size_bytes mcp_server_scope request_id"},
		{name: "skill_activated", attributeNames: "skill.name invocation_trigger skill.source"},
		{name: "subagent_completed", attributeNames: "agent_type agent.source is_built_in is_async total_tokens total_tool_uses duration_ms model final_model model_swapped agent_id"},
		{name: "hook_execution_start", attributeNames: firstHookExecutionAttributeNames + lastHookExecutionAttributeNames},
		{name: "hook_execution_complete", attributeNames: firstHookExecutionAttributeNames + " num_success num_blocking num_non_blocking_error num_cancelled total_duration_ms stdout_chars additional_context_chars system_message_chars initial_user_message_chars num_outputs_persisted" + lastHookExecutionAttributeNames},
	}
}

func spanTable() []metricEventOrSpanRow {
	return []metricEventOrSpanRow{
		{name: "interaction", attributeNames: "gen_ai.operation.name gen_ai.conversation.id user_prompt user_prompt_length interaction.sequence parent.source queued_sends interaction.duration_ms"},
		{name: "llm_request", attributeNames: "model gen_ai.system gen_ai.request.model llm_request.context speed gen_ai.conversation.id query_source_safe agent_id duration_ms input_tokens output_tokens cache_read_tokens cache_creation_tokens success attempt request_id gen_ai.response.id ttft_ms first_content_ms effort stop_reason gen_ai.response.finish_reasons"},
		{name: "tool", attributeNames: "tool_name tool_name_safe gen_ai.operation.name gen_ai.tool.name anthropic.mcp.server.name gen_ai.conversation.id full_command bash_command_class bash_argv0 file_path skill_name subagent_type tool_use_id gen_ai.tool.call.id duration_ms"},
		{name: "tool.blocked_on_user", attributeNames: "gen_ai.conversation.id duration_ms decision source"},
		{name: "tool.execution", attributeNames: "gen_ai.conversation.id tool_use_id gen_ai.tool.call.id duration_ms success error.type error error_class"},
	}
}

const signalNamePrefix = "claude_code."

type attributeValues map[string]any

func (r metricEventOrSpanRow) attributesOf(v attributeValues) []attribute {
	var list []attribute
	for key := range strings.FieldsSeq(r.attributeNames) {
		if x, ok := v[key]; ok && x != nil && x != "" {
			list = append(list, attribute{key, newValue(x)})
		}
	}
	return list
}

func findRowByName(rows []metricEventOrSpanRow, name string) metricEventOrSpanRow {
	for _, r := range rows {
		if r.name == name {
			return r
		}
	}
	return metricEventOrSpanRow{}
}
