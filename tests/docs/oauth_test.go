package docs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestOAuthGuide executes docs/oauth.md block by block.
func TestOAuthGuide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { // if the test did not reach the end of the page
		raw, err := os.ReadFile(filepath.Join(dir, "server.pid"))
		if err != nil {
			return
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it has exited
			}
		}
	})
	ran := (&page{dir: dir}).runBlocks(t, tree.ReadFile(t, "docs/oauth.md"), func(string) string { return "" })
	if ran < 6 {
		t.Errorf("%d commands were tried, the page has more", ran)
	}
}
