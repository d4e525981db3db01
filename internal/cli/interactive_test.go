package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// fakeTerminal is a terminal whose screen is an emulator and whose keys come from a test.
type fakeTerminal struct {
	keys    chan []byte
	written chan struct{} // cap 1: the screen has changed
	raw     bool

	mu  sync.Mutex
	emu *emulator.Emulator
}

func newFakeTerminal() *fakeTerminal {
	return &fakeTerminal{keys: make(chan []byte, 100), written: make(chan struct{}, 1), emu: emulator.New(110, 36)}
}

func (f *fakeTerminal) Read(p []byte) (int, error) {
	data, ok := <-f.keys
	if !ok {
		return 0, io.EOF
	}
	return copy(p, data), nil
}

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.written <- struct{}{}:
	default:
	}
	return f.emu.Write(p)
}

func (f *fakeTerminal) Raw() (func() error, error) {
	f.raw = true
	return func() error { f.raw = false; return nil }, nil
}

func (f *fakeTerminal) Size() (cols, rows int) { return 110, 36 }

func (f *fakeTerminal) screen() emulator.Screen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emu.Screen()
}

// interactive is an interactive run of a test.
type interactive struct {
	t              *testing.T
	term           *fakeTerminal
	stdout, stderr *bytes.Buffer
	dir, config    string
	code           chan int
	stop           context.CancelCauseFunc
}

// startInteractive starts claude on a fake terminal with a scenario. prepare may write files
// and change the process before.
func startInteractive(t *testing.T, scenario string, prepare func(r *interactive, s *process.System), args ...string) *interactive {
	t.Helper()
	s, stdout, stderr := fakeSystem(t, args...)
	dir, _ := s.Getwd()
	r := &interactive{t: t, term: newFakeTerminal(), stdout: stdout, stderr: stderr, dir: dir, config: filepath.Join(dir, "config"), code: make(chan int, 1)}
	file := filepath.Join(t.TempDir(), "s.toml")
	r.write(file, scenario)
	s.Terminal, s.StdinIsTTY, s.StdoutIsTTY = r.term, true, true
	s.Environ = append(s.Environ, "CLAUDELESS_SCENARIO="+file, "CLAUDELESS_CONFIG_DIR="+r.config, "HOME="+dir, "CLAUDELESS_GATES="+filepath.Join(dir, "gates"))
	ids := 0
	s.NewID = func() string {
		ids++
		return "00000000-0000-4000-8000-" + strings.Repeat("0", 9) + string(rune('0'+ids/100%10)) + string(rune('0'+ids/10%10)) + string(rune('0'+ids%10))
	}
	if prepare != nil {
		prepare(r, s)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.stop = cancel
	done := make(chan struct{})
	go func() { // ends with the run
		defer close(done)
		r.code <- Run(ctx, s)
	}()
	t.Cleanup(func() { cancel(nil); <-done })
	return r
}

func (r *interactive) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// wait waits until the screen has a text.
func (r *interactive) wait(text string) {
	r.t.Helper()
	r.until("has "+text, func(s emulator.Screen) bool { return strings.Contains(s.Text(), text) })
}

// gone waits until the screen has a text no more.
func (r *interactive) gone(text string) {
	r.t.Helper()
	r.until("lacks "+text, func(s emulator.Screen) bool { return !strings.Contains(s.Text(), text) })
}

func (r *interactive) until(what string, ok func(emulator.Screen) bool) {
	r.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		screen := r.term.screen()
		if ok(screen) {
			return
		}
		select {
		case <-r.term.written:
		case <-limit:
			r.t.Fatalf("the screen never %s:\n%s\nstderr: %s", what, screen.Text(), r.stderr)
		}
	}
}

// press sends keys, one read each.
func (r *interactive) press(keys ...string) {
	for _, k := range keys {
		r.term.keys <- []byte(k)
	}
}

// say types a prompt and sends it.
func (r *interactive) say(prompt string) {
	r.t.Helper()
	r.press(prompt)
	r.wait("❯\u00a0" + prompt)
	r.press("\r")
}

// exit waits for the end of the run, whose exit code must be this one.
func (r *interactive) exit(want int) {
	r.t.Helper()
	select {
	case code := <-r.code:
		if code != want {
			r.t.Errorf("exit code %d, want %d; stderr: %s", code, want, r.stderr)
		}
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the run did not end:\n%s", r.term.screen().Text())
	}
	if r.term.raw {
		r.t.Error("the terminal was not restored")
	}
	if r.term.screen().Alternate || r.term.emu.Modes().BracketedPaste {
		r.t.Error("the alternate screen or bracketed paste is still on")
	}
}

const (
	keyUp    = "\x1b[A"
	keyDown  = "\x1b[B"
	keyEsc   = "\x1b"
	keyCtrlC = "\x03"
	shiftTab = "\x1b[Z"
)

