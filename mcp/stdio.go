package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/internal/proc"
)

const (
	defaultMaxLine = 16 << 20
	// exitLinger is how long the output of a process that has ended may still
	// come through.
	exitLinger = 50 * time.Millisecond
)

// dialStdio starts a server's process and puts a client on its pipes.
func (s *server) dialStdio(ctx context.Context, cfg ServerConfig, debug *debugLog) (*conn, error) {
	o := proc.Options{
		Command: proc.Command{Path: cfg.Command, Args: cfg.Args, Env: s.m.environ(cfg), Dir: s.m.o.CWD},
		Grace:   cfg.ShutdownGrace, TermGrace: cfg.ShutdownGrace,
	}
	if cfg.CWD != "" {
		o.Dir = cfg.CWD
	}
	if debug != nil {
		o.Stderr = &stderrLog{log: debug}
	}
	p, err := proc.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	lines := &lineFilter{src: bufio.NewReaderSize(p.Stdout(), 32<<10), limit: cfg.MaxLineBytes}
	if lines.limit <= 0 {
		lines.limit = defaultMaxLine
	}
	c := newConn(s, transport.NewIO(lines, stdin{p.Stdin()}, nil), debug)
	lines.repair, lines.onEnd = c.link.repairNullID, c.lose
	lines.onJunk = func(first string) { debug.printf("not a message, skipped: %s", first) }
	c.pid = p.PID()
	c.closeTransport = p.Stop
	c.why = func() string { return exitReason(p, debug) }
	c.junk = lines.skipped
	s.m.tasks.Go(func() { // ends with the process, or when the connection is closed
		select {
		case <-p.Done():
		case <-c.lost:
			return
		}
		select { // descendants may hold the pipe for ever
		case <-time.After(exitLinger):
			_ = c.client.Close() // fails what is in flight
			c.lose()
		case <-c.lost:
		}
	})
	return c, nil
}

// stdin lets the transport close the server's input without dropping what is
// still queued. Writing to a server that is gone is no error here, which the
// transport would log: the end of its output tells.
type stdin struct{ *proc.Queue }

func (s stdin) Write(p []byte) (int, error) {
	n, err := s.Queue.Write(p)
	if errors.Is(err, proc.ErrQueueClosed) {
		return len(p), nil
	}
	return n, err
}

func (s stdin) Close() error {
	s.CloseWhenSent()
	return nil
}

// exitReason is "exit status 3: last line of standard error"; empty while the
// process runs.
func exitReason(p *proc.Process, debug *debugLog) string {
	select {
	case <-p.Done():
	case <-time.After(2 * exitLinger): // its pipes may close a moment before it ends
	}
	exit, ended := p.Exit()
	if !ended {
		return ""
	}
	reason := exit.String()
	if line := lastLine(p.StderrTail()); line != "" {
		reason += ": " + line
	}
	if debug != nil {
		reason = redact(reason, debug.secret)
	}
	return reason
}

func lastLine(text string) string {
	const longest = 500
	text = strings.TrimRight(text, " \t\r\n")
	line := text[strings.LastIndexByte(text, '\n')+1:]
	line = strings.ToValidUTF8(strings.TrimSpace(line), "?")
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return line
}

// environ is the environment of a stdio server. Telemetry settings of the CLI
// are not for its servers.
func (m *Manager) environ(cfg ServerConfig) []string {
	env := slices.DeleteFunc(slices.Clone(m.o.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, "OTEL_")
	})
	if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CLAUDE_CODE_ENTRYPOINT=") }) {
		env = append(env, "CLAUDE_CODE_ENTRYPOINT=sdk-cli")
	}
	env = append(env, "CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+m.o.CWD, "CLAUDE_CODE_SESSION_ID="+m.o.SessionID)
	for _, k := range sortedKeys(cfg.Env) {
		env = append(env, k+"="+cfg.Env[k])
	}
	return env
}

// lineFilter hands on the lines of a server that are JSON objects and drops
// the rest: prose, blank lines, messages longer than limit. A batch becomes
// its elements, one a line. A last line without newline gets one.
type lineFilter struct {
	src    *bufio.Reader
	limit  int
	repair func(line []byte) []byte // may rewrite an object
	onEnd  func()                   // called once, at the end of input
	onJunk func(first string)       // called for the first few lines dropped

	ready []byte // what Read hands out next
	ended bool

	mu    sync.Mutex
	junk  int
	first string
}

// Read implements io.Reader for one goroutine.
func (f *lineFilter) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.ended {
			return 0, io.EOF
		}
		f.fill()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// fill reads one line into ready, which stays empty when it is not a message.
func (f *lineFilter) fill() {
	f.ready = nil
	line, tooLong, err := f.readLine()
	if err != nil {
		f.ended = true
		defer f.onEnd()
	}
	if tooLong {
		f.drop(fmt.Sprintf("message longer than %d bytes", f.limit))
		return
	}
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0:
	case trimmed[0] == '{' && json.Valid(trimmed):
		f.ready = f.object(trimmed)
	case trimmed[0] == '[':
		f.ready = f.batch(trimmed)
	default:
		f.drop(string(trimmed[:min(len(trimmed), 200)]))
	}
}

func (f *lineFilter) object(line []byte) []byte {
	if f.repair != nil {
		line = f.repair(line)
	}
	return append(bytes.TrimRight(line, "\n"), '\n')
}

// batch splits a JSON-RPC batch, which current servers must not send but old
// ones may.
func (f *lineFilter) batch(line []byte) []byte {
	var elements []json.RawMessage
	if json.Unmarshal(line, &elements) != nil {
		f.drop(string(line[:min(len(line), 200)]))
		return nil
	}
	var out []byte
	for _, e := range elements {
		var compact bytes.Buffer
		if len(e) == 0 || e[0] != '{' || json.Compact(&compact, e) != nil {
			f.drop(string(e[:min(len(e), 200)]))
			continue
		}
		out = append(out, f.object(compact.Bytes())...)
	}
	return out
}

// readLine returns the next line. Of a line that is too long nothing is kept.
func (f *lineFilter) readLine() (line []byte, tooLong bool, err error) {
	for {
		part, err := f.src.ReadSlice('\n')
		if !tooLong && len(line)+len(part) > f.limit {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

func (f *lineFilter) drop(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const shown = 10
	f.junk++
	if f.junk == 1 {
		f.first = what
	}
	if f.junk <= shown && f.onJunk != nil {
		f.onJunk(what)
	}
}

// skipped reports how many lines were dropped, and the first of them.
func (f *lineFilter) skipped() (n int, first string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.junk, f.first
}
