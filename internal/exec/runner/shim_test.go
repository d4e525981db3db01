package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shims of Windows: a copy of the binary, a command file that calls it, and what
// both hand over.
func TestWindowsShims(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	if err := os.WriteFile(self, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	s := Setup{Self: self, Scenario: `C:\s.toml`, Journal: `C:\j.jsonl`, Config: `C:\config`, Run: "r", MCPConfig: []string{"a", "b"}}
	if err := s.windows(bin); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"claude.exe", "claude.cmd", EnvFile} {
		text, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	want := map[string]string{
		"claude.exe": "binary",
		"claude.cmd": "@\"%~dp0claude.exe\" %*\r\n",
		EnvFile: "CLAUDELESS_CAPTURE=C:\\\\j.jsonl\r\nCLAUDELESS_EXPECT=defer\r\nCLAUDELESS_SCENARIO=C:\\\\s.toml\r\nCLAUDELESS_RUN=r\r\n" +
			"CLAUDELESS_STRICT=1\r\nCLAUDELESS_MCP_CONFIG=a\\nb\r\n?CLAUDE_CONFIG_DIR=C:\\\\config\r\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