const talk = `
[[responses]]
pattern = { type = "contains", text = "slow" }
[[responses.response.steps]]
gate = "one"
text = "That took a while."
[[responses]]
pattern = { type = "contains", text = "bash" }
[[responses.response.steps]]
text = "I make a directory."
tool_calls = [ { tool = "Bash", input = { command = "mkdir -p seen", description = "Make the directory" } } ]
[[responses.response.steps]]
text = "Made: {{ results[0].is_error }}"
[[responses]]
pattern = { type = "any" }
response = "Hello there."
`

// TestInteractiveTurn: a prompt is answered, and the run ends with the hint how to resume it.
func TestInteractiveTurn(t *testing.T) {
	r := startInteractive(t, talk, nil)
	r.wait("? for shortcuts")
	if screen := r.term.screen(); screen.Title != "✳ Claude Code" || !strings.HasPrefix(screen.Line(33), "❯") || !strings.Contains(screen.Line(35), "manual mode on") {
		t.Errorf("title %q, screen:\n%s", screen.Title, screen.Text())
	}
	r.say("hello")
	r.wait("● Hello there.")
	r.wait("done 3:04 AM")
	r.say("/exit")
	r.exit(0)
	if !strings.Contains(r.stdout.String(), "\nResume this session with:\nclaude --resume 0000") {
		t.Errorf("stdout: %q", r.stdout)
	}
}

// TestInteractivePermission: each answer of the dialog has its effect.
func TestInteractivePermission(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string // on the screen
		made bool
	}{
		"Enter accepts":       {[]string{"\r"}, "● Made: false", true},
		"a digit accepts":     {[]string{"1"}, "● Made: false", true},
		"Esc refuses":         {[]string{keyEsc}, "Interrupted · What should Claude do instead?", false},
		"No refuses":          {[]string{"4"}, "Interrupted · What should Claude do instead?", false},
		"up wraps to No":      {[]string{keyUp, "\r"}, "Interrupted · What should Claude do instead?", false},
		"down changes a rule": {[]string{keyDown, "\r"}, "● Made: false", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, talk, nil, "--permission-mode", "default")
			r.wait("? for shortcuts")
			r.say("bash please")
			r.wait("Do you want to proceed?")
			r.press(tt.keys...)
			r.wait(tt.want)
			r.gone("Do you want to proceed?")
			if _, err := os.Stat(filepath.Join(r.dir, "seen")); (err == nil) != tt.made {
				t.Errorf("the directory: %v", err)
			}
			r.wait("? for shortcuts")
			r.press(keyCtrlC)
			r.wait("Press Ctrl-C again to exit")
			r.press(keyCtrlC)
			r.exit(0)
		})
	}
}

// TestInteractiveRule: "Yes, and …" lasts for the session.
func TestInteractiveRule(t *testing.T) {
	r := startInteractive(t, talk, nil, "--permission-mode", "default")
	r.wait("? for shortcuts")
	r.say("bash please")
	r.wait("Do you want to proceed?")
	r.press("2")
	r.wait("● Made: false")
	r.wait("? for shortcuts")
	r.say("bash again")
	r.until("has two results", func(s emulator.Screen) bool { return strings.Count(s.Text(), "● Made: false") == 2 })
}

// TestInteractiveInterrupt: Esc before the first reply returns the prompt, and the queue can be
// taken back.
func TestInteractiveInterrupt(t *testing.T) {
	r := startInteractive(t, talk, nil)
	r.wait("? for shortcuts")
	r.say("a slow one")
	r.wait("esc to interrupt")
	if title := r.term.screen().Title; title != "◐ Claude Code" && title != "◑ Claude Code" {
		t.Errorf("title %q", title)
	}
	r.press("next in line", "\r")
	r.wait("Press up to edit queued messages")
	r.press(keyUp)
	r.wait("❯\u00a0next in line")
	r.press("\x15")
	r.gone("next in line")
	r.press(keyEsc)
	r.wait("❯\u00a0a slow one")
	r.gone("esc to interrupt")
}

// TestInteractiveTrust: refusing ends the run with 1, accepting writes the key of the real CLI.
func TestInteractiveTrust(t *testing.T) {
	scenario := "trusted = false\n" + talk
	r := startInteractive(t, scenario, nil)
	r.wait("❯ No, exit")
	r.press("\r")
	r.exit(1)

	r = startInteractive(t, scenario, nil)
	r.wait("❯ No, exit")
	r.press(keyDown, "\r")
	r.wait("? for shortcuts")
	raw, err := os.ReadFile(filepath.Join(r.config, ".claude.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Projects map[string]struct{ HasTrustDialogAccepted bool }
	}
	if err := json.Unmarshal(raw, &config); err != nil || !config.Projects[r.dir].HasTrustDialogAccepted {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestInteractiveHangUp: a terminal that is gone ends the run like SIGHUP.
func TestInteractiveHangUp(t *testing.T) {
	r := startInteractive(t, talk, nil)
	r.wait("? for shortcuts")
	r.say("a slow one")
	r.wait("esc to interrupt")
	close(r.term.keys)
	r.exit(129)
}
