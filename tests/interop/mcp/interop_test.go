//go:build interop

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// step is one tool call and the expected form of its result.
type step struct {
	tool, input string // input is a JSON object
	want        string // RE2, over the texts of the result
	isError     bool   // the result is an error
}

// sdkSuite is for servers made with an SDK, which have the same tools.
var sdkSuite = []step{
	{"mcp__p__echo", `{"message":"grüße \"&<>\" 🎉"}`, `^echo: grüße "&<>" 🎉$`, false},
	{"p/sum", `{"a":2,"b":40}`, `"total": ?42`, false},
	{"mcp__p__fail", `{}`, `it failed|Error executing tool fail`, true},
	{"progress", `{"steps":5}`, `^done$`, false},
	{"mcp__p__echo", `{}`, `(?i)message`, true}, // refused by the server
	{"mcp__p__nope", `{}`, `No such tool available: mcp__p__nope`, true},
	{"ListMcpResourcesTool", `{"server":"p"}`, `test://static`, false},
	{"ReadMcpResourceTool", `{"server":"p","uri":"test://static"}`, `static body`, false},
	{"ReadMcpResourceTool", `{"server":"p","uri":"test://nope"}`, `(?i)unknown|not found`, true},
	{"mcp__p__echo", `{"message":"still there"}`, `^echo: still there$`, false},
}

var everythingSuite = []step{
	{"mcp__p__echo", `{"message":"grüße 🎉"}`, `^Echo: grüße 🎉$`, false},
	{"p/get-sum", `{"a":2,"b":40}`, `42`, false},
	{"mcp__p__get-sum", `{"a":"two"}`, `(?i)invalid`, true},
	{"get-tiny-image", `{}`, `\[image\].*\[Image: source: .*\.png\]`, false},
	{"mcp__p__get-structured-content", `{"location":"New York"}`, `"temperature"`, false},
	{"mcp__p__get-resource-links", `{"count":2}`, `\[Resource link: `, false},
	{"mcp__p__get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `\[Resource from p at `, false},
	{"mcp__p__trigger-long-running-operation", `{"duration":0.3,"steps":3}`, `completed`, false},
	{"mcp__p__get-roots-list", `{}`, `file://`, false},
	{"mcp__p__trigger-elicitation-request", `{}`, `(?i)declined|cancel`, false},
	{"ListMcpResourcesTool", `{"server":"p"}`, `"uri"`, false},
	{"mcp__p__echo", `{"message":"still there"}`, `^Echo: still there$`, false},
}

var filesystemSuite = []step{
	{"mcp__p__write_file", `{"path":"a.txt","content":"line one\nline two"}`, `(?i)successfully wrote`, false},
	{"mcp__p__read_text_file", `{"path":"a.txt","head":1}`, `line one`, false},
	{"mcp__p__list_directory", `{"path":"."}`, `\[FILE\] a\.txt`, false},
	{"mcp__p__edit_file", `{"path":"a.txt","edits":[{"oldText":"one","newText":"1"}]}`, `\+line 1`, false},
	{"mcp__p__read_text_file", `{"path":"/etc/passwd"}`, `(?i)access denied`, true},
	{"mcp__p__list_allowed_directories", `{}`, `Allowed directories`, false},
}

// TestPeers runs each peer's suite over each of its transports (S51; C141–C143,
// C150).
func TestPeers(t *testing.T) {
	binary := build(t)
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			command, err := p.setUp(t)
			if err != nil {
				skipped.Lock()
				skipped.reasons = append(skipped.reasons, fmt.Sprintf("%s: %v", p.name, err))
				skipped.Unlock()
				t.Skipf("NOT TESTED: %v", err)
			}
			for _, w := range p.transports {
				t.Run(w.transport, func(t *testing.T) {
					c := client{binary: binary, dir: t.TempDir(), mark: fmt.Sprintf("interop-%d-%s", os.Getpid(), t.Name())}
					c.config = c.entry(t, command, w)
					c.run(t, p.suite)
					if p.prompt != "" {
						c.ask(t, p.prompt, p.promptText)
					}
					c.checkNothingLeft(t)
				})
			}
		})
	}
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "claudeless")
	out, err := exec.Command("go", "build", "-o", binary, "../../../cmd/claudeless").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// client runs the program against one server named p.
type client struct {
	binary, dir, config string
	mark                string // in the environment of stdio servers
}

// entry starts the server, if it is remote, and returns its configuration.
func (c client) entry(t *testing.T, command commandOf, w transportPath) string {
	t.Helper()
	e := map[string]any{}
	if w == stdio {
		argv, _ := command(w.transport, 0)
		e["command"], e["args"], e["env"] = argv[0], argv[1:], map[string]string{"INTEROP_MARK": c.mark}
	} else {
		e["type"], e["url"] = w.transport, fmt.Sprintf("http://127.0.0.1:%d%s", startPeer(t, command, w.transport), w.path)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"p": e}})
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

