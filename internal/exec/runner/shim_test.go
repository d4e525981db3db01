package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shims on Windows: a copy of the binary, a command file that calls it, and the arguments that both pass on.
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
	s := ClaudeSetup{Executable: self, Scenario: `C:\s.toml`, Journal: `C:\j.jsonl`, Config: `C:\config`, RunID: "r", MCPConfig: []string{"a", "b"}}
	if err := s.createWindowsShims(bin); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"claude.exe", "claude.cmd", WindowsShimSettingsFileName} {
		text, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	want := map[string]string{
		"claude.exe": "binary",
		"claude.cmd": "@\"%~dp0claude.exe\" %*\r\n",
		WindowsShimSettingsFileName: "CLAUDELESS_CAPTURE=C:\\\\j.jsonl\r\nCLAUDELESS_EXPECT=defer\r\nCLAUDELESS_SCENARIO=C:\\\\s.toml\r\nCLAUDELESS_RUN=r\r\n" +
			"CLAUDELESS_STRICT=1\r\nCLAUDELESS_MCP_CONFIG=a\\nb\r\n?CLAUDE_CONFIG_DIR=C:\\\\config\r\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Names of the real CLI are links into its packages. Excluded are claude itself, which always has a shim, this binary,
// and files that only contain the word in their path.
func TestRealNames(t *testing.T) {
	dir := t.TempDir()
	pkg := filepath.Join(dir, "lib", "@anthropic-ai", "claude-code")
	bin, more := filepath.Join(dir, "bin"), filepath.Join(dir, "more")
	for _, d := range []string{pkg, bin, more, filepath.Join(dir, "claude-tools")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	installed, self, tool := filepath.Join(pkg, "cli.js"), filepath.Join(pkg, "double"), filepath.Join(dir, "claude-tools", "tool")
	for _, file := range []string{installed, self, tool, filepath.Join(bin, "plain-claude")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		filepath.Join(bin, "claude"): installed, filepath.Join(bin, "cl"): installed, filepath.Join(bin, "me"): self,
		filepath.Join(bin, "tool"): tool, filepath.Join(bin, "gone"): filepath.Join(pkg, "gone"),
		filepath.Join(more, "cl"): installed, filepath.Join(more, "ai"): installed,
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	self, err := filepath.EvalSymlinks(self)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{bin, more, bin, filepath.Join(dir, "none")}, string(filepath.ListSeparator))
	if diff := cmp.Diff([]string{"cl", "ai"}, NamesOfLinksToRealCLI(path, self)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
