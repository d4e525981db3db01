package parity_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/parity"
)

// P3: the differences that an entry accepts, and when the entry is stale.
func TestKnown(t *testing.T) {
	const entry = "[[known]]\nreason = \"so\"\nsince = \"2.1.329\"\n"
	tests := []struct {
		name, src, version string
		paths              []string
		want               []string // the reasons
		stale              int
	}{
		{"path", entry + `path = "stdout.a.b"`, "2.1.329", []string{"stdout.a.b", "stdout.a.bc"}, []string{"so", ""}, 0},
		{"glob", entry + `path = "stdout.*.b"`, "2.1.329", []string{"stdout.a/x.y.b", "stderr"}, []string{"so", ""}, 0},
		{"case", entry + "path = \"*\"\ncase = \"area/*\"", "2.1.329", []string{"exit"}, []string{"so"}, 0},
		{"last part of the case", entry + "path = \"*\"\ncase = \"name\"", "2.1.329", []string{"exit"}, []string{"so"}, 0},
		{"case below another directory", entry + "path = \"*\"\ncase = \"dir/area/name\"", "2.1.329", []string{"exit"}, []string{"so"}, 0},
		{"the file of the case", entry + "path = \"*\"\ncase = \"some/dir/area/name.txtar\"", "2.1.329", []string{"exit"}, []string{"so"}, 0},
		{"a dot is no wildcard", entry + "path = \"a.b*\"", "2.1.329", []string{"a.bc", "axbc"}, []string{"so", ""}, 0},
		{"a case of another version judges nothing", entry + "path = \"a\"\n" + entry + "path = \"b\"\ncase = \"name\"\nversion = \"2.1.330\"", "2.1.329", nil, nil, 1},
		{"another case", entry + "path = \"*\"\ncase = \"other/*\"", "2.1.329", []string{"exit"}, []string{""}, 0},
		{"version", entry + "path = \"*\"\nversion = \"2.1.330\"", "2.1.330", []string{"exit"}, []string{"so"}, 0},
		{"another version", entry + "path = \"*\"\nversion = \"2.1.330\"", "2.1.329", []string{"exit"}, []string{""}, 0},
		{"several paths and cases", entry + "path = [\"a\", \"b.*\"]\ncase = [\"name\", \"area/*\"]", "2.1.329", []string{"a", "b.c", "b"}, []string{"so", "so", ""}, 0},
		{"one path of two is stale", entry + `path = ["a", "b"]`, "2.1.329", []string{"a"}, []string{"so"}, 1},
		{"stale in its case", entry + "path = [\"a\", \"b\"]\ncase = \"name\"", "2.1.329", []string{"c"}, []string{""}, 1},
		{"of another version", entry + "path = \"a\"\nversion = \"2.1.330\"", "2.1.329", nil, nil, 0},
		{"a run of some cases judges no path of all", entry + "path = \"a\"\n" + entry + "path = \"b\"\ncase = \"other\"", "2.1.329", nil, nil, 0},
		{"nor what stands for several", entry + "path = \"a\"\ncase = \"area/*\"\n" + entry + "path = \"b\"\ncase = \"other\"", "2.1.329", nil, nil, 0},
		{"but what names a case", entry + "path = \"a\"\ncase = \"area/name\"\n" + entry + "path = \"b\"\ncase = \"other\"", "2.1.329", nil, nil, 1},
		{"stale", entry + `path = "stdout.*"`, "2.1.329", []string{"exit"}, []string{""}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known.toml")
			if err := os.WriteFile(file, []byte(test.src), 0o644); err != nil {
				t.Fatal(err)
			}
			known, err := parity.LoadKnownDifferences(file)
			if err != nil {
				t.Fatal(err)
			}
			var found []parity.Difference
			for _, path := range test.paths {
				found = append(found, parity.Difference{Path: path})
			}
			known.MarkKnownAndRecordPatternUse("area/name", "some/dir/area/name.txtar", test.version, found)
			var got []string
			for _, d := range found {
				got = append(got, d.Known)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if n := len(known.ReportPatternsNoLongerNeeded(test.version)); n != test.stale {
				t.Errorf("%d entries are stale, want %d", n, test.stale)
			}
		})
	}
}

