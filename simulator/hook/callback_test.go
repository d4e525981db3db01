package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/google/go-cmp/cmp"
)

// fixedHost is a host that answers every callback with the same answer and records the calls.
type fixedHost struct {
	mu    sync.Mutex
	calls []string
	reply string
	err   error
}

func (h *fixedHost) call(_ context.Context, id string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, id+" "+toolUseID+" "+string(input))
	return json.RawMessage(h.reply), h.err
}

// A callback receives the input that was recorded in the golden ctl-hooks (checklist row 19).
func TestCallbackInput(t *testing.T) {
	h := &fixedHost{reply: `{}`}
	r := newRunner(t, `{}`, func(o *Options) { o.Callback, o.CWD = h.call, "/w" })
	for _, event := range []string{"PreToolUse", "Stop", "PostToolBatch"} {
		r.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{event}}})
	}
	base := protocol.HookBase{PromptID: "p-1", PermissionMode: "default", Effort: &protocol.HookEffort{Level: "medium"}}
	r.Run(t.Context(), EventInput{Base: base, Event: bash, ToolUseID: "toolu_1"})
	r.Run(t.Context(), EventInput{Base: base, Event: protocol.StopHookInput{LastAssistantMessage: "a < b"}})
	r.Run(t.Context(), EventInput{Base: base, Event: protocol.PostToolBatchHookInput{}})
	head := `{"session_id":"s-1","transcript_path":"/t/s-1.jsonl","cwd":"/w","prompt_id":"p-1","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":`
	want := []string{
		`PreToolUse toolu_1 ` + head + `"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hi"},"tool_use_id":"toolu_1"}`,
		`Stop id-1 ` + head + `"Stop","stop_hook_active":false,"last_assistant_message":"a < b","background_tasks":[],"session_crons":[]}`,
		`PostToolBatch hook-id-2 ` + head + `"PostToolBatch","tool_calls":[]}`,
	}
	if diff := cmp.Diff(want, h.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A callback before a compaction succeeds even with an error. Its message is only in the report (observed with 2.1.330).
func TestCallbackReportOnCompaction(t *testing.T) {
	for reply, want := range map[string]string{
		`{}`:                       "PreCompact [callback] completed successfully",
		`{"systemMessage":"said"}`: "PreCompact [callback] completed successfully: said",
		`wrong`:                    "PreCompact [callback] completed successfully",
	} {
		h := &fixedHost{reply: reply}
		r := newRunner(t, `{}`, func(o *Options) { o.Callback = h.call })
		r.AddCallbacks("PreCompact", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"c"}}})
		o := r.Run(t.Context(), EventInput{Event: protocol.PreCompactHookInput{Trigger: "manual"}})
		if diff := cmp.Diff([]string{want}, o.Reports); diff != "" || reply != "wrong" && len(o.Notices)+len(o.Attachments) > 0 {
			t.Errorf("%s: %d notices\n%s", reply, len(o.Notices), diff)
		}
	}
}

