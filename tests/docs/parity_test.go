package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// fakeCLI replaces a version of the real CLI. It is claudeless with the scenario of the real lane; its requests are
// recorded like those of the API.
const fakeCLI = `#!/bin/sh
[ "$1" = --version ] && { echo '@V@ (Claude Code)'; exit; }
case "$*" in *stream-json*) CLAUDELESS_SCENARIO=$PWD/../../scenario.json exec claude "$@" ;; esac
CLAUDELESS_CLAUDE_VERSION=@V@ CLAUDELESS_SCENARIO=$PWD/../scenario.toml CLAUDELESS_CAPTURE=$PWD/../rec/api.jsonl claude "$@" | sed 's/^hello$/@G@/'
`

// P6: runs the blocks of docs/parity.md, with substitutes for the cached versions.
func TestParityPage(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are scripts of a shell")
	}
	dir := t.TempDir()
	p := &page{dir: dir}
	arch := strings.ReplaceAll(runtime.GOARCH, "amd64", "x64")
	bin := ""
	for version, greeting := range map[string]string{"2.1.329": "hello", "2.1.330": "hello there"} {
		file := filepath.Join(".cache", "claudeless-parity", version, "node_modules", "@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch, "claude")
		p.write(t, file, "sh", strings.NewReplacer("@V@", version, "@G@", greeting).Replace(fakeCLI))
		if err := os.Chmod(filepath.Join(dir, file), 0o700); err != nil {
			t.Fatal(err)
		}
		if version == "2.1.329" {
			bin = filepath.Join(dir, file)
		}
	}
	p.env = []string{"CLAUDE_BIN=" + bin, "XDG_CACHE_HOME=" + filepath.Join(dir, ".cache")}
	if ran := p.runBlocks(t, tree.ReadFile(t, "docs/parity.md"), func(string) string { return "" }); ran != 6 {
		t.Errorf("%d commands were tried, the page has 6", ran)
	}
}

// TestParityFigures compares the figures about parity in the README with the cases and versions that make parity-full
// runs.
func TestParityFigures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(tree.Root, "tests", "parity", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	_, versions, _ := strings.Cut(tree.ReadFile(t, "tests/parity/run.sh"), "CLAUDE_VERSIONS:-")
	versions, _, _ = strings.Cut(versions, "}")
	want := fmt.Sprintf("%d cases with claudeless and with the real CLI (%s)", len(files), strings.ReplaceAll(versions, " ", " and "))
	if said := strings.Join(strings.Fields(tree.ReadFile(t, "README.md")), " "); !strings.Contains(said, want) {
		t.Errorf("the README does not say %q of parity", want)
	}
}