// TestKnownProblems: a list that does not parse, and an entry without a reason.
func TestKnownProblems(t *testing.T) {
	for src, want := range map[string]string{
		"[[known]]\nreason = \"so\"\nsince = \"2\"\npath = \"a\"\n\n[[known]]\nreason = \" \"\nsince = \"2\"\npath = \"b\"\n": "known.toml:6:1: the known difference has no `reason`",
		"[[known]\n":                  "known.toml:1",
		"[[known]]\nreasn = \"so\"\n": "known.toml:2:1: unknown key `reasn`",
	} {
		file := filepath.Join(t.TempDir(), "known.toml")
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := parity.LoadKnownDifferences(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
	if _, err := parity.LoadKnownDifferences(t.TempDir()); err == nil {
		t.Error("a directory is no list")
	}
}

// An entry accepts a line or value that one side does not have only if it has the key absent. The difference must still
// occur.
func TestKnownAbsence(t *testing.T) {
	lost, added, changed := parity.Difference{Path: "a", Real: "x"}, parity.Difference{Path: "a", Ours: "x"}, parity.Difference{Path: "a", Ours: "x", Real: "y"}
	for _, test := range []struct {
		absent string
		found  []parity.Difference
		want   []bool
		stale  int
	}{
		{"", []parity.Difference{changed, lost, added}, []bool{true, false, false}, 0},
		{`absent = "ours"`, []parity.Difference{changed, lost, added}, []bool{true, true, false}, 0},
		{`absent = ["ours", "real"]`, []parity.Difference{changed, lost, added}, []bool{true, true, true}, 0},
		{`absent = "real"`, []parity.Difference{changed, lost}, []bool{true, false}, 1},
	} {
		file := filepath.Join(t.TempDir(), "known.toml")
		if err := os.WriteFile(file, []byte("[[known]]\nreason = \"so\"\nsince = \"2.1.329\"\npath = \"a\"\n"+test.absent), 0o644); err != nil {
			t.Fatal(err)
		}
		known, err := parity.LoadKnownDifferences(file)
		if err != nil {
			t.Fatal(err)
		}
		known.MarkKnownAndRecordPatternUse("area/name", "name.txtar", "2.1.330", test.found)
		var got []bool
		for _, d := range test.found {
			got = append(got, d.Known != "")
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.absent, diff)
		}
		if stale := known.ReportPatternsNoLongerNeeded("2.1.330"); len(stale) != test.stale {
			t.Errorf("%s: %d entries are stale, want %d", test.absent, len(stale), test.stale)
		}
	}
}

// An entry that was last confirmed more than 90 days ago is reported.
func TestKnownAge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known.toml")
	const entry = "[[known]]\nreason = \"so\"\nsince = \"2.1.329\"\npath = \"a\"\n"
	if err := os.WriteFile(file, []byte(entry+"proved = \"2026-01-01\"\n"+entry+"proved = \"soon\"\n"+entry), 0o644); err != nil {
		t.Fatal(err)
	}
	known, err := parity.LoadKnownDifferences(file)
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]int{"2026-03-31": 1, "2026-04-03": 2} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if got := known.ReportOverdueConfirmations(now); len(got) != want {
			t.Errorf("on %s %d entries are overdue, want %d: %v", day, len(got), want, got)
		}
	}
}

// TestDefaultKnown: outside this repository the list in the binary is used, and its entries are not reported as stale,
// because users compare their own cases.
func TestDefaultKnown(t *testing.T) {
	t.Chdir(t.TempDir())
	known, err := parity.LoadKnownDifferences(parity.DefaultKnownFile)
	if err != nil || len(known.Known) == 0 {
		t.Fatalf("got %d entries, %v", len(known.Known), err)
	}
	for _, k := range known.Known {
		if k.Right == "" || k.Proved == "" {
			t.Errorf("an entry about %v does not say who is right, or when it was proved", k.Path)
		}
	}
	known.MarkKnownAndRecordPatternUse("mine", "mine.txtar", "2.1.329", nil)
	if stale := known.ReportPatternsNoLongerNeeded("2.1.329"); len(stale) > 0 {
		t.Errorf("stale: %v", stale)
	}
	if other, err := parity.LoadKnownDifferences("other.toml"); err != nil || len(other.Known) > 0 {
		t.Errorf("a missing file holds %d entries, %v", len(other.Known), err)
	}
}
