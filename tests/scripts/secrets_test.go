package scripts

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

// TestRecordsKeepSecretsToThemselves plays a run with secrets of every kind, plain and encoded, in every part (the
// command line, settings, the environment, prompts, replies, commands and their output, servers, hooks). None of them
// may be in the capture file, the trace of MCP messages or the debug log. The secrets are assembled here, so that no
// scanner reports them.
func TestRecordsKeepSecretsToThemselves(t *testing.T) {
	t.Parallel()
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
	secrets := plantedSecrets()
	var all strings.Builder
	for _, text := range secrets { // in random order, so that every secret is split in some run
		all.WriteString(text + "\n")
	}
	words := all.String()
	const helper = "echo key; : /run/keys/h3lperOfKeys"
	secrets["h3lperOfKeys"] = helper
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
`, quoteText(words)))
	write("servers.json", map[string]any{"mcpServers": map[string]any{
		"s":    map[string]any{"command": "mcpsrv", "env": map[string]string{"DATABASE_URL": "postgres://me:pa55w0rdInUrl@db.example/x", "API_TOKEN": "${MY_TOKEN}"}},
		"args": map[string]any{"command": "sh", "args": []string{"-c", "cat said.txt >&2; exit 3", "--token", "v4lueOfAnOption", "-u", "somebody:pa55Behind-u"}},
		"far":  map[string]any{"type": "http", "url": "http://127.0.0.1:9/mcp?token=t0kenOfAQuery", "headers": map[string]string{"Authorization": "Bearer " + knownSecret}},
		"old":  map[string]any{"type": "sse", "url": "http://me:pa55w0rdInUrl@127.0.0.1:9/sse"},
	}})
	settings := quoteText(helper)
	write("hook.sh", "cat said.txt\n")
	settings = `{"apiKeyHelper":` + settings + `,"env":{"MORE_TOKEN":` + quoteText(knownSecret) + `},"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"sh hook.sh"}]}]}}`

	cmd := exec.CommandContext(t.Context(), "claudeless", "-p", "say "+words, "--scenario", "s.toml", "--mcp-config", "servers.json", "--allowedTools", "Bash,Read,mcp__s",
		"--settings", settings, "--append-system-prompt", words, "--capture", "capture.jsonl", "--mcp-debug", "--debug-file", "debug.log", "--output-format", "stream-json", "--verbose")
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = []string{
		"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "CLAUDELESS_RETRY_SCALE=0", "MY_TOKEN=" + knownSecret, "SSHPASS=" + knownPassword,
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
		checkNoSecret(t, name, record, secrets)
	}
}

// TestReportsKeepSecretsToThemselves: the command line of exec, the expectations of its scenario, unmatched prompts and
// a leftover process contain a secret of every kind. No report, journal or log contains a secret, and each still
// contains the text around it.
func TestReportsKeepSecretsToThemselves(t *testing.T) {
	dir := t.TempDir()
	secrets := plantedSecrets()
	var words, expects strings.Builder
	for _, text := range secrets { // in random order, so that every secret is split in some run
		words.WriteString(text + "\n")
		fmt.Fprintf(&expects, "[[expect]]\nprompt = { type = \"contains\", text = %s }\n", quoteText("never "+text))
	}
	scenario := "[[responses]]\npattern = { type = \"contains\", text = " + quoteText("known "+words.String()) + " }\nresponse = \"ok\"\n" + expects.String()
	if err := os.WriteFile(filepath.Join(dir, "s.toml"), []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `claude -p "known $1" --debug-file debug.log >/dev/null; claude -p "what about $1" >/dev/null
(sleep 60 | claude -p --input-format stream-json --output-format stream-json --verbose --append-system-prompt "$1" >/dev/null 2>&1 &)
until grep -q append-system log.jsonl; do sleep 0.01; done; exit 0`
	args := []string{
		"exec", "-s", "s.toml", "--json", "r.json", "--junit", "r.xml", "--html", "r.html", "--github", "--capture", "log.jsonl", "--", "sh", "-c", script, "sh", words.String(),
		"sshpass", "-p", "pa55 OfSshpass", "curl", "-b", "session=cook1eAsArgument", "mysql", "-ppa55OfMysql",
	}
	for _, secret := range []string{"pa55 OfSshpass", "cook1eAsArgument", "pa55OfMysql"} {
		secrets[secret] = secret
	}
	cmd := exec.CommandContext(t.Context(), "claudeless", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "CLAUDELESS_RETRY_SCALE=0", "MY_TOKEN=" + knownSecret, "SSHPASS=" + knownPassword,
		"GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"), "GORACE=atexit_sleep_ms=0",
	}
	said, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("exit code %d, %v\n%s", code, err, said)
	}
	records := map[string]string{"the verdict": string(said)}
	for name, file := range map[string]string{"--json": "r.json", "--junit": "r.xml", "--html": "r.html", "the summary": "summary.md", "the capture": "log.jsonl", "the debug log": "debug.log"} {
		records[name] = readFileAt(t, filepath.Join(dir, file))
	}
	for name, parts := range map[string][]string{
		"the verdict":   {"never curl -b session=", "::error file=", "C06: claude was left running"},
		"--json":        {"never curl -b session=", `"argv"`, "sshpass", "what about"},
		"--junit":       {"never curl -b session=", "<testsuite", "what about"},
		"--html":        {"never curl -b session=", "<html", "what about"},
		"the summary":   {"never curl -b session="},
		"the capture":   {"what about", `"expectation"`, "append-system-prompt"},
		"the debug log": {"DEBUG"},
	} {
		for _, part := range parts {
			if !strings.Contains(records[name], part) {
				t.Errorf("%s never says %q:\n%s", name, part, records[name])
			}
		}
	}
	for name, record := range records {
		checkNoSecret(t, name, record, secrets)
	}
}