// outcome is one tool result.
type outcome struct {
	text    string
	isError bool
}

// start runs one prompt with a scenario. It returns the results of its calls and the final text.
func (c client) start(t *testing.T, prompt, scenario string) (results []outcome, final string) {
	t.Helper()
	path := filepath.Join(c.dir, ".scenario.toml")
	if err := os.WriteFile(path, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, c.binary, "-p", prompt, "--scenario", path, "--strict-mcp-config", "--mcp-config", c.config,
		"--allowedTools", "mcp__p", "ListMcpResourcesTool", "ReadMcpResourceTool", "--output-format", "stream-json", "--verbose")
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "CLAUDELESS_CONFIG_DIR="+filepath.Join(c.dir, ".state"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v\nstderr: %s\nstdout: %s", err, stderr.String(), stdout.String())
	}
	for line := range bytes.Lines(stdout.Bytes()) {
		var e struct {
			Type    string
			Result  string
			Message struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch e.Type {
		case "result":
			final = e.Result
		case "user":
			var blocks []struct {
				Type    string
				Content json.RawMessage
				IsError bool `json:"is_error"`
			}
			if json.Unmarshal(e.Message.Content, &blocks) != nil {
				continue
			}
			for _, b := range blocks {
				if b.Type == "tool_result" {
					results = append(results, outcome{resultTexts(b.Content), b.IsError})
				}
			}
		}
	}
	return results, final
}

// resultTexts returns the texts of a result, one per line. Other blocks are shown as [type].
func resultTexts(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	var all []string
	for _, b := range blocks {
		if b.Type != "text" {
			b.Text = "[" + b.Type + "]"
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// run makes all calls of a suite in one run of the program.
func (c client) run(t *testing.T, suite []step) {
	t.Helper()
	var toml strings.Builder
	toml.WriteString("name = \"interop\"\n[[responses]]\npattern = { type = \"any\" }\n")
	for _, s := range suite {
		fmt.Fprintf(&toml, "[[responses.response.steps]]\ntool_calls = [ { tool = %q, input = %s } ]\n", s.tool, inlineTable(t, s.input))
	}
	toml.WriteString("[[responses.response.steps]]\ntext = \"the end\"\n")
	for _, s := range suite {
		if strings.HasPrefix(s.want, "No such tool") { // an expected call of a tool that does not exist causes no warning
			fmt.Fprintf(&toml, "[[expect]]\ntool = %q\n", s.tool)
		}
	}
	results, final := c.start(t, "go", toml.String())
	if len(results) != len(suite) || final != "the end" {
		t.Fatalf("%d results for %d calls, then %q\n%+v", len(results), len(suite), final, results)
	}
	for i, s := range suite {
		got := results[i]
		// The CLI's own text about a missing resource, which some codes of servers lead to, is not an error (observed with 2.1.330).
		wantError := s.isError && !strings.HasPrefix(got.text, "Resource not found: test://nope — it may have been deleted")
		if !regexp.MustCompile(`(?s)`+s.want).MatchString(got.text) || got.isError != wantError {
			t.Errorf("%s %s: error %v, %.500s\nwant error %v, %s", s.tool, s.input, got.isError, got.text, wantError, s.want)
		}
	}
}

// ask sends a prompt of the server and checks that the conversation after it contains a text.
func (c client) ask(t *testing.T, prompt, want string) {
	t.Helper()
	scenario := fmt.Sprintf("name = \"prompt\"\n[[responses]]\npattern = { type = \"contains\", text = %q }\nresponse = \"it came\"\n"+
		"[[responses]]\npattern = { type = \"any\" }\nresponse = \"another came\"\n", want)
	if _, final := c.start(t, prompt, scenario); final != "it came" {
		t.Errorf("prompt %s: %q", prompt, final)
	}
}

// checkNothingLeft checks that no process of a stdio server is left.
func (c client) checkNothingLeft(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Second)
	for {
		left := c.remainingProcesses()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("still there: %v", left)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c client) remainingProcesses() (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environ, []byte("INTEROP_MARK="+c.mark)) {
			left = append(left, filepath.Base(filepath.Dir(path)))
		}
	}
	return left
}

// inlineTable writes a JSON object as TOML.
func inlineTable(t *testing.T, object string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatal(err)
	}
	out, err := tomlValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tomlValue(v any) (string, error) {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			text, err := tomlValue(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, fmt.Sprintf("%q = %s", k, text))
		}
		return "{ " + strings.Join(parts, ", ") + " }", nil
	case []any:
		for _, e := range v {
			text, err := tomlValue(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
		return "[ " + strings.Join(parts, ", ") + " ]", nil
	case string, float64, bool:
		text, err := json.Marshal(v)
		return string(text), err
	default:
		return "", errors.New("TOML has no null")
	}
}
