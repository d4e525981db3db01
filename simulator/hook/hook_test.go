package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestMain fails if goroutines remain. The regular expression library runs a clock goroutine, which
// ends shortly after the last match.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

var bash = protocol.PreToolUseHookInput{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"echo hi"}`), ToolUseID: "toolu_1"}

func newID() func() string {
	var n atomic.Int64
	return func() string { return "id-" + string(rune('0'+n.Add(1))) }
}

// newRunner returns a runner with one settings file; its hooks see only PATH.
func newRunner(t *testing.T, settings string, more ...func(*Options)) *Runner {
	t.Helper()
	o := Options{
		Settings: []SettingsHooks{{Name: "settings.json", Raw: json.RawMessage(settings)}},
		CWD:      t.TempDir(), SessionID: "s-1", TranscriptPath: "/t/s-1.jsonl",
		Environ: []string{"PATH=" + os.Getenv("PATH")}, NewID: newID(),
	}
	for _, f := range more {
		f(&o)
	}
	r, warnings := New(o)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.WaitForAsyncHooksAndClose(ctx)
	})
	return r
}

// commandHook returns a settings table with one command hook for all subjects.
func commandHook(event, cmd string) string {
	raw, err := json.Marshal(map[string]any{event: []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": cmd}}}}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// lines renders events for comparison.
func lines(t *testing.T, events []protocol.Event) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		raw, err := protocol.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimPrefix(string(raw), `{"type":"system",`)
		text = strings.TrimSuffix(text, `,"session_id":"","uuid":""}`)
		out = append(out, strings.TrimSuffix(text, `,"uuid":"","session_id":""}`))
	}
	return out
}

// expectedOutcome is the part of an outcome that most tests check.
type expectedOutcome struct {
	Block             bool
	Reason            string
	Texts             []string
	Decision          string
	UpdatedInput      string
	UpdatedOutput     string
	AdditionalContext []string
	StopTurn          bool
	StopReason        string
	NotExecuted       string
	CrashError        string
}

func expectDecision(o Outcome) expectedOutcome {
	return expectedOutcome{
		o.Block, o.Reason, o.Texts, o.Decision, string(o.UpdatedInput), string(o.UpdatedOutput), o.AdditionalContext,
		o.StopTurn, o.StopReason, o.NotExecuted, o.CrashError,
	}
}

// TestCommandVerdicts checks the exit statuses and outputs of command hooks (checklist row 61),
// with valid answers of PreToolUse and PostToolUse (rows 20 and 21). The texts are those of the
// goldens pretool-block, prompt-block and stop-block-once.
func TestCommandVerdicts(t *testing.T) {
	post := protocol.PostToolUseHookInput{ToolName: "Bash", ToolInput: bash.ToolInput, ToolUseID: "toolu_1"}
	prompt := protocol.UserPromptSubmitHookInput{Prompt: "hi"}
	tests := []struct {
		name    string
		event   protocol.HookInput
		cmd     string
		want    expectedOutcome
		notices []string
	}{
		{name: "exit 0", event: bash, cmd: "cat >/dev/null"},
		{
			name: "PreToolUse exit 2", event: bash, cmd: "echo blocked by hook >&2; exit 2",
			want: expectedOutcome{
				Block: true, Decision: "deny", Reason: "[echo blocked by hook >&2; exit 2]: blocked by hook\n",
				Texts: []string{"PreToolUse:Bash hook error: [echo blocked by hook >&2; exit 2]: blocked by hook\n"},
			},
		},
		{
			name: "exit 2 without stderr", event: bash, cmd: "exit 2",
			want: expectedOutcome{
				Block: true, Decision: "deny", Reason: "[exit 2]: No stderr output",
				Texts: []string{"PreToolUse:Bash hook error: [exit 2]: No stderr output"},
			},
		},
		{name: "text with exit 1 is ignored", event: bash, cmd: "echo no; exit 1"},
		{
			name: "JSON with exit 1 counts", event: bash, cmd: `echo '{"decision":"block","reason":"no"}'; exit 1`,
			want: expectedOutcome{Block: true, Decision: "deny", Reason: "no", Texts: []string{"PreToolUse:Bash hook error: no"}},
		},
		{
			name: "deny", event: bash,
			cmd:  `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'`,
			want: expectedOutcome{Block: true, Decision: "deny", Reason: "no", Texts: []string{"PreToolUse:Bash hook error: no"}},
		},
		{
			name: "decision block", event: bash, cmd: `echo '{"decision":"block","reason":"no"}'`,
			want: expectedOutcome{Block: true, Decision: "deny", Reason: "no", Texts: []string{"PreToolUse:Bash hook error: no"}},
		},
		{name: "decision approve", event: bash, cmd: `echo '{"decision":"approve","reason":"ok"}'`, want: expectedOutcome{Decision: "allow", Reason: "ok"}},
		{
			name: "allow with input and context", event: bash,
			cmd:  `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"},"additionalContext":"ctx"}}'`,
			want: expectedOutcome{Decision: "allow", UpdatedInput: `{"command":"ls"}`, AdditionalContext: []string{"ctx"}},
		},
		{
			name: "ask", event: bash,
			cmd:  `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}'`,
			want: expectedOutcome{Decision: "ask", Reason: "sure?"},
		},
		{
			name: "defer", event: bash,
			cmd:  `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}'`,
			want: expectedOutcome{Decision: "defer"},
		},
		{
			name: "plain text is ignored for tools", event: bash, cmd: "echo hello",
		},
		{name: "broken JSON is plain text", event: prompt, cmd: "echo '{nope'", want: expectedOutcome{AdditionalContext: []string{"{nope\n"}}},
		{
			name: "continue false", event: post, cmd: `echo '{"continue":false,"stopReason":"enough"}'`,
			want: expectedOutcome{StopTurn: true, StopReason: "enough"},
		},
		{
			name: "PostToolUse exit 2", event: post, cmd: "echo bad >&2; exit 2",
			want: expectedOutcome{
				Block: true, Reason: "[echo bad >&2; exit 2]: bad\n",
				Texts:             []string{"PostToolUse:Bash hook error: [echo bad >&2; exit 2]: bad\n"},
				AdditionalContext: []string{"PostToolUse:Bash hook blocking error from command: \"echo bad >&2; exit 2\": [echo bad >&2; exit 2]: bad\n"},
			},
		},
		{
			name: "updatedToolOutput", event: post,
			cmd:  `echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"x"}}}'`,
			want: expectedOutcome{UpdatedOutput: `{"stdout":"x"}`},
		},
		{
			name: "systemMessage", event: post, cmd: `echo '{"systemMessage":"look"}'`,
			notices: []string{`"subtype":"informational","content":"PostToolUse:Bash says: look","level":"notice"`},
		},
		{
			name: "prompt exit 2", event: prompt, cmd: "echo blocked by hook >&2; exit 2",
			want: expectedOutcome{
				Block: true, Reason: "[echo blocked by hook >&2; exit 2]: blocked by hook\n",
				Texts: []string{"UserPromptSubmit operation blocked by hook:\n[echo blocked by hook >&2; exit 2]: blocked by hook\n\n\nOriginal prompt: hi"},
			},
			notices: []string{`"subtype":"informational","content":"UserPromptSubmit operation blocked by hook:\n[echo blocked by hook >&2; exit 2]: blocked by hook\n\n\nOriginal prompt: hi","level":"warning","prevent_continuation":true,"prompt_submit_outcome":{"kind":"blocked_by_hook","prompt_kept":false,"reason":"blocked by hook"}`},
		},
		{
			name: "prompt decision block", event: prompt, cmd: `echo '{"decision":"block","reason":"not now"}'`,
			want:    expectedOutcome{Block: true, Reason: "not now", Texts: []string{"UserPromptSubmit operation blocked by hook:\nnot now\n\nOriginal prompt: hi"}},
			notices: []string{`"subtype":"informational","content":"UserPromptSubmit operation blocked by hook:\nnot now\n\nOriginal prompt: hi","level":"warning","prevent_continuation":true,"prompt_submit_outcome":{"kind":"blocked_by_hook","prompt_kept":false,"reason":"not now"}`},
		},
		{name: "prompt plain text", event: prompt, cmd: "echo remember this", want: expectedOutcome{AdditionalContext: []string{"remember this\n"}}},
		{name: "session start plain text", event: protocol.SessionStartHookInput{Source: "startup"}, cmd: "echo ctx", want: expectedOutcome{AdditionalContext: []string{"ctx\n"}}},
		{name: "session start never blocks", event: protocol.SessionStartHookInput{Source: "startup"}, cmd: "echo no >&2; exit 2"},
		{
			name: "Stop exit 2", event: protocol.StopHookInput{}, cmd: "echo do more >&2; exit 2",
			want: expectedOutcome{
				Block: true, Reason: "[echo do more >&2; exit 2]: do more\n",
				Texts: []string{"Stop hook feedback:\n[echo do more >&2; exit 2]: do more\n"},
			},
		},
		{
			name: "missing command", event: bash, cmd: "no-such-command-here",
			notices: []string{`"subtype":"informational","content":"A hook gave no usable answer, so it didn't check this action.","level":"warning","tag":"hook_no_verdict","hook_no_verdict":{"hook_event":"PreToolUse","tool_use_id":"toolu_1","timed_out":false}`},
		},
		{name: "missing command elsewhere", event: post, cmd: "no-such-command-here"},
		{
			name: "wrong event name of a command does not block", event: bash,
			cmd:     `echo '{"hookSpecificOutput":{"hookEventName":"Stop","permissionDecision":"deny"}}'`,
			notices: []string{`"subtype":"informational","content":"A hook gave no usable answer, so it didn't check this action.","level":"warning","tag":"hook_no_verdict","hook_no_verdict":{"hook_event":"PreToolUse","tool_use_id":"toolu_1","timed_out":false}`},
		},
		{
			name: "a command that a signal ends", event: bash, cmd: `kill -9 $$`,
			notices: []string{`"subtype":"informational","content":"A hook gave no usable answer, so it didn't check this action.","level":"warning","tag":"hook_no_verdict","hook_no_verdict":{"hook_event":"PreToolUse","tool_use_id":"toolu_1","timed_out":false}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, _ := protocol.HookEvent(tt.event)
			r := newRunner(t, commandHook(event, tt.cmd))
			got := r.Run(t.Context(), EventInput{Event: tt.event, ToolUseID: "toolu_1"})
			if diff := cmp.Diff(tt.want, expectDecision(got)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.notices, lines(t, noticesOf(got))); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// The output of a running command is shown at intervals. Unchanged output is not shown again (checklist row 61).
func TestProgress(t *testing.T) {
	r := newRunner(t, commandHook("Stop", "echo one; sleep 0.3; echo two >&2"), func(o *Options) { o.ProgressEvery = time.Millisecond })
	got := lines(t, r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}}).Frames)
	want := `"subtype":"hook_progress","hook_id":"id-2","hook_name":"Stop","hook_event":"Stop","stdout":"one\n","stderr":"","output":"one\n"`
	if n := slices.Index(got, want); n != 1 || slices.Index(got[n+1:], want) >= 0 {
		t.Errorf("frames %q", got)
	}
}

// Checklist row 61: hook_started and hook_response.
func TestFrames(t *testing.T) {
	start := protocol.SessionStartHookInput{Source: "startup"}
	tests := []struct {
		name  string
		event protocol.HookInput
		cmd   string
		want  []string
	}{
		{"success", start, "cat >/dev/null", []string{
			`"subtype":"hook_started","hook_id":"ID","hook_name":"SessionStart:startup","hook_event":"SessionStart"`,
			`"subtype":"hook_response","hook_id":"ID","hook_name":"SessionStart:startup","hook_event":"SessionStart","output":"","stdout":"","stderr":"","exit_code":0,"outcome":"success"`,
		}},
		{"error", bash, "echo out; echo err >&2; exit 1", []string{
			`"subtype":"hook_started","hook_id":"ID","hook_name":"PreToolUse:Bash","hook_event":"PreToolUse"`,
			`"subtype":"hook_response","hook_id":"ID","hook_name":"PreToolUse:Bash","hook_event":"PreToolUse","output":"out\nerr\n","stdout":"out\n","stderr":"err\n","exit_code":1,"outcome":"error"`,
		}},
		{"no subject", protocol.StopHookInput{}, "true", []string{
			`"subtype":"hook_started","hook_id":"ID","hook_name":"Stop","hook_event":"Stop"`,
			`"subtype":"hook_response","hook_id":"ID","hook_name":"Stop","hook_event":"Stop","output":"","stdout":"","stderr":"","exit_code":0,"outcome":"success"`,
		}},
		{"SessionEnd has none", protocol.SessionEndHookInput{Reason: "other"}, "true", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, _ := protocol.HookEvent(tt.event)
			r := newRunner(t, commandHook(event, tt.cmd), func(o *Options) { o.NewID = func() string { return "ID" } })
			got := r.Run(t.Context(), EventInput{Event: tt.event})
			if diff := cmp.Diff(tt.want, lines(t, got.Frames)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Checklist row 61: the standard input and the environment of a command. The order of keys is that of the golden
// ctl-hooks.
func TestCommandSurroundings(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, commandHook("SessionStart", `cat; env | grep ^CLAUDE | sort; pwd`), func(o *Options) {
		o.CWD, o.PID, o.EnvDir = dir, 42, filepath.Join(dir, "env")
		o.Environ = append(o.Environ, "CLAUDECODE=old", "CLAUDE_PROJECT_DIR=old")
	})
	got := r.Run(t.Context(), EventInput{Event: protocol.SessionStartHookInput{Source: "startup"}})
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"session_id":"s-1","transcript_path":"/t/s-1.jsonl","cwd":"` + dir + `","hook_event_name":"SessionStart","source":"startup"}
CLAUDECODE=1
CLAUDE_CODE_CHILD_SESSION=1
CLAUDE_CODE_ENTRYPOINT=sdk-cli
CLAUDE_CODE_SESSION_ATTENDED=0
CLAUDE_CODE_SESSION_ID=s-1
CLAUDE_ENV_FILE=` + dir + `/env/sessionstart-hook-0.sh
CLAUDE_PID=42
CLAUDE_PROJECT_DIR=` + dir + "\n" + resolved + "\n"}
	if diff := cmp.Diff(want, got.AdditionalContext); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommandForms(t *testing.T) {
	tests := []struct{ name, config, want string }{
		{"args", `{"type":"command","command":"printf","args":["%s","a b"]}`, "a b"},
		{"empty args", `{"type":"command","command":"pwd","args":[]}`, "\n"},
		{"bash", `{"type":"command","command":"echo $0","shell":"bash"}`, "/bin/sh\n"}, // the same shell for all values (observed with 2.1.329)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t, `{"SessionStart":[{"hooks":[`+tt.config+`]}]}`)
			got := r.Run(t.Context(), EventInput{Event: protocol.SessionStartHookInput{Source: "startup"}})
			if len(got.AdditionalContext) != 1 || !strings.HasSuffix(got.AdditionalContext[0], tt.want) {
				t.Errorf("got %q", got.AdditionalContext)
			}
		})
	}
}

