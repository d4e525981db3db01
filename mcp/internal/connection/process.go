package connection

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// Process is a server that is started as a child process and communicates over pipes.
type Process struct {
	Command string
	Args    []string
	Env     []string // "K=V"; the complete environment
	Dir     string
	Grace   time.Duration // how long each step of the shutdown may take; 0 means 500 ms
	MaxLine int           // longest message in bytes
	Stderr  io.Writer     // receives a copy of standard error; may be nil
}

// exitOutputWait is how long output may still arrive after a process has exited.
const exitOutputWait = 50 * time.Millisecond

// ExitWait is how long to wait at most for the exit of a process that closed its output.
const ExitWait = time.Second

func (t Process) dial(_, limit context.Context, b *transportBase) (transport.Interface, messageTransport, error) {
	p, err := proc.Start(limit, proc.Options{
		Command: proc.Command{Path: t.Command, Args: t.Args, Env: t.Env, Dir: t.Dir},
		Stderr:  t.Stderr, Grace: t.Grace, TermGrace: t.Grace,
	})
	if err != nil {
		return nil, nil, err
	}
	lines := newLineFilter(pipeLines{bufio.NewReaderSize(p.Stdout(), 32<<10)}, t.MaxLine, b)
	lines.logs = true
	pipes := transport.NewIO(lines, stdinWriter{p.Stdin()}, nil)
	transport.WithCommandLogger(discardLogger)(pipes) // mcp-go would log to standard error
	w := &process{Process: p, transportBase: b, filter: lines, pipes: pipes}
	b.tasks.Go(w.watch)
	return pipes, w, nil
}

var discardLogger = slog.New(slog.DiscardHandler)

// process is the transport to a server over pipes. A nil process means that the server has no process.
type process struct {
	*proc.Process
	*transportBase
	filter *lineFilter
	pipes  transport.Interface
}

func (p *process) close(ctx context.Context) { p.Stop(ctx) }

// watch waits until the process exits or the connection is closed, and then closes the pipes.
func (p *process) watch() {
	select {
	case <-p.Done():
	case <-p.lost:
		return
	}
	select { // descendants may keep the pipe open for a long time
	case <-time.After(exitOutputWait):
		_ = p.pipes.Close() // fails the requests in progress
		p.MarkLost()
	case <-p.lost:
	}
}

func (p *process) pid() int {
	if p == nil {
		return 0
	}
	return p.PID()
}

func (p *process) skipped() (n int, first string) {
	if p == nil {
		return 0, ""
	}
	return p.filter.Skipped()
}

func (p *process) stderrTail() []string {
	if p == nil {
		return nil
	}
	return lastLines(p.debug.Redact(p.StderrTail()))
}

// exitReason returns why the process ended: "exit status 3: last line of standard error". The pipes may close shortly
// before the process exits, so exitReason waits for the exit, but at most patience. "" means that the process is still
// running.
func (p *process) exitReason(patience time.Duration) string {
	if p == nil {
		return ""
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
	}
	exit, ended := p.Exit()
	if !ended {
		return ""
	}
	reason := exit.String()
	if line := lastLine(p.StderrTail()); line != "" {
		reason += ": " + line
	}
	return p.debug.Redact(reason)
}

// stdinWriter is the standard input of the server. Closing it does not drop data that is still queued. Writing to a
// server that has exited is not an error, because the transport would log the error, and the end of the output already
// shows the exit.
type stdinWriter struct{ *proc.Queue }

func (s stdinWriter) Write(p []byte) (int, error) {
	n, err := s.Queue.Write(p)
	if errors.Is(err, proc.ErrQueueClosed) {
		return len(p), nil
	}
	return n, err
}

func (s stdinWriter) Close() error {
	s.CloseWhenSent()
	return nil
}

func lastLines(text string) []string {
	const most = 5
	lines := strings.Split(strings.ToValidUTF8(strings.TrimRight(text, " \t\r\n"), "?"), "\n")
	if lines[0] == "" && len(lines) == 1 {
		return nil
	}
	return lines[max(0, len(lines)-most):]
}

// failureTrailerPattern matches the lines that interpreters, test runners and package managers write after the message
// of a failure: stacks, quoted source and its mark, hints.
var failureTrailerPattern = lazyPattern(`^(?:[\s^}]|hint:|note:|Node\.js v\d|npm (?:error|ERR!)(?: A complete log| *$)|goroutine \d+ \[|created by |exit status \d+$|[\w./*()]+\(.*\)$)|^$`)

// lastLine returns the last line that does not match [failureTrailerPattern], or the last line if every line matches.
func lastLine(text string) string {
	const longest = 500
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	for _, l := range slices.Backward(lines) {
		if !failureTrailerPattern().MatchString(l) {
			line = l
			break
		}
	}
	line = strings.ToValidUTF8(strings.TrimSpace(line), "?")
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return line
}
