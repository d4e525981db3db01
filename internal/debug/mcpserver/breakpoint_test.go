package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/debug/mcpserver"
)

// step is one tool call and the expected content of its answer.
type step struct{ tool, args, want string }

const invalid = `{"error":"invalid_behavior"}`

// TestBreakpoints plays conversations, named after the requirements. All calls of one conversation go to the same
// hub, in which A and B have equal schemas and C has a different one.
func TestBreakpoints(t *testing.T) {
	add := step{"breakpoint_add", `{"function_name":"A"}`, `{"status":"ok","function_name":"A"}`}
	lists := func(want string) step { return step{"breakpoint_list_breakpoints", "", want} }
	set := func(tool, behavior, want string) step {
		return step{tool, `{"function_name":"A","behavior":"` + behavior + `"}`, want}
	}
	const before, after, replace = "breakpoint_set_behavior", "breakpoint_set_after_behavior", "breakpoint_set_replacement"
	for name, steps := range map[string][]step{
		"S5 empty": {lists(`{"breakpoints":[],"behaviors":{},"after_behaviors":{},"replacements":{},"conditions":{}}`)},
		"S6 all": {
			add,
			{"breakpoint_add", `{"function_name":"mcp__t__*","behavior":"go","after_behavior":"exception","when":"input.x > 1"}`, `{"status":"ok"}`},
			lists(`{"breakpoints":["A","mcp__t__*"],"behaviors":{"A":"yield","mcp__t__*":"go"},"after_behaviors":{"A":"yield","mcp__t__*":"exception"},"conditions":{"mcp__t__*":"input.x > 1"}}`),
		},
		"S7 S28 replacement":        {add, {replace, `{"function_name":"A","replacement_function":"B"}`, `{"status":"ok","replacement_function":"B"}`}, lists(`{"replacements":{"A":"B"}}`)},
		"S8 yield":                  {add, lists(`{"behaviors":{"A":"yield"}}`)},
		"S9 behavior":               {{"breakpoint_add", `{"function_name":"A","behavior":"go"}`, `{"status":"ok"}`}, lists(`{"behaviors":{"A":"go"}}`)},
		"S10 no name":               {{"breakpoint_add", `{}`, `{"error":"missing_parameter","parameter":"function_name"}`}, {"breakpoint_add", `{"function_name":""}`, `{"error":"missing_parameter"}`}},
		"S11 B9 invalid":            {{"breakpoint_add", `{"function_name":"A","behavior":"sometimes"}`, invalid}, lists(`{"breakpoints":[]}`)},
		"invalid condition":         {{"breakpoint_add", `{"function_name":"A","when":"input +"}`, `{"error":"invalid_condition"}`}, lists(`{"breakpoints":[]}`)},
		"S12 twice":                 {{"breakpoint_add", `{"function_name":"A","behavior":"go"}`, `{}`}, add, lists(`{"breakpoints":["A"],"behaviors":{"A":"go"}}`)},
		"S13 remove":                {add, {"breakpoint_remove", `{"function_name":"A"}`, `{"status":"ok","function_name":"A"}`}, lists(`{"breakpoints":[]}`)},
		"S14 absent":                {{"breakpoint_remove", `{"function_name":"A"}`, `{"status":"ok"}`}},
		"S15 clears":                {add, set(before, "go", `{}`), set(after, "go", `{}`), {replace, `{"function_name":"A","replacement_function":"B"}`, `{}`}, {"breakpoint_remove", `{"function_name":"A"}`, `{}`}, add, lists(`{"behaviors":{"A":"yield"},"after_behaviors":{"A":"yield"},"replacements":{}}`)},
		"S16 stop":                  {add, set(before, "stop", `{"status":"ok","function_name":"A","behavior":"stop"}`), lists(`{"behaviors":{"A":"stop"}}`)},
		"S17 go":                    {add, set(before, "go", `{"behavior":"go"}`)},
		"S18 yield":                 {add, set(before, "go", `{}`), set(before, "yield", `{"behavior":"yield"}`)},
		"S19 invalid":               {add, set(before, "exception", invalid), lists(`{"behaviors":{"A":"yield"}}`)},
		"S20 no breakpoint":         {set(before, "go", `{"error":"breakpoint_not_found","function_name":"A"}`)},
		"S21 after stop":            {add, set(after, "stop", `{"behavior":"stop"}`)},
		"S22 after go":              {add, set(after, "go", `{"behavior":"go"}`)},
		"S23 after exception":       {add, set(after, "exception", `{"behavior":"exception"}`)},
		"S24 after both":            {add, set(after, "stop_exception", `{"behavior":"stop_exception"}`), lists(`{"after_behaviors":{"A":"stop_exception"}}`)},
		"S25 after yield":           {add, set(after, "yield", `{"behavior":"yield"}`)},
		"S26 after invalid":         {add, set(after, "sometimes", invalid)},
		"S27 after none":            {set(after, "go", `{"error":"breakpoint_not_found"}`)},
		"S29 clears":                {add, {replace, `{"function_name":"A","replacement_function":"B"}`, `{}`}, {replace, `{"function_name":"A","replacement_function":""}`, `{"status":"ok","replacement_function":null}`}, lists(`{"replacements":{}}`)},
		"S30 other schema":          {add, {replace, `{"function_name":"A","replacement_function":"C"}`, `{"error":"signature_mismatch"}`}},
		"S31 no schemas":            {{"breakpoint_add", `{"function_name":"X"}`, `{}`}, {replace, `{"function_name":"X","replacement_function":"Y"}`, `{"error":"signature_mismatch"}`}},
		"S32 no breakpoint":         {{replace, `{"function_name":"A","replacement_function":"B"}`, `{"error":"breakpoint_not_found"}`}},
		"S32 nor schemas":           {{replace, `{"function_name":"nope","replacement_function":"other"}`, `{"error":"breakpoint_not_found","function_name":"nope"}`}, {replace, `{"function_name":"A","replacement_function":""}`, `{"error":"breakpoint_not_found"}`}},
		"S33 default":               {{"breakpoint_get_default_behavior", "", `{"behavior":"stop"}`}},
		"S34 default go":            {{"breakpoint_set_default_behavior", `{"behavior":"go"}`, `{"status":"ok","behavior":"go"}`}, {"breakpoint_get_default_behavior", "", `{"behavior":"go"}`}},
		"S35 default exception":     {{"breakpoint_set_default_behavior", `{"behavior":"exception"}`, `{"behavior":"exception"}`}},
		"S36 default both":          {{"breakpoint_set_default_behavior", `{"behavior":"stop_exception"}`, `{"behavior":"stop_exception"}`}},
		"S37 default invalid":       {{"breakpoint_set_default_behavior", `{"behavior":"yield"}`, invalid}, {"breakpoint_set_default_behavior", `{"behavior":"x"}`, invalid}, {"breakpoint_get_default_behavior", "", `{"behavior":"stop"}`}},
		"S38 none paused":           {{"breakpoint_list_paused", "", `{"paused":[]}`}},
		"S48 never paused":          {{"breakpoint_continue", `{"pause_id":"nope"}`, `{"error":"pause_not_found","pause_id":"nope"}`}},
		"S53 no records":            {{"breakpoint_get_call_records", "", `{"calls":[],"total_count":0,"truncated":false}`}},
		"S61 limit":                 {{"breakpoint_get_call_records", `{"limit":0}`, `{"error":"invalid_limit"}`}, {"breakpoint_get_call_records", `{"limit":-1}`, `{"error":"invalid_limit"}`}},
		"S67 not paused":            {{"breakpoint_repl_eval", `{"pause_id":"nope","expression":"1"}`, `{"error":"pause_not_found"}`}},
		"S72 unknown cid":           {{"breakpoint_inspect_object", `{"cid":"` + strings.Repeat("0", 128) + `"}`, `{"error":"cid_not_found"}`}, {"breakpoint_inspect_object", `{"cid":"x"}`, `{"error":"cid_not_found","cid":"x"}`}},
		"S86 unknown tool":          {{"breakpoint_fly", `{}`, `{"error":"unknown_tool","tool":"breakpoint_fly"}`}},
		"S88 extra parameters":      {{"breakpoint_add", `{"function_name":"A","colour":7}`, `{"status":"ok"}`}},
		"S89 wrong types, B15":      {{"breakpoint_add", `{"function_name":7}`, `{"error":"invalid_arguments","parameter":"function_name"}`}, {"breakpoint_add", `{"function_name":"A","behavior":[]}`, `{"error":"invalid_arguments","parameter":"behavior"}`}, {"breakpoint_get_call_records", `{"limit":1.5}`, `{"error":"invalid_arguments","parameter":"limit"}`}, lists(`{"breakpoints":[]}`)},
		"null is not given":         {{"breakpoint_add", `{"function_name":"A","behavior":null}`, `{"status":"ok"}`}},
		"no external servers, C126": {{"external_list_servers", "", `{"error":"mcp_clients_unavailable"}`}, {"external_call_tool", `{"tool":"a/b"}`, `{"error":"mcp_clients_unavailable"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestServer(t, mcpserver.Options{})
			f.register(t, map[string]string{"A": `{"type":"object","properties":{"x":{}}}`, "B": `{ "properties":{"x":{}}, "type":"object" }`, "C": `{"type":"object"}`})
			c := f.dialStdio(t)
			for _, s := range steps {
				expect(t, ask(t, c, s.tool, s.args), s.want)
			}
		})
	}
}