func TestCommandTimeout(t *testing.T) {
	r := newRunner(t, `{"PreToolUse":[{"hooks":[{"type":"command","command":"echo begun; sleep 100","timeout":0.3}]}]}`)
	started := time.Now()
	got := r.Run(t.Context(), EventInput{Event: bash, ToolUseID: "toolu_1"})
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	want := []string{`"subtype":"informational","content":"A hook didn't answer in time, so it didn't check this action.","level":"warning","tag":"hook_no_verdict","hook_no_verdict":{"hook_event":"PreToolUse","tool_use_id":"toolu_1","timed_out":true}`}
	if diff := cmp.Diff(want, lines(t, noticesOf(got))); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(expectedOutcome{}, expectDecision(got)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	frames := lines(t, got.Frames)
	if last := frames[len(frames)-2]; !strings.HasSuffix(last, `"stdout":"begun\n","stderr":"","exit_code":1,"outcome":"cancelled"`) {
		t.Errorf("frame %s", last)
	}
}

// Checklist row 57: an interrupt ends running commands and callbacks.
func TestInterrupt(t *testing.T) {
	told := make(chan struct{})
	r := newRunner(t, commandHook("PreToolUse", "sleep 100"), func(o *Options) {
		o.Callback = func(ctx context.Context, _ string, _ json.RawMessage, _ string) (json.RawMessage, error) {
			<-ctx.Done()
			close(told)
			return nil, ctx.Err()
		}
	})
	r.AddCallbacks("PreToolUse", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"hook_0"}}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	got := r.Run(ctx, EventInput{Event: bash})
	<-told
	if diff := cmp.Diff(expectedOutcome{}, expectDecision(got)); diff != "" || len(got.Notices) > 0 {
		t.Errorf("an interrupted run decides: %s%v", diff, got.Notices)
	}
}

