package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files of instructions in the order in which the model reads them, each once.
func TestMemories(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"user/CLAUDE.md":            "user",
		"user/rules/r.md":           "user rule",
		"up/CLAUDE.md":              "above",
		"up/p/CLAUDE.md":            "project\n@a.md, @~/home.md\n@" + filepath.ToSlash(root) + "/abs.md\n```\n@code.md\n```\n`@code.md` mail@code.md",
		"up/p/a.md":                 "a\n@CLAUDE.md\n@b.md",
		"up/p/b.md":                 "b",
		"up/p/code.md":              "never",
		"up/p/.claude/CLAUDE.md":    "dot\n<!-- not\nshown -->\nend",
		"up/p/.claude/rules/z.md":   "z",
		"up/p/.claude/rules/d/y.md": "---\npaths: [\"src/**\"]\n---\nlater",
		"up/p/CLAUDE.local.md":      "local",
		"home/home.md":              "home",
		"abs.md":                    "absolute",
	} {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := MemoryOptions{UserDir: filepath.Join(root, "user"), CWD: filepath.Join(root, "up", "p"), Home: filepath.Join(root, "home"), Project: true, Local: true}
	want := []string{
		"User user/CLAUDE.md", "User user/rules/r.md", "Project up/CLAUDE.md", "Project up/p/CLAUDE.md", "Project up/p/a.md < up/p/CLAUDE.md",
		"Project up/p/b.md < up/p/a.md", "Project home/home.md < up/p/CLAUDE.md", "Project abs.md < up/p/CLAUDE.md",
		"Project up/p/.claude/CLAUDE.md", "Project up/p/.claude/rules/z.md", "Local up/p/CLAUDE.local.md",
	}
	short := func(path string) string {
		return filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
	}
	var got []string
	for _, m := range Memories(o) {
		line := m.Type + " " + short(m.Path)
		if m.Parent != "" {
			line += " < " + short(m.Parent)
		}
		got = append(got, line)
		if strings.HasSuffix(m.Path, filepath.Join(".claude", "CLAUDE.md")) && m.Text != "dot\nend" {
			t.Errorf("a comment is read: %q", m.Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Memories(MemoryOptions{CWD: o.CWD}); got != nil {
		t.Errorf("nothing counts, and %v is found", got)
	}
}
