//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// BenchmarkInitialize measures the time from the start of the process to the answer to initialize, compared with a
// complete run of a hello world program. It also measures the answer of a process that is already running.
func BenchmarkInitialize(b *testing.B) {
	bin, hello := buildProgram(b, tree.Root, "./cmd/claudeless"), buildHello(b)
	run := benchDir{b, b.TempDir()}
	scenario := run.write("s.toml", "default_response = \"hi\"\n")
	for b.Loop() {
		var base, first, again []float64
		for range sampleRuns {
			d, _ := run.exec(nil, hello)
			base = append(base, d)
			start := time.Now()
			h := run.host(bin, "--scenario", scenario)
			h.send(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":null}}`)
			h.until(`"request_id":"1"`)
			first = append(first, time.Since(start).Seconds())
			start = time.Now()
			h.send(`{"type":"control_request","request_id":"2","request":{"subtype":"initialize","hooks":null}}`)
			h.until(`"request_id":"2"`)
			again = append(again, time.Since(start).Seconds())
			h.end()
		}
		b.ReportMetric(median(first)/median(base), "×hello")
		b.ReportMetric(median(first)*1e3, "ms-from-spawn")
		b.ReportMetric(median(again)*1e3, "ms-running")
	}
}

// BenchmarkTurns plays 1,000 turns in one process, one after the other, and compares the memory in use near the
// beginning and at the end.
func BenchmarkTurns(b *testing.B) {
	bin := buildProgram(b, tree.Root, "./cmd/claudeless")
	run := benchDir{b, b.TempDir()}
	scenario := run.write("s.toml", "default_response = \"hi\"\n")
	const turns, early = 1_000, 200
	for b.Loop() {
		h := run.host(bin, "--scenario", scenario)
		var before float64
		start := time.Now()
		for i := range turns {
			if i == early {
				before = h.memory()
			}
			h.send(`{"type":"user","message":{"role":"user","content":"hi"}}`)
			h.until(`"result_index":` + strconv.Itoa(i) + `,`)
		}
		took := time.Since(start).Seconds()
		after := h.memory()
		h.end()
		b.ReportMetric(after/before, "×memory")
		b.ReportMetric(after/1e6, "MB")
		b.ReportMetric(took/turns*1e3, "ms/turn")
	}
}

// BenchmarkProcesses compares 100 parallel runs with 100 parallel hello world programs.
func BenchmarkProcesses(b *testing.B) {
	bin, hello := buildProgram(b, tree.Root, "./cmd/claudeless"), buildHello(b)
	run := benchDir{b, b.TempDir()}
	scenario := run.write("s.toml", "default_response = \"hi\"\n")
	together := func(program string, args ...string) float64 {
		var group sync.WaitGroup
		start := time.Now()
		for range 100 {
			group.Go(func() {
				cmd := run.command(program, args...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Errorf("%v\n%s", err, out)
				}
			})
		}
		group.Wait()
		return time.Since(start).Seconds()
	}
	for b.Loop() {
		var base, ours []float64
		for range 5 {
			base = append(base, together(hello))
			ours = append(ours, together(bin, "-p", "hi", "--scenario", scenario, "--output-format", "json"))
		}
		b.ReportMetric(median(ours)/median(base), "×hello")
		b.ReportMetric(median(ours)*1e3, "ms-for-100")
	}
}

// BenchmarkPace streams 400 tokens at 200 a second and measures the average delay against the scenario's pace.
func BenchmarkPace(b *testing.B) {
	bin := buildProgram(b, tree.Root, "./cmd/claudeless")
	run := benchDir{b, b.TempDir()}
	const tokens, perSecond = 400, 200
	scenario := run.write("s.toml", fmt.Sprintf(
		"default_response = %q\n[stream]\nchunk = \"word\"\ntokens_per_second = %d\n", strings.TrimSpace(strings.Repeat("w ", tokens)), perSecond))
	for b.Loop() {
		h := run.host(bin, "--scenario", scenario, "--include-partial-messages")
		h.send(`{"type":"user","message":{"role":"user","content":"hi"}}`)
		var arrived []time.Time
		for !bytes.Contains(h.line(), []byte(`"type":"result"`)) {
			if bytes.Contains(h.last, []byte(`"text_delta"`)) {
				arrived = append(arrived, time.Now())
			}
		}
		h.end()
		took := arrived[len(arrived)-1].Sub(arrived[0])
		want := time.Duration(len(arrived)-1) * time.Second / perSecond
		b.ReportMetric(took.Seconds()/want.Seconds(), "×pace")
		b.ReportMetric((took-want).Seconds()*1e3/float64(len(arrived)-1), "ms-late/token")
		b.ReportMetric(float64(len(arrived)), "tokens")
	}
}

// drivenProgram is a program that a benchmark controls over stdin and stdout.
type drivenProgram struct {
	b    *testing.B
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last []byte
}

func (l benchDir) host(bin string, args ...string) *drivenProgram {
	l.b.Helper()
	cmd := l.command(bin, append([]string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}, args...)...)
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
	return &drivenProgram{b: l.b, cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

func (d *drivenProgram) send(line string) {
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.b.Fatal(err)
	}
}

func (d *drivenProgram) line() []byte {
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		d.b.Fatal(err)
	}
	d.last = line
	return line
}

// until reads lines up to the one that contains a text.
func (d *drivenProgram) until(text string) {
	for !bytes.Contains(d.line(), []byte(text)) {
	}
	if !json.Valid(d.last) {
		d.b.Fatalf("no JSON: %.200s", d.last)
	}
}

// memory returns the heap in use, in bytes.
func (d *drivenProgram) memory() float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.b.Skip("no figure of another process's memory here")
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				d.b.Fatal(err)
			}
			return kb * 1024
		}
	}
	return 0
}

func (d *drivenProgram) end() {
	d.in.Close()
	if _, err := io.Copy(io.Discard, d.out); err != nil {
		d.b.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.b.Fatal(err)
	}
}
