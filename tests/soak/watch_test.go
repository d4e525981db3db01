package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bounds. The first quarter of the samples is ignored. The median of the last quarter may exceed that of the second
// quarter only by these amounts.
const (
	maxGrowth      = 1.5 // factor for the memory, in addition to maxSlack
	maxSlack       = 24  // MB
	maxMoreHandles = 12  // open files, threads
	maxChildren    = 3   // child processes
	maxGoroutines  = 60  // after the last request
)

// program is a process that runs during the whole test.
type program struct {
	name, url string
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       io.Reader // nil means not read
	stderr    string    // file
	samples   []sample
}

type sample struct{ memory, files, threads, children float64 }

func (g *soakDir) start(name string, args ...string) *program {
	g.t.Helper()
	p := &program{name: name, cmd: g.command(g.newDir(name), args...)}
	p.stderr = filepath.Join(p.cmd.Dir, "stderr")
	stderr, err := os.Create(p.stderr)
	if err != nil {
		g.t.Fatal(err)
	}
	defer stderr.Close()
	p.cmd.Stderr = stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		g.t.Fatal(err)
	}
	if name == "session" {
		if p.out, err = p.cmd.StdoutPipe(); err != nil {
			g.t.Fatal(err)
		}
	}
	if err := p.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // normally it has already exited
		_ = p.cmd.Wait()
	})
	return p
}

// serve starts a server and waits for its port.
func (g *soakDir) serve(args ...string) *program {
	g.t.Helper()
	port := filepath.Join(g.dir, args[0]+".port")
	for i, arg := range args {
		if strings.HasSuffix(arg, ".toml") {
			args[i] = g.file(arg)
		}
	}
	p := g.start(args[0], append(args, "--port-file", port)...)
	for range 500 {
		if text, err := os.ReadFile(port); err == nil && len(text) > 0 {
			p.url = "http://127.0.0.1:" + strings.TrimSpace(string(text))
			return p
		}
		time.Sleep(20 * time.Millisecond)
	}
	g.t.Fatalf("%s: no port", p.name)
	return nil
}

// watch takes samples until ctx ends.
func watch(ctx context.Context, t *testing.T, programs []*program, every time.Duration) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range programs {
			s, err := sampleProcess(p.cmd.Process.Pid)
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
				return
			}
			p.samples = append(p.samples, s)
		}
	}
}

func sampleProcess(pid int) (sample, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return sample{}, fmt.Errorf("it has ended: %w", err)
	}
	s := sample{memory: field(status, "VmRSS:") / 1024, threads: field(status, "Threads:")}
	files, err := os.ReadDir(proc + "fd")
	s.files = float64(len(files))
	// Each thread lists the children that it has started.
	lists, _ := filepath.Glob(proc + "task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		s.children += float64(len(bytes.Fields(text)))
	}
	if s.memory == 0 {
		err = errors.Join(err, errors.New("it has ended: a zombie has no memory"))
	}
	return s, err
}

func field(status []byte, name string) float64 {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, err := strconv.ParseFloat(string(words[0]), 64)
	if err != nil {
		return 0
	}
	return n
}

// checkSamples compares the samples with the bounds, and returns them as text.
func (p *program) checkSamples(t *testing.T) string {
	t.Helper()
	n := len(p.samples)
	if n < 20 {
		t.Errorf("%s: %d samples are too few", p.name, n)
		return p.name
	}
	median := func(from, to int, of func(sample) float64) float64 {
		var all []float64
		for _, s := range p.samples[from:to] {
			all = append(all, of(s))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	var line strings.Builder
	line.WriteString(p.name + ":")
	for _, m := range []struct {
		what         string
		of           func(sample) float64
		times, slack float64
	}{
		{"MB", func(s sample) float64 { return s.memory }, maxGrowth, maxSlack},
		{"files", func(s sample) float64 { return s.files }, 1, maxMoreHandles},
		{"threads", func(s sample) float64 { return s.threads }, 1, maxMoreHandles},
		{"children", func(s sample) float64 { return s.children }, 1, maxChildren},
	} {
		early, late := median(n/4, n/2, m.of), median(n-n/4, n, m.of)
		if bound := early*m.times + m.slack; late > bound {
			t.Errorf("%s: %s grew from %.0f to %.0f, bound %.0f", p.name, m.what, early, late, bound)
		}
		fmt.Fprintf(&line, " %s %.0f to %.0f,", m.what, early, late)
	}
	return strings.TrimSuffix(line.String(), ",")
}

// countGoroutines ends the program by SIGQUIT and counts the stacks that it prints.
func (p *program) countGoroutines() (int, error) {
	time.Sleep(2 * time.Second) // in the meantime, idle connections are closed
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		return 0, err
	}
	text, err := os.ReadFile(p.stderr)
	if err != nil {
		return 0, err
	}
	n := bytes.Count(text, []byte("\n\ngoroutine "))
	if n == 0 {
		return 0, fmt.Errorf("no stacks on stderr: %.300s", text)
	}
	return n, nil
}

// processesWithMark returns the command lines of the processes with a mark in their environment, by process id.
func processesWithMark(mark string) map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			continue // it belongs to another user or has exited; a zombie has no environment
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
	}
	return found
}
