package parity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/parity"
)

const completeCase = `What it is about.
-- scenario.toml --
[[responses]]
pattern = { type = "any" }
response = "hi"
-- argv --
-p
two words
-- stdin --
one
-- settings.json --
{"model":"haiku"}
-- mcp.json --
{"mcpServers":{}}
-- env --
A=b
-- servers --
DESK desk.toml
-- cwd/a/b.txt --
b
-- home/.x --
x
-- argv.2 --
-p
-- dialogue.2 --
# a comment
prompt go on

wait result/success is_error=false
allow
deny not now
request {"subtype":"interrupt"}
signal INT
close
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// P1: a case has the files of section 13.
func TestLoad(t *testing.T) {
	file := write(t, "whole.txtar", completeCase)
	got, problems := parity.LoadCases([]string{file})
	if problems != nil || len(got) != 1 {
		t.Fatalf("%d cases, %v", len(got), problems)
	}
	want := &parity.Case{
		Name: "whole", File: file, Dir: filepath.Dir(file), ScenarioLine: 3,
		Scenario: []byte("[[responses]]\npattern = { type = \"any\" }\nresponse = \"hi\"\n"),
		Settings: []byte("{\"model\":\"haiku\"}\n"), MCP: []byte("{\"mcpServers\":{}}\n"),
		Files: map[string][]byte{"a/b.txt": []byte("b\n")}, Home: map[string][]byte{".x": []byte("x\n")},
		Env: []string{"A=b"}, Servers: []parity.CaseServer{{Name: "DESK", Fixture: "desk.toml"}},
		Runs: []parity.CaseRun{
			{Args: []string{"-p", "two words"}, Stdin: []byte("one\n")},
			{Args: []string{"-p"}, Steps: []parity.CaseStep{
				{Verb: "prompt", Text: "go on", Line: 27},
				{Verb: "wait", Text: "result/success", Where: []string{"is_error=false"}, Line: 29},
				{Verb: "allow", Line: 30},
				{Verb: "deny", Text: "not now", Line: 31},
				{Verb: "request", Text: `{"subtype":"interrupt"}`, Line: 32},
				{Verb: "signal", Text: "INT", Line: 33},
				{Verb: "close", Line: 34},
			}},
		},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("case (-want +got):\n%s", diff)
	}
}

// All mistakes of a case are reported at once, each with its line in the archive.
func TestProblems(t *testing.T) {
	const good = "-- scenario.toml --\n-- argv --\n-p\n"
	tests := []struct{ name, text, want string }{
		{"nothing", "", ":1: the case has no scenario.toml"},
		{"no argv", "-- scenario.toml --\n", ":1: the case has no argv"},
		{"scenario", "-- scenario.toml --\n\nresponse = 1\n-- argv --\n", ":3:1: scenario.toml: unknown key `response`"},
		{"both", good + "-- stdin --\n-- dialogue --\nclose\n", ":6: dialogue: cannot set both stdin and a dialogue in one run"},
		{"orphan", good + "-- stdin.2 --\nx\n", ":5: stdin.2: this file has no argv file of the same number: add one with the arguments of the run"},
		{"env", good + "-- env --\nA=1\nB\n", `:6: env: invalid line "B": expected KEY=VALUE`},
		{"servers", good + "-- servers --\nA\n", `:5: servers: invalid server line "A": expected "NAME FIXTURE"`},
		{"a file twice", good + "-- argv.1 --\n-p\n", ":5: argv.1: duplicate file: the case already has a file of this name"},
		{"a file that is nearly one", good + "-- stdn --\n", ":4: stdn: unknown file in a case (did you mean `stdin`?)"},
		{"a step that is nearly one", good + "-- dialogue --\nwiat result\nzzzzzz\n", ":5: dialogue: unknown step \"wiat\" (did you mean `wait`?)\n:6: dialogue: unknown step \"zzzzzz\" (known names here: allow, answer, ask, close, deny, prompt, refuse, request, send, signal, wait)"},
		{"outside", good + "-- cwd/../x --\n", ":5: cwd/../x: the path must stay inside cwd/ and must not contain . or .."},
		{"absolute", good + "-- home//x --\n", ":5: home//x: the path must stay inside home/ and must not contain . or .."},
		{"json", good + "-- mcp.json --\n{\n\"a\": tru }\n", ":6:6: mcp.json: invalid JSON: `tru` is not a JSON value"},
		{
			"steps", good + "-- dialogue --\nwait\nallow {\nsignal KILL\nclose now\nwait x y\n",
			":5: dialogue: wait needs a kind\n:6: dialogue: allow needs JSON, not {\n:7: dialogue: signal needs INT, TERM or HUP\n:8: dialogue: close takes nothing\n:9: dialogue: wait has conditions PATH=VALUE, not y",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, "case.txtar", test.text)
			got, problems := parity.LoadCases([]string{file})
			if len(got) > 0 {
				t.Errorf("%d cases", len(got))
			}
			for i := range problems {
				problems[i].Pos.File = ""
			}
			var said strings.Builder
			for i, d := range problems {
				if i > 0 {
					said.WriteString("\n")
				}
				at := d
				at.Pos.File = "x"
				said.WriteString(at.String()[1:])
				if strings.HasPrefix(d.Message, "dialogue: unknown") || strings.HasSuffix(d.Message, "unknown file in a case") {
					said.WriteString(" (" + d.Hint + ")")
				}
			}
			if diff := cmp.Diff(test.want, said.String()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzArchive: no archive makes the reader panic, and an accepted one can be run.
func FuzzArchive(f *testing.F) {
	f.Add([]byte(completeCase))
	f.Add([]byte("-- argv.9 --\n-- dialogue --\nwait\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		all, problems := parity.LoadCases([]string{write(t, "x.txtar", string(src))})
		if problems.Err() == nil && (len(all) != 1 || len(all[0].Runs) == 0 || all[0].Scenario == nil) {
			t.Fatalf("no problem, and no case that can be run: %v", all)
		}
	})
}

// TestLoadDirectory: a directory means all cases below it, which are named by their paths. A scenario with [parity] is
// a case.
func TestLoadDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cases/b/two.txtar": completeCase, "cases/one.txtar": completeCase, "cases/notes.md": "x", "cases/plain.toml": "default_response = \"x\"\n",
		"cases/three.toml": "default_response = \"x\"\n[parity]\nargv = [\"-p\", \"hi\"]\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, problems := parity.LoadCases([]string{filepath.Join(dir, "cases"), filepath.Join(dir, "empty"), filepath.Join(dir, "gone")})
	var names []string
	for _, c := range got {
		names = append(names, fmt.Sprintf("%s: %d runs, line %d", c.Name, len(c.Runs), c.ScenarioLine))
	}
	for _, p := range problems {
		names = append(names, strings.ReplaceAll(p.String(), dir+"/", ""))
	}
	if diff := cmp.Diff([]string{
		"b/two: 2 runs, line 3", "one: 2 runs, line 3", "three: 1 runs, line 1", "empty: the directory contains no case", "gone: cannot read the case: no such file or directory",
	}, names); diff != "" {
		t.Errorf("cases and problems (-want +got):\n%s", diff)
	}
}