// Checklist rows 19, 54 and 55: valid and invalid answers of callbacks.
func TestCallbackAnswers(t *testing.T) {
	prompt := protocol.UserPromptSubmitHookInput{Prompt: "hi"}
	wrong := `{"hookSpecificOutput":{"hookEventName":"SessionStart"}}`
	const failedHook = "[callback]: failed; blocking because onFailure is \"block\"\nHook callback hook_0 failed: the SDK host replied with an error or an invalid answer."
	const asEmpty = `"subtype":"informational","content":"PreToolUse: Hook callback hook_0 failed: the SDK host replied with an error or an invalid answer. Its answer was treated as empty.","level":"warning","tag":"hook_callback_failed"`
	full := "{\n  \"hookSpecificOutput\": {\n    \"hookEventName\": \"SessionStart\"\n  }\n}"
	tests := []struct {
		name      string
		event     protocol.HookInput
		reply     string
		err       error
		onFailure string
		want      expectedOutcome
		notices   []string
	}{
		{name: "empty", event: bash, reply: ``, notices: []string{asEmpty}},
		{name: "null", event: bash, reply: `null`},
		{name: "async", event: bash, reply: `{"async":true,"decision":"block"}`},
		{
			name: "deny", event: bash,
			reply: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"sdk hook deny"}}`,
			want:  expectedOutcome{Block: true, Decision: "deny", Reason: "sdk hook deny", Texts: []string{"PreToolUse:Bash hook error: sdk hook deny"}},
		},
		{
			name: "error response", event: bash, err: errors.New("boom"),
			notices: []string{asEmpty},
		},
		{
			name: "error response that must not be", event: bash, err: errors.New("boom"), onFailure: "block",
			want: expectedOutcome{
				Block: true, Decision: "deny", Reason: failedHook,
				Texts: []string{"PreToolUse:Bash hook error: " + failedHook},
			},
			notices: []string{`"subtype":"informational","content":"PreToolUse: Hook callback hook_0 failed: the SDK host replied with an error or an invalid answer. onFailure is \"block\", so this failure counts as a block.","level":"warning","tag":"hook_callback_failed"`},
		},
		{name: "wrong name, PreToolUse", event: bash, reply: wrong, want: expectedOutcome{NotExecuted: preToolUseErrorText}},
		{
			name: "wrong name, UserPromptSubmit", event: prompt, reply: wrong,
			want: expectedOutcome{CrashError: "Hook returned incorrect event name: expected 'UserPromptSubmit' but got 'SessionStart'. Full stdout: " + full},
		},
		{name: "no name", event: bash, reply: `{"hookSpecificOutput":{}}`, notices: []string{asEmpty}},
		{name: "unknown name", event: bash, reply: `{"hookSpecificOutput":{"hookEventName":"Nope"}}`, notices: []string{asEmpty}},
		{name: "unknown decision", event: bash, reply: `{"decision":"maybe"}`, notices: []string{asEmpty}},
		{name: "not an object", event: bash, reply: `[1]`, notices: []string{asEmpty}},
		{name: "wrong name, PostToolUse", event: protocol.PostToolUseHookInput{}, reply: wrong},
		{
			name: "wrong name, Stop", event: protocol.StopHookInput{}, reply: `{"hookSpecificOutput":{"hookEventName":"Setup"}}`,
			notices: []string{`"subtype":"informational","content":"Stop hook failed: Hook returned incorrect event name: expected 'Stop' but got 'Setup'. Full stdout: {\n  \"hookSpecificOutput\": {\n    \"hookEventName\": \"Setup\"\n  }\n}","level":"warning"`},
		},
		{
			name: "prompt that must be seen", event: prompt, err: errors.New("boom"), onFailure: "block",
			want: expectedOutcome{Block: true, Reason: failedHook, Texts: []string{"UserPromptSubmit operation blocked by hook:\n" + failedHook}},
			notices: []string{
				`"subtype":"informational","content":"UserPromptSubmit: Hook callback hook_0 failed: the SDK host replied with an error or an invalid answer. onFailure is \"block\", so this failure counts as a block.","level":"warning","tag":"hook_callback_failed"`,
				`"subtype":"informational","content":"UserPromptSubmit operation blocked by hook:\n[callback]: failed; blocking because onFailure is \"block\"\nHook callback hook_0 failed: the SDK host replied with an error or an invalid answer.","level":"warning","prevent_continuation":true,"prompt_submit_outcome":{"kind":"no_verdict","prompt_kept":false,"no_verdict_kind":"hook_failed","reason":"[callback]: failed; blocking because onFailure is \"block\""}`,
			},
		},
		{
			name: "system message", event: bash, reply: `{"systemMessage":"hey"}`,
			notices: []string{`"subtype":"informational","content":"PreToolUse:Bash says: hey","level":"notice"`},
		},
		{
			name: "Stop block", event: protocol.StopHookInput{}, reply: `{"decision":"block","reason":"more"}`,
			want: expectedOutcome{Block: true, Reason: "more", Texts: []string{"Stop hook feedback:\nmore"}},
		},
		{
			name: "failure at the end, which cannot be refused that way", event: protocol.StopHookInput{}, err: errors.New("x"), onFailure: "block",
			notices: []string{`"subtype":"informational","content":"Stop: Hook callback hook_0 failed: the SDK host replied with an error or an invalid answer. Its answer was treated as empty.","level":"warning","tag":"hook_callback_failed"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &fixedHost{reply: tt.reply, err: tt.err}
			r := newRunner(t, `{}`, func(o *Options) { o.Callback = h.call })
			event, _ := protocol.HookEvent(tt.event)
			r.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_0"}, OnFailure: tt.onFailure}})
			got := r.Run(t.Context(), EventInput{Event: tt.event})
			if diff := cmp.Diff(tt.want, expectDecision(got)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			notices := tt.notices
			if tt.err != nil {
				notices = append([]string{`{"Stdout":null,"Times":0,"End":null,"Stderr":"Error in hook callback hook_0: error: ` + tt.err.Error() + `\n"}`}, notices...)
			}
			if diff := cmp.Diff(notices, lines(t, got.Notices)); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			if got.Frames != nil {
				t.Errorf("a callback has frames: %v", lines(t, got.Frames))
			}
		})
	}
}

