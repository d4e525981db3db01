package importer_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/importer"
)

var update = flag.Bool("update", false, "rewrite what the recordings in testdata become")

// Every archive in testdata has recordings (*.jsonl) and their expected import: the files below "kit", or "stdout",
// and the "report". The comment has the options of the import, one per line.
func TestImports(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			given := slices.DeleteFunc(slices.Clone(archive.Files), func(f txtar.File) bool {
				return strings.HasPrefix(f.Name, "kit/") || f.Name == "stdout" || f.Name == "report"
			})
			if err := txtar.Write(&txtar.Archive{Files: given}, "."); err != nil {
				t.Fatal(err)
			}
			out := &txtar.Archive{Comment: archive.Comment, Files: slices.Clone(given)}
			for _, f := range play(t, string(archive.Comment), given) {
				if len(f.Data) > 0 {
					out.Files = append(out.Files, f)
				}
			}
			if *update {
				if err := os.WriteFile(want, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(out))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// play imports the recordings and returns the written files, stdout and the report.
func play(t *testing.T, options string, given []txtar.File) []txtar.File {
	t.Helper()
	var stdout bytes.Buffer
	o := importer.Options{Out: "kit", Stdout: &stdout, Environment: importer.CurrentEnvironment{Environ: []string{"HOME=/home/jdoe", "USER=jdoe"}}}
	for _, f := range given {
		if strings.HasSuffix(f.Name, ".jsonl") {
			o.Files = append(o.Files, f.Name)
		}
	}
	for line := range strings.Lines(options) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "stdout":
			o.Out = ""
		case "name":
			o.Name = value
		case "against":
			o.RivalDir = value
		case "exact":
			o.ExactPatterns = true
		case "link":
			o.LinkResults = true
		case "thinking":
			o.KeepThinking = true
		case "reads":
			o.KeepFiles = true
		case "raw":
			o.Raw = true
		}
	}
	outcome, err := importer.Run(t.Context(), o)
	var report strings.Builder
	if err != nil {
		report.WriteString("error: " + err.Error() + "\n")
	}
	outcome.Report(&report)
	files := []txtar.File{{Name: "report", Data: []byte(report.String())}, {Name: "stdout", Data: stdout.Bytes()}}
	for _, path := range outcome.Written {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(data, []byte("\n")) {
			data = append(data, "(no new line at the end)\n"...)
		}
		files = append(files, txtar.File{Name: filepath.ToSlash(path), Data: data})
	}
	return files
}

// Unredacted output is not written into a git work tree without --force.
func TestRawTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("tree/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("in.jsonl", []byte(line(t, 1, "user", "hello to everybody")+line(t, 2, "assistant", []any{textBlock("hi")})), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		o       importer.Options
		refused bool
	}{
		{"in a work tree", importer.Options{Raw: true, Out: "tree/a/b"}, true},
		{"with --force", importer.Options{Raw: true, Force: true, Out: "tree/a/b"}, false},
		{"hidden", importer.Options{Out: "tree/c"}, false},
		{"on stdout", importer.Options{Raw: true}, false},
		{"elsewhere", importer.Options{Raw: true, Out: "beside"}, false},
	} {
		tt.o.Files, tt.o.Stdout = []string{"in.jsonl"}, &bytes.Buffer{}
		_, err := importer.Run(t.Context(), tt.o)
		if refused := err != nil && strings.Contains(err.Error(), "into the git work tree"); refused != tt.refused || !refused && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
