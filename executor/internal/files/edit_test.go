package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/executor/internal/tool"
)

func FuzzEdit(f *testing.F) {
	f.Add("a\nb\na\n", "a", "x", true)
	f.Add("a\r\nb\r\n", "a\nb", "c", false)
	f.Add("", "", "new", false)
	f.Add("\xff\x00", "\xff", "y", false)
	f.Fuzz(func(t *testing.T, before, old, replacement string, replaceAll bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		r := runEdit(t.Context(), New(Options{Paths: tool.NewShell(tool.ShellOptions{CWD: dir})}), editInput{path, old, replacement, replaceAll})
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after := string(data)
		if r.IsError {
			if after != before {
				t.Fatalf("a refused edit changed %q to %q", before, after)
			}
			return
		}
		if old == "" || strings.Contains(before, "\r\n") {
			return
		}
		limit := 1
		if replaceAll {
			limit = -1
		}
		if want := strings.Replace(before, old, replacement, limit); after != want {
			t.Fatalf("edit of %q gives %q, want %q", before, after, want)
		}
	})
}

// A leading tab becomes two blanks in structuredPatch, and only there.
func TestPatchTabs(t *testing.T) {
	hunks := structuredPatch("a\n\tx\n", "a\n\t\ty\tz\n")
	if len(hunks) != 1 || !slices.Equal(hunks[0].Lines, []string{" a", "-  x", "+    y\tz"}) {
		t.Errorf("hunks %+v", hunks)
	}
}
