package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"sync"
	"unicode/utf16"

	"github.com/claudeless/claudeless/internal/base/jsvalue"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// byteOrderMark may begin stdin; it is no part of the first line.
const byteOrderMark = "\ufeff"

// read takes lines of any length until stdin ends. An error ends the process.
func (p *Conn) read(ctx context.Context) error {
	in := bufio.NewReaderSize(p.in, 64<<10)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // what was peeked at is there
	}
	for {
		line, err := readLine(in)
		p.desk.burst(true)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if fault := p.receive(ctx, process.Stream(bytes.TrimSuffix(line, []byte("\n")))); fault != nil {
				return fault
			}
		}
		rest, _ := in.Peek(in.Buffered()) // what is there is there
		p.desk.burst(bytes.IndexByte(rest, '\n') >= 0)
		if err != nil {
			p.close()
			return nil
		}
	}
}

// receive takes one line. An error ends the process.
func (p *Conn) receive(ctx context.Context, line []byte) error {
	switch {
	case !json.Valid(line):
		return unread(line, "SyntaxError")
	case string(bytes.TrimSpace(line)) == "null": // what has no keys at all (observed with 2.1.330)
		return unread(line, "TypeError")
	}
	var f incoming
	if json.Unmarshal(line, &f) != nil {
		return nil // not a frame, like frames of unknown types
	}
	switch f.Type {
	case "user":
		in, err := readPrompt(line)
		if err != nil || in == nil {
			return err
		}
		p.desk.enqueue(in)
	case "control_request":
		if jsvalue.Falsy(f.Request) {
			return inputErrorf("Error: Missing request on control_request")
		}
		p.serve(ctx, f)
	case "control_response":
		p.asked.settle(line, f.Response)
	case "control_cancel_request":
		p.errands.abandon(string(f.RequestID))
	}
	return nil
}

// unread says that a line could not be taken, and by which error.
func unread(line []byte, kind string) error {
	return inputErrorf("Error parsing streaming input line (type=%s, %d chars): %s", typeOf(line), len(utf16.Encode([]rune(string(line)))), kind)
}

var typeKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"type"\s*:\s*"(\w+)"`) })

// typeOf is what a broken line seems to be.
func typeOf(line []byte) string {
	if found := typeKey().FindSubmatch(line); found != nil {
		return string(found[1])
	}
	return "unknown"
}

// serve answers one request of the host, at once or from a goroutine that ends
// with its handler.
func (p *Conn) serve(ctx context.Context, f incoming) {
	switch jsvalue.Read[struct {
		Subtype string `json:"subtype"`
	}](f.Request).Subtype {
	case "interrupt":
		p.interrupt(f)
		return
	case "initialize":
		p.initialize(ctx, f)
		return
	}
	if !p.desk.postpone(f) {
		p.handle(ctx, f)
	}
}

func (p *Conn) handle(ctx context.Context, f incoming) {
	r := requestOf(f)
	if p.s.Slow(r.Subtype) {
		p.work(ctx, f, func(ctx context.Context) (Answer, error) { return p.s.Serve(ctx, r) }, func() {})
		return
	}
	a, err := p.s.Serve(ctx, r)
	p.respond(f.RequestID, a, err)
}

func requestOf(f incoming) Request {
	keys := jsvalue.Read[map[string]json.RawMessage](f.Request) // what is no object has no keys
	return Request{ID: f.RequestID, Subtype: jsvalue.Word(keys["subtype"]), Body: f.Request}
}

// work runs a slow handler, answers and then goes on with then. A request that
// the host has cancelled gets no answer.
func (p *Conn) work(ctx context.Context, f incoming, run func(ctx context.Context) (Answer, error), then func()) {
	id := string(f.RequestID)
	p.errands.start(ctx, id, func(ctx context.Context) {
		a, err := run(ctx)
		if ctx.Err() == nil {
			p.respond(f.RequestID, a, err)
		}
		then()
		p.errands.done(id)
		p.desk.stir()
	})
}

func (p *Conn) respond(id json.RawMessage, a Answer, err error) {
	if a.Then != nil {
		defer a.Then()
	}
	if err != nil {
		p.out.write(failed(id, err))
		return
	}
	p.out.show(a.Before...)
	ok := success{Subtype: "success", RequestID: id, Response: a.Payload}
	if a.greeting {
		ok.Permissions, ok.Dialogs = new(p.asked.permissions()), new([]json.RawMessage{})
	}
	p.out.write(response{"control_response", ok})
	p.out.show(a.After...)
}

// interruptResult is what an interrupt comes to.
type interruptResult struct {
	StillQueued []string `json:"still_queued"`
	Cancelled   []string `json:"cancelled,omitzero"` // nil = the host did not ask for it
}

// interrupt ends the current turn, or the next one if it has been sent already,
// and the agents in the background: requests to the host are withdrawn first,
// then the answer, then what the turn has left to show (spec: cli-contract 4.4).
func (p *Conn) interrupt(f incoming) {
	in := jsvalue.Read[struct {
		CancelQueued bool `json:"cancel_queued"`
	}](f.Request)
	defer p.out.lines.hold()()
	p.s.Interrupt()
	p.desk.interrupt(in.CancelQueued, func(still, gone []*prompt) {
		answer := interruptResult{StillQueued: uuids(still)}
		if in.CancelQueued {
			answer.Cancelled = uuids(gone)
		}
		p.respond(f.RequestID, Answer{Payload: answer}, nil)
	})
}

// initialize holds requests other than interrupt back until it is answered, and
// turns until the host's own servers are connected.
func (p *Conn) initialize(ctx context.Context, f incoming) {
	answered := make(chan struct{})
	begun, again := p.desk.greet()
	p.work(ctx, f, func(work context.Context) (Answer, error) {
		g := &Initialization{Request: requestOf(f), Begun: begun}
		g.connect = func(connect func(context.Context)) {
			p.connect(work, answered, func() { connect(ctx) })
		}
		a, err := p.s.Initialize(work, g)
		if g.connect != nil {
			g.Connect(func(context.Context) {})
		}
		if again {
			a.After = append(a.After, &protocol.System{Subtype: "background_tasks_changed", Fields: []protocol.Field{{Key: "tasks", Value: []string{}}}})
		}
		a.greeting = true
		return a, err
	}, func() {
		close(answered)
		p.greeted(ctx)
	})
}

// connect runs what connects servers; it returns when one of the host's is
// spoken to, or when there is nothing more to do.
func (p *Conn) connect(ctx context.Context, answered <-chan struct{}, run func()) {
	reached, spoken := context.WithCancel(ctx)
	p.intro.begin(spoken, answered)
	p.errands.group.Go(func() { // ends with the servers' time-outs, and with the session
		run()
		p.desk.introduced()
		p.intro.end()
		spoken()
		p.desk.stir()
	})
	<-reached.Done()
}

// greeted serves the requests that had to wait, in order.
func (p *Conn) greeted(ctx context.Context) {
	for {
		f, ok := p.desk.greeted()
		if !ok {
			return
		}
		p.handle(ctx, f)
	}
}
