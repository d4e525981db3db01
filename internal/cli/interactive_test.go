package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/terminal"
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

func (f *fakeTerminal) MakeRaw() (func() error, error) {
	f.raw = true
	return func() error { f.raw = false; return nil }, nil
}

func (f *fakeTerminal) Size() (cols, rows int) { return 110, 36 }

func (f *fakeTerminal) screen() emulator.Screen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emu.Screen()
}

// interactiveRun is an interactive run of a test.
type interactiveRun struct {
	t              *testing.T
	term           *fakeTerminal
	stdout, stderr *bytes.Buffer
	dir, config    string
	code           chan int
	stop           context.CancelCauseFunc
	clock          atomic.Int64 // seconds that have passed
}

// startInteractive starts claude on a fake terminal with a scenario. prepare may write files and change the process
// before.
func startInteractive(t *testing.T, scenario string, prepare func(r *interactiveRun, s *process.System), args ...string) *interactiveRun {
	t.Helper()
	if args == nil {
		args = []string{"--permission-mode", "default"}
	}
	s, stdout, stderr := fakeSystem(t, args...)
	dir, _ := s.Getwd()
	r := &interactiveRun{t: t, term: newFakeTerminal(), stdout: stdout, stderr: stderr, dir: dir, config: filepath.Join(dir, "config"), code: make(chan int, 1)}
	file := filepath.Join(t.TempDir(), "s.toml")
	r.write(file, scenario)
	s.Terminal, s.StdinIsTTY, s.StdoutIsTTY = r.term, true, true
	s.Environ = append(s.Environ, "CLAUDELESS_SCENARIO="+file, "CLAUDELESS_CONFIG_DIR="+r.config, "HOME="+dir, "CLAUDELESS_GATES="+filepath.Join(dir, "gates"))
	started := s.Now()
	s.Now = func() time.Time { return started.Add(time.Duration(r.clock.Load()) * time.Second) }
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
	go func() { // returns at the end of the run
		defer close(done)
		r.code <- Run(ctx, s)
	}()
	t.Cleanup(func() { cancel(nil); <-done })
	return r
}

func (r *interactiveRun) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// wait waits until the screen has a text.
func (r *interactiveRun) wait(text string) {
	r.t.Helper()
	r.waitUntil("has "+text, func(s emulator.Screen) bool { return strings.Contains(s.TextWithAllRows(), text) })
}

// waitGone waits until the screen no longer has a text.
func (r *interactiveRun) waitGone(text string) {
	r.t.Helper()
	r.waitUntil("lacks "+text, func(s emulator.Screen) bool { return !strings.Contains(s.TextWithAllRows(), text) })
}

func (r *interactiveRun) waitUntil(what string, ok func(emulator.Screen) bool) {
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
			r.t.Fatalf("the screen never %s:\n%s\nstderr: %s", what, screen.TextWithAllRows(), r.stderr)
		}
	}
}

// press sends keys, one read each. A second passes before each, because dialogs ignore keys that come too early.
func (r *interactiveRun) press(keys ...string) {
	for _, k := range keys {
		r.clock.Add(1)
		r.term.keys <- []byte(k)
	}
}

// typePrompt types a prompt and sends it.
func (r *interactiveRun) typePrompt(prompt string) {
	r.t.Helper()
	r.press(prompt)
	r.wait("❯\u00a0" + prompt)
	r.press("\r")
}

// waitExit waits for the end of the run and checks its exit code.
func (r *interactiveRun) waitExit(want int) {
	r.t.Helper()
	select {
	case code := <-r.code:
		if code != want {
			r.t.Errorf("exit code %d, want %d; stderr: %s", code, want, r.stderr)
		}
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the run did not end:\n%s", r.term.screen().TextWithAllRows())
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

const talkScenario = `
[[responses]]
pattern = { type = "contains", text = "rule" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "sh -c true", description = "Run a command" } } ]
[[responses.response.steps]]
text = "Ran: {{ results[0].is_error }}"
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
text = "Made: {{ results[0].is_error }} {{ results[0].content }}"
[[responses]]
pattern = { type = "any" }
response = "Hello there."
`

// TestInteractiveTurn: a prompt is answered, and the run ends with the hint how to resume it.
func TestInteractiveTurn(t *testing.T) {
	r := startInteractive(t, talkScenario, nil)
	r.wait("? for shortcuts")
	if screen := r.term.screen(); screen.Title != "✳ Claude Code" || !strings.HasPrefix(screen.Line(33), "❯") || !strings.Contains(screen.Line(35), "manual mode on") {
		t.Errorf("title %q, screen:\n%s", screen.Title, screen.TextWithAllRows())
	}
	r.typePrompt("hello")
	r.wait("● Hello there.")
	r.wait("done 3:04 AM")
	r.typePrompt("/exit")
	r.waitExit(0)
	if !strings.Contains(r.stdout.String(), "\nResume this session with:\nclaude --permission-mode default --resume 0000") {
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
		"Ctrl-C does nothing": {[]string{keyCtrlC, "\x04", "\r"}, "● Made: false", true},
		"Tab amends Yes":      {[]string{"\t", "and then", "\r"}, "❯ and then\n\n● Hello there.", true},
		"an empty text":       {[]string{"\t", "\r"}, "● Made: false", true},
		"Tab twice":           {[]string{shiftTab, "\t", "4"}, "Interrupted · What should Claude do instead?", false},
		"Tab amends No":       {[]string{keyUp, "\t", "use cp", "\r"}, "Not run · rejected\n\n● Made: true", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, talkScenario, nil, "--permission-mode", "default")
			r.wait("? for shortcuts")
			r.typePrompt("bash please")
			r.wait("Do you want to proceed?")
			r.press(tt.keys...)
			r.wait(tt.want)
			r.waitGone("Do you want to proceed?")
			if _, err := os.Stat(filepath.Join(r.dir, "seen")); (err == nil) != tt.made {
				t.Errorf("the directory: %v", err)
			}
			r.wait("? for shortcuts")
			r.press(keyCtrlC)
			r.wait("Press Ctrl-C again to exit")
			r.press(keyCtrlC)
			r.waitExit(0)
		})
	}
}

