package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/debug"
)

// Scripted breakpoints surround those of a debugger. The debugger receives the call with their changes, and they
// receive the result with the changes of the debugger.
func TestScriptedAndDebugger(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.toml")
	if err := os.WriteFile(file, []byte(`
[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "echo skipped" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "echo a" } } ]
[[responses.response.steps]]
text = "{{ map(results, .text) | join(', ') }}"
[[breakpoints]]
tool = "Bash"
max_hits = 1
action = "skip"
result = "made up"
[[breakpoints]]
tool = "Bash"
action = "modify"
input = { command = "{{ input.command }}b" }
[[breakpoints]]
tool = "Bash"
phase = "after"
action = "modify"
result = "{{ result }}e"
`), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := startDebugger(t, nil, "--port", "0")
	ask(t, "POST", url+"/api/breakpoints", `{"function_name":"Bash"}`)
	journal := filepath.Join(dir, "journal")
	s, stdout, stderr := fakeSystem(t, "-p", "go", "--scenario", file, "--allowedTools", "Bash", "--debugger", url, "--capture", journal)
	s.Now, s.Environ = time.Now, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	done := make(chan int)
	go func() { done <- Run(t.Context(), s) }()
	for _, step := range []struct{ shown, answer string }{
		{`"input":{"command":"echo ab"}`, `{"modified_kwargs":{"command":"echo abc"}}`},
		{`"pretty_result":"abc"`, `{"modified_result":"abcd"}`},
	} {
		p := waitPaused(t, url)
		if !strings.Contains(p.text, step.shown) {
			t.Errorf("paused: %s, want %s", p.text, step.shown)
		}
		if status, body := ask(t, "POST", url+"/api/paused/"+p.id+"/continue", step.answer); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
	if code := <-done; code != process.ExitOK || strings.TrimSpace(stdout.String()) != "made upe, abcde" || stderr.Len() > 0 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, body := ask(t, "GET", url+"/api/calls", ""); strings.Contains(body, "skipped") || !strings.Contains(body, `"total_count":1`) {
		t.Errorf("the debugger heard of %s", body)
	}
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	for line := range strings.Lines(string(data)) {
		var b struct{ Type, Phase, Action, Breakpoint string }
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		if b.Type == "breakpoint" {
			decided = append(decided, b.Phase+" "+b.Action+" "+strings.TrimPrefix(b.Breakpoint, file))
		}
	}
	if got, want := strings.Join(decided, "; "), "before skip :10; after modify :19; before modify :15; before modify ; after modify ; after modify :19"; got != want {
		t.Errorf("decided: %s, want %s", got, want)
	}
}

type pausedCall struct{ id, text string }

// waitPaused waits until a call is paused.
func waitPaused(t *testing.T, url string) pausedCall {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		_, body := ask(t, "GET", url+"/api/paused", "")
		var list struct{ Paused []debug.Pause }
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Paused) > 0 {
			return pausedCall{list.Paused[0].ID, body}
		}
	}
	t.Fatal("nothing is paused")
	return pausedCall{}
}