func TestOnceIfAndDuplicates(t *testing.T) {
	const hooks = `{"UserPromptSubmit":[{"hooks":[
		{"type":"command","command":"echo first","once":true},
		{"type":"command","command":"echo always"},
		{"type":"command","command":"echo always"},
		{"type":"command","command":"echo never","if":"Bash"}]}]}`
	for name, want := range map[string][][]string{ // only the hooks of a skill can request to run once
		"settings": {{"first\n", "always\n"}, {"first\n", "always\n"}},
		"skill":    {{"first\n", "always\n"}, {"always\n"}},
	} {
		r := newRunner(t, `{}`)
		if w := r.Add(SettingsHooks{Name: name, Raw: json.RawMessage(hooks), FromSkill: name == "skill"}); w != nil {
			t.Fatal(w)
		}
		var got [][]string
		for range 2 {
			got = append(got, r.Run(t.Context(), EventInput{Event: protocol.UserPromptSubmitHookInput{Prompt: "hi"}}).AdditionalContext)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAsync(t *testing.T) {
	tests := map[string]string{
		"configured": `{"type":"command","command":"sleep 0.3; touch done","async":true}`,
		"announced":  `{"type":"command","command":"echo '{\"async\":true}'; sleep 0.3; touch done"}`,
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRunner(t, `{"Stop":[{"hooks":[`+config+`]}]}`, func(o *Options) { o.CWD = dir })
			got := r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}})
			got.Frames, got.StopHooks = nil, nil // see TestAsyncResponse and the parity case hooks/async-stop
			if diff := cmp.Diff(Outcome{}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
				t.Error("the hook was waited for")
			}
			r.WaitForAsyncHooksAndClose(t.Context())
			if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
				t.Error("Close did not wait for the hook")
			}
		})
	}
}

