//go:build interop

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oauthFaults are the faults of N23, and the case without a fault.
var oauthFaults = []string{
	"ok", "401-once", "403-always", "expires-early", "issuer-wrong", "metadata-404", "refresh-invalid-grant", "refresh-race",
	"refresh-scope-lost", "registration-refused", "resource-mismatch", "slow-token", "token-endpoint-html",
}

// oauthScenario calls the tool that the prompt names.
const oauthScenario = `[[responses]]
pattern = { type = "contains", text = "read" }
[[responses.response.steps]]
tool_calls = [{ tool = "mcp__rows__list_rows", input = {} }]
[[responses.response.steps]]
text = "done"
[[responses]]
pattern = { type = "contains", text = "delete" }
[[responses.response.steps]]
tool_calls = [{ tool = "mcp__rows__delete_row", input = {} }]
[[responses.response.steps]]
text = "done"
`

// oauthFixture is the server; %s is its fault. A login requests all scopes, because the real CLI requests all scopes of
// the server.
const oauthFixture = `name = "rows"
seed = 7
[server.oauth]
scopes = ["mcp:read", "mcp:write"]
access_ttl = "1h"
[[tools]]
tool = "list_rows"
result.text = "1, 2, 3"
[[tools]]
tool = "delete_row"
scope = "mcp:write"
result.text = "gone"
[faults]
names = "%s"
delay_ms = 300
`

// oauthSession logs in twice, in a pseudo-terminal whose input stays open, and makes calls before and after the token
// has expired.
const oauthSession = `
claudeless fixture serve rows.toml --http 127.0.0.1:4000 --port-file port --capture oauth.jsonl >/dev/null 2>&1 & server=$!
for i in $(seq 200); do [ -s port ] && break; sleep 0.05; done
export BROWSER="$PWD/browser"
login() {
  rm -f ended
  while [ ! -e ended ]; do sleep 0.1; done | { timeout 40 script -qec "claude mcp login rows" /dev/null >"login-$1"; echo "login $1: exit $?" >>codes; touch ended; }
}
run() {
  timeout 60 claude -p "$1" --allowedTools mcp__rows --output-format stream-json --verbose </dev/null >"$1.jsonl" 2>"$1.err"
  echo "run $1: exit $?" >>codes
}
claude mcp add --transport http -s user rows http://127.0.0.1:4000/mcp >/dev/null
run read-0
login 1
run read-1
curl -s -X POST -o /dev/null http://127.0.0.1:4000/_claudeless/oauth/expire
run read-2
run delete-3
login 2
run delete-4
claude mcp logout rows >logout
run read-5
kill $server
wait $server 2>/dev/null
exit 0
`

// TestOAuthSessions_N23N30N31 compares logins, calls and refreshes of claudeless and of the real CLI: exit codes,
// texts, results, and the requests to the authorization server. Without -short it does so under each fault.
func TestOAuthSessions_N23N30N31(t *testing.T) {
	binary := build(t)
	real, err := realCLI(t)
	if err != nil {
		skipTest(t, "the real CLI", err)
	}
	faults := oauthFaults
	if testing.Short() {
		faults = faults[:1]
	}
	for _, fault := range faults {
		t.Run(fault, func(t *testing.T) {
			theirs := oauthOutcome(t, binary, real, fault)
			ours := oauthOutcome(t, binary, "", fault)
			if fault == "ok" && strings.Count(theirs, "gone") != 2 {
				t.Errorf("the real CLI is not logged in:\n%s", theirs)
			}
			if text := withoutReconnects.ReplaceAllString(theirs, ""); text != theirs {
				theirs, ours = refusalPattern.ReplaceAllString(text, ""), refusalPattern.ReplaceAllString(ours, "")
			}
			if fault == "issuer-wrong" {
				theirs, ours = loginDetails.ReplaceAllString(theirs, ""), loginDetails.ReplaceAllString(ours, "")
			}
			if diff := cmp.Diff(strings.TrimSpace(theirs), strings.TrimSpace(ours)); diff != "" {
				t.Errorf("outcome (-real +double):\n%s", diff)
			}
		})
	}
}

var (
	// If the model calls a tool of a disconnected server, the real CLI tries to connect once more and reports this to the
	// model. claudeless does not. Both refuse the call.
	withoutReconnects = regexp.MustCompile(`\. Claude Code (connected to|tried to connect to) MCP server [^<]*`)
	refusalPattern    = regexp.MustCompile(`(?m)^access invalid_token\n?`)
	// claudeless compares the issuer in the metadata with the address of the metadata, as the specification requires. The
	// real CLI compares it in the answer to the login. Both logins fail.
	loginDetails = regexp.MustCompile(`(?m)^(authorize ok.*|(login-\d: .*Couldn't complete authentication for "rows": ).*)\n?`)
)

// oauthOutcome plays the session and returns its outcome.
func oauthOutcome(t *testing.T, binary, real, fault string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s.toml": oauthScenario, "rows.toml": fmt.Sprintf(oauthFixture, fault), "session.sh": oauthSession,
		"browser": "#!/bin/sh\ncurl -sL -o /dev/null \"$1\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out := playIsolated(t, binary, real, dir, nil)
	text := fileText(t, dir, "codes")
	for _, name := range []string{"read-0", "read-1", "read-2", "delete-3", "delete-4", "read-5"} {
		text += name + ": " + strings.Join(toolResults(fileText(t, dir, name+".jsonl")), "; ") + fileText(t, dir, name+".err") + "\n"
	}
	for _, name := range []string{"login-1", "login-2", "logout"} {
		text += name + ": " + lastLine(fileText(t, dir, name)) + "\n"
	}
	text += strings.Join(oauthLines(t, filepath.Join(dir, "oauth.jsonl")), "\n")
	if testing.Verbose() {
		t.Logf("%s\n%s", text, out)
	}
	return text
}

func fileText(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// toolResults returns the states of the server and the texts of results in a stream.
func toolResults(stream string) (all []string) {
	for line := range strings.Lines(stream) {
		var e struct {
			Type    string
			Message struct{ Content json.RawMessage }
			Servers []struct{ Status string } `json:"mcp_servers"`
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		for _, s := range e.Servers {
			all = append(all, s.Status)
		}
		var blocks []struct {
			Type    string
			Content json.RawMessage
			IsError bool `json:"is_error"`
		}
		if e.Type != "user" || json.Unmarshal(e.Message.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				all = append(all, fmt.Sprintf("error %t: %s", b.IsError, resultTexts(b.Content)))
			}
		}
	}
	return all
}

// escapePattern matches escape sequences of terminals.
var escapePattern = regexp.MustCompile(`\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\))`)

// lastLine returns the last line of a terminal that is not empty, without the question at its beginning.
func lastLine(text string) string {
	last := ""
	for line := range bytes.Lines([]byte(escapePattern.ReplaceAllString(text, ""))) {
		if line := bytes.TrimSpace(line); len(line) > 0 {
			last = string(line)
		}
	}
	return strings.TrimPrefix(last, "Or paste the redirect URL here: ")
}
