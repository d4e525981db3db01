package mcpcmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// A change of one server leaves everything else in the file unchanged: order, numbers, other
// projects.
func TestStoreKeepsTheRest(t *testing.T) {
	b := newTestHome(t)
	before := `{
  "zeta": 9007199254740993,
  "projects": {
    "/other": {
      "mcpServers": {
        "x": {}
      }
    },
    "PROJECT": {
      "history": [
        1.50,
        "<&>"
      ]
    }
  },
  "alpha": null
}
`
	before = strings.ReplaceAll(before, "PROJECT", b.project)
	if err := os.WriteFile(b.o.Store.File, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	b.steps([]step{
		{words: []string{"add", "a", "x"}, stdout: "Added stdio MCP server a with command: x  to local config\nFile modified: $HOME/.claude.json [project: $PROJECT]\n"},
		{words: []string{"remove", "a"}, stdout: "Removed MCP server \"a\" from local config\nFile modified: $HOME/.claude.json [project: $PROJECT]\n"},
	})
	after, err := os.ReadFile(b.o.Store.File)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(before, "        \"<&>\"\n      ]\n", "        \"<&>\"\n      ],\n      \"mcpServers\": {}\n", 1)
	if diff := cmp.Diff(want, string(after)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	info, err := os.Stat(b.o.Store.File)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; want it kept", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(b.home, "*.json*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files %v, %v; want one", left, err)
	}
}

func TestStoreFollowsLinks(t *testing.T) {
	b := newTestHome(t)
	target := filepath.Join(b.home, "dotfiles.json")
	if err := os.WriteFile(target, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, b.o.Store.File); err != nil {
		t.Fatal(err)
	}
	b.run("add", "a", "x")
	data, err := os.ReadFile(target)
	if err != nil || !strings.Contains(string(data), `"a"`) {
		t.Errorf("the file behind the link: %s %v", data, err)
	}
}

// A file that cannot be read is never overwritten.
func TestStoreBroken(t *testing.T) {
	for _, text := range []string{`{"projects":`, `[]`, `{"projects":5}`} {
		b := newTestHome(t)
		if err := os.WriteFile(b.o.Store.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, ok := b.run("add", "a", "x"); ok || !strings.Contains(stderr, ".claude.json") {
			t.Errorf("%s: success %v, stderr %q", text, ok, stderr)
		}
		if data, err := os.ReadFile(b.o.Store.File); err != nil || string(data) != text {
			t.Errorf("%s became %s, %v", text, data, err)
		}
	}
	b := newTestHome(t)
	b.o.Store.File = ""
	if _, stderr, ok := b.run("add", "a", "x"); ok || stderr == "" {
		t.Errorf("without a home: success %v, stderr %q", ok, stderr)
	}
	if _, stderr, ok := b.run("list"); !ok {
		t.Errorf("list without a home: %q", stderr)
	}
}

// M3: .mcp.json has precedence over user scope, and local scope over .mcp.json.
func TestScopeOrder(t *testing.T) {
	b := newTestHome(t)
	for _, scope := range []string{"user", "project", "local"} {
		b.run("add", "-s", scope, "s", scope)
		config, err := b.o.configuredServers()
		if err != nil || len(config.Servers) != 1 || config.Servers[0].Command != scope || config.Servers[0].Source != scope {
			t.Errorf("%s: got %+v, %v", scope, config.Servers, err)
		}
	}
}

func TestApproves(t *testing.T) {
	b := newTestHome(t)
	text, err := json.Marshal(map[string]any{"projects": map[string]any{b.project: map[string]any{"enabledMcpjsonServers": []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.o.Store.File, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if !b.o.Store.Approves("a") || b.o.Store.Approves("b") {
		t.Error("want a approved and b not")
	}
}

// FuzzObject: an object is unchanged after it is read and written.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `{"a":{"b":[1.50,"<"]}}`, `[]`, `{"a":}`, "{\"\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := plainjson.ParseKeepingLastDuplicates(data)
		if err != nil {
			return
		}
		again, err := plainjson.ParseKeepingLastDuplicates([]byte(o.Indented()))
		if err != nil {
			t.Fatalf("%q was written as %q: %v", data, o.Indented(), err)
		}
		var want, got any
		if json.Unmarshal(data, &want) != nil || json.Unmarshal(again.Raw(), &got) != nil {
			t.Fatalf("%q cannot be read back", data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-before +after):\n%s", data, diff)
		}
	})
}

// reset-project-choices removes the choices about servers of .mcp.json, and no other choices.
func TestResetProjectChoices(t *testing.T) {
	b := newTestHome(t)
	local := filepath.Join(b.project, ".claude", "settings.local.json")
	if err := os.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		t.Fatal(err)
	}
	const choices = `"enabledMcpjsonServers":["a"],"disabledMcpjsonServers":["b"],"enableAllProjectMcpServers":true,`
	for file, content := range map[string]string{
		filepath.Join(b.project, ".mcp.json"): `{"mcpServers":{"a":{"command":"true"}}}`,
		b.o.Store.File:                        `{"projects":{"` + b.project + `":{` + choices + `"allowedTools":[]}}}`, local: `{` + choices + `"model":"haiku"}`,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reset := step{words: []string{"reset-project-choices"}, stdout: "Project-scoped (.mcp.json) server approvals and rejections stored for this project have been reset.\nYou will be prompted for approval next time you start Claude Code.\n"}
	b.steps([]step{reset, reset})
	for file, want := range map[string]string{b.o.Store.File: `{"projects":{"` + b.project + `":{"allowedTools":[]}}}`, local: `{"model":"haiku"}`} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got, expected any
		if json.Unmarshal(raw, &got) != nil || json.Unmarshal([]byte(want), &expected) != nil || !cmp.Equal(got, expected) {
			t.Errorf("%s holds %s, want %s", file, raw, want)
		}
	}
}
