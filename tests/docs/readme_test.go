package docs

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestReadme runs the command of the README that needs only a clone and Go, in the tree as committed, with an empty
// home.
func TestReadme(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(tree.ReadFile(t, "README.md"), "```sh\ngo run ")
	block, _, _ := strings.Cut("go run "+rest, "```")
	if !ok {
		t.Fatal("the README has no command that begins with go run")
	}
	env, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Split(string(env), "\n")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", block)
	cmd.Dir = tree.Root
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOPATH="+dirs[2])
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, want := range []string{`"subtype":"init"`, `"type":"tool_use"`, `"type":"tool_result"`, `"type":"text"`, `"subtype":"success"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no event with %s in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), `"is_error":true`) { // the exit code of a run with a failed tool is 0, too (C1)
		t.Errorf("the tool failed:\n%s", out)
	}
}
