package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// example is a project in examples/.
type example struct {
	name     string
	runner   string   // what PAGES_RUNNERS must contain (`make packages`, `make balancer`); "" means that no installation is necessary
	programs []string // programs that it starts
}

func exampleProjects() []example {
	return []example{
		{name: "fastmcp-server", runner: "fastmcp"},
		{name: "go", runner: "go"},
		{name: "oauth-server", runner: "fastmcp", programs: []string{"curl"}},
		{name: "plugin-hooks"},
		{name: "pytest-agent-sdk", runner: "pytest"},
		{name: "serve-replicas", runner: "haproxy", programs: []string{"haproxy", "curl", "jq"}},
		{name: "shell-wrapper", programs: []string{"jq", "timeout"}},
		{name: "tmux-orchestrator", programs: []string{"tmux"}},
		{name: "vitest-agent-sdk", runner: "vitest"},
	}
}

// TestExamples copies each project of examples/ and runs the commands of its README: a line that begins with "$ " is
// a command, and the lines below it are its output, in which "…" matches any text. A README shows a passing and a
// failing run in at most 15 lines.
func TestExamples(t *testing.T) {
	t.Parallel()
	projects := exampleProjects()
	entries, err := os.ReadDir(filepath.Join(tree.Root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !slices.ContainsFunc(projects, func(e example) bool { return e.name == entry.Name() }) {
			t.Errorf("examples/%s: no test runs it", entry.Name())
		}
	}
	index := tree.ReadFile(t, "examples/README.md")
	for _, e := range projects {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(index, "]("+e.name+")") {
				t.Error("examples/README.md does not list it")
			}
			text := tree.ReadFile(t, filepath.Join("examples", e.name, "README.md"))
			if n := strings.Count(text, "\n"); n > 15 {
				t.Errorf("its README has %d lines, at most 15", n)
			}
			runs := transcript(text)
			if len(runs) < 2 || !strings.Contains(text, "\nexit ") {
				t.Error("its README shows no passing and no failing run")
			}
			e.skipUnlessRunnable(t)
			at := &page{dir: filepath.Join(t.TempDir(), e.name)}
			if err := os.CopyFS(at.dir, os.DirFS(filepath.Join(tree.Root, "examples", e.name))); err != nil {
				t.Fatal(err)
			}
			at.installPackages(t)
			for _, r := range runs {
				if out := at.run(t, r.command); r.output == "" || !outputPattern(r.output).MatchString(out) {
					t.Errorf("%s\nprints\n%s\nthe README says\n%s", r.command, out, r.output)
				}
			}
		})
	}
}

// skipUnlessRunnable skips the test of a project that cannot run here. If CI names runners, their programs must be
// installed.
func (e example) skipUnlessRunnable(t *testing.T) {
	t.Helper()
	if e.runner != "" && !slices.Contains(strings.Fields(os.Getenv("PAGES_RUNNERS")), e.runner) {
		t.Skipf("PAGES_RUNNERS does not name %s; make packages or make balancer does", e.runner)
	}
	for _, program := range e.programs {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("CI") != "" && os.Getenv("PAGES_RUNNERS") != "" {
			t.Fatal("CI needs ", program)
		} else if err != nil {
			t.Skip("there is no ", program)
		}
	}
}

// consoleRun is a command of a console block and its output.
type consoleRun struct{ command, output string }

// transcript reads the console blocks of a document.
func transcript(text string) (runs []consoleRun) {
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		if block[1] != "console" {
			continue
		}
		for line := range strings.Lines(block[2]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				runs = append(runs, consoleRun{command: strings.TrimSpace(command)})
			} else if n := len(runs); n > 0 {
				runs[n-1].output += line
			}
		}
	}
	return runs
}