// Checklist row 57: the context of a callback that does not answer is cancelled, and the tool does not run.
func TestCallbackTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waited time.Duration
		r, _ := New(Options{Callback: func(ctx context.Context, _ string, _ json.RawMessage, _ string) (json.RawMessage, error) {
			started := time.Now()
			<-ctx.Done()
			waited = time.Since(started)
			return nil, ctx.Err()
		}})
		r.AddCallbacks("PreToolUse", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_0"}, Timeout: 1.5}})
		r.AddCallbacks("Stop", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_1"}}})
		got := r.Run(t.Context(), EventInput{Event: bash})
		if want := "PreToolUse hook did not respond before its timeout (host client may be unreachable). The tool call was not executed; "; !strings.HasPrefix(got.NotExecuted, want) {
			t.Errorf("got %q", got.NotExecuted)
		}
		if waited != 1500*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		got = r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}})
		if waited != 600*time.Second || got.Block {
			t.Errorf("default: waited %v, %+v", waited, got)
		}
	})
}

// Checklist row 53: after the host has disconnected, a call that needs its answer must not run; other events
// continue.
func TestCallbackHostGone(t *testing.T) {
	h := &fixedHost{err: fmt.Errorf("asking: %w", ErrHostGone)}
	r := newRunner(t, `{}`, func(o *Options) { o.Callback = h.call })
	for _, event := range []string{"PreToolUse", "Stop"} {
		r.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_0"}}})
	}
	for _, in := range []protocol.HookInput{bash, protocol.StopHookInput{}} {
		got := r.Run(t.Context(), EventInput{Event: in})
		if !got.HostGone || !cmp.Equal(expectDecision(got), expectedOutcome{}) || got.Notices != nil {
			t.Errorf("%T: %+v", in, got)
		}
	}
}

