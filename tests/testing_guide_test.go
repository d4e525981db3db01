package tests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// standIn is as much of a real claude as docs/testing-your-program.md needs: it asks
// the API, runs the calls of Bash, and prints the last text.
const standIn = `#!/usr/bin/env python3
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

// TestTestingGuide does what docs/testing-your-program.md says, block by block: one
// that begins with the name of a file is that file, the others are typed into a
// shell, and what they print is compared with the block below, in which "…" is
// anything.
func TestTestingGuide(t *testing.T) {
	dir := t.TempDir()
	stand := filepath.Join(dir, "a-real-claude")
	if err := os.WriteFile(stand, []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	_, noPython := exec.LookPath("python3")
	named := regexp.MustCompile(`^(?:#!.*\n)?# (\S+\.\w+)\n`)
	blocks := regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(readFile(t, "docs/testing-your-program.md"), -1)
	ran := 0
	for i, b := range blocks {
		if m := named.FindStringSubmatch(b[2]); m != nil {
			if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(b[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b[1] != "sh" {
			continue
		}
		ran++
		if noPython != nil && strings.Contains(b[2], "--real") {
			t.Log("there is no python3 to stand in for a real claude")
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", b[2])
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "CLAUDE_BIN="+stand, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("%s: %v", b[2], err)
		}
		if i+1 == len(blocks) || blocks[i+1][1] != "text" {
			t.Fatalf("the page does not say what this prints: %s", b[2])
		}
		if want := blocks[i+1][2]; !shown(want).Match(out) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", b[2], out, want)
		}
	}
	if ran < 6 {
		t.Errorf("%d commands were tried, the page has more", ran)
	}
}
