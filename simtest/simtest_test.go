package simtest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simtest"
)

func ask(t *testing.T, c *simtest.Claude, args ...string) string {
	t.Helper()
	cmd := exec.Command(c.Path, append([]string{"-p"}, args...)...)
	cmd.Env = c.Env()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func TestNew(t *testing.T) {
	claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "echo one"}), "Parser bug.")
	out, err := exec.Command("claude", "-p", "triage", "--allowedTools", "Bash").Output()
	if err != nil || string(out) != "Parser bug.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	want := []simtest.Tool{{Name: "Bash", Input: json.RawMessage(`{"command":"echo one"}`)}}
	if diff := cmp.Diff(want, claude.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if prompts := claude.Prompts(); len(prompts) != 1 || prompts[0].Text != "triage" {
		t.Errorf("prompts: %v", prompts)
	}
	if home := os.Getenv("HOME"); home == "" || !strings.HasPrefix(claude.Path, filepath.Dir(home)) {
		t.Errorf("HOME is %s", home)
	}
}

func TestParallel(t *testing.T) {
	for _, name := range []string{"a", "b", "c", "d"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := os.Getenv("PATH")
			claude := simtest.New(t, "I am "+name)
			if got := os.Getenv("PATH"); got != path {
				t.Errorf("PATH was set in a parallel test")
			}
			if got := ask(t, claude, "who?"); got != "I am "+name {
				t.Error(got)
			}
		})
	}
}

func TestOn(t *testing.T) {
	t.Parallel()
	claude := simtest.New(t).On("triage", "Parser bug.").On(regexp.MustCompile(`deploy \w+`), simtest.Fail("overloaded").Times(2), "Done.")
	if got := ask(t, claude, "please triage"); got != "Parser bug." {
		t.Error(got)
	}
	if got := ask(t, claude, "deploy api"); got != "Done." {
		t.Error(got)
	}
}

// One message with several parts.
func TestSay(t *testing.T) {
	t.Parallel()
	claude := simtest.New(t, simtest.Say("I look.", simtest.Call("Bash", map[string]any{"command": "echo 1"})), "Done.")
	if got := ask(t, claude, "x", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose"); !strings.Contains(got, `"text":"I look."`) {
		t.Error(got)
	}
}

// The shim works with an empty environment.
func TestBareEnvironment(t *testing.T) {
	t.Parallel()
	claude := simtest.New(t, "hi")
	cmd := exec.Command(claude.Path, "-p", "x")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = t.TempDir()
	if out, err := cmd.Output(); err != nil || string(out) != "hi\n" {
		t.Errorf("%q, %v", out, err)
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v in its directory, %v", left, err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.toml")
	if err := os.WriteFile(file, []byte("[[responses]]\npattern = { type = \"any\" }\nresponse = \"from a file\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, simtest.File(t, file), "x"); got != "from a file" {
		t.Error(got)
	}
}

// baseURL returns the last base URL in the variables of c, which is the effective one.
func baseURL(c *simtest.Claude) (base string) {
	for _, kv := range c.Env() {
		if url, ok := strings.CutPrefix(kv, "ANTHROPIC_BASE_URL="); ok {
			base = url
		}
	}
	return base
}

// post sends an empty request as this program.
func post(t *testing.T, url, agent string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", agent)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// recordingTB is a test whose failures are checked.
type recordingTB struct {
	testing.TB
	errors  []string
	logs    []string
	fatal   string
	cleanup []func()
}

func (f *recordingTB) Helper()                           {}
func (f *recordingTB) Failed() bool                      { return false }
func (f *recordingTB) Fatalf(format string, args ...any) { f.fatal = fmt.Sprintf(format, args...) }
func (f *recordingTB) Error(args ...any)                 { f.errors = append(f.errors, args[0].(string)) }

func (f *recordingTB) Log(args ...any)  { f.logs = append(f.logs, args[0].(string)) }
func (f *recordingTB) Cleanup(c func()) { f.cleanup = append(f.cleanup, c) }

func (f *recordingTB) end() []string {
	for i := len(f.cleanup) - 1; i >= 0; i-- {
		f.cleanup[i]()
	}
	return f.errors
}

// Every mistake that a test could overlook fails it, with the line.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		body func(f *recordingTB)
		want string
	}{
		{"a rule that nobody asked for", func(f *recordingTB) { simtest.New(f).On("never", "x") }, `^simtest_test\.go:\d+: `},
		{"a script that nobody asked for", func(f *recordingTB) { simtest.New(f, "x") }, `^simtest_test\.go:\d+: `},
		{"a second prompt", func(f *recordingTB) {
			claude := simtest.New(f, "x")
			ask(t, claude, "first")
			ask(t, claude, "again")
		}, `^simtest_test\.go:\d+: .*"again"`},
		{"a claude that is left running", func(f *recordingTB) {
			claude := simtest.New(f, "x")
			cmd := exec.Command(claude.Path, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
			cmd.Env = claude.Env()
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Wait() })
			_, _ = io.WriteString(in, `{"type":"user","message":{"role":"user","content":"hi"}}`+"\n")
			for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), `"type":"result"`); {
			}
		}, `claude was left running.*\[C06\]`},
		{"a claude of others", func(f *recordingTB) {
			base := baseURL(simtest.New(f))
			for range 2 { // it is reported only once
				status, said := post(t, base+"/v1/messages?beta=true", "claude-cli/2.1.329")
				if status != http.StatusForbidden || !strings.Contains(said, `"message":"claudeless: G01: a real claude was started instead of claudeless: claude-cli/2.1.329; start claude.Path, `) {
					t.Errorf("%d %s", status, said)
				}
			}
		}, `^simtest_test\.go:\d+: a real claude was started instead of claudeless: claude-cli/2\.1\.329 \[G01\]\n\tstart claude\.Path`},
		{"a client of the Messages API", func(f *recordingTB) {
			if status, said := post(t, baseURL(simtest.New(f))+"/v1/messages", "Anthropic/Go"); status != http.StatusForbidden || !strings.Contains(said, "the URL of simtest.Server") {
				t.Errorf("%d %s", status, said)
			}
		}, `a program other than claude used the base URL that is reserved for claude: Anthropic/Go \[G01\]`},
		{"a prompt without a rule", func(f *recordingTB) {
			claude := simtest.New(f).On("triage", "x")
			ask(t, claude, "triage")
			cmd := exec.Command(claude.Path, "-p", "Triage")
			cmd.Env = claude.Env()
			_ = cmd.Run()
		}, `Triage`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &recordingTB{TB: t}
			c.body(f)
			errors := f.end()
			if len(errors) == 0 || !regexp.MustCompile(c.want).MatchString(errors[0]) || slices.Contains(errors[1:], errors[0]) {
				t.Errorf("the test says %q, want %s once", errors, c.want)
			}
		})
	}
}

