package docs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestDebuggingGuide runs the commands of docs/debugging.md in a shell and compares their output with the output shown
// in the document, in which "…" matches any text. It also checks the scenario of the page.
func TestDebuggingGuide(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs curl:", err)
		}
		t.Skip("there is no curl")
	}
	_, walk, _ := strings.Cut(tree.ReadFile(t, "docs/debugging.md"), "## A first session\n")
	walk, rest, _ := strings.Cut(walk, "\n## ")
	blocks := regexp.MustCompile("(?s)```(sh|text)\n(.*?)```").FindAllStringSubmatch(walk, -1)
	sh := startShell(t)
	commands := 0
	for i, b := range blocks {
		if b[1] != "sh" {
			continue
		}
		commands++
		want := ""
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			want = blocks[i+1][2]
		}
		printed := sh.enter(b[2])
		switch {
		case commands == 1: // waits as a reader does, who sees that the server is ready before typing the next command
			sh.enter("debugger=$!\n")
			sh.until("the port file", func() bool {
				port, err := os.ReadFile(filepath.Join(sh.dir, "port"))
				return err == nil && len(port) > 0
			})
		case strings.Contains(b[2], "tee "): // repeats the command as a reader does if nothing is paused yet
			sh.until("the output "+want, func() bool {
				if strings.HasSuffix(printed(), "{\"paused\":[]}\n") {
					printed = sh.enter(b[2])
				}
				return outputPattern(want).MatchString(printed())
			})
		case want != "":
			sh.until("the output "+want, func() bool { return outputPattern(want).MatchString(printed()) })
		}
	}
	if commands != 6 {
		t.Errorf("%d commands were run, the page has six", commands)
	}
	scenario := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(rest)
	if scenario == nil {
		t.Fatal("the page has no scenario")
	}
	if err := os.WriteFile(filepath.Join(sh.dir, "page.toml"), []byte(scenario[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := sh.enter("claudeless check page.toml\n")
	sh.until("the check of the page's scenario", func() bool { return printed() == "page.toml: ok (scenario)\n" })
}

// outputPattern returns the output of a document as a pattern, in which "…" matches any text.
func outputPattern(output string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(output)), "…", ".*"))
}

// shell is an interactive sh.
type shell struct {
	t     *testing.T
	dir   string
	stdin io.Writer
	out   outputWatcher // stdout and stderr
}

// outputWatcher collects the output.
type outputWatcher struct {
	mu  sync.Mutex
	out strings.Builder
}

func (p *outputWatcher) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *outputWatcher) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// startShell starts a shell in an empty directory, which is its home. It is stopped at the end of the test, after the
// program whose id is in $debugger.
func startShell(t *testing.T) *shell {
	t.Helper()
	sh := &shell{t: t, dir: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Dir, cmd.Stdout, cmd.Stderr = sh.dir, &sh.out, &sh.out
	cmd.Env = append(os.Environ(), "HOME="+sh.dir, "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	sh.stdin = stdin
	cmd.Cancel = func() error { // interrupted like a person would do it, so that its programs also exit
		sh.enter("kill $debugger; wait\n")
		return stdin.Close()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	return sh
}

// enter types a line and returns a function that returns the output since then.
func (sh *shell) enter(line string) (printed func() string) {
	from := len(sh.out.String())
	if _, err := io.WriteString(sh.stdin, line); err != nil {
		sh.t.Error(err)
	}
	return func() string { return sh.out.String()[from:] }
}

// until waits until done returns true.
func (sh *shell) until(what string, done func() bool) {
	sh.t.Helper()
	deadline, tick := time.Now().Add(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Now().After(deadline) {
			sh.t.Fatalf("waited in vain for %s; the shell says:\n%s", what, sh.out.String())
		}
		<-tick.C
	}
}