// TestInteractiveCalls: finished calls that follow one another share a line.
func TestInteractiveCalls(t *testing.T) {
	r := startInteractive(t, `
[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "echo a > a.txt" } }, { tool = "Bash", input = { command = "ls" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Read", input = { file_path = "{{ cwd }}/a.txt" } }, { tool = "Write", input = { file_path = "{{ cwd }}/a.txt", content = "b" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "cat nosuch" } }, { tool = "Skill", input = { skill = "nosuch" } }, { tool = "Agent", input = { description = "Look", prompt = "look", subagent_type = "nosuch" } } ]
[[responses.response.steps]]
text = "**All** done."
`, nil, "--dangerously-skip-permissions")
	r.wait("bypass permissions on")
	r.typePrompt("go")
	r.wait("  Read 1 file, listed 1 directory, ran 1 shell command\n\n● Write(a.txt)\n  ⎿ \u00a0Added 1 line, removed 1 line\n      1 -a\n      1 +b\n        \\ No newline at end of file\n")
	r.wait("  Read 1 file · 1 failed\n\n● Skill(nosuch)\n  ⎿ \u00a0Error: Unknown skill: nosuch")
	r.wait("● nosuch(Look)\n  ⎿ \u00a0Error: Agent type 'nosuch' not found.")
	r.wait("● All done.")
}

// TestInteractiveRule: "Yes, and …" lasts for the session.
func TestInteractiveRule(t *testing.T) {
	r := startInteractive(t, talkScenario, nil, "--permission-mode", "default")
	r.wait("? for shortcuts")
	r.typePrompt("rule please")
	r.wait("don’t ask again for: sh -c true")
	r.press("2")
	r.wait("● Ran: false")
	r.wait("? for shortcuts")
	r.typePrompt("rule again")
	r.waitUntil("has two results", func(s emulator.Screen) bool { return strings.Count(s.TextWithAllRows(), "● Ran: false") == 2 })
	files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	if text, _ := os.ReadFile(strings.Join(files, "")); strings.Count(string(text), `"source":"user_permanent"`) != 2 {
		t.Errorf("the decision is not permanent: %s", text)
	}

	// A command that changes files adds the directory, as in the real CLI: the next one also needs a question.
	r.typePrompt("bash please")
	r.wait("always allow access to " + r.dir)
	r.press("2")
	r.wait("● Made: false")
	r.wait("? for shortcuts")
	r.typePrompt("bash again")
	r.wait("Do you want to proceed?")
}

// TestInteractiveInterrupt: Esc before the first reply returns the prompt, and the queue can be taken back.
func TestInteractiveInterrupt(t *testing.T) {
	r := startInteractive(t, talkScenario, nil)
	r.wait("? for shortcuts")
	r.typePrompt("a slow one")
	r.wait("esc to interrupt")
	if title := r.term.screen().Title; title != "◐ Claude Code" && title != "◑ Claude Code" {
		t.Errorf("title %q", title)
	}
	r.press("next in line", "\r")
	r.wait("Press up to edit queued messages")
	r.press(keyUp)
	r.wait("❯\u00a0next in line")
	r.press("\x15")
	r.waitGone("next in line")
	r.press(keyEsc)
	r.wait("❯\u00a0a slow one")
	r.waitGone("esc to interrupt")
}

// TestInteractiveEarlyInterrupt: Esc while the first prompt waits for a server returns the prompt.
func TestInteractiveEarlyInterrupt(t *testing.T) {
	r := startInteractive(t, talkScenario, func(r *interactiveRun, _ *process.System) {
		r.write(filepath.Join(r.dir, "servers.json"), `{"mcpServers":{"silent":{"command":"/bin/sleep","args":["60"]}}}`)
	}, "--permission-mode", "default", "--mcp-config", "servers.json")
	r.wait("? for shortcuts")
	r.typePrompt("a slow one")
	r.wait("esc to interrupt")
	r.press(keyEsc)
	r.wait("❯\u00a0a slow one")
	r.waitGone("esc to interrupt")
}

// TestInteractiveInterruptAtOnce: Ctrl-C immediately after Enter returns the prompt, whether its turn has started or not.
func TestInteractiveInterruptAtOnce(t *testing.T) {
	r := startInteractive(t, talkScenario, nil)
	r.wait("? for shortcuts")
	for range 20 {
		r.press("a slow one\r" + keyCtrlC)
		r.waitUntil("has only the draft", func(s emulator.Screen) bool {
			return strings.Contains(s.TextWithAllRows(), "❯\u00a0a slow one") && strings.Count(s.TextWithAllRows(), "a slow one") == 1
		})
		r.press("\x15")
		r.waitGone("a slow one")
	}
}

// TestInteractiveEarlyKeys: what is typed before a screen is shown answers no dialog and sends nothing. Its text is the
// first draft.
func TestInteractiveEarlyKeys(t *testing.T) {
	for name, tt := range map[string]struct{ early, more, draft string }{
		"editing keys":                {"hel\x15lx\x7fo\r", "", "❯\u00a0hello"},
		"answers and keys after them": {"2" + keyDown + "\ra", "b\r", "❯\u00a02\n  ab"},
		"pasted, with an unknown key": {"\x1b[200~one\ntwo\x1b[201~\x1b[5~!", "", "❯\u00a0one\n  two!"},
		"after a lone Escape":         {"x\x1b", "y", "❯\u00a0xy"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, "trusted = false\n"+talkScenario, func(r *interactiveRun, _ *process.System) { r.term.keys <- []byte(tt.early) })
			r.wait("❯ No, exit")
			r.press(keyDown + "\r" + tt.more)
			r.wait(tt.draft)
		})
	}
	r := startInteractive(t, "trusted = false\n"+talkScenario, func(r *interactiveRun, _ *process.System) { r.term.keys <- []byte("x" + keyCtrlC) })
	r.waitExit(130)
}

