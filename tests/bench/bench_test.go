//go:build unix

// Package bench measures the ratios of docs/performance.md.
package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// The benchmarks print ratios measured inside one run (docs/performance.md). A figure is the median of several runs,
// with the sides alternating, so that other load affects both.

// sampleRuns is how often a benchmark measures each of its sides.
const sampleRuns = 21

func BenchmarkStart(b *testing.B) {
	bin, hello := buildProgram(b, tree.Root, "./cmd/claudeless"), buildHello(b)
	run := benchDir{b, b.TempDir()}
	scenario := run.write("s.toml", "default_response = \"hi\"\n")
	for b.Loop() {
		var base, ours, memory []float64
		for range sampleRuns {
			d, _ := run.exec(nil, hello)
			base = append(base, d)
			d, m := run.exec(nil, bin, "-p", "hi", "--scenario", scenario)
			ours, memory = append(ours, d), append(memory, m)
		}
		b.ReportMetric(median(ours)/median(base), "×hello")
		b.ReportMetric(median(ours)*1e3, "ms")
		b.ReportMetric(median(memory)/1e6, "MB-peak")
	}
}

// BenchmarkServer compares the time that one stdio server adds to a run with starting the same server, shaking hands
// and listing its tools.
func BenchmarkServer(b *testing.B) {
	bin, self := buildProgram(b, tree.Root, "./cmd/claudeless"), mcpServerPath(b)
	run := benchDir{b, b.TempDir()}
	scenario := run.write("s.toml", "default_response = \"hi\"\n")
	config := run.write("m.json", fmt.Sprintf(`{"mcpServers":{"s":{"command":%q}}}`, self))
	for b.Loop() {
		var bare, without, with []float64
		for range sampleRuns {
			bare = append(bare, run.handshake(self))
			d, _ := run.exec(nil, bin, "-p", "hi", "--scenario", scenario)
			without = append(without, d)
			d, _ = run.exec(nil, bin, "-p", "hi", "--scenario", scenario, "--mcp-config", config)
			with = append(with, d)
		}
		b.ReportMetric((median(with)-median(without))/median(bare), "×bare")
		b.ReportMetric((median(with)-median(without))*1e3, "ms-added")
	}
}

// BenchmarkCall compares one additional MCP call in a run with one round trip over the bare pipe.
func BenchmarkCall(b *testing.B) {
	bin, self := buildProgram(b, tree.Root, "./cmd/claudeless"), mcpServerPath(b)
	run := benchDir{b, b.TempDir()}
	config := run.write("m.json", fmt.Sprintf(`{"mcpServers":{"s":{"command":%q}}}`, self))
	const calls = 200
	few, many := run.write("few.toml", callScenario(1)), run.write("many.toml", callScenario(calls+1))
	for b.Loop() {
		var bare, short, long []float64
		for range sampleRuns {
			bare = append(bare, run.roundTrips(self, calls))
			args := []string{"-p", "hi", "--mcp-config", config, "--allowedTools", "mcp__s", "--scenario"}
			d, _ := run.exec(nil, bin, append(args, few)...)
			short = append(short, d)
			d, _ = run.exec(nil, bin, append(args, many)...)
			long = append(long, d)
		}
		b.ReportMetric((median(long)-median(short))/median(bare), "×pipe")
		b.ReportMetric((median(long)-median(short))/calls*1e6, "µs/call")
	}
}

func BenchmarkRules(b *testing.B) {
	bin := buildProgram(b, tree.Root, "./cmd/claudeless")
	run := benchDir{b, b.TempDir()}
	patterns := map[string]string{
		"contains": `{ type = "contains", text = "needle %d" }`,
		"regex":    `{ type = "regex", pattern = '^needle (?P<n>%d) [a-z]+ (on|off)$' }`,
	}
	for _, kind := range []string{"contains", "regex"} {
		pattern := patterns[kind]
		few, many := run.write(kind+"-few.toml", ruleScenario(10, pattern)), run.write(kind+"-many.toml", ruleScenario(10_000, pattern))
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				var short, long []float64
				for range sampleRuns {
					short = append(short, run.processorTime(bin, "-p", "last", "--scenario", few))
					long = append(long, run.processorTime(bin, "-p", "last", "--scenario", many))
				}
				b.ReportMetric(median(long)/median(short), "×10-rules")
				b.ReportMetric(median(long)*1e3, "ms")
			}
		})
	}
}