// Findings that are only warnings are in the log of the test.
func TestWarnings(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "s.toml")
	const text = "[[responses]]\npattern = { type = \"any\" }\nresponse = \"x\"\n\n[[responses]]\npattern = { type = \"exact\", text = \"y\" }\nresponse = \"y\"\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &recordingTB{TB: t}
	ask(t, simtest.File(f, name), "hi")
	if errors := f.end(); len(errors) > 0 {
		t.Errorf("the test fails: %q", errors)
	}
	want := regexp.MustCompile(`^warning: .*s\.toml:5: .*\[S13\]`)
	if !slices.ContainsFunc(f.logs, want.MatchString) {
		t.Errorf("the log %q has nothing like %s", f.logs, want)
	}
}

// An answer waits until the test releases it.
func TestHold(t *testing.T) {
	t.Parallel()
	claude := simtest.New(t).On("slow", "at last")
	held := claude.Hold("slow")
	cmd := exec.Command(claude.Path, "-p", "slow")
	cmd.Env = claude.Env()
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held.Reached(30 * time.Second)
	held.Release()
	if err := cmd.Wait(); err != nil || out.String() != "at last\n" {
		t.Errorf("%q, %v", &out, err)
	}
}

// The answers of an API server can also be held.
func TestHoldAPI(t *testing.T) {
	t.Parallel()
	api := simtest.Server(t).On("slow", "at last")
	held := api.Hold("slow")
	status := make(chan int)
	go func() {
		resp, err := http.Post(api.URL+"/v1/messages", "application/json", strings.NewReader(
			`{"model":"claude-opus-5-5","max_tokens":100,"messages":[{"role":"user","content":"slow"}]}`))
		if err != nil {
			t.Error(err)
			close(status)
			return
		}
		defer resp.Body.Close()
		status <- resp.StatusCode
	}()
	held.Reached(30 * time.Second)
	held.Release()
	if got := <-status; got != http.StatusOK {
		t.Errorf("status %d", got)
	}
}

// The script of New can also be held. A hold that is never reached is reported.
func TestHoldScript(t *testing.T) {
	t.Parallel()
	f := &recordingTB{TB: t}
	claude := simtest.New(f, "x")
	held := claude.Hold(nil)
	for what, want := range map[string]func(){
		"no request asked for the answer within 1ms": func() { held.Reached(time.Millisecond) },
		"no rule for y: call On for it first":        func() { claude.Hold("y") },
	} {
		f.fatal = ""
		if want(); !strings.Contains(f.fatal, what) {
			t.Errorf("it says %q, want %q", f.fatal, what)
		}
	}
}

// The script as the Messages API in the test process.
func TestServer(t *testing.T) {
	t.Parallel()
	api := simtest.Server(t).On("hello", "hi there")
	body := `{"model":"claude-opus-5-5","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	resp, err := http.Post(api.URL+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Content []struct{ Text string } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Content) != 1 || answer.Content[0].Text != "hi there" {
		t.Errorf("%+v, %v", answer, err)
	}
	if prompts := api.Prompts(); len(prompts) != 1 || prompts[0].Text != "hello" {
		t.Errorf("prompts: %v", prompts)
	}
}