// Processes that a command leaves in the background run until the session ends.
func TestDaemonsStayUntilClose(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere they end with the command")
	}
	for _, closed := range []bool{false, true} {
		dir := t.TempDir()
		r := newRunner(t, `{"Stop":[{"hooks":[{"type":"command","command":"mkfifo pipe; (echo alive >pipe) >/dev/null 2>&1 &"}]}]}`, func(o *Options) { o.CWD = dir })
		r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}})
		limit, want := "10", "alive\n"
		if closed {
			r.WaitForAsyncHooksAndClose(t.Context())
			limit, want = "0.2", ""
		}
		got, _ := exec.CommandContext(t.Context(), "timeout", limit, "cat", filepath.Join(dir, "pipe")).Output() // fails if nobody writes
		if string(got) != want {
			t.Errorf("closed %v: %q, want %q", closed, got, want)
		}
	}
}

func TestCloseEndsAsyncHooks(t *testing.T) {
	r := newRunner(t, `{"Stop":[{"hooks":[{"type":"command","command":"sleep 100","async":true}]}]}`)
	r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started := time.Now()
	r.WaitForAsyncHooksAndClose(ctx)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestHTTPHook(t *testing.T) {
	var auth, body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		auth.Store(req.Header.Get("Authorization"))
		var in map[string]any
		if json.NewDecoder(req.Body).Decode(&in) == nil {
			body.Store(in["hook_event_name"])
		}
		switch req.URL.Path {
		case "/block":
			w.Write([]byte(`{"decision":"block","reason":"over http"}`))
		case "/fail":
			w.WriteHeader(http.StatusInternalServerError)
			w.Write([]byte(`{"decision":"block"}`))
		}
	}))
	t.Cleanup(server.Close)
	tests := []struct {
		name, url string
		want      expectedOutcome
	}{
		{"output", server.URL + "/block", expectedOutcome{Block: true, Decision: "deny", Reason: "over http", Texts: []string{"PreToolUse:Bash hook error: over http"}}},
		{"empty", server.URL + "/", expectedOutcome{}},
		{"status", server.URL + "/fail", expectedOutcome{}},
		{"unreachable", "http://127.0.0.1:1/", expectedOutcome{}},
		{"no URL", "::", expectedOutcome{}},
		{"not allowed", server.URL + "/block?x", expectedOutcome{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t, `{"PreToolUse":[{"hooks":[{"type":"http","url":"`+tt.url+`","headers":{"Authorization":"Bearer $TOKEN$SECRET"},"allowedEnvVars":["TOKEN"]}]}]}`,
				func(o *Options) {
					o.Environ = []string{"TOKEN=t1", "SECRET=s1"}
					o.HTTPLimits.URLs = []string{"http://127.0.0.1:1/", "*/fail", server.URL + "/block", server.URL + "/", "::"}
				})
			got := r.Run(t.Context(), EventInput{Event: bash})
			if diff := cmp.Diff(tt.want, expectDecision(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if auth.Load() != "Bearer t1" || body.Load() != "PreToolUse" {
		t.Errorf("sent %v %v", auth.Load(), body.Load())
	}
}

// Settings limit the variables in headers, and an empty list of URLs allows none. A hook that did not check a call is reported once
// (observed with 2.1.330).
func TestHTTPHookLimits(t *testing.T) {
	var auth []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		auth = append(auth, req.Header.Get("X"))
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	settings := `{"PreToolUse":[{"hooks":[{"type":"http","url":"` + server.URL + `","headers":{"X":"$A$B"},"allowedEnvVars":["A","B"]}]}]}`
	r := newRunner(t, settings, func(o *Options) { o.Environ, o.HTTPLimits.EnvVars = []string{"A=a", "B=b"}, []string{"B"} })
	if failed := r.Run(t.Context(), EventInput{Event: bash}); len(noticesOf(failed)) != 1 {
		t.Errorf("notices about status 502: %v", failed.Notices)
	}
	if diff := cmp.Diff([]string{"b"}, auth); diff != "" {
		t.Error(diff)
	}
	r = newRunner(t, settings, func(o *Options) { o.HTTPLimits.URLs = []string{} })
	first, second := r.Run(t.Context(), EventInput{Event: bash}), r.Run(t.Context(), EventInput{Event: bash})
	if len(auth) != 1 || len(noticesOf(first)) != 1 || len(noticesOf(second)) != 0 {
		t.Errorf("%d requests, notices %v and %v", len(auth), first.Notices, second.Notices)
	}
}

func TestMCPToolHook(t *testing.T) {
	settings := `{"PreToolUse":[{"hooks":[{"type":"mcp_tool","server":"guard","tool":"check","input":{"cmd":"${tool_input.command}","all":["${tool_input}","${nope}"]}}]}]}`
	var sent string
	r := newRunner(t, settings, func(o *Options) {
		o.MCPTool = func(_ context.Context, server, tool string, input json.RawMessage) (string, error) {
			sent = server + " " + tool + " " + string(input)
			return `{"decision":"block","reason":"guarded"}`, nil
		}
	})
	if got := r.Run(t.Context(), EventInput{Event: bash}); got.Reason != "guarded" {
		t.Errorf("got %+v", got)
	}
	if want := `guard check {"all":["{\"command\":\"echo hi\"}",""],"cmd":"echo hi"}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

func TestModelHooksAreReported(t *testing.T) {
	r := newRunner(t, `{"Stop":[{"hooks":[{"type":"agent","prompt":"check"}]}]}`)
	got := lines(t, r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}}).Notices)
	want := []string{
		`"subtype":"informational","content":"Stop hook of type agent was not run: it needs a model and is not simulated","level":"warning","tag":"hook_not_simulated"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The model's answer to a prompt hook decides (observed with 2.1.330).
func TestPromptHooks(t *testing.T) {
	for _, tt := range []struct {
		answer string
		event  protocol.HookInput
		want   Outcome
		notice string
	}{
		{`{"ok": true}`, bash, Outcome{}, ""},
		{`{"ok": false, "reason": "risky"}`, bash, Outcome{Block: true, StopTurn: true, Decision: "deny", StopReason: "risky", Reason: "[fine?]: risky"}, ""},
		{`{"ok": false, "reason": "risky"}`, protocol.PostToolUseHookInput{ToolName: "Bash"}, Outcome{StopTurn: true, StopReason: "risky"}, ""},
		{`{"ok": false, "reason": "risky"}`, protocol.StopHookInput{}, Outcome{Block: true, Reason: "[fine?]: risky"}, ""},
		{`{"ok": false, "reason": "risky"}`, protocol.UserPromptSubmitHookInput{Prompt: "p"}, Outcome{StopTurn: true, StopReason: "risky"}, "Operation stopped by hook: risky"},
		{"", bash, Outcome{FailureEffects: FailureEffects{Failed: true}}, "A hook gave no usable answer, so it didn't check this action."},
		{`{}`, protocol.StopHookInput{}, Outcome{FailureEffects: FailureEffects{Failed: true}}, ""},
		{"", protocol.SessionStartHookInput{Source: "startup"}, Outcome{FailureEffects: FailureEffects{Failed: true}}, ""},
	} {
		event, _ := protocol.HookEvent(tt.event)
		r, _ := New(Options{PromptAnswer: tt.answer, Settings: []SettingsHooks{{Raw: json.RawMessage(`{"` + event + `":[{"hooks":[{"type":"prompt","prompt":"fine?"}]}]}`)}}})
		o := r.Run(t.Context(), EventInput{Event: tt.event})
		got := Outcome{Block: o.Block, StopTurn: o.StopTurn, Decision: o.Decision, StopReason: o.StopReason, Reason: o.Reason, FailureEffects: FailureEffects{Failed: o.Failed}}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s after %s (-want +got):\n%s", event, tt.answer, diff)
		}
		if notices := strings.Join(lines(t, noticesOf(o)), ""); !strings.Contains(notices, tt.notice) || tt.notice == "" && notices != "" {
			t.Errorf("%s after %s: notices %s", event, tt.answer, notices)
		}
		if want := map[bool]int{true: 1}[event == "SessionStart"]; len(o.Frames)+len(o.Notices)-len(noticesOf(o)) != want {
			t.Errorf("%s: frames %v, want %d", event, o.Frames, want)
		}
	}
}

// The response of an asynchronous hook is sent when it has finished. A hook that Close stops is reported as cancelled
// (observed with 2.1.330).
func TestAsyncResponse(t *testing.T) {
	for command, want := range map[string]string{
		"echo late": `"output":"late\n","stdout":"late\n","stderr":"","exit_code":0,"outcome":"success"`,
		"exit 3":    `"output":"","stdout":"","stderr":"","exit_code":3,"outcome":"error"`,
		"sleep 100": `"output":"","stdout":"","stderr":"","exit_code":1,"outcome":"cancelled"`,
	} {
		r := newRunner(t, fmt.Sprintf(`{"Stop":[{"hooks":[{"type":"command","command":%q,"async":true}]}]}`, command))
		started := lines(t, r.Run(t.Context(), EventInput{Event: protocol.StopHookInput{}}).Frames)
		if len(started) != 1 || !strings.Contains(started[0], `"subtype":"hook_started"`) {
			t.Errorf("%s: frames %v", command, started)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		r.WaitForAsyncHooksAndClose(ctx)
		cancel()
		ended := r.TakeAsyncFrames()
		if len(ended) != 1 || len(r.TakeAsyncFrames()) != 0 {
			t.Fatalf("%s: %d responses", command, len(ended))
		}
		if got := lines(t, []protocol.Event{ended[0]}); !strings.HasSuffix(got[0], want) || !strings.Contains(got[0], `"subtype":"hook_response"`) {
			t.Errorf("%s: got %s, want %s", command, got[0], want)
		}
	}
}

func TestStopNotification(t *testing.T) {
	got := lines(t, []protocol.Event{StopHookErrorNotification()})
	want := []string{`"subtype":"notification","key":"stop-hook-error","text":"stop hook problem · ctrl+o to see","priority":"immediate"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Output of a command beyond the limit is read but not stored (A7).
func TestCommandOutputIsBounded(t *testing.T) {
	r := newRunner(t, commandHook("UserPromptSubmit", "head -c 40000000 /dev/zero | tr '\\0' x"))
	got := r.Run(t.Context(), EventInput{Event: protocol.UserPromptSubmitHookInput{Prompt: "hi"}}).AdditionalContext
	if len(got) != 1 || len(got[0]) > maxOutputBytes+200 || len(got[0]) < maxOutputBytes {
		t.Errorf("%d contexts, of %d bytes the first", len(got), len(strings.Join(got, "")))
	}
}

// noticesOf returns the notices and the warnings between the frames.
func noticesOf(o Outcome) (all []protocol.Event) {
	for _, ev := range o.Frames {
		if s, is := ev.(*protocol.SystemEvent); is && s.Subtype == "informational" {
			all = append(all, ev)
		}
	}
	return append(all, o.Notices...)
}
