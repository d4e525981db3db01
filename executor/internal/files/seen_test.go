package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Regions of changed lines have eight neighbors on each side; a long snippet ends with a whole line.
func TestSnippet(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for n := from; n <= to; n++ {
			fmt.Fprintf(&b, "%d\n", n)
		}
		return b.String()
	}
	for _, c := range []struct{ name, before, after, want string }{
		{"appended", "one\n", "one\ntwo\n", "1\tone\n2\ttwo"},
		{"no line break at the end", "a\nb", "a\nbc", "1\ta\n2\tbc"},
		{"emptied", "x\n", "", ""},
		{"removed", numbers(1, 20), numbers(1, 9) + numbers(12, 20), "2\t2\n3\t3\n4\t4\n5\t5\n6\t6\n7\t7\n8\t8\n9\t9\n10\t12\n11\t13\n12\t14\n13\t15\n14\t16\n15\t17\n16\t18\n17\t19"},
		{"two regions", numbers(1, 30), "0\n" + numbers(1, 29), "1\t0\n2\t1\n3\t2\n4\t3\n5\t4\n6\t5\n7\t6\n8\t7\n9\t8\n...\n23\t22\n24\t23\n25\t24\n26\t25\n27\t26\n28\t27\n29\t28\n30\t29"},
	} {
		if diff := cmp.Diff(c.want, changedLinesSnippet(c.before, c.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := changedLinesSnippet("", numbers(1, 3000)); len(got) != 8217 || !strings.HasSuffix(got, "\n1040\t1040\n\n... [1960 lines truncated] ...") {
		t.Errorf("a long snippet: %d bytes, ends with %q", len(got), got[len(got)-60:])
	}
	if got := changedLinesSnippet("", strings.Repeat("x", 9000)); len(got) != 8192+len("\n\n... [1 lines truncated] ...") {
		t.Errorf("a long line: %d bytes", len(got))
	}
}

// A change is reported once, and only for files that the session has written.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, second int64) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(second, 0), time.Unix(second, 0)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := seenFiles{byPath: map[string]seenContent{}}
	read, written, same, gone := file("read", "a\n", 1), file("written", "a\n", 1), file("same", "a\n", 1), file("gone", "a\n", 1)
	s.recordShown(read, "a\n")
	for _, path := range []string{written, same, gone} {
		s.recordWritten(path, "a\n", true)
	}
	if got := s.takeFilesChangedAfterWrite(); got != nil {
		t.Errorf("nothing has changed: %v", got)
	}
	file("read", "b\n", 2)
	file("written", "a\r\nb\r\n", 2)
	file("same", "a\n", 2)
	os.Remove(gone)
	want := []FileChangedAfterWrite{{Path: written, Content: "a\nb\n", Modified: time.Unix(2, 0), Snippet: "1\ta\n2\tb"}}
	if diff := cmp.Diff(want, s.takeFilesChangedAfterWrite()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if _, current, shown := s.compareWithSeenContent(written, "a\r\nb\r\n"); !current || !shown {
		t.Errorf("after its report the file is current %v, shown %v", current, shown)
	}
	file("written", "c\n", 3)
	file("same", "b\n", 3)
	if got := s.takeFilesChangedAfterWrite(); len(got) != 1 || got[0].Path != same {
		t.Errorf("after the report of one file: %v", got)
	}
}

// Modified files are those with another modification time, sorted, without deleted ones.
func TestModified(t *testing.T) {
	dir := t.TempDir()
	f := New(Options{})
	for _, name := range []string{"c", "b", "a", "gone"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		f.seenByModel.recordShown(path, "")
	}
	before := f.CurrentModTimes()
	for _, name := range []string{"c", "a"} {
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Unix(9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(dir, "gone"))
	if diff := cmp.Diff([]string{filepath.Join(dir, "a"), filepath.Join(dir, "c")}, f.PathsWithChangedModTime(before)); diff != "" {
		t.Errorf("modified (-want +got):\n%s", diff)
	}
}