const (
	knownSecret   = "kn0wn-" + "v4lue+of/env="
	knownPassword = "knownWithoutAnyShape"
)

// plantedSecrets returns the secrets that no record may contain, each with its encodings. They are assembled here, so
// that no scanner reports them.
func plantedSecrets() map[string]string {
	return map[string]string{
		"pa55w0rdInUrl":             "postgres://me:pa55w0rdInUrl@db.example/x",
		"t0kenOfAQuery":             "https://h.example/p?token=t0kenOfAQuery&x=y",
		"v4lueOfAnOption":           "run --token v4lueOfAnOption --verbose",
		"pa55Behind-u":              "curl -u somebody:pa55Behind-u https://h.example",
		"cook1eOfASession":          "curl -b session=cook1eOfASession https://h.example",
		"h3aderOfACookie":           `curl -H "Cookie: a=1; session=h3aderOfACookie" https://h.example`,
		"pa55OfPgpass":              "echo localhost:5432:db:me:pa55OfPgpass >> ~/.pgpass",
		"pa55OfNetrc":               "machine h.example login me password pa55OfNetrc",
		"pa55BySshpass":             "sshpass -p pa55BySshpass ssh me@h.example",
		"AKIA" + "Q3EGRIJSU7EXAMPL": "key " + "AKIA" + "Q3EGRIJSU7EXAMPL" + ".",
		"c2lnbmF0" + "dXJlMTIz":     "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxIn0.c2lnbmF0" + "dXJlMTIz",
		"MIIEowIB" + "AAKCAQEA":     "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIB" + "AAKCAQEA\n-----END RSA " + "PRIVATE KEY-----",

		"dckr_" + "pat_Zx9-aBcDeFgHiJkLmNoPqRsTuV": "docker login with dckr_" + "pat_Zx9-aBcDeFgHiJkLmNoPqRsTuV",
		"AAHdqTcvCH1vGWJx" + "fSeofSAs0K5PALDsawX": "https://api.telegram.org/bot110201543:" + "AAHdqTcvCH1vGWJx" + "fSeofSAs0K5PALDsawX/getMe",
		"ZnCjm1XVW7vRze4b" + "7Cq4se7kKWs":         "Bot MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b" + "7Cq4se7kKWs",
		knownPassword:                              "it is " + knownPassword + ", too",
		knownSecret:                                "it is " + knownSecret + ", yes",
		url.QueryEscape(knownSecret):               "GET /x?q=" + url.QueryEscape(knownSecret),

		base64.StdEncoding.EncodeToString([]byte(knownSecret)): "Basic " + base64.StdEncoding.EncodeToString([]byte(knownSecret)),
	}
}

// quoteText returns a text as a string of TOML and JSON.
func quoteText(s string) string { raw, _ := json.Marshal(s); return string(raw) } // encoding a string cannot fail

// checkNoSecret reports the secrets that a record contains.
func checkNoSecret(t *testing.T, name, record string, secrets map[string]string) {
	t.Helper()
	for secret := range secrets {
		if at := strings.Index(record, secret); at >= 0 {
			t.Errorf("%s has %q: …%s…", name, secret, record[max(0, at-120):min(len(record), at+60)])
		}
	}
}
