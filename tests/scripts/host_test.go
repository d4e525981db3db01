package scripts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Decisions of a host take effect immediately: hooks after the call receive the executed input, a new mode is reported
// before they run, and directories that the host adds are listed (the cases of tests/parity with the same answers).
func TestHostDecisions(t *testing.T) {
	t.Parallel()
	d := startHost(t, "PostToolUse")
	d.send(`{"type":"user","message":{"role":"user","content":"run rm -f a"}}`)
	d.answer("control_request/can_use_tool", `{"behavior":"allow","updatedInput":{"command":"echo changed"}}`)
	hook, _ := d.answer("control_request/hook_callback", `{}`)
	if got := str(valueAt(hook, "request.input.tool_input.command")); got != "echo changed" {
		t.Errorf("after a call that the host has changed, the hook sees the command %q", got)
	}
	d.until("result/success")

	d.send(`{"type":"user","message":{"role":"user","content":"run touch b"}}`)
	d.answer("control_request/can_use_tool", `{"behavior":"allow","updatedInput":{"command":"touch b"},"updatedPermissions":[`+
		`{"type":"addDirectories","directories":["`+d.dir+`"],"destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"}]}`)
	_, before := d.answer("control_request/hook_callback", `{}`)
	if diff := cmp.Diff([]string{"system/status"}, before); diff != "" {
		t.Errorf("events before the hook (-want +got):\n%s", diff)
	}
	d.until("result/success")
	d.send(`{"type":"user","message":{"role":"user","content":"hello"}}`)
	if got := compactJSON(valueAt(d.until("system/init"), "additional_directories")); got != `["`+d.dir+`"]` {
		t.Errorf("init lists the additional directories %s", got)
	}
	d.until("result/success")
	d.end()
}

// An answer for another event, given to the hook of a prompt, ends the session with exit code 1.
func TestHostHookForAnotherEvent(t *testing.T) {
	t.Parallel()
	d := startHost(t, "UserPromptSubmit")
	d.send(`{"type":"user","message":{"role":"user","content":"hello"}}`)
	d.answer("control_request/hook_callback", `{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}`)
	result := d.until("result/error_during_execution")
	if got := compactJSON(valueAt(result, "errors.1")) + compactJSON(valueAt(result, "subagent_stats")); got != `"[session_crash] error_name=TelemetrySafeError api_error_status=none cause_name=none"null` {
		t.Errorf("the result has %s", got)
	}
	select {
	case line, more := <-d.out:
		if more {
			t.Fatalf("after the result: %s", line)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the session goes on")
	}
	if err := d.cmd.Wait(); d.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the session ended with %v", err)
	}
}

// hostDialogue is a dialogue of a host with hooks, in a directory.
type hostDialogue struct {
	*dialogue
	dir string
}

// startHost starts a session whose host decides about calls and has a hook for an event. The model runs the command of a
// prompt that begins with "run".
func startHost(t *testing.T, event string) hostDialogue {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	scenario := filepath.Join(filepath.Dir(dir), "s.toml")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(scenario, []byte(`default_response = "hello"
[[responses]]
pattern = { type = "regex", pattern = "^run (?P<command>.+)" }
response = { text = "done", tool_calls = [{ tool = "Bash", input = { command = "{{ match.command }}" } }] }
`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	d := hostDialogue{startDialogue(t, dir, strings.Fields("--input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio"), scenario), dir}
	if got := valueAt(d.request(`{"subtype":"initialize","hooks":{"`+event+`":[{"hookCallbackIds":["h"]}]}}`), "subtype"); got != "success" {
		t.Fatalf("initialize: %v", got)
	}
	return d
}

// answer waits for a question of a kind and answers it. It returns the question and the kinds of the events before it.
func (d hostDialogue) answer(kind, response string) (question any, before []string) {
	d.t.Helper()
	for {
		question = d.receive()
		if kindOf(question) == kind {
			d.send(`{"type":"control_response","response":{"subtype":"success","request_id":"` + str(valueAt(question, "request_id")) + `","response":` + response + `}}`)
			return question, before
		}
		before = append(before, kindOf(question))
	}
}

// until returns the next event of a kind.
func (d hostDialogue) until(kind string) any {
	d.t.Helper()
	for {
		if event := d.receive(); kindOf(event) == kind {
			return event
		}
	}
}
