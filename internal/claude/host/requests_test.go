package host

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/simulator/permission"
)

// Checklist rows 59, 60 and 69: every request of the specification is handled in one of three ways, and a refusal
// contains the reason.
func TestEveryRequestIsHandled(t *testing.T) {
	spec := []string{
		"apply_flag_settings", "background_tasks", "cancel_async_message", "claim_session", "end_session", "file_suggestions",
		"generate_session_title", "get_binary_version", "get_context_usage", "get_hooks_listing", "get_session_cost", "get_settings",
		"get_plan", "get_status", "get_task_output", "get_usage", "list_models", "list_permission_rules", "mcp_call", "mcp_message", "mcp_read_resource",
		"message_rated", "mcp_reconnect", "mcp_set_servers", "mcp_status", "mcp_toggle", "read_file", "register_repo_root", "reload_output_styles",
		"reload_plugins", "reload_skills", "rename_session", "rewind_files", "seed_read_state", "set_color", "set_has_subscribers",
		"set_max_thinking_tokens", "set_mcp_permission_mode_override", "set_model", "set_permission_mode", "side_question", "stop_task",
		"submit_feedback", "update_settings",
	}
	for _, subtype := range spec {
		_, served := handlerFor(subtype)
		why, refused := unsupportedRequests()[subtype]
		if served == refused {
			t.Errorf("%s: served %v, refused %v", subtype, served, refused)
		}
		if refused && why == "" {
			t.Errorf("%s is refused without a reason", subtype)
		}
	}
}

// FuzzRequests: every request gets exactly one answer and does not end the process.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `"x"`, `7`, `{"subtype":"read_file","path":7}`, `{"subtype":"set_permission_mode","mode":{}}`, `{"subtype":["mcp_status"]}`,
		`{"subtype":"initialize","hooks":{"Stop":[{}]}}`, `{"subtype":"interrupt","cancel_queued":1}`, `{"subtype":"mcp_set_servers","servers":{"a":{}}}`,
		"0 ", `{"subtype":"rename_session","title":" a\n b ","session_id":null}`, `{"subtype":"update_settings","source":"userSettings","settings":{"effortLevel":"low"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || plainjson.IsFalsy(bytes.TrimSpace(body)) {
			return
		}
		in := `{"type":"control_request","request_id":"r","request":` + strings.ReplaceAll(string(body), "\n", " ") + "}"
		var out bytes.Buffer
		marks := &sequentialIDs{}
		s := &fakeSession{model: "m", peer: control.New(control.Options{In: strings.NewReader(in), Out: &out, Metadata: marks})}
		var err error
		if s.policy, err = permission.New(permission.Options{CWD: "/w"}); err != nil {
			t.Fatal(err)
		}
		if err := s.peer.Serve(t.Context(), s.driver(marks)); err != nil {
			t.Error(err)
		}
		if n := strings.Count(out.String(), `"type":"control_response"`); n != 1 {
			t.Errorf("%d answers: %s", n, out.String())
		}
	})
}

// The outcome for each handshake that a host has sent with initialize (observed with 2.1.329).
func TestManifests(t *testing.T) {
	hello := `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}`
	in := decodeRequestKeys(control.HostRequest{Body: json.RawMessage(`{"subtype":"initialize","sdkMcpServerManifests":{
		"good":{"initializeResult":` + hello + `,"toolsListResult":{"tools":[]}}, "bare":{"initializeResult":` + hello + `},
		"here":{"initializeResult":` + hello + `}, "old":{"initializeResult":{"protocolVersion":"2024-11-05"}}, "bad":5, "worse":{"initializeResult":{}}}}`)})
	got, parked := readServerHandshakes(in, []string{"good", "bare", "here", "old", "bad", "worse", "none"}, func(name string) bool { return name == "here" })
	want := map[string]string{
		"good": "parked", "bare": "parked", "here": "already_connected", "old": "protocol_version_mismatch", "bad": "malformed", "worse": "malformed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"bare", "good"}, slices.Sorted(maps.Keys(parked))); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
	if whole, _ := readServerHandshakes(decodeRequestKeys(control.HostRequest{Body: json.RawMessage(`{"sdkMcpServerManifests":5}`)}), []string{"s"}, func(string) bool { return false }); whole["s"] != "malformed" {
		t.Errorf("no object: %v", whole)
	}
}

// unsupportedRequests lists the requests that the real CLI serves and claudeless answers as
// unsupported, with the reasons. Older versions of the real CLI give hosts the same answer.
func unsupportedRequests() map[string]string {
	return map[string]string{
		"set_color": "the real CLI refuses it as well without a display",
	}
}
