package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestOrchestratorsGuide runs the commands of docs/orchestrators.md. Scripts replace the versions of claude, because
// npm may be missing, and one short tape replaces the others.
func TestOrchestratorsGuide(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a capture needs a network namespace")
	}
	p := &page{dir: t.TempDir()}
	p.env = []string{"XDG_CACHE_HOME=" + filepath.Join(p.dir, "cache")}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := txtar.ParseFile(filepath.Join("..", "testdata", "script", "screens.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		write(f.Name, string(f.Data))
	}
	write("triage.toml", "default_response = \"x\"\n")
	write("detect", "#!/bin/sh\ngrep -q working && echo running || echo waiting\n")
	if out := p.run(t, "claudeless screens capture --claude ./claude1 --in tmux go.toml"); !strings.Contains(out, "captured 3 pages of 1.0.0") {
		t.Fatal(out)
	}
	commands := map[string]struct{ typed, prints string }{ // typed is the replacement for the command in this test
		"claudeless exec -s triage.toml --real --tty --screens shown -- claude":                                                {"claudeless exec -s triage.toml --allow-no-runs --real=./claude1 --tty --screens shown -- claude --version", "1.0.0"},
		`echo '{"wait": "auto mode on", "screen": true}' | CLAUDELESS_SCENARIO=triage.toml claudeless screens drive -- claude`: {`echo '{"wait": "auto mode on", "screen": true}' | CLAUDELESS_SCENARIO=triage.toml claudeless screens drive -- claude`, `"title":"✳ Claude Code"`},
		"claudeless screens capture --claude npm:2.1.330 --in tmux":                                                            {"claudeless screens capture --claude ./claude2 --in tmux go.toml", "captured 3 pages of 2.0.0"},
		"claudeless screens list 2.1.330":                                                                                      {"claudeless screens list 2.0.0", "go.ask"},
		"claudeless screens show permission.bash":                                                                              {"claudeless screens show go.ask", "1. No"},
		"claudeless screens check --detector detector.toml":                                                                    {"claudeless screens check --detector detector.toml", "1.0.0  0/1  0/1  0/2"},
		"claudeless screens diff 2.1.197 2.1.330":                                                                              {"claudeless screens diff 1.0.0 2.0.0 || test $? = 1", "options: go.ask"},
		"claudeless screens capture --claude simulated":                                                                        {"claudeless screens capture --claude simulated trust-no", "captured 1 pages of simulated"},
		"claudeless screens diff 2.1.330 simulated":                                                                            {"claudeless screens diff simulated simulated", "0 pages differ"},
	}
	commands["claudeless screens capture --claude simulated"] = struct{ typed, prints string }{"claudeless screens capture --claude simulated trust", "captured 3 pages of simulated"}
	commands["claudeless screens diff 2.1.330 simulated"] = struct{ typed, prints string }{"claudeless screens diff simulated simulated", "0 pages differ"}
	red := `claudeless exec -s session.toml -- sh orchestrator.sh "No, and tell Claude what to do differently"`
	green := `claudeless exec -s session.toml -- sh orchestrator.sh "Do you want to proceed?"`
	commands[red] = struct{ typed, prints string }{red + " || test $? = 1", "unmet: expected the screen permission/bash to be answered with yes (exactly once), but there was none"}
	commands[green] = struct{ typed, prints string }{green, "claudeless: verdict: ok: 1 run of claude, 1 of 1 expectation met, 0 errors"}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Log("without tmux the orchestrator of the page is not run")
		commands[red], commands[green] = struct{ typed, prints string }{"true", ""}, struct{ typed, prints string }{"true", ""}
	}
	for _, block := range fence.FindAllStringSubmatch(tree.ReadFile(t, "docs/orchestrators.md"), -1) {
		if m := fileName.FindStringSubmatch(block[2]); m != nil {
			write(m[1], block[2])
			continue
		}
		if block[1] != "sh" {
			continue
		}
		for line := range strings.Lines(block[2]) {
			c, ok := commands[strings.TrimSpace(line)]
			if !ok {
				t.Errorf("the page has a command that this test does not know: %s", line)
				continue
			}
			delete(commands, strings.TrimSpace(line))
			if out := p.run(t, c.typed); !strings.Contains(out, c.prints) {
				t.Errorf("%s\nprints\n%s\nand not %q", c.typed, out, c.prints)
			}
		}
	}
	for line := range commands {
		t.Errorf("the page does not have the command %s", line)
	}
}