// TestInteractiveTrust: refusing ends the run with 1, accepting writes the key of the real CLI.
func TestInteractiveTrust(t *testing.T) {
	scenario := "trusted = false\n" + talkScenario
	r := startInteractive(t, scenario, nil)
	r.wait("❯ No, exit")
	r.press("\r")
	r.waitExit(1)

	r = startInteractive(t, scenario, nil)
	r.wait("❯ No, exit")
	r.press(keyDown, "\r")
	r.wait("? for shortcuts")
	raw, err := os.ReadFile(filepath.Join(r.config, ".claude.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Projects map[string]struct {
			HasTrustDialogAccepted bool
			EnabledMcpjsonServers  []string
		}
	}
	if err := json.Unmarshal(raw, &config); err != nil || !config.Projects[r.dir].HasTrustDialogAccepted || config.Projects[r.dir].EnabledMcpjsonServers == nil {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestInteractiveDeafDialogs: keys that arrive before a person could have read a dialog have no effect.
func TestInteractiveDeafDialogs(t *testing.T) {
	unbuffered := func(r *interactiveRun, _ *process.System) { r.term.keys = make(chan []byte) }
	pressAtOnce := func(r *interactiveRun, k string) {
		for _, k := range []string{k, "x", "x", "x"} { // the third x is read when k has been handled
			r.term.keys <- []byte(k)
		}
	}
	r := startInteractive(t, "trusted = false\n"+talkScenario, unbuffered)
	r.wait("❯ No, exit")
	pressAtOnce(r, keyDown) // would select Yes
	r.press("\r")
	r.waitExit(1)
	if !strings.Contains(r.stderr.String(), terminal.UntrustedFolderExitText) {
		t.Errorf("stderr: %s", r.stderr)
	}

	r = startInteractive(t, talkScenario, unbuffered)
	r.askBash()
	pressAtOnce(r, "1")
	pressAtOnce(r, "\r") // would run the command
	pressAtOnce(r, keyDown)
	r.waitUntil("selects the second option", func(s emulator.Screen) bool {
		return strings.Contains(s.TextWithAllRows(), "❯ 2.") || strings.Contains(s.TextWithAllRows(), "❯ Yes, and")
	})
	r.term.keys <- []byte(keyEsc)
	r.wait("Interrupted")
}

// TestInteractiveHangUp: closing the terminal ends the run like SIGHUP.
func TestInteractiveHangUp(t *testing.T) {
	r := startInteractive(t, talkScenario, nil)
	r.wait("? for shortcuts")
	r.typePrompt("a slow one")
	r.wait("esc to interrupt")
	close(r.term.keys)
	r.waitExit(129)
}

const questionsScenario = `
[[responses]]
pattern = { type = "contains", text = "one" }
[[responses.response.steps]]
tool_calls = [ { tool = "AskUserQuestion", input = { questions = [ { question = "Which colour?", header = "Colour", multiSelect = false, options = [ { label = "Red", description = "Like a rose" }, { label = "Blue", description = "Like the sea" } ] } ] } } ]
[[responses.response.steps]]
text = "Chosen {{ results[0].text }}"
[[responses]]
pattern = { type = "contains", text = "many" }
[[responses.response.steps]]
tool_calls = [ { tool = "AskUserQuestion", input = { questions = [ { question = "Which colours?", header = "Colours", multiSelect = true, options = [ { label = "Red", description = "r" }, { label = "Blue", description = "b" } ] }, { question = "Which size?", header = "Size", multiSelect = false, options = [ { label = "Big", description = "b" }, { label = "Small", description = "s" } ] } ] } } ]
[[responses.response.steps]]
text = "Chosen {{ results[0].text }}"
`

// TestInteractiveQuestions: each way to answer a form reaches the model.
func TestInteractiveQuestions(t *testing.T) {
	for name, tt := range map[string]struct {
		prompt, wait string
		keys         []string
		want         string
	}{
		"Enter":        {"one", "Which colour?", []string{"\r"}, `● Chosen Your questions have been answered: "Which colour?"="Red".`},
		"a digit":      {"one", "Which colour?", []string{"2"}, `● Chosen Your questions have been answered: "Which colour?"="Blue".`},
		"own words":    {"one", "Which colour?", []string{"3", "Green", "\r"}, `● Chosen The user answered: "Which colour?"="Green".`},
		"chat":         {"one", "Which colour?", []string{"4"}, "The user wants to clarify these questions."},
		"no words":     {"one", "Which colour?", []string{keyUp, "\r"}, "Declined to answer Claude's questions:"},
		"Esc":          {"one", "Which colour?", []string{keyEsc}, "Declined to answer Claude's questions:"},
		"several":      {"many", "Which colours?", []string{"\r", keyDown, " ", keyDown, keyDown, "\r", "2", "1"}, `● Chosen Your questions have been answered: "Which colours?"="Red, Blue", "Which size?"="Small".`},
		"tabs":         {"many", "Which colours?", []string{"1", "\t", "1", "\r"}, `● Chosen Your questions have been answered: "Which colours?"="Red", "Which size?"="Big".`},
		"cancel":       {"many", "Which colours?", []string{"1", "\t", "1", "2"}, "Declined to answer Claude's questions:"},
		"ticked twice": {"many", "Which colours?", []string{"1", "1", "2", "\t", "1", "1"}, `● Chosen Your questions have been answered: "Which colours?"="Blue", "Which size?"="Big".`},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, questionsScenario, nil, "--permission-mode", "default")
			r.wait("? for shortcuts")
			r.typePrompt(tt.prompt)
			r.wait(tt.wait)
			r.press(tt.keys...)
			r.wait(tt.want)
		})
	}
}

