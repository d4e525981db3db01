package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// page is a document whose blocks are run: one that begins with the name of a file is written to that file, a block of
// `sh` is run, and its output is compared with the block of `text` below, in which "…" matches any text.
type page struct {
	dir string
	env []string
}

var (
	fence    = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")
	fileName = regexp.MustCompile(`^(?:#!.*\n)?(?:#|//) (\S+\.\w+)\n`)
)

// runBlocks executes the blocks of a text and returns the number of commands that ran. A command is skipped if skip
// returns a reason.
func (p *page) runBlocks(t *testing.T, text string, skip func(command string) string) int {
	t.Helper()
	blocks := fence.FindAllStringSubmatch(text, -1)
	ran := 0
	for i, b := range blocks {
		kind, body := b[1], b[2]
		if m := fileName.FindStringSubmatch(body); m != nil {
			p.write(t, m[1], kind, body)
			continue
		}
		if kind != "sh" {
			continue
		}
		if why := skip(body); why != "" {
			t.Log(why)
			continue
		}
		ran++
		if i+1 == len(blocks) || blocks[i+1][1] != "text" {
			t.Fatalf("the page does not say what this prints: %s", body)
		}
		if out, want := p.run(t, body), blocks[i+1][2]; !outputPattern(want).MatchString(out) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", body, out, want)
		}
	}
	return ran
}

// write writes a file. The line with its name is omitted if the format has no comments.
func (p *page) write(t *testing.T, name, kind, body string) {
	t.Helper()
	if kind == "json" || kind == "md" {
		_, body, _ = strings.Cut(body, "\n")
	}
	file := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command and returns its output on both streams. CI is not set, because pytest and vitest print other text
// if it is.
func (p *page) run(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = p.dir, time.Second
	desk := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CI=") })
	cmd.Env = append(desk, append([]string{"HOME=" + p.dir, "GORACE=atexit_sleep_ms=0"}, p.env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	return string(out)
}

// TestPages runs the sections of the cookbook, each in its own directory, and the pages of the languages. Commands that
// need one of the packages of claudeless run if PAGES_RUNNERS names their runner (`make packages`).
func TestPages(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		name, file string
		sections   bool
		least      int    // number of commands, without those that may be skipped
		files      string // the files of examples/ that the blocks test
	}{
		{name: "cookbook", file: "docs/cookbook.md", sections: true, least: 8},
		{name: "go", file: "docs/go.md"},
		{name: "python", file: "packages/python/README.md"},
		{name: "npm", file: "packages/npm/README.md"},
		{name: "readme", file: "README.md", files: "pytest-agent-sdk/triage.py vitest-agent-sdk/triage.ts go/triage.go"},
		{name: "getting-started", file: "docs/getting-started.md", least: 3},
		{name: "shards", file: "docs/shards.md", least: 1},
		{name: "migrate-fake-claude", file: "docs/migrate-fake-claude.md", least: 3},
		{name: "migrate-sdk-mocks", file: "docs/migrate-sdk-mocks.md"},
		{name: "migrate-aimock", file: "docs/migrate-aimock.md", least: 1},
		{name: "findings", file: "docs/findings.md"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sections := []string{tree.ReadFile(t, p.file)}
			if p.sections {
				sections = strings.Split(sections[0], "\n## ")
			}
			ran := 0
			for _, section := range sections {
				at := &page{dir: t.TempDir()}
				at.installPackages(t)
				for file := range strings.FieldsSeq(p.files) {
					at.write(t, filepath.Base(file), "", tree.ReadFile(t, "examples/"+file))
				}
				ran += at.runBlocks(t, section, missingPrerequisite)
			}
			if ran < p.least {
				t.Errorf("%d commands were tried, the page has more", ran)
			}
		})
	}
}

var runner = regexp.MustCompile(`(?m)^(?:\w+=(?:"[^"]*"|\S*) )*(?:npx )?(pytest|vitest|jest|node|go|aimock)\b`)

// skippedCommands returns the reasons why TestPages does not run certain commands of a page. A key is a part of the
// command.
func skippedCommands() map[string]string {
	return map[string]string{
		"go run ./cmd/claudeless":     "TestReadme runs it",
		"go install ":                 "it needs the network",
		"claudeless serve hello.toml": "its last line needs the real claude; docs/serve.md and its test show the server",
		"make test":                   "it is this test",
		"verify run.jsonl":            "its journals are those of a larger project",
	}
}

// missingPrerequisite returns why a command cannot be run here; empty means it can.
func missingPrerequisite(command string) string {
	for part, why := range skippedCommands() {
		if strings.Contains(command, part) {
			return why
		}
	}
	m := runner.FindStringSubmatch(command)
	if m == nil || slices.Contains(strings.Fields(os.Getenv("PAGES_RUNNERS")), m[1]) {
		return ""
	}
	return "there is no " + m[1] + " with our package here"
}

// installPackages creates the files of an installation in a directory: node_modules, and a module that requires the
// module of claudeless.
func (p *page) installPackages(t *testing.T) {
	t.Helper()
	if modules := os.Getenv("PAGES_NODE_MODULES"); modules != "" {
		if err := os.Symlink(modules, filepath.Join(p.dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`(?m)^module .*`).ReplaceAllString(tree.ReadFile(t, "go.mod"), "module example.com/triage")
	module += "\nrequire github.com/claudeless/claudeless v0.0.0\nreplace github.com/claudeless/claudeless => " + root + "\n"
	p.write(t, "go.mod", "mod", module)
	p.write(t, "go.sum", "sum", tree.ReadFile(t, "go.sum"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		p.env = append(p.env, name+"="+strings.TrimSpace(string(value)))
	}
	p.env = append(p.env, "GOFLAGS=-mod=mod", "GOPROXY=off", "NPM_CONFIG_UPDATE_NOTIFIER=false")
}
