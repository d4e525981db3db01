package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func options() LintOptions {
	const schema = `{"type":"object","properties":{%s},"additionalProperties":false}`
	var tools []protocol.Tool
	for name, keys := range map[string]string{
		"Bash": `"command":{},"timeout":{}`, "Read": `"file_path":{}`, "Write": `"file_path":{},"content":{}`, "Edit": `"file_path":{}`, "Glob": `"pattern":{}`, "Agent": ``,
	} {
		tools = append(tools, protocol.Tool{Name: name, InputSchema: fmt.Appendf(nil, schema, keys)})
	}
	return LintOptions{Tools: tools, Server: func(name string, entry map[string]any) []string {
		if _, ok := entry["command"]; !ok {
			return []string{"the server " + name + " has no command"}
		}
		return nil
	}}
}

// TestFindings lints the scenarios in testdata. The first file of each archive is the scenario; the
// file "want" contains the expected warnings, and -update rewrites it.
func TestFindings(t *testing.T) {
	paths, err := filepath.Glob("testdata/lint/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no archives", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Load(a.Files[0].Name, LoadOptions{ReadFile: func(name string) ([]byte, error) {
				for _, f := range a.Files {
					if f.Name == name {
						return f.Data, nil
					}
				}
				return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no such file or directory")}
			}})
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			found := Lint(s, options())
			diag.Render(&got, found)
			if found.Err() != nil {
				t.Error("a finding is an error")
			}
			for i, f := range a.Files {
				if f.Name != "want" {
					continue
				}
				if *update {
					a.Files[i].Data = got.Bytes()
					if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(f.Data), got.String()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// many returns a scenario of n rules of all kinds.
func many(n int) []byte {
	var b strings.Builder
	for i := range n {
		pattern := fmt.Sprintf(`{ type = "contains", text = "please do the thing number %d end" }`, i)
		switch i % 4 {
		case 1:
			pattern = fmt.Sprintf(`{ type = "exact", text = "do exactly the thing number %d now" }`, i)
		case 2:
			pattern = fmt.Sprintf(`{ type = "regex", pattern = 'thing (\w+) %d$' }`, i)
		case 3:
			pattern = fmt.Sprintf(`{ type = "any_of", patterns = [{ type = "glob", pattern = "thing %d *" }, { type = "contains", text = "#%d#" }] }`, i, i)
		}
		response := fmt.Sprintf("%q", "answer "+strings.Repeat("word ", i%20))
		if i%10 == 0 {
			response = fmt.Sprintf(`{ text = "{{ results[0].text }} %d", tool_calls = [{ tool = "Bash", input = { command = "echo %d" } }] }`, i, i)
		}
		fmt.Fprintf(&b, "[[responses]]\npattern = %s\nresponse = %s\n", pattern, response)
	}
	return []byte(b.String())
}

// TestManyRules loads and checks 10,000 rules. BenchmarkCheck measures how long
// that takes (200 ms at most on an idle machine).
func TestManyRules(t *testing.T) {
	src, o := many(10_000), options()
	s, err := Parse("many.toml", src, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found := Lint(s, o); len(found) > 0 {
		t.Errorf("%d findings, the first: %v", len(found), found[0])
	}
}

func BenchmarkCheck(b *testing.B) {
	src, o := many(10_000), options()
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("many.toml", src, LoadOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load and lint", func(b *testing.B) {
		for b.Loop() {
			s, err := Parse("many.toml", src, LoadOptions{})
			if err != nil {
				b.Fatal(err)
			}
			Lint(s, o)
		}
	})
}
