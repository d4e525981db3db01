package connection

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// ProcessServer is a server that is started as a child process and communicates over pipes.
type ProcessServer struct {
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

// interruptWait is how long a server may take to exit after SIGINT (observed with 2.1.330).
const interruptWait = 100 * time.Millisecond

// ExitWait is how long to wait at most for the exit of a process that closed its output.
const ExitWait = time.Second

func (t ProcessServer) dial(_, startLimit context.Context, b *transportBase) (startedProcess messageTransport, startError error) {
	p, err := proc.Start(startLimit, proc.Options{
		Command: proc.Command{Path: t.Command, Args: t.Args, Env: t.Env, Dir: t.Dir},
		Stderr:  t.Stderr, Grace: min(interruptWait, cmp.Or(t.Grace, interruptWait)), TermGrace: t.Grace, Interrupt: true,
	})
	if err != nil {
		return nil, err
	}
	w := &stdioTransport{Process: p, transportBase: b, messages: &messageReader{pipe: bufio.NewReaderSize(p.Stdout(), 32<<10), line: boundedLine{limit: t.MaxLine}, transport: b}}
	b.goroutines.Go(w.markLostAfterExit)
	return w, nil
}

// stdioTransport is the transport to a server over pipes.
type stdioTransport struct {
	*proc.Process
	*transportBase
	messages *messageReader
}

func (p *stdioTransport) StartReading(ctx context.Context) error {
	go func() { // returns at the end of the output
		for {
			message, err := p.messages.messageInNextLine()
			if message != nil {
				p.dispatchMessage(ctx, message)
			}
			if err != nil {
				p.MarkConnectionLost()
				return
			}
		}
	}()
	return nil
}

func (p *stdioTransport) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if p.IsConnectionLostOrClosed() {
		return nil, transport.ErrTransportClosed
	}
	if err := p.sendWithoutResponse(ctx, req); err != nil {
		return nil, err
	}
	return nil, p.waitForLossOrRequestEnd(ctx, p.Lost())
}

// sendWithoutResponse queues a message. An exited server causes no error, because the end of its output shows the exit.
func (p *stdioTransport) sendWithoutResponse(_ context.Context, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err = p.Stdin().Write(append(line, '\n')); errors.Is(err, proc.ErrQueueClosed) {
		return nil
	}
	return err
}

// close fails the requests in progress and stops the server.
func (p *stdioTransport) close(ctx context.Context) {
	p.MarkConnectionLost()
	p.Stop(ctx)
}

// markLostAfterExit marks the connection as lost when exitOutputWait has passed since the exit, unless it already is.
func (p *stdioTransport) markLostAfterExit() {
	select {
	case <-p.Done():
	case <-p.Lost():
		return
	}
	select { // descendants may keep the pipe open for a long time
	case <-time.After(exitOutputWait):
		p.MarkConnectionLost() // fails the requests in progress
	case <-p.Lost():
	}
}

// stderrLineAfterFailureMessagePattern matches lines that interpreters, test runners and package
// managers write after the message of a failure: stack traces, quoted source code, hints.
var stderrLineAfterFailureMessagePattern = lazyPattern(`^(?:[\s^}]|hint:|note:|Node\.js v\d|npm (?:error|ERR!)(?: A complete log| *$)|goroutine \d+ \[|created by |exit status \d+$|[\w./*()]+\(.*\)$)|^$`)

// lastFailureMessageLine returns the last line that does not match [stderrLineAfterFailureMessagePattern], or else the last line.
func lastFailureMessageLine(text string) string {
	const longest = 500
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	for _, l := range slices.Backward(lines) {
		if !stderrLineAfterFailureMessagePattern().MatchString(l) {
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
