package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/parity"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// stateRow is a row of the first table of docs/compatibility.md.
var stateRow = regexp.MustCompile(`(?m)^\| (.+?) \| (full|partial|absent|extension) \| (–|` + "(?:`[^`|]+` ?)+" + `) \| .*\|$`)

// P6: the states in docs/compatibility.md claim only compared behaviour. In the cases of a "full" row, known.toml
// accepts no difference that is specific to them. Every case of the corpus belongs to a row, and every case of a row
// exists.
func TestCompatibilityStates(t *testing.T) {
	t.Parallel()
	text, _, _ := strings.Cut(tree.ReadFile(t, "docs/compatibility.md"), "\n## ")
	_, table, _ := strings.Cut(text, "|---|---|---|---|\n")
	rows := stateRow.FindAllStringSubmatch(table, -1)
	if want := strings.Count(strings.TrimSpace(table), "\n") + 1; len(rows) != want {
		t.Errorf("%d of %d rows have a state and cases", len(rows), want)
	}
	known, err := parity.LoadKnownDifferences(filepath.Join(tree.Root, "docs", "parity", "known.toml"))
	if err != nil {
		t.Fatal(err)
	}
	all := parityCases(t)
	placed, left := map[string]bool{}, map[string]string{}
	for _, name := range all {
		left[name] = acceptedDifferences(known, name)
	}
	for _, row := range rows {
		area, state := row[1], row[2]
		for glob := range strings.FieldsSeq(strings.ReplaceAll(row[3], "`", "")) {
			found := false
			for _, name := range all {
				if ok, _ := path.Match(glob, name); !ok && glob != "*" {
					continue
				}
				found = true
				placed[name] = placed[name] || glob != "*"
				if left[name] != "" && state == "full" {
					state = "partial"
					t.Errorf("docs/compatibility.md: %s: the page says full, but in the case %s known.toml accepts %s: say partial, and what differs (-update says partial)", area, name, left[name])
					rewriteRow(t, row[0], strings.Replace(row[0], "| full |", "| partial |", 1))
				}
			}
			if !found && glob != "–" {
				t.Errorf("%s: there is no case %s in tests/parity", area, glob)
			}
			if found && (state == "absent" || state == "extension") {
				t.Errorf("%s: it is %s, but %s compares it", area, state, glob)
			}
		}
	}
	for _, name := range all {
		if !placed[name] {
			t.Errorf("the case %s belongs to no row of docs/compatibility.md", name)
		}
	}
}

func parityCases(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../parity/*/*.txtar")
	if err != nil || len(files) < 150 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(f), "../parity/"), ".txtar"))
	}
	return names
}

// acceptedDifferences returns the differences that known.toml accepts in this case but not in all cases; empty means
// none. It ignores transcripts and estimated tokens, which have separate rows.
func acceptedDifferences(all *parity.KnownDifferenceFile, name string) string {
	for _, k := range all.Known {
		if len(k.Case) == 0 || slices.Contains(k.Case, "*") {
			continue
		}
		one := &parity.KnownDifferenceFile{Known: []*parity.KnownDifference{{Path: parity.TextPatterns{"*"}, Case: k.Case, Reason: k.Reason}}}
		found := []parity.Difference{{}}
		one.MarkKnownAndRecordPatternUse(name, "tests/parity/"+name+".txtar", "", found)
		if found[0].Known == "" {
			continue
		}
		for _, p := range k.Path {
			if !strings.HasPrefix(p, "transcript") && !strings.HasSuffix(p, "okens") {
				return fmt.Sprintf("%s (%s)", p, k.Reason)
			}
		}
	}
	return ""
}

// rewriteRow replaces a row if the flag -update is set.
func rewriteRow(t *testing.T, row, with string) {
	t.Helper()
	if *tree.Update {
		text := strings.Replace(tree.ReadFile(t, "docs/compatibility.md"), row, with, 1)
		if err := os.WriteFile("../../docs/compatibility.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
