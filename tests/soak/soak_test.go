// Package soak keeps the binary busy for minutes and watches it from outside: memory, open files, threads and children
// of long-running processes, and processes that outlive their run.
//
// It stops only processes that it started, and counts processes that do not exit without this as failures.
package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSoak runs for the duration in CLAUDELESS_SOAK, which make soak sets. CLAUDELESS_SOAK_SEED seeds its random
// choices; without it the clock seeds them.
func TestSoak(t *testing.T) {
	text := os.Getenv("CLAUDELESS_SOAK")
	if text == "" || runtime.GOOS != "linux" {
		t.Skip("CLAUDELESS_SOAK says for how long, as make soak does; Linux only")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 20*time.Second || length > time.Hour {
		t.Fatalf("CLAUDELESS_SOAK=%s: want a time from 20s to 1h", text)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CLAUDELESS_SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CLAUDELESS_SOAK_SEED: %v", err)
		}
	}
	fmt.Printf("soak: %s, CLAUDELESS_SOAK_SEED=%d\n", length, seed)

	ground := newSoakDir(t)
	served := ground.serve("serve", "scenario.toml")
	fixture := ground.serve("fixture", "serve", "fixture.toml", "--http", "127.0.0.1:0")
	debugger := ground.serve("debug", "--port", "0", "--mcp-sse")
	ground.write("mcp.json", fmt.Sprintf(
		`{"mcpServers":{"near":{"command":%q,"args":["fixture","serve",%q]},"far":{"type":"http","url":"%s/mcp"}}}`,
		ground.bin, ground.file("fixture.toml"), fixture.url))
	session := ground.start("session", claudeArgs(ground)...)
	long := []*program{served, fixture, debugger, session}

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var loads sync.WaitGroup
	for i, load := range []func(context.Context, randomSource){
		requests{ground, served.url}.run, mcpCalls{ground, fixture.url + "/mcp", "load_echo"}.run,
		mcpCalls{ground, debugger.url + "/mcp", "breakpoint_list"}.run, debuggedRuns{ground, debugger.url}.run,
		decisions{ground, debugger.url}.run, turns{ground, session}.run, runs{ground}.run, runs{ground}.run,
	} {
		loads.Go(func() { load(ctx, randomSource{rand.New(rand.NewPCG(seed, uint64(i)))}) })
	}
	watch(ctx, t, long, length/60)
	loads.Wait()
	for _, p := range long {
		fmt.Println("soak:", p.checkSamples(t))
	}
	fmt.Println("soak:", ground.countsText())
	for _, p := range long {
		if n, err := p.countGoroutines(); err != nil || n > maxGoroutines {
			t.Errorf("%s: %d goroutines at rest (bound %d), error %v", p.name, n, maxGoroutines, err)
		} else {
			fmt.Printf("soak: %s: %d goroutines at rest\n", p.name, n)
		}
	}
	ground.checkNoneLeft("", 10*time.Second)
}

// randomSource makes the random choices of one load. It is never shared.
type randomSource struct{ *rand.Rand }

// rest pauses for a random time up to most, or until ctx ends.
func (d randomSource) rest(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(time.Duration(d.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// soakDir is the directory of a soak test with the binary, and the counts of its operations.
type soakDir struct {
	t        *testing.T
	bin, dir string
	mark     string // in the environment of all started processes
	mu       sync.Mutex
	counts   map[string]int
	serial   atomic.Int64
}

func newSoakDir(t *testing.T) *soakDir {
	t.Helper()
	dir := t.TempDir()
	g := &soakDir{t: t, dir: dir, bin: filepath.Join(dir, "claudeless"), mark: "CLAUDELESS_SOAK_GROUND=" + dir, counts: map[string]int{}}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", g.bin, "../../cmd/claudeless")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"scenario.toml", "fixture.toml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		g.write(name, string(text))
	}
	return g
}

func (g *soakDir) file(name string) string { return filepath.Join(g.dir, name) }

func (g *soakDir) write(name, text string) {
	if err := os.WriteFile(g.file(name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// command returns a command of the binary. Its home is its own directory.
func (g *soakDir) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(g.bin, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", g.mark, "CLAUDELESS_SOAK_RUN=" + dir}
	return cmd
}

// newDir creates a new directory.
func (g *soakDir) newDir(name string) string {
	dir := g.file(name + "-" + strconv.FormatInt(g.serial.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		g.t.Error(err)
	}
	return dir
}

func (g *soakDir) count(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[what]++
}

// countsText returns the number of operations by name. The test fails if an operation was never done.
func (g *soakDir) countsText() string {
	var parts []string
	for what := range strings.FieldsSeq("request cut mcp call turn interrupt run eof signal kill attached decision") {
		parts = append(parts, fmt.Sprintf("%s %d", what, g.counts[what]))
		if g.counts[what] == 0 {
			g.t.Errorf("nothing counted as %s", what)
		}
	}
	return strings.Join(parts, ", ")
}

// checkNoneLeft fails the test if a process of a run (for "", of the whole test) is still running
// after this time. It kills such processes. run is the directory of the run.
func (g *soakDir) checkNoneLeft(run string, within time.Duration) {
	mark := g.mark
	if run != "" {
		mark = "CLAUDELESS_SOAK_RUN=" + run
	}
	left := processesWithMark(mark)
	for end := time.Now().Add(within); len(left) > 0 && time.Now().Before(end); left = processesWithMark(mark) {
		time.Sleep(20 * time.Millisecond)
	}
	for pid, line := range left {
		g.t.Errorf("process %d outlives its run by %s: %s", pid, within, line)
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have exited meanwhile
		}
	}
}
