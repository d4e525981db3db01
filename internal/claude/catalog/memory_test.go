package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Instruction files are listed in the order in which the model reads them, each once.
func TestMemories(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"user/CLAUDE.md":            "user @~/home.md",
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
	o := InstructionFileOptions{UserDir: filepath.Join(root, "user"), CWD: filepath.Join(root, "up", "p"), Home: filepath.Join(root, "home"), Project: true, Local: true}
	want := []string{
		"User user/CLAUDE.md", "User home/home.md < user/CLAUDE.md", "User user/rules/r.md", "Project up/CLAUDE.md", "Project up/p/CLAUDE.md", "Project up/p/a.md < up/p/CLAUDE.md",
		"Project up/p/b.md < up/p/a.md",
		"Project up/p/.claude/CLAUDE.md", "Project up/p/.claude/rules/z.md", "Local up/p/CLAUDE.local.md",
	}
	short := func(path string) string {
		return filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
	}
	var got []string
	for _, m := range FindInstructionFilesAtStart(o) {
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
	if got := FindInstructionFilesAtStart(InstructionFileOptions{CWD: o.CWD}); got != nil {
		t.Errorf("nothing counts, and %v is found", got)
	}
}

// Reading a file activates the user's rules, directories from the outside in, and the project's rules, each once and
// only if its patterns match the file.
func TestReached(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"user/rules/ts.md":         "---\npaths: [\"lib/*.{ts,tsx}\"]\n---\nu",
		"p/.claude/rules/all.md":   "---\npaths: \"**\"\n---\nalways",
		"p/.claude/rules/go.md":    "---\npaths: '*.go, *.mod'\n---\ngo",
		"p/.claude/rules/no.md":    "---\npaths: ./lib\n---\nnever",
		"p/.claude/rules/top.md":   "---\npaths: /a.go\n---\ntop",
		"p/lib/CLAUDE.md":          "lib\n@more.md",
		"p/lib/more.md":            "more",
		"p/lib/CLAUDE.local.md":    "local",
		"p/lib/.claude/CLAUDE.md":  "dot",
		"p/lib/.claude/rules/r.md": "rule",
		"p/lib/.claude/rules/s.md": "---\npaths:\n  - src/**\n---\nown",
		"p/lib/src/CLAUDE.md":      "src <!-- kept -->\n<!-- gone -->\nend\n",
		"outside/CLAUDE.md":        "outside",
	} {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := InstructionFileOptions{UserDir: filepath.Join(root, "user"), CWD: filepath.Join(root, "p"), Project: true, Local: true}
	for _, tt := range []struct {
		o     InstructionFileOptions
		file  string
		known string
		want  []string
	}{
		{all, "p/a.go", "", []string{"p/.claude/rules/go.md", "p/.claude/rules/top.md"}},
		{all, "p/lib/a.ts", "p/lib/more.md", []string{"user/rules/ts.md", "p/lib/CLAUDE.md", "p/lib/.claude/CLAUDE.md", "p/lib/CLAUDE.local.md", "p/lib/.claude/rules/r.md"}},
		{all, "p/lib/src/x.mod", "p/lib/CLAUDE.md", []string{
			"p/lib/.claude/CLAUDE.md", "p/lib/CLAUDE.local.md", "p/lib/.claude/rules/r.md", "p/lib/.claude/rules/s.md", "p/lib/src/CLAUDE.md", "p/.claude/rules/go.md",
		}},
		{all, "outside/f", "", nil},
		{all, "p", "", nil}, // grep -r x . searches the working directory itself (A10)
		{all, "", "", nil},
		{InstructionFileOptions{CWD: all.CWD, Local: true}, "p/lib/a.ts", "", []string{"p/lib/CLAUDE.local.md"}},
	} {
		var got []string
		for _, m := range FindInstructionFilesForAccess(tt.o, filepath.Join(root, filepath.FromSlash(tt.file)), map[string]bool{filepath.Join(root, filepath.FromSlash(tt.known)): true}) {
			got = append(got, filepath.ToSlash(strings.TrimPrefix(m.Path, root+string(filepath.Separator))))
			if strings.HasSuffix(m.Path, filepath.Join("src", "CLAUDE.md")) && (m.Text != "src <!-- kept -->\nend\n" || m.Raw == "") {
				t.Errorf("a comment is read: %q, %q", m.Text, m.Raw)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
	}
}

// AGENTS.md files count only if no CLAUDE.md file with a text does, and excluded files count as missing.
func TestAgentsMDAndExcludes(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"AGENTS.md": "up", "p/AGENTS.md": "agents\n@a.md", "p/a.md": "a", "p/CLAUDE.md": "<!-- none -->\n", "p/.claude/rules/r.md": "copy", "p/.claude/AGENTS.md": "copy\n",
		"p/c/CLAUDE.md": "c", "p/c/AGENTS.md": "never", "p/c/d/AGENTS.md": "d",
	} {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	short := func(files []InstructionFile) (names string) {
		for _, m := range files {
			names += strings.ReplaceAll(filepath.ToSlash(strings.TrimPrefix(m.Path, root)), "AGENTS", "A") + " "
		}
		return names
	}
	for _, tt := range []struct{ cwd, excluded, start, nested string }{
		{"p", "/none", "/p/.claude/rules/r.md /A.md /p/A.md /p/a.md ", "/p/c/CLAUDE.md /p/c/d/A.md "},
		{"p", "**/{a,r,CLAUDE}.md", "/A.md /p/A.md /p/.claude/A.md ", "/p/c/A.md /p/c/d/A.md "},
		{"p", "!**/p/a.md", "", ""},
		{"p/c", "**/rules/*", "/p/c/CLAUDE.md ", ""},
	} {
		o := InstructionFileOptions{CWD: filepath.Join(root, tt.cwd), Project: true, Local: true, AgentsMD: true, Excludes: []any{tt.excluded}}
		atStart := FindInstructionFilesAtStart(o)
		known := map[string]bool{}
		for _, m := range atStart {
			known[m.Path] = true
		}
		if got := short(atStart); got != tt.start {
			t.Errorf("%v: at the start %q, want %q", tt, got, tt.start)
		}
		if got := short(FindInstructionFilesForAccess(o, filepath.Join(root, "p", "c", "d", "x"), known)); got != tt.nested {
			t.Errorf("%v: nested %q, want %q", tt, got, tt.nested)
		}
	}
}