// TestInteractivePlan: the plan dialog ends plan mode, or sends the requested changes to the model.
func TestInteractivePlan(t *testing.T) {
	const write = `tool_calls = [ { tool = "Write", input = { file_path = "{{ last(split(filter(context, # contains '/plans/')[0], ' ')) }}", content = "1. First step" } } ]`
	const question, emptyQuestion = "Would you like to proceed?", "Claude wants to exit plan mode"
	for name, tt := range map[string]struct {
		firstStep string
		question  string
		keys      []string
		want      []string
	}{
		"manually":      {write, question, []string{"2"}, []string{"● Updated plan", "Next: User has approved your plan.", "1. First step", "manual mode on"}},
		"auto":          {write, question, []string{"\r"}, []string{"Next: User has approved your plan.", "auto mode on"}},
		"Shift+Tab":     {write, question, []string{shiftTab}, []string{"Next: User has approved your plan.", "auto mode on"}},
		"feedback":      {write, question, []string{"3", "a second step", "\r"}, []string{"│ 1. First step", "said:\n  a second step", "plan mode on"}},
		"with feedback": {write, question, []string{"3", "a second step", shiftTab}, []string{"❯ a second step", "● Hello there.", "auto mode on"}},
		"Esc":           {write, question, []string{keyEsc}, []string{"Rejected Claude's plan:", "plan mode on"}},
		"Ctrl-C":        {write, question, []string{keyCtrlC, "2"}, []string{"manual mode on"}},
		"no plan":       {`text = "Without a file."`, emptyQuestion, []string{"\t", "\r"}, []string{"● Exited plan mode", "Next: User has approved exiting plan mode.", "manual mode on"}},
		"no plan, No":   {`text = "Without a file."`, emptyQuestion, []string{"2"}, []string{"Rejected Claude's plan:", "plan mode on"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, `
[[responses]]
pattern = { type = "contains", text = "plan it" }
[[responses.response.steps]]
`+tt.firstStep+`
[[responses.response.steps]]
tool_calls = [ { tool = "ExitPlanMode", input = { plan = "has no effect" } } ]
[[responses.response.steps]]
text = "Next: {{ last(results).text }}"
[[responses]]
pattern = { type = "any" }
response = "Hello there."
`, nil, "--permission-mode", "plan")
			r.wait("plan mode on")
			r.typePrompt("plan it")
			r.wait(tt.question)
			r.press(tt.keys...)
			for _, want := range tt.want {
				r.wait(want)
			}
		})
	}
}

