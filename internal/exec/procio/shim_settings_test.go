package procio_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/procio"
)

// The settings that a shim without a shell stores next to the binary apply to a process called claude, and to no
// other.
func TestApplyShimSettings(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "claude.env"), []byte("A=1\r\n?B=default\r\n?C=default\r\nD=C:\\\\dir\\nsecond\r\nCLAUDELESS_REAL=C:\\\\real.exe\r\nCLAUDELESS_MCP_CONFIG=one\\ntwo\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	system := func(name string) *process.System {
		return &process.System{
			Args: []string{name, "-p", "hi"}, Environ: []string{"A=caller", "B=caller"},
			Executable: func() (string, error) { return filepath.Join(dir, "claude.exe"), nil },
		}
	}
	s := procio.WithShimEnvFile(system("claude.exe"))
	got := map[string]string{}
	for _, name := range []string{"A", "B", "C", "D"} {
		got[name] = s.Getenv(name)
	}
	want := map[string]string{"A": "1", "B": "caller", "C": "default", "D": "C:\\dir\nsecond"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	argv, fault := procio.RealClaudeCommandLine(s)
	if diff := cmp.Diff([]string{"C:\\real.exe", "--mcp-config=one", "--mcp-config=two", "-p", "hi"}, argv); diff != "" || fault != "" {
		t.Errorf("the real claude, under %q (-want +got):\n%s", fault, diff)
	}
	if other := procio.WithShimEnvFile(system("claudeless.exe")); other.Getenv("A") != "caller" {
		t.Error("a process of another name got it, too")
	}
	if argv, _ := procio.RealClaudeCommandLine(system("claude")); argv != nil {
		t.Errorf("without a file there is a real claude: %q", argv)
	}
}
