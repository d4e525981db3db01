package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Serve plays the host's prompts until stdin has ended and all of them are
// done. The error is an [*InputError], that of a turn, of stdout, or the cause
// of ctx's end. It returns after every goroutine but a read of stdin that never
// comes back has ended, and may be called once.
func (p *Peer) Serve(ctx context.Context, s Session) error {
	life, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.mu.Lock()
	p.s, p.life, p.fail, p.open = s, life, fail, true
	p.mu.Unlock()
	defer context.AfterFunc(life, func() { p.out.halt(context.Cause(life)) })()
	go p.out.run() // ends with close, or with its writer
	go p.read()    // ends with stdin
	err := p.play(life)
	p.hangUp(err)
	fail(err)
	p.handlers.Wait()
	if flushed := p.out.close(ctx); err == nil {
		err = flushed
	}
	return err
}

// play is the loop over prompts.
func (p *Peer) play(ctx context.Context) error {
	for {
		in, err := p.next(ctx)
		if in == nil || err != nil {
			return err
		}
		if err := p.s.Ready(ctx); err != nil {
			return err
		}
		if err := p.turn(ctx, in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// next waits for a prompt that may be played; nil when there will be none.
func (p *Peer) next(ctx context.Context) (*prompt, error) {
	var deadline <-chan time.Time // of background work after the last prompt
	for {
		in, more := p.take()
		if in != nil {
			return in, nil
		}
		busy := p.s.Background != nil && p.s.Background.Busy()
		switch {
		case !more && !busy:
			return nil, nil
		case !more && deadline == nil:
			timer := time.NewTimer(p.s.Background.Ceiling)
			defer timer.Stop()
			deadline = timer.C
		}
		if !busy {
			select {
			case <-p.wake:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		}
		in, over, err := p.idle(ctx, deadline)
		if in != nil || over || err != nil {
			return in, err
		}
	}
}

// take gives the next prompt that may be played now; more tells whether there
// can be others later.
func (p *Peer) take() (in *prompt, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more = p.open && !p.ended
	held := p.holds > 0 || p.greeting > 0 || p.o.AwaitInitialize && !p.greeted && more
	switch {
	case held:
	case p.s.First != nil && (p.greeted || len(p.queue.waiting) > 0 || !more):
		in = &prompt{message: *p.s.First}
		p.s.First, p.current = nil, in
	case len(p.queue.waiting) > 0:
		in = p.queue.pop()
		p.current = in
	}
	return in, more || held || len(p.working) > 0
}

// idle shows background work until a prompt or a notice comes.
func (p *Peer) idle(ctx context.Context, deadline <-chan time.Time) (in *prompt, over bool, err error) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.s.Background.Idle(ctx, until) }() // ends with until
	select {
	case err = <-done:
		done <- err
	case <-p.wake:
	case <-deadline:
		over = true
	case <-ctx.Done():
	}
	stop()
	switch err = <-done; {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case over || err != nil:
		return nil, over, err
	}
	if message, ok := p.s.Background.Notice(); ok {
		in = &prompt{message: message}
		p.mu.Lock()
		p.current = in
		p.mu.Unlock()
	}
	return in, false, nil
}

func (p *Peer) turn(ctx context.Context, in *prompt) error {
	interrupt, cut := context.WithCancel(ctx)
	defer cut()
	p.mu.Lock()
	p.cut = cut
	p.turns++
	if in.interrupted {
		cut()
	}
	p.mu.Unlock()
	p.lifecycle(in, "started")
	p.state("running")
	err := p.s.Turn(ctx, interrupt, in.message)
	p.mu.Lock()
	p.current, p.cut = nil, nil
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.state("idle")
	p.lifecycle(in, "completed")
	return nil
}

// lifecycle tells about a prompt that has a uuid of the host's.
func (p *Peer) lifecycle(in *prompt, state string) {
	if in.message.UUID != "" {
		p.show(lifecycleEvent(in, state))
	}
}

func lifecycleEvent(in *prompt, state string) protocol.Event {
	return &protocol.Frame{Type: "command_lifecycle", Fields: []protocol.Field{
		{Key: "command_uuid", Value: in.message.UUID}, {Key: "state", Value: state},
	}}
}

// hangUp ends everything that waits for the host or works for it. After an
// error nothing more is taken.
func (p *Peer) hangUp(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
	if err != nil {
		for _, cancel := range p.working {
			cancel()
		}
	}
}

// close is the end of stdin; p.mu is held.
func (p *Peer) close() {
	p.open = false
	for id, q := range p.pending {
		delete(p.pending, id)
		q.answer <- reply{err: ErrClosed}
	}
	p.stir()
}

// read takes lines of any length until stdin ends.
func (p *Peer) read() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if fault := p.receive(line); fault != nil {
				p.fail(fault)
				return
			}
		}
		if err != nil {
			p.mu.Lock()
			p.close()
			p.mu.Unlock()
			return
		}
	}
}

// incoming is the envelope of every frame of the host. Ids are the host's own
// and come back as they are.
type incoming struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
}

// receive takes one line. An error ends the process.
func (p *Peer) receive(line []byte) error {
	if !json.Valid(line) {
		return inputErrorf("Error parsing streaming input line (type=unknown, %d chars): SyntaxError", len(utf16.Encode([]rune(string(line)))))
	}
	var f incoming
	if json.Unmarshal(line, &f) != nil {
		return nil // not a frame, like frames of unknown types
	}
	switch f.Type {
	case "user":
		in, err := readPrompt(line)
		if err != nil {
			return err
		}
		p.enqueue(in)
	case "control_request":
		if len(f.Request) == 0 || string(f.Request) == "null" {
			return inputErrorf("Error: Missing request on control_request")
		}
		p.serve(f)
	case "control_response":
		p.settle(f.Response)
	case "control_cancel_request":
		p.abandon(f.RequestID)
	}
	return nil
}

// enqueue takes a prompt, unless one with its uuid was taken before.
func (p *Peer) enqueue(in *prompt) {
	p.mu.Lock()
	if p.queue.known(in.message.UUID) {
		p.mu.Unlock()
		if p.o.Replay {
			p.replay(in)
		}
		return
	}
	p.mu.Unlock()
	p.lifecycle(in, "queued")
	p.mu.Lock()
	p.queue.push(in)
	p.stir()
	p.mu.Unlock()
}

func (p *Peer) replay(in *prompt) {
	yes := true
	p.show(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.message.Content},
		UUID: in.message.UUID, IsReplay: &yes,
	})
}

// settle takes the host's answer to a request of ours. Answers that nobody
// waits for, late and second ones among them, are dropped.
func (p *Peer) settle(raw json.RawMessage) {
	var r struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	p.mu.Lock()
	q := p.pending[r.RequestID]
	delete(p.pending, r.RequestID)
	p.mu.Unlock()
	if q == nil {
		return
	}
	if r.Subtype == "error" {
		q.answer <- reply{err: &HostError{Text: textOf(r.Error)}}
		return
	}
	q.answer <- reply{response: r.Response}
}

// textOf is a JSON string's text, or the JSON itself.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func inputErrorf(format string, args ...any) error {
	return &InputError{Text: fmt.Sprintf(format, args...)}
}
