package scripts

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDialogues plays captured dialogues of the real CLI over pipes: testdata/dialogue/*/*.txt, in the format of the
// goldens. A line of the host is sent when all lines before it have arrived. Commands, agents and models are compared
// by their form, because claudeless has its own descriptions.
//
// Checklist rows 7, 8, 14 to 17, 19, 20, 23, 27, 28, 30, 52, 58, 65.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("../testdata/dialogue/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no dialogues", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			playDialogue(t, file)
		})
	}
}

func playDialogue(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	dir := t.TempDir()
	g, args := dialogueGolden(t, lines)
	fill := newPlaceholderFiller([]string{"<path>=" + filepath.Join(dir, "work", "out.txt")})
	scenario := filepath.Join(dir, "scenario.json")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "work"), 0o755), os.WriteFile(scenario, g.scenario(fill), 0o644)); err != nil {
		t.Fatal(err)
	}
	d := startDialogue(t, filepath.Join(dir, "work"), args, scenario)
	m := newMatcher()
	for _, line := range lines[1:] {
		mark, rest := line[:2], line[2:]
		switch {
		case mark == "> ":
			for name, value := range m.values {
				rest = strings.ReplaceAll(rest, name, value)
			}
			d.send(strings.ReplaceAll(rest, "<path>", filepath.Join(dir, "work", "out.txt")))
		case !strings.HasPrefix(rest, `{"type"`) && !strings.HasPrefix(rest, `{"duration`):
			// comments of the recorder
		case mark == "< ":
			var want any
			if err := json.Unmarshal([]byte(rest), &want); err != nil {
				t.Fatal(err)
			}
			got := d.receive()
			m.match(kindOf(want), removeUncompared(want), removeUncompared(got))
		}
	}
	d.end()
	for _, problem := range m.problems {
		t.Error(problem)
	}
}

// dialogueGolden creates a golden of the events of a dialogue, for its scenario.
func dialogueGolden(t *testing.T, lines []string) (g *golden, args []string) {
	t.Helper()
	g = &golden{}
	for _, line := range lines[1:] {
		if rest, ok := strings.CutPrefix(line, "< "); ok && strings.HasPrefix(rest, "{") {
			events, err := parseEvents(rest)
			if err != nil {
				t.Fatal(err)
			}
			g.stdout, g.raw = append(g.stdout, events...), append(g.raw, json.RawMessage(rest))
		}
	}
	command, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "# "), " (driven over pipes")
	return g, shellWords(command)[1:]
}

// removeUncompared returns an event without the parts that are not compared: lists in the answer to initialize with
// texts of claudeless, values that depend on the machine, and keys of features that are not simulated (tools that only
// some models have, and the MCP client as the host sees it).
func removeUncompared(event any) any {
	if init, ok := event.(map[string]any); ok && init["model"] == "claude-sonnet-4-5" {
		delete(init, "tools")
		delete(init, "per_turn_effort_active")
	}
	if info, ok := valueAt(event, "request.message.params.clientInfo").(map[string]any); ok {
		delete(info, "description")
	}
	if meta, ok := valueAt(event, "request.message.params._meta").(map[string]any); ok {
		delete(meta, "progressToken")
	}
	body, ok := valueAt(event, "response.response").(map[string]any)
	if !ok {
		return event
	}
	for _, key := range []string{"pid", "user_output_styles_dir"} {
		delete(body, key)
	}
	for _, key := range []string{"commands", "agents", "models"} {
		list, ok := body[key].([]any)
		if !ok || len(list) == 0 {
			continue
		}
		first, _ := list[0].(map[string]any)
		if _, described := first["description"]; described {
			first["description"] = "described"
		}
		body[key] = first
	}
	delete(body, "available_output_styles")
	return event
}

// dialogue is a run of the binary with its stdin and stdout.
type dialogue struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    interface{ Close() error }
	write func(string) error
	out   chan string // closed at the end of stdout
}

func startDialogue(t *testing.T, cwd string, args []string, scenario string) *dialogue {
	t.Helper()
	cmd := exec.Command("claude", args...)
	cmd.Dir = cwd
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(cwd), "CLAUDELESS_SCENARIO="+scenario, "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "CLAUDELESS_CLAUDE_VERSION="+goldenVersion)
	cmd.Stderr = os.Stderr
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
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	d := &dialogue{t: t, cmd: cmd, in: in, out: make(chan string)}
	d.write = func(line string) error { _, err := fmt.Fprintln(in, line); return err }
	go func() { // returns at the end of stdout
		defer close(d.out)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			d.out <- lines.Text()
		}
	}()
	return d
}

func (d *dialogue) send(line string) {
	if err := d.write(line); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dialogue) receive() any {
	select {
	case line, ok := <-d.out:
		var event any
		if !ok || json.Unmarshal([]byte(line), &event) != nil {
			d.t.Fatalf("stdout ended or is no JSON: %q", line)
		}
		return event
	case <-time.After(20 * time.Second):
		d.t.Fatal("nothing came")
		return nil
	}
}

// end closes stdin and checks that the process succeeds without further output.
func (d *dialogue) end() {
	if err := d.in.Close(); err != nil {
		d.t.Error(err)
	}
	for line := range d.out {
		d.t.Errorf("too much: %s", line)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Error(err)
	}
}

// Checklist rows 59 and 63: requests of a host about servers that are processes.
func TestHostServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scenario := filepath.Join(dir, "s.json")
	err := os.WriteFile(scenario, []byte(`{"responses":[{"pattern":{"type":"any"},"response":{"text":"hi"}}]}`), 0o644)
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "work"), 0o755)); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--mcp-config", `{"mcpServers":{"s":{"command":"mcpsrv","args":[]},"bad":{"command":"no-such-program"}}}`,
	}
	d := startDialogue(t, filepath.Join(dir, "work"), args, scenario)
	statuses := func() map[string]string {
		all := map[string]string{}
		list, _ := valueAt(d.request(`{"subtype":"mcp_status"}`), "response.mcpServers").([]any)
		for _, server := range list {
			all[str(valueAt(server, "name"))] = str(valueAt(server, "status"))
		}
		return all
	}
	d.send(`{"type":"user","message":{"role":"user","content":"x"}}`)
	init := d.receive()
	if got := compactJSON(valueAt(init, "mcp_servers")); got != `[{"name":"s","source":"dynamic","status":"connected"},{"name":"bad","source":"dynamic","status":"failed"}]` {
		t.Errorf("init shows %s", got)
	}
	for kindOf(d.receive()) != "result/success" {
	}
	if got := compactJSON(valueAt(d.request(`{"subtype":"mcp_status"}`), "response.mcpServers.0.config")); got != `{"args":[],"command":"mcpsrv","type":"stdio"}` {
		t.Errorf("mcp_status shows the configuration %s", got)
	}
	steps := []struct {
		request, answer string
		after           map[string]string
	}{
		{`{"subtype":"mcp_reconnect","serverName":"s"}`, `null`, map[string]string{"s": "connected", "bad": "failed"}},
		{`{"subtype":"mcp_toggle","serverName":"s","enabled":false}`, `null`, map[string]string{"s": "disabled", "bad": "failed"}},
		{`{"subtype":"mcp_toggle","serverName":"s","enabled":true}`, `null`, map[string]string{"s": "connected", "bad": "failed"}},
		{`{"subtype":"mcp_call","tool":"mcp__s__echo","arguments":{"text":"hey"}}`, `{"content":[{"text":"echo: hey","type":"text"}]}`, nil},
		{`{"subtype":"mcp_set_servers","servers":{"t":{"command":"mcpsrv","args":[]}}}`, `{"added":["t"],"errors":{},"removed":[]}`, map[string]string{"s": "connected", "bad": "failed", "t": "connected"}},
		// Servers of the command line stay, unless a server with the same name replaces them.
		{`{"subtype":"mcp_set_servers","servers":{"bad":{"command":"mcpsrv","args":[]}}}`, `{"added":["bad"],"errors":{},"removed":["t"]}`, map[string]string{"s": "connected", "bad": "connected"}},
		{`{"subtype":"mcp_set_servers","servers":{}}`, `{"added":[],"errors":{},"removed":["bad"]}`, map[string]string{"s": "connected"}},
	}
	for _, step := range steps {
		if got := compactJSON(valueAt(d.request(step.request), "response")); got != step.answer {
			t.Errorf("%s is answered %s, want %s", step.request, got, step.answer)
		}
		if step.after == nil {
			continue
		}
		if diff := cmp.Diff(step.after, statuses()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.request, diff)
		}
	}
	if got := str(valueAt(d.request(`{"subtype":"mcp_reconnect","serverName":"bad"}`), "error")); got != "Server not found: bad" {
		t.Errorf("a server that is gone: %s", got)
	}
	d.end()
}

// request sends a control request and returns the answer. No other line may arrive.
func (d *dialogue) request(body string) any {
	d.t.Helper()
	d.send(`{"type":"control_request","request_id":"r","request":` + body + `}`)
	event := d.receive()
	if valueAt(event, "type") != "control_response" {
		d.t.Fatalf("no answer to %s: %s", body, compactJSON(event))
	}
	return valueAt(event, "response")
}
