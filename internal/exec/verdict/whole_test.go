package verdict_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// TestWholeVerdicts checks every field of the verdicts in testdata/verdicts.txtar: NAME.want is the verdict on the
// journal NAME.jsonl by the scenario NAME.toml, if there is one.
func TestWholeVerdicts(t *testing.T) {
	const name = "testdata/verdicts.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	for i, f := range archive.Files {
		base, found := strings.CutSuffix(f.Name, ".want")
		if !found {
			continue
		}
		var in verdict.Input
		lines := strings.NewReplacer("SETUP\n", setupLines, "TURN\n", turnLines, "CLOSED\n", closedLines).Replace(files[base+".jsonl"])
		for e, err := range journal.Read(strings.NewReader(completeLines(lines))) {
			if err != nil {
				t.Fatal(err)
			}
			in.Entries = append(in.Entries, e)
		}
		if text := files[base+".toml"]; text != "" {
			if in.Scenario, err = scenarios.Parse("s.toml", []byte(text), scenarios.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		in.Lint.Tools = bash()
		var got strings.Builder
		enc := json.NewEncoder(&got)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		r := verdict.Judge(in)
		if err := enc.Encode(r.Findings); err != nil {
			t.Fatal(err)
		}
		for _, u := range r.Unmatched {
			fmt.Fprintf(&got, "unmatched in %q: %q, near %q\n", u.File, u.Prompt, u.Nearest)
		}
		if *update {
			archive.Files[i].Data = []byte(got.String())
		} else if diff := cmp.Diff(string(f.Data), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", base, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
