package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestImportGuide runs the five commands of docs/import.md in a shell and compares the output with the page.
func TestImportGuide(t *testing.T) {
	t.Parallel()
	_, walk, _ := strings.Cut(tree.ReadFile(t, "docs/import.md"), "## A first import\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	blocks := regexp.MustCompile("(?s)```(sh|text)\n(.*?)```").FindAllStringSubmatch(walk, -1)
	sh := startShell(t)
	commands := 0
	for i, b := range blocks {
		if b[1] != "sh" {
			continue
		}
		commands++
		printed := sh.enter(b[2] + "echo status $?\n")
		want := "status 0"
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			want = blocks[i+1][2] + "…" + want
		}
		sh.until("the output "+want, func() bool { return outputPattern(want).MatchString(printed()) })
	}
	if commands != 5 {
		t.Errorf("%d commands, want 5", commands)
	}
}
