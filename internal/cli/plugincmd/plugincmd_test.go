package plugincmd

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/process"
)

var update = flag.Bool("update", false, "rewrite the expected lines of testdata")

// TestCommands plays testdata/*.txtar. The files of an archive are written to a directory, $WORK; cfg below it is the configuration
// directory. The file "commands" is played line by line:
//
//	$ WORDS     runs claude plugin WORDS
//	cd DIR      changes the directory, from $WORK
//	rm PATH     removes a file or a directory
//	cat PATH    prints a file
//	ls DIR      prints the names in a directory
//	: LINE      printed on stdout
//	! LINE      printed on stderr
//	= TEXT      the error of the command
//
// With the flag -update, the lines of the output are rewritten.
func TestCommands(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no commands", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, at := t.TempDir(), -1
			for i, f := range archive.Files {
				if f.Name == "commands" {
					at = i
					continue
				}
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			script := string(archive.Files[at].Data)
			got := play(t, dir, script)
			if *update {
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(script, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// play runs the commands of a script and returns it with the actual output.
func play(t *testing.T, dir, script string) string {
	t.Helper()
	var out strings.Builder
	show := func(mark, text string) {
		text = strings.ReplaceAll(text, dir, "$WORK")
		for line := range strings.Lines(text) {
			out.WriteString(strings.TrimRight(mark+" "+line, " \n") + "\n")
		}
	}
	cwd := dir
	minutes := 0
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if word == ":" || word == "!" || word == "=" {
			continue
		}
		out.WriteString(line + "\n")
		path := filepath.Join(dir, rest)
		switch word {
		case "$":
			minutes++
			now := time.Date(2026, 1, 2, 3, minutes, 5, 0, time.UTC)
			var stdout, stderr bytes.Buffer
			err := Run(Options{Dir: filepath.Join(dir, "cfg"), CWD: cwd, Now: func() time.Time { return now }, Stdout: &stdout, Stderr: &stderr}, strings.Fields(rest))
			show(":", stdout.String())
			show("!", stderr.String())
			if exit := new(process.ExitError); errors.As(err, &exit) {
				show("=", fmt.Sprint("exit ", exit.Code))
			} else if err != nil {
				show("=", err.Error())
			}
		case "cd":
			cwd = path
		case "rm":
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		case "cat":
			data, err := os.ReadFile(path)
			if err != nil {
				show(":", "no file")
			}
			show(":", string(data))
		case "ls":
			entries, _ := os.ReadDir(path)
			for _, e := range entries {
				show(":", e.Name())
			}
		case "", "#":
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	return out.String()
}

// A command reports that its output cannot be written.
func TestBrokenStdout(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"shop/.claude-plugin/marketplace.json":  `{"name":"shop","owner":{"name":"me"},"plugins":[{"name":"hello","source":"./hello"}]}`,
		"shop/hello/.claude-plugin/plugin.json": `{"name":"hello","version":"1","description":"d","author":{"name":"me"}}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	for line := range strings.Lines(`list
list --json
marketplace list
marketplace list --json
validate shop
validate shop/hello
marketplace add ./shop
marketplace add ./shop
marketplace update shop
marketplace update
install hello@shop
install hello@shop
list
update hello@shop
disable hello@shop
enable hello@shop
uninstall hello@shop
marketplace remove shop
`) {
		o := Options{Dir: filepath.Join(dir, "cfg"), CWD: dir, Now: time.Now, Stdout: errorWriter{broken}, Stderr: t.Output()}
		if err := Run(o, strings.Fields(line)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		o.Stdout, o.Stderr = io.Discard, io.Discard
		_ = Run(o, strings.Fields(line)) // for the next command; it fails if the first run did its work before it printed
	}
}

type errorWriter struct{ err error }

func (w errorWriter) Write([]byte) (int, error) { return 0, w.err }
