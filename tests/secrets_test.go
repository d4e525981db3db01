package tests

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordsKeepSecretsToThemselves: a run in which every part knows a secret of every kind (the command line, settings, the
// environment, prompts, replies, commands and their output, servers, hooks), plain and encoded. Neither the capture file nor the
// trace of MCP messages nor the debug log has one of them. What is planted is put together here, so that no scanner finds it.
func TestRecordsKeepSecretsToThemselves(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, value any) {
		t.Helper()
		data, isText := value.(string)
		if !isText {
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			data = string(raw)
		}
		if err := os.WriteFile(filepath.Join(dir, "work", name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known := "kn0wn-" + "v4lue+of/env="
	secrets := map[string]string{ // what must not be found, and how it is written
		"pa55w0rdInUrl":             "postgres://me:pa55w0rdInUrl@db.example/x",
		"t0kenOfAQuery":             "https://h.example/p?token=t0kenOfAQuery&x=y",
		"v4lueOfAnOption":           "run --token v4lueOfAnOption --verbose",
		"pa55Behind-u":              "curl -u somebody:pa55Behind-u https://h.example",
		"AKIA" + "Q3EGRIJSU7EXAMPL": "key " + "AKIA" + "Q3EGRIJSU7EXAMPL" + ".",
		"c2lnbmF0" + "dXJlMTIz":     "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxIn0.c2lnbmF0" + "dXJlMTIz",
		"MIIEowIB" + "AAKCAQEA":     "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIB" + "AAKCAQEA\n-----END RSA " + "PRIVATE KEY-----",
		known:                       "it is " + known + ", yes",
		url.QueryEscape(known):      "GET /x?q=" + url.QueryEscape(known),
		base64.StdEncoding.EncodeToString([]byte(known)): "Basic " + base64.StdEncoding.EncodeToString([]byte(known)),
	}
	var all strings.Builder
	for _, text := range secrets {
		all.WriteString(text + "\n")
	}
	words := all.String()
	const helper = "cat /run/keys/h3lperOfKeys"
	secrets["h3lperOfKeys"] = helper
	quoted := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }

	write("said.txt", words)
	write("s.toml", fmt.Sprintf(`[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
thinking = %[1]s
text = %[1]s
tool_calls = [
  { tool = "Bash", input = { command = "cat said.txt; cat said.txt >&2", description = %[1]s } },
  { tool = "Read", input = { file_path = "said.txt" } },
  { tool = "mcp__s__echo", input = { text = %[1]s } },
  { tool = "mcp__s__nope", input = { text = %[1]s } },
  { tool = "Task", input = { description = "d", prompt = %[1]s, subagent_type = "general-purpose", run_in_background = false } },
]
[[responses.response.steps]]
text = %[1]s
`, quoted(words)))
	write("servers.json", map[string]any{"mcpServers": map[string]any{
		"s":    map[string]any{"command": "mcpsrv", "env": map[string]string{"DATABASE_URL": "postgres://me:pa55w0rdInUrl@db.example/x", "API_TOKEN": "${MY_TOKEN}"}},
		"args": map[string]any{"command": "sh", "args": []string{"-c", "cat said.txt >&2; exit 3", "--token", "v4lueOfAnOption", "-u", "somebody:pa55Behind-u"}},
		"far":  map[string]any{"type": "http", "url": "http://127.0.0.1:9/mcp?token=t0kenOfAQuery", "headers": map[string]string{"Authorization": "Bearer " + known}},
		"old":  map[string]any{"type": "sse", "url": "http://me:pa55w0rdInUrl@127.0.0.1:9/sse"},
	}})
	settings := quoted(helper)
	write("hook.sh", "cat said.txt\n")
	settings = `{"apiKeyHelper":` + settings + `,"env":{"MORE_TOKEN":` + quoted(known) + `},"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"sh hook.sh"}]}]}}`

	cmd := exec.CommandContext(t.Context(), "claudeless", "-p", "say "+words, "--scenario", "s.toml", "--mcp-config", "servers.json", "--allowedTools", "Bash,Read,mcp__s",
		"--settings", settings, "--append-system-prompt", words, "--capture", "capture.jsonl", "--mcp-debug", "--debug-file", "debug.log", "--output-format", "stream-json", "--verbose")
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = []string{
		"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_RETRY_SCALE=0", "MY_TOKEN=" + known,
		"GORACE=atexit_sleep_ms=0",
	}
	var trace strings.Builder
	cmd.Stderr = &trace
	shown, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	for _, part := range []string{"t0kenOfAQuery", "postgres://me:pa55w0rdInUrl", "kn0wn-"} {
		if !strings.Contains(string(shown), part) {
			t.Fatalf("the run never came to %q:\n%s", part, shown)
		}
	}
	records := map[string]string{"the trace": trace.String(), "the capture": readFileAt(t, filepath.Join(cmd.Dir, "capture.jsonl")), "the debug log": readFileAt(t, filepath.Join(cmd.Dir, "debug.log"))}
	for name, least := range map[string]int{"the trace": 10, "the capture": 15, "the debug log": 5} {
		if n := strings.Count(records[name], "\n"); n < least {
			t.Errorf("%s has %d lines:\n%s", name, n, records[name])
		}
	}
	for name, record := range records {
		for secret := range secrets {
			if at := strings.Index(record, secret); at >= 0 {
				t.Errorf("%s has %q: …%s…", name, secret, record[max(0, at-120):min(len(record), at+60)])
			}
		}
	}
}
