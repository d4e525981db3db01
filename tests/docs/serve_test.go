package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestServeClients checks that the client code in docs/serve.md is part of the programs that make interop runs.
func TestServeClients(t *testing.T) {
	var programs strings.Builder
	err := filepath.WalkDir("../interop/api", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		programs.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	have := regexp.MustCompile(`os\.environ\["API"\]|process\.env\.API|os\.Getenv\("API"\)`).ReplaceAllString(programs.String(), `"http://127.0.0.1:8080"`)
	_, clients, _ := strings.Cut(tree.ReadFile(t, "docs/serve.md"), "\n## Clients\n")
	clients, _, _ = strings.Cut(clients, "\n## ")
	lines := 0
	for _, block := range regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(clients, -1) {
		for line := range strings.Lines(block[1]) {
			if lines++; !strings.Contains(have, strings.TrimSpace(line)) {
				t.Errorf("docs/serve.md: no program of tests/interop/api has the line\n%s", line)
			}
		}
	}
	if lines < 8 {
		t.Errorf("%d lines found: does the expression still fit?", lines)
	}
}