// Checklist row 22: several hooks of one event run concurrently, and their results are merged in order.
func TestSeveralHooks(t *testing.T) {
	answers := map[string]string{
		"allow": `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"a","updatedInput":{"n":1}}}`,
		"ask":   `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"b","updatedInput":{"n":2}}}`,
		"defer": `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer","permissionDecisionReason":"c"}}`,
		"deny":  `{"decision":"block","reason":"d"}`,
		"deny2": `{"decision":"block","reason":"e"}`,
		"none":  `{}`,
	}
	tests := []struct {
		ids  []string
		want expectedOutcome
	}{
		{[]string{"allow", "none"}, expectedOutcome{Decision: "allow", Reason: "a", UpdatedInput: `{"n":1}`}},
		{[]string{"allow", "ask"}, expectedOutcome{Decision: "ask", Reason: "b", UpdatedInput: `{"n":2}`}},
		{[]string{"ask", "allow"}, expectedOutcome{Decision: "ask", Reason: "b", UpdatedInput: `{"n":1}`}},
		{[]string{"ask", "defer"}, expectedOutcome{Decision: "defer", Reason: "c", UpdatedInput: `{"n":2}`}},
		{[]string{"deny", "defer"}, expectedOutcome{Block: true, Decision: "deny", Reason: "d", Texts: []string{"PreToolUse:Bash hook error: d"}}},
		{[]string{"none", "deny", "deny2"}, expectedOutcome{
			Block: true, Decision: "deny", Reason: "d",
			Texts: []string{"PreToolUse:Bash hook error: e"},
		}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.ids, "+"), func(t *testing.T) {
			var together sync.WaitGroup // no hook answers before all were asked
			together.Add(len(tt.ids))
			var asked []string // in the order of the requests: each follows the one before it
			r := newRunner(t, `{}`, func(o *Options) {
				o.Callback = func(ctx context.Context, id string, _ json.RawMessage, _ string) (json.RawMessage, error) {
					asked = append(asked, id)
					protocol.NoteRequestSent(ctx)
					together.Done()
					together.Wait()
					return json.RawMessage(answers[id]), nil
				}
			})
			r.AddCallbacks("PreToolUse", []protocol.HookCallbackMatcher{{HookCallbackIDs: tt.ids}})
			got := r.Run(t.Context(), EventInput{Event: bash})
			if diff := cmp.Diff(tt.want, expectDecision(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ids, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// Each event runs only its own hooks. A failed call causes a separate event with separate hooks (checklist rows 22 and 56).
func TestEventsAreApart(t *testing.T) {
	h := &fixedHost{reply: `{}`}
	r := newRunner(t, `{}`, func(o *Options) { o.Callback = h.call })
	for _, event := range []string{"PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "Setup", "InstructionsLoaded"} {
		r.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{event}}})
	}
	r.Run(t.Context(), EventInput{
		Event:     protocol.PostToolUseFailureHookInput{ToolName: "Bash", ToolInput: json.RawMessage(`{}`), ToolUseID: "t", Error: "Exit code 1"},
		ToolUseID: "t",
	})
	// Other events are not sent to the host.
	r.Run(t.Context(), EventInput{Event: protocol.SessionStartHookInput{Source: "startup"}})
	r.Run(t.Context(), EventInput{Event: protocol.SetupHookInput{Trigger: "init"}})
	r.Run(t.Context(), EventInput{Event: protocol.InstructionsLoadedHookInput{LoadReason: "session_start"}})
	r.Run(t.Context(), EventInput{Event: protocol.SessionEndHookInput{Reason: "other"}})
	if len(h.calls) != 1 || !strings.HasPrefix(h.calls[0], "PostToolUseFailure t ") || !strings.HasSuffix(h.calls[0], `"tool_name":"Bash","tool_input":{},"tool_use_id":"t","error":"Exit code 1","is_interrupt":false}`) {
		t.Errorf("calls %q", h.calls)
	}
	r.Run(t.Context(), EventInput{Event: protocol.SessionEndHookInput{Reason: "clear"}})
	r.Run(t.Context(), EventInput{Event: protocol.SessionStartHookInput{Source: "compact"}})
	if len(h.calls) != 3 {
		t.Errorf("calls %q", h.calls)
	}
}

// If a host does not answer in time, a tool call or prompt does not start, and a turn that would
// end does end (observed with 2.1.329).
func TestCallbackSilent(t *testing.T) {
	tests := []struct {
		event   protocol.HookInput
		want    expectedOutcome
		notices []string
	}{
		{event: bash, want: expectedOutcome{NotExecuted: preToolUseTimeoutText}},
		{event: protocol.PostToolUseHookInput{ToolName: "Bash"}},
		{
			event: protocol.UserPromptSubmitHookInput{Prompt: "hi"},
			want: expectedOutcome{
				Block: true, Reason: "UserPromptSubmit hook callback timed out after 1ms",
				Texts: []string{"UserPromptSubmit operation blocked by hook:\nUserPromptSubmit hook callback timed out after 1ms"},
			},
			notices: []string{`"subtype":"informational","content":"UserPromptSubmit operation blocked by hook:\nUserPromptSubmit hook callback timed out after 1ms","level":"warning","prevent_continuation":true,"prompt_submit_outcome":{"kind":"no_verdict","prompt_kept":false,"no_verdict_kind":"callback_timed_out"}`},
		},
		{
			event:   protocol.StopHookInput{},
			notices: []string{`"subtype":"informational","content":"Stop says: The app driving this session didn't respond, so this turn ended without it.","level":"notice"`},
		},
	}
	for _, tt := range tests {
		event, _ := protocol.HookEvent(tt.event)
		r := newRunner(t, `{}`, func(o *Options) {
			o.Callback = func(ctx context.Context, _ string, _ json.RawMessage, _ string) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		r.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_0"}, Timeout: 0.001, OnFailure: "block"}})
		got := r.Run(t.Context(), EventInput{Event: tt.event})
		if diff := cmp.Diff(tt.want, expectDecision(got)); diff != "" {
			t.Errorf("%s: decision (-want +got):\n%s", event, diff)
		}
		if diff := cmp.Diff(tt.notices, lines(t, got.Notices)); diff != "" {
			t.Errorf("%s: notices (-want +got):\n%s", event, diff)
		}
	}
}

// If a failing command counts as a refusal, the refusal says how it failed.
func TestCommandMustAnswer(t *testing.T) {
	for cmd, want := range map[string]string{
		"echo out; echo err >&2; exit 1": "failed; blocking because onFailure is \"block\"\nerr",
		"sleep 5":                        "timed out; blocking because onFailure is \"block\"",
	} {
		r := newRunner(t, `{"PreToolUse":[{"hooks":[{"type":"command","command":"`+cmd+`","onFailure":"block","timeout":0.3}]}]}`)
		got := r.Run(t.Context(), EventInput{Event: bash})
		if want = "[" + cmd + "]: " + want; got.Reason != want || got.Decision != "deny" || len(got.Notices) > 0 {
			t.Errorf("%s: %q, %v", cmd, got.Reason, got.Notices)
		}
	}
}

func TestPermissionRequest(t *testing.T) {
	tests := []struct {
		name    string
		replies []string
		want    *protocol.PermissionAnswer
	}{
		{"none", []string{`{}`}, nil},
		{
			"allow",
			[]string{`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}}}`},
			&protocol.PermissionAnswer{
				Allow: true, UpdatedInput: json.RawMessage(`{"a":1}`), Source: "hook",
				UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: "acceptEdits", Destination: "session"}},
			},
		},
		{
			"a denial wins",
			[]string{
				`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`,
				`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no","interrupt":true}}}`,
			},
			&protocol.PermissionAnswer{Message: "no", Interrupt: true, Source: "hook"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t, `{}`, func(o *Options) {
				o.Callback = func(_ context.Context, id string, _ json.RawMessage, _ string) (json.RawMessage, error) {
					return json.RawMessage(tt.replies[id[0]-'0']), nil
				}
			})
			r.AddCallbacks("PermissionRequest", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"0", "1"}[:len(tt.replies)]}})
			got := r.Run(t.Context(), EventInput{Event: protocol.PermissionRequestHookInput{ToolName: "Bash"}})
			if diff := cmp.Diff(tt.want, got.Permission); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// New callbacks replace the previous callbacks. The hooks of a file replace those of the same
// source. All other hooks are kept (observed with 2.1.329).
func TestReplace(t *testing.T) {
	h := &fixedHost{reply: `{}`}
	r := newRunner(t, `{}`, func(o *Options) {
		o.Callback = h.call
		o.Settings = []SettingsHooks{
			{Name: "flagSettings", Raw: json.RawMessage(`{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}`)},
			{Name: "userSettings", Raw: json.RawMessage(`{"Stop":[{"hooks":[{"type":"command","command":"b"}]}]}`)},
		}
	})
	labels := func() (list []string) {
		for _, e := range r.hooksByEvent["Stop"] {
			list = append(list, e.messageLabel()+e.settingsFile+e.callbackID)
		}
		return list
	}
	stop := func(id string) map[string][]protocol.HookCallbackMatcher {
		return map[string][]protocol.HookCallbackMatcher{"Stop": {{HookCallbackIDs: []string{id}}}}
	}
	r.ReplaceCallbacks(stop("h1"))
	r.ReplaceCallbacks(stop("h2"))
	r.ReplaceSettingsHooks(SettingsHooks{Name: "flagSettings", Raw: json.RawMessage(`{"Stop":[{"hooks":[{"type":"command","command":"c"}]}]}`)})
	if diff := cmp.Diff([]string{"buserSettings", "callbackh2", "cflagSettings"}, labels()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// If several hooks refuse a call, the hook that finishes last gives the result. If hooks see another input than the model
// wrote, a denial in JSON is shown without the name of the hook, but not that of a command that exits with status 2.
func TestDenialText(t *testing.T) {
	deny := func(reason string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"` + reason + `}}'`
	}
	// One command waits until the other has ended, and then long enough for the runner to notice this end.
	pid := filepath.Join(t.TempDir(), "pid")
	early := "echo $$ >" + pid + "; " + deny(`,"permissionDecisionReason":"early"`)
	last := "until [ -s " + pid + " ]; do sleep 0.01; done; while kill -0 $(cat " + pid + ") 2>&-; do sleep 0.01; done; sleep 0.5; "
	late, status2 := last+deny(`,"permissionDecisionReason":"late"`), last+"echo two >&2; exit 2"
	for _, tt := range []struct {
		tool  string
		hooks []string
		want  string
	}{
		{"Bash", []string{late, early}, "PreToolUse:Bash hook error: late"},
		{"Read", []string{late, early}, "late"},
		{"Read", []string{early, late}, "late"},
		{"Read", []string{early, status2}, "PreToolUse:Read hook error: [" + status2 + "]: two\n"},
		{"Read", []string{deny("")}, "Hook PreToolUse:Read denied this tool"},
		{"Bash", []string{deny("")}, "PreToolUse:Bash hook error: Blocked by hook"},
		{"Read", []string{`echo '{"decision":"block","reason":"r"}'`}, "r"},
		{"Read", []string{`echo '{"decision":"block","reason":"r","hookSpecificOutput":{"hookEventName":"PreToolUse"}}'`}, "Hook PreToolUse:Read denied this tool"},
		{"Read", []string{`echo '{"decision":"block","reason":"r","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'`}, "PreToolUse:Read hook error: r"},
	} {
		var hooks []map[string]string
		for _, command := range tt.hooks {
			hooks = append(hooks, map[string]string{"type": "command", "command": command})
		}
		raw, err := json.Marshal(map[string]any{"PreToolUse": []any{map[string]any{"hooks": hooks}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(pid); err != nil {
			t.Fatal(err)
		}
		r := newRunner(t, string(raw), func(o *Options) { o.Now = time.Now })
		got := r.Run(t.Context(), EventInput{Event: protocol.PreToolUseHookInput{ToolName: tt.tool, ToolInput: json.RawMessage("{}"), ToolUseID: "toolu_1", InputChanged: tt.tool == "Read"}})
		if diff := cmp.Diff([]string{tt.want}, got.Texts); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.tool, tt.hooks, diff)
		}
	}
}