// BenchmarkEvents compares the peak memory of a run of 100,000 events (partial
// messages of one long text) with that of 1,000.
func BenchmarkEvents(b *testing.B) {
	bin := buildProgram(b, tree.Root, "./cmd/claudeless")
	run := benchDir{b, b.TempDir()}
	long := func(events int) string {
		return fmt.Sprintf("[stream]\nchunk = \"word\"\n[[responses]]\npattern = { type = \"any\" }\nresponse = \"%s\"\n", strings.Repeat("w ", events))
	}
	few, many := run.write("few.toml", long(1_000)), run.write("many.toml", long(100_000))
	args := []string{"-p", "hi", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--scenario"}
	for b.Loop() {
		var lines counter
		_, small := run.exec(nil, bin, append(args, few)...)
		_, large := run.exec(&lines, bin, append(args, many)...)
		b.ReportMetric(large/small, "×memory")
		b.ReportMetric(large/1e6, "MB-peak")
		b.ReportMetric(float64(lines), "events")
	}
}

// benchDir runs programs in a separate directory.
type benchDir struct {
	b   *testing.B
	dir string
}

func (l benchDir) write(name, text string) string {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		l.b.Fatal(err)
	}
	return path
}

func (l benchDir) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.b.Context(), program, args...)
	cmd.Dir = l.dir
	cmd.Env = []string{"HOME=" + l.dir, "TMPDIR=" + l.dir, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic"}
	return cmd
}

// exec runs a program to its end and returns the seconds and the peak memory in bytes.
func (l benchDir) exec(stdout io.Writer, program string, args ...string) (seconds, peak float64) {
	l.b.Helper()
	start := time.Now()
	state := l.run(stdout, program, args...)
	seconds = time.Since(start).Seconds()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		peak = float64(usage.Maxrss) * 1024
	}
	return seconds, peak
}

// processorTime runs a program to its end and returns the processor time of its threads in seconds.
// Other work on the machine affects it less than the elapsed time.
func (l benchDir) processorTime(program string, args ...string) float64 {
	l.b.Helper()
	state := l.run(nil, program, args...)
	return (state.UserTime() + state.SystemTime()).Seconds()
}

func (l benchDir) run(stdout io.Writer, program string, args ...string) *os.ProcessState {
	l.b.Helper()
	cmd := l.command(program, args...)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	if err := cmd.Run(); err != nil {
		l.b.Fatalf("%s %v: %v\n%s", program, args, err, stderr.String())
	}
	return cmd.ProcessState
}

// handshake spawns a server, initializes it, lists its tools and ends it.
func (l benchDir) handshake(server string) float64 {
	start := time.Now()
	l.dialogue(server, nil)
	return time.Since(start).Seconds()
}

// roundTrips measures n calls over a pipe, without starting and stopping the server.
func (l benchDir) roundTrips(server string, n int) float64 {
	var seconds float64
	l.dialogue(server, func(ask func(method string, params any)) {
		start := time.Now()
		for range n {
			ask("tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": "x"}})
		}
		seconds = time.Since(start).Seconds()
	})
	return seconds
}

func (l benchDir) dialogue(server string, then func(ask func(method string, params any))) {
	l.b.Helper()
	cmd := l.command(server)
	in, err := cmd.StdinPipe()
	if err != nil {
		l.b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.b.Fatal(err)
	}
	lines, id := bufio.NewReader(out), 0
	ask := func(method string, params any) {
		id++
		if err := json.NewEncoder(in).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
			l.b.Fatal(err)
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			l.b.Fatal(err)
		}
	}
	ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ask("tools/list", map[string]any{})
	if then != nil {
		then(ask)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		l.b.Fatal(err)
	}
}

// callScenario returns a scenario with n MCP calls, one after the other.
func callScenario(n int) string {
	var s strings.Builder
	s.WriteString("[[responses]]\npattern = { type = \"any\" }\n")
	for range n {
		s.WriteString("[[responses.response.steps]]\ntool_calls = [ { tool = \"mcp__s__echo\", input = { text = \"x\" } } ]\n")
	}
	return s.String()
}

// ruleScenario returns a scenario of n rules. The last one answers "last"; the others have a pattern with a number in
// it.
func ruleScenario(n int, pattern string) string {
	var s strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&s, "[[responses]]\npattern = "+pattern+"\nresponse = \"no\"\n", i)
	}
	s.WriteString("[[responses]]\npattern = { type = \"exact\", text = \"last\" }\nresponse = \"yes\"\n")
	return s.String()
}

// buildProgram compiles a program as `make build` does.
func buildProgram(b *testing.B, dir, pkg string) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "bin")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func buildHello(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module hello\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	return buildProgram(b, dir, ".")
}

// mcpServerPath returns the path of the MCP server that TestMain put on PATH.
func mcpServerPath(b *testing.B) string {
	b.Helper()
	path, err := exec.LookPath("mcpsrv")
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}

// counter counts lines.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(strings.Count(string(p), "\n"))
	return len(p), nil
}
