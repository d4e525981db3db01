package verdict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// TestPages checks the page of a journal. Each file has a journal, the scenario of its runs, optionally a verdict,
// and the expected content: the readable part, and the runs.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("testdata/pages/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			got := content(t, write(t, readInput(t, files)))
			if *update {
				for i := range archive.Files {
					if archive.Files[i].Name == "want" {
						archive.Files[i].Data = []byte(got)
					}
				}
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(files["want"]), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readInput reads the input files of a test.
func readInput(t *testing.T, files map[string][]byte) verdict.HTMLInput {
	t.Helper()
	in := verdict.HTMLInput{ReadFile: func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		return nil, os.ErrNotExist
	}}
	for e, err := range journal.Read(bytes.NewReader(files["journal"])) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	if err := json.Unmarshal(files["verdict"], &in.Verdict); err != nil {
		t.Fatal(err)
	}
	return in
}

func write(t *testing.T, in verdict.HTMLInput) string {
	t.Helper()
	var b bytes.Buffer
	if err := verdict.WriteHTML(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tags  = regexp.MustCompile(`<[^>]*>`)
	links = regexp.MustCompile(`<a href="(#[^"]*)"[^>]*>`)
	data  = regexp.MustCompile(`(?s)id="data">(.*?)</script>`)
	lines = regexp.MustCompile(`\n\s*\n+`)
)

// content returns the text of the page with its inner links, and one line per event.
func content(t *testing.T, page string) string {
	t.Helper()
	main := page[strings.Index(page, "<header"):strings.Index(page, "<noscript>")]
	text := tags.ReplaceAllString(links.ReplaceAllString(main, "[$1] "), "")
	text = strings.TrimSpace(lines.ReplaceAllString(text, "\n")) + "\n\n"
	var runs []struct {
		ID, Kind, Title, Outcome, Stdout, Stderr string
		Failed                                   bool
		Start, End                               float64
		Facts                                    []struct{ Name, Text string }
		Events                                   []struct {
			ID, Kind, Title, Status, File string
			At, MS                        float64
			Line                          int
			Parts                         []struct{ Name, Text string }
		}
	}
	if err := json.Unmarshal([]byte(data.FindStringSubmatch(page)[1]), &runs); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%s %s %q %q failed=%v %v-%v\n", r.ID, r.Kind, r.Title, r.Outcome, r.Failed, r.Start, r.End)
		for _, f := range r.Facts {
			fmt.Fprintf(&b, "  %s: %q\n", f.Name, f.Text)
		}
		fmt.Fprintf(&b, "  stdout %q, stderr %q\n", r.Stdout, r.Stderr)
		for _, e := range r.Events {
			fmt.Fprintf(&b, "  %s +%v %vms %s %q %s %s:%d\n", e.ID, e.At, e.MS, e.Kind, e.Title, e.Status, e.File, e.Line)
			for _, p := range e.Parts {
				fmt.Fprintf(&b, "    %s: %q\n", p.Name, p.Text)
			}
		}
	}
	return text + b.String()
}

// TestPageIsSelfContained: the policy of the page contains the digests of its style and its script. Nothing else is
// loaded or run, whatever the journal contains.
func TestPageIsSelfContained(t *testing.T) {
	hostile := `</script><script>alert(1)</script><img src="https://example.com/x">`
	text, _ := json.Marshal(hostile)
	in := verdict.HTMLInput{Verdict: verdict.Report{Verdict: "failed", Findings: []verdict.Finding{{ID: "S01", Level: "error", Text: hostile, Advice: hostile, File: hostile}}}}
	line := `{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"s","type":"prompt","uuid":"u","prompt":` + string(text) + "}\n"
	for e, err := range journal.Read(strings.NewReader(line)) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	page := write(t, in)
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d script elements", n)
	}
	if strings.Contains(page, "<img") || strings.Contains(page, `src="http`) {
		t.Error("the text of a journal became an element")
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;; style-src &#39;sha256-") || strings.Contains(policy[1], "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

// TestEmptyRun: a run without a journal still has a page with its verdict.
func TestEmptyRun(t *testing.T) {
	page := write(t, verdict.HTMLInput{Verdict: verdict.Report{Verdict: "failed", Command: &verdict.CommandOutcome{Argv: []string{"true"}, Code: 4}}})
	if got := content(t, page); !strings.Contains(got, "the command exited with code 4") || !strings.Contains(got, "failed") {
		t.Error(got)
	}
}

// TestLongText: a long text is cut in the page, and the page states how much is missing.
func TestLongText(t *testing.T) {
	in := verdict.HTMLInput{}
	long, _ := json.Marshal(strings.Repeat("é", 50_000))
	line := `{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"s","type":"warning","text":` + string(long) + "}\n"
	for e, err := range journal.Read(strings.NewReader(line)) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	if got := content(t, write(t, in)); !strings.Contains(got, "(34464 more bytes; the journal has all of them)") || strings.Contains(got, "\uFFFD") {
		t.Error(got[len(got)-200:])
	}
}