// TestInteractiveServers: a dialog asks about the servers of .mcp.json, and the answer is written to the local
// settings.
func TestInteractiveServers(t *testing.T) {
	const one, two = `{"mcpServers":{"weather":{"command":"/nowhere"}}}`, `{"mcpServers":{"weather":{"command":"/nowhere"},"second":{"command":"/nowhere"}}}`
	for name, tt := range map[string]struct {
		config, wait string
		keys         []string
		want         string
	}{
		"Enter skips":      {one, "❯ Continue without using this MCP server", []string{"\r"}, `{"disabledMcpjsonServers":["weather"]}`},
		"this one":         {one, "❯ Continue without using this MCP server", []string{keyUp, keyUp, "\r"}, `{"enabledMcpjsonServers":["weather"]}`},
		"all":              {one, "❯ Continue without using this MCP server", []string{keyUp, "\r"}, `{"enabledMcpjsonServers":["weather"],"enableAllProjectMcpServers":true}`},
		"two, one of them": {two, "❯ [✔] weather", []string{" ", keyDown, keyDown, "\r"}, `{"enabledMcpjsonServers":["second"],"disabledMcpjsonServers":["weather"]}`},
		"two, Esc":         {two, "❯ [✔] weather", []string{keyEsc}, `{"disabledMcpjsonServers":["weather","second"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, talkScenario, func(r *interactiveRun, _ *process.System) { r.write(filepath.Join(r.dir, ".mcp.json"), tt.config) })
			r.wait(tt.wait)
			r.press(tt.keys...)
			r.wait("? for shortcuts")
			raw, err := os.ReadFile(filepath.Join(r.dir, ".claude", "settings.local.json"))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Compact(&got, raw); err != nil || got.String() != tt.want {
				t.Errorf("%s, %v; want %s", &got, err, tt.want)
			}
		})
	}
}

// TestInteractiveAuto: without a mode, a session starts in mode auto, which cannot check calls. The user is notified of
// this once, and then approves each call.
func TestInteractiveAuto(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string // after the explanation
		want []string
		gone string
	}{
		"Enter stays": {[]string{"\r"}, []string{"so this one needs your approval", " ❯ No\n   Yes\n", "● Auto mode can't check"}, "Enter to stay"},
		"Yes runs":    {[]string{"\r", keyDown, "\r"}, []string{"● Ran: false", "auto mode on"}, "Enter to stay"},
		"No refuses":  {[]string{"\r", "\r"}, []string{"Interrupted · What should Claude do instead?", "Did not run 1 call", "auto mode on"}, "Enter to stay"},
		"leaving":     {[]string{shiftTab}, []string{"accept edits on", "No result recorded for 1 call", "Interrupted · What should Claude do instead?"}, "Enter to stay"},
		"Esc":         {[]string{keyEsc}, []string{"auto mode on", "No result recorded for 1 call"}, "Enter to stay"},
		"Ctrl-C":      {[]string{keyCtrlC}, []string{"auto mode on", "No result recorded for 1 call"}, "Enter to stay"},
		"Ctrl-D":      {[]string{"\x04", "\r", keyDown, "\r"}, []string{"● Ran: false", "auto mode on"}, "Enter to stay"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startInteractive(t, talkScenario, nil, "--settings", "{}")
			r.wait("auto mode on (shift+tab to cycle)")
			r.typePrompt("rule please")
			r.wait("Enter to stay in auto mode")
			r.press(tt.keys...)
			for _, want := range tt.want {
				r.wait(want)
			}
			r.waitGone(tt.gone)
		})
	}
}

// TestInteractivePlanChecks: calls in plan mode need the check of mode auto, unless the settings exclude it. The
// explanation is not a dialog.
func TestInteractivePlanChecks(t *testing.T) {
	for settings, want := range map[string][]string{
		"{}":                              {"● Auto mode can't check actions in this session", "so this one needs your approval", " ❯ No\n   Yes\n"},
		`{"useAutoModeDuringPlan":false}`: {" ❯ 1. Yes\n   2. Yes, and don’t ask again for: sh -c true\n   3. No\n"},
	} {
		t.Run(settings, func(t *testing.T) {
			r := startInteractive(t, talkScenario, nil, "--permission-mode", "plan", "--settings", settings)
			r.wait("plan mode on")
			r.typePrompt("rule please")
			for _, text := range want {
				r.wait(text)
			}
			r.press(keyEsc)
			r.wait("Interrupted · What should Claude do instead?")
			if shown := strings.Contains(r.term.screen().TextWithAllRows(), "Auto mode can't"); shown != (settings == "{}") {
				t.Errorf("explained: %t", shown)
			}
		})
	}
}

// TestInteractiveAutoNotice: the first session in mode auto says that the mode is the default, and later ones do not.
func TestInteractiveAutoNotice(t *testing.T) {
	const notice = "▎ Auto mode is now Claude Code's default permission mode.\n"
	for _, before := range []string{"", `,"hasSeenAutoDefaultNotice":true`} {
		r := startInteractive(t, "trusted = true\n"+talkScenario, func(r *interactiveRun, _ *process.System) {
			r.write(filepath.Join(r.config, ".claude.json"), `{"hasCompletedOnboarding":true`+before+`}`)
		}, "--settings", "{}")
		r.wait("auto mode on (shift+tab to cycle)")
		config, _ := os.ReadFile(filepath.Join(r.config, ".claude.json"))
		if shown := strings.Contains(r.term.screen().TextWithAllRows(), notice); shown != (before == "") || !strings.Contains(string(config), "hasSeenAutoDefaultNotice") {
			t.Errorf("%q: notice %t, configuration %s", before, shown, config)
		}
	}
}

// TestInteractiveAutoExplained: a moment after the user has selected mode auto, a text explains it. A file records this.
func TestInteractiveAutoExplained(t *testing.T) {
	for name, args := range map[string][]string{"key": {"--settings", `{"permissions":{"defaultMode":"plan"}}`}, "argument": {"--permission-mode", "auto"}} {
		r := startInteractive(t, talkScenario, nil, args...)
		if r.wait("mode on"); name == "key" {
			r.press(shiftTab)
		}
		r.wait("● Auto mode lets Claude")
		r.typePrompt("/exit")
		r.waitExit(0)
		if config, _ := os.ReadFile(filepath.Join(r.config, ".claude.json")); !strings.Contains(string(config), "hasSeenAutoModeEntryWarning") {
			t.Errorf("%s: configuration %s", name, config)
		}
	}
}

// TestInteractiveAutoLeft: after the user has left mode auto, or with a model that does not support it, the mode is no
// longer offered.
func TestInteractiveAutoLeft(t *testing.T) {
	r := startInteractive(t, talkScenario, nil, "--settings", "{}")
	r.wait("auto mode on")
	r.typePrompt("bash please") // in a working directory: needs no check
	r.wait("● Made: false")
	r.typePrompt("rule please")
	r.wait("Enter to stay in auto mode")
	r.press(shiftTab)
	r.wait("accept edits on")
	r.typePrompt("rule again")
	r.wait("3. No")

	r = startInteractive(t, talkScenario, nil, "--model", "claude-haiku-4-5")
	r.wait("manual mode on")
	for _, mode := range []string{"accept edits on", "plan mode on", "manual mode on"} {
		r.press(shiftTab)
		r.wait(mode)
	}
}

// TestInteractiveKey: the API key in the environment is refused by default, and its last characters are stored but not
// shown.
func TestInteractiveKey(t *testing.T) {
	r := startInteractive(t, "trusted = true\n"+talkScenario, func(r *interactiveRun, s *process.System) {
		s.Environ = append(s.Environ, "ANTHROPIC_API_KEY=sk-ant-aaaabbbbccccddddeeee")
		r.write(filepath.Join(r.config, ".claude.json"), `{"hasCompletedOnboarding":true}`)
	})
	r.wait("❯ No (recommended)")
	if text := r.term.screen().TextWithAllRows(); strings.Contains(text, "eeee") {
		t.Errorf("the screen shows the key:\n%s", text)
	}
	r.press(keyUp, "\r")
	r.wait("? for shortcuts")
	raw, err := os.ReadFile(filepath.Join(r.config, ".claude.json"))
	if err != nil || !strings.Contains(string(raw), `"aaaabbbbccccddddeeee"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestInteractiveExpectations: [[expect]] checks screens and their answers, even if the run ends before its session
// begins.
func TestInteractiveExpectations(t *testing.T) {
	const expect = `
[[expect]]
screen = "permission/bash"
answered = "no"
[[expect]]
screen = "permission"
times = 1
[[expect]]
screen = "question"
never = true
`
	r := startInteractive(t, talkScenario+expect, nil, "--permission-mode", "default", "--expect")
	r.wait("? for shortcuts")
	r.typePrompt("bash please")
	r.wait("Do you want to proceed?")
	r.press("1")
	r.wait("Made: false")
	r.typePrompt("/exit")
	r.waitExit(process.ExitUnmetExpectation)
	if want := "expected the screen permission/bash to be answered with no"; !strings.Contains(r.stderr.String(), want) || strings.Count(r.stderr.String(), "expected") != 1 {
		t.Errorf("stderr %q, want %q", r.stderr, want)
	}

	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	r = startInteractive(t, "trusted = false\n"+talkScenario, func(_ *interactiveRun, s *process.System) {
		s.Environ = append(s.Environ, "CLAUDELESS_CAPTURE="+journal)
	})
	r.wait("❯ No, exit")
	r.press("\r")
	r.waitExit(1)
	raw, err := os.ReadFile(journal)
	if want := `"type":"screen","state":"dialog","kind":"trust","answer":"no","option":"No, exit"`; err != nil || !strings.Contains(string(raw), want) {
		t.Errorf("the journal lacks %s: %s, %v", want, raw, err)
	}
}

// TestInteractiveFaults: each screen fault changes the output.
func TestInteractiveFaults(t *testing.T) {
	for name, check := range map[string]func(r *interactiveRun){
		"numbers-gone": func(r *interactiveRun) { r.askBash(); r.wait("❯ Yes\n") },
		"option-order": func(r *interactiveRun) { r.askBash(); r.wait("❯ 1. No") },
		"mode-option":  func(r *interactiveRun) { r.askBash(); r.wait("2. Yes, and switch to bypass permissions") },
		"footer-gone": func(r *interactiveRun) {
			r.wait("/effort")
			r.waitGone("shortcuts")
		},
		"draft-back": func(r *interactiveRun) {
			r.wait("/effort")
			r.typePrompt("hello")
			r.wait("● Hello there.")
			r.wait("❯\u00a0hello")
		},
		"small-pane": func(r *interactiveRun) {
			r.waitUntil("has the footer in row 11", func(s emulator.Screen) bool { return strings.Contains(s.Line(10), "shortcuts") })
		},
		"title-only": func(r *interactiveRun) {
			r.wait("/effort")
			r.typePrompt("a slow one")
			r.waitUntil("has the title of a turn", func(s emulator.Screen) bool { return strings.HasPrefix(s.Title, "◐") })
			r.waitGone("esc to interrupt")
		},
		"echo-late":   func(r *interactiveRun) { r.wait("/effort"); r.press("late"); r.wait("❯\u00a0late") },
		"dialog-late": func(r *interactiveRun) { r.askBash(); r.wait("Esc to cancel") },
		"retry-long": func(r *interactiveRun) {
			r.wait("/effort")
			r.typePrompt("overload")
			r.waitUntil("has a long retry", func(s emulator.Screen) bool { return strings.Count(s.TextWithAllRows(), "attempt 1/") > 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := "[[responses]]\npattern = { type = \"contains\", text = \"overload\" }\nfailure = { type = \"overloaded\" }\n" + talkScenario
			check(startInteractive(t, scenario, func(_ *interactiveRun, s *process.System) {
				s.Environ = append(s.Environ, "CLAUDELESS_FAILURE="+name)
			}, "--permission-mode", "default"))
		})
	}
}

// askBash has the model call Bash, and waits for the dialog.
func (r *interactiveRun) askBash() {
	r.t.Helper()
	r.wait("manual mode on")
	r.typePrompt("bash please")
	r.wait("Do you want to proceed?")
}

// TestInteractiveTimeOfDialogs: the duration of a turn does not include the time of its dialogs (observed with claude 2.1.330).
func TestInteractiveTimeOfDialogs(t *testing.T) {
	r := startInteractive(t, talkScenario, nil)
	r.askBash()
	r.press("\r")
	r.wait("Made: false")
	r.wait(" for 0s · done ")
	r.typePrompt("/exit")
	r.waitExit(0)
	files, err := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if raw, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(raw), `"durationMs":0,`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestInteractiveKeys: the input field, modes and commands.
func TestInteractiveKeys(t *testing.T) {
	r := startInteractive(t, talkScenario, nil, "--permission-mode", "default")
	r.wait("? for shortcuts")
	r.press("ab", "\x7f", "\n", "\x1b[200~two\rlines\x1b[201~")
	r.waitUntil("has three rows", func(s emulator.Screen) bool {
		return strings.Contains(s.TextWithAllRows(), "❯\u00a0a\n  two\n  lines\n")
	})
	r.press(keyCtrlC)
	r.wait("? for shortcuts")
	for _, mode := range []string{"accept edits on", "plan mode on", "auto mode on", "manual mode on"} {
		r.press(shiftTab)
		r.wait(mode)
	}
	r.press("\x04")
	r.wait("Press Ctrl-D again to exit")
	r.press("x")
	r.waitGone("Press Ctrl-D again to exit")
	r.press("\x7f")
	r.typePrompt("/theme")
	r.wait("/theme is not simulated by claudeless")
	r.typePrompt("hello")
	r.wait("● Hello there.")
	r.typePrompt("/compact")
	r.wait("Compacted (ctrl+o to see full summary)")
	r.typePrompt("/clear")
	r.waitGone("Hello there.")
	r.press("\x04")
	r.wait("Press Ctrl-D again to exit")
	r.press("\x04")
	r.waitExit(0)
}

const echoScenario = `
[[responses]]
pattern = { type = "any" }
response = "I got <{{ prompt }}> {{ model }}"
`

// TestInteractiveShell: a draft that begins with ! is a shell command. The model receives its output.
func TestInteractiveShell(t *testing.T) {
	r := startInteractive(t, echoScenario, nil)
	r.wait("? for shortcuts")
	r.press("!")
	r.wait("! for shell mode")
	r.press("\r", "echo hi")
	r.wait("!\u00a0echo hi")
	r.press("\r")
	r.wait("! echo hi\n  ⎿ \u00a0hi\n\n● I got <!echo hi>")
	r.wait("? for shortcuts")
	r.press("!sh -c 'echo bad >&2; exit 3'")
	r.press("\r")
	r.wait("  ⎿ \u00a0bad\n")
	r.wait("I got <!sh -c 'echo bad >&2; exit 3'>")
	r.wait("? for shortcuts")
	r.press("!false", "\r")
	r.wait("! false\n  ⎿ \u00a0(No output)\n")
	r.wait("? for shortcuts")
	r.press("!sleep 600", "\r")
	r.wait("! sleep 600\n  ⎿ \u00a0Running…")
	r.press(keyEsc)
	r.wait("!\u00a0sleep 600")
	r.waitGone("Running…")
	r.press(keyEsc)
	r.wait("esc again to clear")
	r.wait("!\u00a0sleep 600")
}

// TestInteractiveTranscript: the transcript has the lines of claude 2.1.330: copies of files before each prompt and each
// command, two lines for a shell command, and the costs before and after the copies at /exit.
func TestInteractiveTranscript(t *testing.T) {
	r := startInteractive(t, echoScenario, nil)
	for _, turn := range [][2]string{
		{"? for shortcuts", "hi"},
		{"I got <hi>", "/nosuch x"},
		{"● Unknown command: /nosuch\n\n● Args from unknown skill: x", "!echo abc"},
		{"I got <!echo abc>", "/model"},
		{"Select model", keyEsc},
		{"Kept model as Opus 5.5 (default)\n", "/model haiku"},
		{"Switch model?", "1"},
		{"Set model to Haiku 5.5 and saved", "/exit"},
	} {
		r.wait(turn[0])
		r.waitGone("esc to interrupt") // otherwise the prompt would wait in the queue
		r.press(turn[1])
		if len(turn[1]) > 1 {
			r.press("\r")
		}
	}
	r.waitExit(0)
	files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("transcripts: %q", files)
	}
	text, _ := os.ReadFile(files[0])
	var got []string
	gap := regexp.MustCompile(`(\n|\\n) +`)
	for line := range strings.Lines(string(text)) {
		var l struct {
			Type, Subtype, LastPrompt, Content string
			Query                              string `json:"session_id"`
			Message                            struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == "assistant" && l.Query == "" {
			t.Errorf("a reply without session_id: %s", line)
		}
		if text := string(l.Message.Content); strings.Contains(text, "caveat>") {
			l.Message.Content = json.RawMessage(text[:len(`"<local-command-caveat>`)])
		}
		if !strings.HasPrefix(l.Type, "api-request") && l.Type != "attachment" && l.Type != "assistant" {
			got = append(got, strings.TrimSpace(l.Type+" "+l.Subtype+l.LastPrompt+" "+gap.ReplaceAllString(l.Content+string(l.Message.Content), "")))
		}
	}
	want := []string{
		"mode", "permission-mode", "atis-latch",
		"file-history-snapshot", `user  "hi"`, "system turn_duration", "last-prompt hi", "mode", "permission-mode", "atis-latch",
		"system informational Unknown command: /nosuch", "system informational Args from unknown skill: x",
		"tools-used", "file-history-snapshot", `user  "<bash-input>echo abc</bash-input>"`, `user  "<bash-stdout>abc</bash-stdout><bash-stderr></bash-stderr>"`, "system turn_duration",
		"system local_command <command-name>/model</command-name><command-message>model</command-message><command-args></command-args>",
		"system local_command <local-command-stdout>Kept model as `Opus 5.5 (default)`</local-command-stdout>",
		"file-history-snapshot", `user  "<local-command-caveat>`, `user  "<command-name>/model</command-name><command-message>model</command-message><command-args>haiku</command-args>"`,
		"user  \"<local-command-stdout>Set model to `Haiku 5.5` and saved as your default for new sessions</local-command-stdout>\"",
		"cost-state", "file-history-snapshot", "last-prompt ! echo abc", "cost-state",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestInteractiveLineIDs: copies of files belong to the line of a shell command or of /compact, lines after /clear keep the id
// of the first session, and a mentioned file has none.
func TestInteractiveLineIDs(t *testing.T) {
	r := startInteractive(t, echoScenario, func(r *interactiveRun, _ *process.System) { r.write(filepath.Join(r.dir, "a.txt"), "a\n") })
	for _, turn := range [][2]string{
		{"? for shortcuts", "!echo abc"}, {"I got <!echo abc>", "see @a.txt now"}, {"I got <see @a.txt now>", "/compact"}, {"Compacted", "/clear"}, {"? for shortcuts", "end"}, {"I got <end>", "/exit"},
	} {
		r.wait(turn[0])
		r.waitGone("esc to interrupt")
		if turn[1] == "end" {
			r.waitGone("Compacted")
		}
		r.press(turn[1], "\r")
	}
	r.waitExit(0)
	files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	copied, sessions := map[string]bool{}, map[string]bool{}
	var commands []string
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			var l struct {
				Type, UUID, MessageID string
				Query                 string `json:"session_id"`
				Message               struct{ Content json.RawMessage }
				Attachment            struct{ Type string }
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			copied[l.MessageID] = copied[l.MessageID] || l.Type == "file-history-snapshot"
			if content := string(l.Message.Content); l.Type == "user" && (strings.Contains(content, "bash-input") || strings.Contains(content, "<command-name>/compact")) {
				commands = append(commands, l.UUID)
			}
			if l.Type == "assistant" {
				sessions[l.Query] = true
			}
			if l.Attachment.Type == "file" && l.Query != "" {
				t.Errorf("a mentioned file has the session %s", l.Query)
			}
		}
	}
	if len(files) != 2 || len(commands) != 2 || !copied[commands[0]] || !copied[commands[1]] || len(sessions) != 1 {
		t.Errorf("%d files; commands %q; copies for %v; sessions of replies %v", len(files), commands, copied, sessions)
	}
}

// TestInteractiveCommandIsSaved: a command is in the transcript before the next turn.
func TestInteractiveCommandIsSaved(t *testing.T) {
	r := startInteractive(t, echoScenario, nil)
	r.wait("? for shortcuts")
	r.typePrompt("/model")
	r.wait("Select model")
	r.press("\r")
	r.wait("Set model to Opus")
	for range 200 { // the transcript is written by another goroutine than the screen
		r.press("x", "\x7f")
		files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
		if text, _ := os.ReadFile(strings.Join(files, "")); strings.Contains(string(text), "<local-command-stdout>Set model to") {
			return
		}
	}
	t.Error("the transcript has no line about /model")
}

// TestInteractiveExit: at /exit, files that were copied before are not copied again, and a mode that has changed since
// the last turn has a line, as in claude 2.1.330.
func TestInteractiveExit(t *testing.T) {
	r := startInteractive(t, `
default_response = "Fine."
[[responses]]
pattern = { type = "exact", text = "go" }
[[responses.response.steps]]
tool_calls = [ { tool = "Write", input = { file_path = "{{ cwd }}/b.txt", content = "b" } } ]
[[responses.response.steps]]
text = "Written."
`, nil, "--permission-mode", "acceptEdits")
	r.wait("accept edits on")
	r.typePrompt("go")
	r.wait("● Written.")
	r.typePrompt("on")
	r.wait("● Fine.")
	r.press(shiftTab)
	r.wait("plan mode on")
	r.press("/exit", "\r")
	r.waitExit(0)
	files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	text, err := os.ReadFile(strings.Join(files, ""))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, want := range []string{`"cost-state"`, `"last-prompt"`, `"permission-mode","permissionMode":"plan"`, `"cost-state"`} {
		if line := lines[len(lines)-4+i]; !strings.HasPrefix(line, `{"type":`+want) {
			t.Errorf("line %d before the end is %s", 4-i, line)
		}
	}
}

// TestInteractiveModel: /model changes the model of the session and, if it is saved, that of later sessions.
func TestInteractiveModel(t *testing.T) {
	r := startInteractive(t, echoScenario, nil)
	saved := func(want string) {
		t.Helper()
		text, _ := os.ReadFile(filepath.Join(r.config, "settings.json"))
		if !strings.Contains(string(text), want) {
			t.Errorf("settings %s, want %s", text, want)
		}
	}
	r.wait("Opus")
	r.wait("? for shortcuts")
	r.typePrompt("/model haiku")
	r.wait("❯ /model haiku\n  ⎿ \u00a0Set model to Haiku 5.5 and saved as your default for new sessions")
	r.wait("Haiku 5.5 · API")
	saved(`"model": "haiku"`)
	r.typePrompt("hello")
	r.wait("I got <hello> claude-haiku-5-5")
	r.wait("? for shortcuts")
	r.typePrompt("/model sonnet")
	r.wait("❯ 1. Yes, switch to Sonnet 5.5")
	r.press("2")
	r.wait("Kept model as Haiku 5.5\n")
	r.typePrompt("/model")
	r.wait("❯ 5. Haiku ✔")
	r.press(keyUp, "s")
	r.wait("❯ 1. Yes, switch to Sonnet 5.5")
	r.press("\r")
	r.wait("Set model to Sonnet 5.5 for this session only")
	saved(`"model": "haiku"`)
	r.typePrompt("/model")
	r.wait("Select model")
	r.press("1", "1")
	r.wait("Set model to Opus 5.5 (default) and saved as your default for new sessions")
	if text, _ := os.ReadFile(filepath.Join(r.config, "settings.json")); strings.Contains(string(text), "model") {
		t.Errorf("settings %s", text)
	}
}

// TestInteractivePages: commands that open a page leave no trace.
func TestInteractivePages(t *testing.T) {
	r := startInteractive(t, echoScenario, nil)
	r.wait("? for shortcuts")
	for command, want := range map[string]string{
		"/help": "shift+tab to cycle modes", "/status": "Session ID:  00000000-", "/cost": "Estimated cost:", "/usage": "Total duration (wall):", "/config": "Default permission mode  default",
	} {
		r.typePrompt(command)
		r.wait(want)
		r.press("x", "\r", keyEsc)
		r.waitGone("Esc to close")
		r.wait("? for shortcuts")
		if text := r.term.screen().TextWithAllRows(); strings.Contains(text, command) {
			t.Errorf("%s left a trace:\n%s", command, text)
		}
	}
}

// startInline starts claude with the inline renderer.
func startInline(t *testing.T, scenario string, args ...string) *interactiveRun {
	t.Helper()
	return startInteractive(t, scenario, func(r *interactiveRun, _ *process.System) {
		r.write(filepath.Join(r.config, "settings.json"), `{"tui":"default"}`)
	}, args...)
}

// TestInteractiveInlineCalls: the inline renderer shows commands with their output, as claude 2.1.330 does.
func TestInteractiveInlineCalls(t *testing.T) {
	r := startInline(t, `
[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "seq 1 4" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "seq 1 5" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "cat a" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Grep", input = { pattern = "a" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "echo one\necho two\nexit 3" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "true" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "touch a && rm a" } } ]
[[responses.response.steps]]
tool_calls = [ { tool = "Edit", input = { file_path = "{{ cwd }}/a", old_string = "a", new_string = "b" } } ]
[[responses.response.steps]]
text = "All done."
`, "--dangerously-skip-permissions")
	r.wait("bypass permissions on")
	r.typePrompt("go")
	const under = "\n  ⎿ \u00a0"
	r.wait("● Bash(seq 1 4)" + under + "1\n     2\n     3\n     4\n\n● Bash(seq 1 5)" + under + "1\n     2\n     3\n     … +2 lines (ctrl+o to expand)\n\n  Searched for 1 pattern, read 1 file · 2 failed (ctrl+o to expand)\n")
	r.wait("● Bash(echo one\n      echo two…)" + under + "Error: Exit code 3\n     one\n     two\n\n● Bash(true)" + under + "(No output)\n\n● Bash(touch a && rm a)" + under + "Done\n\n● Update(a)" + under + "File not found\n\n● All done.")
	r.typePrompt("/exit")
	r.waitExit(0)
}

// TestInteractiveInlineDialog: while a dialog is shown, the command waits. After a dialog that did not fit, the screen has
// all rows again.
func TestInteractiveInlineDialog(t *testing.T) {
	r := startInline(t, talkScenario, "--permission-mode", "default")
	for range 3 {
		r.wait("? for shortcuts")
		r.typePrompt("hello")
	}
	r.askBash()
	r.wait("● Bash(mkdir -p seen)\n  ⎿ \u00a0Waiting…\n\n───")
	r.waitGone("Claude Code v")
	r.press(keyEsc)
	r.wait("● Bash(mkdir -p seen)\n  ⎿ \u00a0Interrupted · What should Claude do instead?\n\n───")
	r.wait("Claude Code v")
	r.askBash()
	r.press(keyUp, "\t", "use cp", "\r")
	r.wait("● Bash(mkdir -p seen)\n  ⎿ \u00a0Not run · rejected\n\n● Made: true")
}

// TestInteractiveInlineCompaction: /compact removes the conversation from the screen and says where it is saved (observed with
// claude 2.1.330).
func TestInteractiveInlineCompaction(t *testing.T) {
	r := startInline(t, talkScenario, "--permission-mode", "default")
	r.wait("? for shortcuts")
	r.typePrompt("hello")
	r.wait("✻ ")
	r.typePrompt("/compact")
	r.wait(r.dir + "\n\n\n✻ Conversation compacted (ctrl+o for the summary)\n  Earlier messages are saved in /")
	r.wait(".jsonl\n\n\n❯ /compact\n  ⎿ \u00a0Compacted (ctrl+o to see full summary)\n")
}

// TestInteractiveInline: the inline renderer leaves its text on the terminal.
func TestInteractiveInline(t *testing.T) {
	r := startInline(t, talkScenario, "--permission-mode", "default")
	r.wait("? for shortcuts")
	if r.term.screen().Alternate {
		t.Error("the alternate screen is on")
	}
	for range 12 {
		r.typePrompt("hello")
		r.wait("? for shortcuts")
	}
	r.askBash()
	r.press("\r")
	r.wait("Made: false")
	r.wait("? for shortcuts")
	if text := r.term.screen().TextWithAllRows(); strings.Count(text, "manual mode on") != 1 {
		t.Errorf("rows were left behind:\n%s", text)
	}
	r.typePrompt("/exit")
	r.waitExit(0)
	if text := r.term.screen().TextWithAllRows(); !strings.Contains(text, "● Made: false") {
		t.Errorf("the text is gone:\n%s", text)
	}
}
