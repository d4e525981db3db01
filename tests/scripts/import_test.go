package scripts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// R1, R3: a random scenario is played, each kind of recording is imported and played again, and the normalised events
// must be equal, as --check verifies.
func TestImportedSessionsPlayTheSame(t *testing.T) {
	t.Parallel()
	const rounds = 8
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			importedPlaysTheSame(t, rand.New(rand.NewPCG(seed, 16)))
		})
	}
}

func importedPlaysTheSame(t *testing.T, r *rand.Rand) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdin := ""
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "claudeless", args...) // the program on PATH, because it starts itself as a child, too
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=x", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "CLAUDELESS_RETRY_SCALE=0", "GORACE=atexit_sleep_ms=0"}
		var stderr strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
		out, err := cmd.Output()
		if err != nil && args[0] != "-p" { // the prompt may fail; it is still imported
			scenario, _ := os.ReadFile(filepath.Join(dir, args[len(args)-2], "scenario.toml")) // of an import
			t.Errorf("%v: %v\n%s\n%s", args, err, stderr.String(), scenario)
		}
		return string(out)
	}
	prompts := append([]string{"begin the work"}, []string{"go on with part two", "and what of 42 apples?", "end {{ it }} now"}[:r.IntN(4)]...)
	write("s.toml", randomScenario(r, prompts))
	write("mcp.json", `{"mcpServers":{"weather":{"command":"${CLAUDELESS_BIN}","args":["fixture","serve","weather"]}}}`)
	write("a.txt", "one\ntwo\n")
	write("settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Read","hooks":[{"type":"command","command":"exit `+fmt.Sprint(2*r.IntN(2))+`"}]}]}}`)
	args := []string{
		"-p", "--input-format", "stream-json", "--scenario", "s.toml", "--mcp-config", "mcp.json", "--output-format", "stream-json", "--verbose",
		"--capture", "journal.jsonl", "--settings", "settings.json", "--allowedTools", "Bash,Read,Agent,mcp__weather__forecast_get",
	}
	if r.IntN(2) == 0 {
		args = append(args, "--replay-user-messages")
	}
	stdin = promptFrames(t, prompts)
	write("log.jsonl", run(args...))
	stdin = ""
	transcripts, err := filepath.Glob(filepath.Join(dir, ".claudeless", "projects", "*", "*.jsonl"))
	if err != nil || len(transcripts) != 1 {
		t.Fatalf("transcripts: %v, %v", transcripts, err)
	}
	write("tape.jsonl", tapeOf(t, prompts, readFileAt(t, filepath.Join(dir, "log.jsonl"))))
	write("traffic.jsonl", recordedTraffic(t, dir, prompts, r))
	check := []string{"check"}
	for i, record := range []string{transcripts[0], "log.jsonl", "journal.jsonl", "tape.jsonl", "traffic.jsonl"} {
		kit := fmt.Sprint("kit", i)
		run("import", record, "-o", kit, "--check")
		check = append(check, kit+"/scenario.toml", kit+"/mcp.json")
	}
	run(check...)
}

// promptFrames returns prompts as a host sends them.
func promptFrames(t *testing.T, prompts []string) string {
	t.Helper()
	var b strings.Builder
	for _, p := range prompts {
		frame, err := json.Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": p}})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(frame, '\n'))
	}
	return b.String()
}

// randomScenario returns a scenario that answers each prompt in some steps.
func randomScenario(r *rand.Rand, prompts []string) string {
	var b strings.Builder
	for _, p := range prompts {
		b.WriteString(randomRule(r, p))
	}
	return b.String()
}

func randomRule(r *rand.Rand, prompt string) string {
	texts := []string{"plain", `it's "quoted" \ and '''more'''`, "two\nlines\n\nand\ttab", "{{ \"{{\" }} no template }}", "ünï \u2028 cödé", `{"json":[1,null]}`}
	text := func() string { return tomlString(texts[r.IntN(len(texts))]) }
	const agent = `{ tool = "Agent", input = { description = "d", prompt = "go", subagent_type = "general-purpose" }, subagent = { background = false, steps = [` +
		`{ text = %s, tool_calls = [{ tool = "Read", input = { file_path = "{{ cwd }}/a.txt" } }] }, { text = "agent done" }] } }`
	call := func() string {
		calls := []string{
			fmt.Sprintf(`{ tool = "Bash", input = { command = "echo %d; false" } }`, r.IntN(100)),
			`{ tool = "Read", input = { file_path = "{{ cwd }}/a.txt" } }`,
			`{ tool = "Write", input = { file_path = "{{ cwd }}/b.txt", content = "x" } }`,
			`{ tool = "weather/forecast_get", input = { city = "Oslo" } }`,
			`{ tool = "weather/forecast_get", input = { city = 7 } }`,
			`{ tool = "Nonsense", input = { a = 1.5, b = [true], "c d" = { e = "" } } }`,
			fmt.Sprintf(agent, text()),
		}
		return calls[r.IntN(len(calls))]
	}
	var b strings.Builder
	b.WriteString("[[responses]]\npattern = { type = \"exact\", text = " + tomlString(prompt) + " }\n")
	for range 1 + r.IntN(4) {
		b.WriteString("[[responses.response.steps]]\n")
		if r.IntN(2) == 0 {
			b.WriteString("text = " + text() + "\n")
		}
		var some []string
		for range 1 + r.IntN(3) {
			some = append(some, call())
		}
		b.WriteString("tool_calls = [" + strings.Join(some, ", ") + "]\n")
	}
	b.WriteString("[[responses.response.steps]]\n")
	if r.IntN(4) == 0 {
		b.WriteString("failure = { type = \"api_error\", status = 400, message = \"no such thing\" }\n")
	} else {
		b.WriteString("text = " + text() + "\n")
	}
	return b.String()
}

// tomlString returns a TOML basic string.
func tomlString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

func readFileAt(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tapeOf converts a log to an SDK recording: the frames of both directions, each prompt after the result of the
// previous one.
func tapeOf(t *testing.T, prompts []string, log string) string {
	t.Helper()
	var b strings.Builder
	typed := strings.SplitAfter(promptFrames(t, prompts), "\n")
	sent := func() {
		fmt.Fprintf(&b, `{"direction":"in","frame":%s}`+"\n", strings.TrimSuffix(typed[0], "\n"))
		typed = typed[1:]
	}
	sent()
	for line := range strings.Lines(log) {
		fmt.Fprintf(&b, `{"direction":"out","frame":%s}`+"\n", strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(line, `{"type":"result"`) && len(typed) > 1 {
			sent()
		}
	}
	return b.String()
}

// recordedTraffic returns the recording of serve --record between a client and serve.
func recordedTraffic(t *testing.T, dir string, prompts []string, r *rand.Rand) string {
	t.Helper()
	api, _ := startServe(t, dir, "s.toml")
	recorder, stop := startServe(t, dir, "--record", api, "--capture", "record.jsonl")
	client := apiClient{url: recorder + "/v1/messages", session: "5e550000-0000-4000-8000-00000000000" + fmt.Sprint(r.IntN(10)), stream: r.IntN(2) == 0}
	client.converse(t, prompts)
	stop() // after that, the file is complete
	return readFileAt(t, filepath.Join(dir, "record.jsonl"))
}

// startServe starts serve and returns its address. stop stops it; otherwise it is stopped at the end of the test.
func startServe(t *testing.T, dir string, args ...string) (url string, stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "claudeless", append([]string{"serve"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have exited
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(stderr).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("serve %v says %q, %v", args, line, err)
	}
	return url, stop
}

// apiClient is an agent that runs no tool.
type apiClient struct {
	url, session string
	stream       bool
}

func (c apiClient) converse(t *testing.T, prompts []string) {
	t.Helper()
	var messages []any
	for _, p := range prompts {
		messages = c.turn(t, append(messages, map[string]any{"role": "user", "content": p}))
		if messages == nil {
			return // a client that failed asks no more
		}
	}
}

// turn runs one prompt to its end and returns the conversation; nil means it failed.
func (c apiClient) turn(t *testing.T, messages []any) []any {
	t.Helper()
	var tools []any
	for _, name := range []string{"Bash", "Read", "Write", "Agent", "Nonsense", "mcp__weather__forecast_get"} {
		tools = append(tools, map[string]any{"name": name, "input_schema": map[string]any{"type": "object"}})
	}
	const most = 20
	for range most {
		body, err := json.Marshal(map[string]any{"model": "claude-sonnet-5-5", "max_tokens": 4096, "messages": messages, "tools": tools, "stream": c.stream})
		if err != nil {
			t.Fatal(err)
		}
		said := c.ask(t, body)
		if said == nil {
			return nil
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": said})
		var results []any
		for _, b := range said {
			if b["type"] == "tool_use" {
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": b["id"], "content": fmt.Sprintf("result of %v", b["name"])})
			}
		}
		if len(results) == 0 {
			return messages
		}
		messages = append(messages, map[string]any{"role": "user", "content": results})
	}
	t.Errorf("no end after %d requests", most)
	return nil
}

// ask returns the blocks of the answer, streamed or not; nil means it failed.
func (c apiClient) ask(t *testing.T, body []byte) []map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "any")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Claude-Code-Session-Id", c.session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	if !c.stream {
		var m struct{ Content []map[string]any }
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m.Content
	}
	return joinStream(t, string(data))
}

// joinStream assembles the blocks of a stream.
func joinStream(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var blocks []map[string]any
	inputs := map[int]string{}
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data:")
		var ev struct {
			Type  string
			Index int
			Block map[string]any `json:"content_block"`
			Delta struct {
				Text        string
				PartialJSON string `json:"partial_json"`
			}
		}
		if !ok || json.Unmarshal([]byte(data), &ev) != nil {
			continue
		}
		switch ev.Type {
		case "content_block_start":
			blocks = append(blocks, ev.Block)
		case "content_block_delta":
			if b := blocks[ev.Index]; b["type"] == "text" {
				b["text"] = fmt.Sprint(b["text"]) + ev.Delta.Text
			}
			inputs[ev.Index] += ev.Delta.PartialJSON
		}
	}
	for i, in := range inputs {
		if blocks[i]["type"] == "tool_use" {
			blocks[i]["input"] = json.RawMessage(in)
		}
	}
	return blocks
}
