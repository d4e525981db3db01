package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openFiles returns the files below dir that this process has open, if the system can tell.
func openFiles(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Skip("the system does not tell which files are open")
	}
	var open []string
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir) {
			open = append(open, path)
		}
	}
	return open
}

// A run that ends early closes the journal and the debug log.
func TestEarlyEndsCloseTheirFiles(t *testing.T) {
	for name, args := range map[string]string{
		"no prompt":                       "-p",
		"a debug log that is a directory": "-p hi --debug-file .",
		"a broken server":                 "-p hi --mcp-require --mcp-config {\"mcpServers\":{\"s\":{\"command\":\"/nowhere\"}}}",
	} {
		t.Run(name, func(t *testing.T) {
			s, _, stderr := fakeSystem(t, append(strings.Fields(args), "--capture", "j.jsonl")...)
			dir, err := s.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			if !slices.Contains(s.Args, "--debug-file") {
				s.Args = append(s.Args, "--debug-file", filepath.Join(dir, "log.txt"))
			}
			s.Environ = []string{"HOME=" + dir, "CLAUDE_CONFIG_DIR=" + filepath.Join(dir, "state")}
			if code := Run(t.Context(), s); code == 0 {
				t.Fatal("the run was to fail")
			}
			if _, err := os.Stat(filepath.Join(dir, "j.jsonl")); err != nil {
				t.Fatalf("no journal: %v; %s", err, stderr)
			}
			if open := openFiles(t, dir); len(open) > 0 {
				t.Errorf("still open: %v", open)
			}
		})
	}
}
