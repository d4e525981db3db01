package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// fakeClaude has the functions of a real claude that docs/testing-your-program.md needs: it sends requests to the API,
// runs Bash calls, and prints the last text.
const fakeClaude = `#!/usr/bin/env python3
import json, os, subprocess, sys, urllib.request
messages = [{"role": "user", "content": sys.argv[sys.argv.index("-p") + 1]}]
while True:
    body = {"model": "claude-opus-5-5", "max_tokens": 1000, "messages": messages, "tools": [{"name": "Bash", "input_schema": {"type": "object"}}]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), {
        "content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": os.environ["ANTHROPIC_API_KEY"]})
    message = json.load(urllib.request.urlopen(request))
    messages.append({"role": "assistant", "content": message["content"]})
    calls = [b for b in message["content"] if b["type"] == "tool_use"]
    if not calls:
        print("".join(b["text"] for b in message["content"] if b["type"] == "text"))
        break
    messages.append({"role": "user", "content": [{
        "type": "tool_result", "tool_use_id": c["id"],
        "content": subprocess.run(c["input"]["command"], shell=True, capture_output=True, text=True).stdout} for c in calls]})
`

// TestTestingGuide executes docs/testing-your-program.md block by block.
func TestTestingGuide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stand := filepath.Join(dir, "a-real-claude")
	if err := os.WriteFile(stand, []byte(fakeClaude), 0o700); err != nil {
		t.Fatal(err)
	}
	_, noPython := exec.LookPath("python3")
	ran := (&page{dir: dir, env: []string{"CLAUDE_BIN=" + stand}}).runBlocks(t, tree.ReadFile(t, "docs/testing-your-program.md"), func(command string) string {
		if noPython != nil && strings.Contains(command, "--real") {
			return "there is no python3 to stand in for a real claude"
		}
		return ""
	})
	if ran < 5 {
		t.Errorf("%d commands were tried, the page has more", ran)
	}
}
