package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/claudeless/claudeless/simulator"
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
	if first := s.First(); first != nil {
		p.first = &prompt{message: *first, begun: true}
		p.state("running")
		p.lifecycle(p.first, "started")
	}
	go p.read() // ends with stdin
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
		busy := p.s.Busy()
		switch {
		case !more && !busy:
			return nil, nil
		case !more && deadline == nil:
			timer := time.NewTimer(p.o.Ceiling)
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
	held := p.bursting || p.holds > 0 || p.greeting > 0 || p.o.AwaitInitialize && !p.greeted && more
	switch {
	case held:
	case p.first != nil && (p.greeted || len(p.queue.waiting) > 0 || !more):
		in = p.first
		p.first, p.current = nil, in
	case len(p.queue.waiting) > 0:
		in = p.queue.pop(!p.o.OneByOne)
		p.current = in
	}
	return in, more || held || len(p.working) > 0
}

// idle shows background work until a prompt or a notice comes.
func (p *Peer) idle(ctx context.Context, deadline <-chan time.Time) (in *prompt, over bool, err error) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.s.Idle(ctx, until) }() // ends with until
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
	if message, ok := p.s.Notice(); ok {
		in = &prompt{message: message}
		p.mu.Lock()
		p.current = in
		p.mu.Unlock()
	}
	return in, false, nil
}

func (p *Peer) turn(ctx context.Context, in *prompt) error {
	interrupt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p.mu.Lock()
	p.cut = cut
	p.turns++
	if in.interrupted {
		in.cancelled = true
		cut(nil)
	}
	p.mu.Unlock()
	for _, part := range in.parts[:max(0, len(in.parts)-1)] {
		p.replay(part)
	}
	if !in.begun {
		p.lifecycle(in, "started")
	}
	p.state("running")
	completed, err := p.s.Turn(ctx, interrupt, in.message)
	p.mu.Lock()
	p.current, p.cut = nil, nil
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if in.cancelled || !completed {
		p.lifecycle(in, "cancelled")
	} else {
		p.lifecycle(in, "completed")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue.waiting) == 0 {
		p.setState("idle")
	}
	return nil
}

// lifecycle tells about prompts that have a uuid of the host's.
func (p *Peer) lifecycle(in *prompt, state string) {
	for _, ev := range lifecycleEvents(in, state) {
		p.show(ev)
	}
}

func lifecycleEvents(in *prompt, state string) []protocol.Event {
	var events []protocol.Event
	for _, id := range in.message.UUIDs {
		events = append(events, protocol.Lifecycle(id, state))
	}
	return events
}

// Absorb takes the prompts that become part of the running turn; see
// simulator.Queue.
func (p *Peer) Absorb() []protocol.UserMessage {
	if p.o.OneByOne {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.bursting && p.open {
		p.calm.Wait()
	}
	var messages []protocol.UserMessage
	for _, in := range p.queue.absorb() {
		messages = append(messages, in.message)
	}
	return messages
}

// Waiting counts the prompts of people that wait for a turn; see
// simulator.Queue.
func (p *Peer) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, in := range p.queue.waiting {
		if in.message.Origin != nil {
			n++
		}
	}
	return n
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

// byteOrderMark may begin stdin; it is no part of the first line.
const byteOrderMark = "\ufeff"

// read takes lines of any length until stdin ends.
func (p *Peer) read() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // what was peeked at is there
	}
	for {
		line, err := readLine(in)
		p.burst(true)
		if err != nil && !errors.Is(err, io.EOF) {
			p.fail(err)
			p.burst(false)
			return
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if fault := p.receive(bytes.TrimSuffix(line, []byte("\n"))); fault != nil {
				p.fail(fault)
				p.burst(false)
				return
			}
		}
		rest, _ := in.Peek(in.Buffered()) // what is there is there
		p.burst(bytes.IndexByte(rest, '\n') >= 0)
		if err != nil {
			p.mu.Lock()
			p.close()
			p.mu.Unlock()
			return
		}
	}
}

// longestLine bounds a line of stdin (observed with 2.1.329).
const longestLine = 256 << 20

// readLine reads a line with its end. The pieces are joined once it is known to
// fit: stdin may go on for ever without a newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var pieces [][]byte
	size := 0
	for {
		piece, err := in.ReadSlice('\n')
		if size += len(piece); size > longestLine {
			return nil, inputErrorf("Error: stream-json input carried over 256M characters with no newline. Every message must be one line of JSON that ends with a newline.")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil {
				err = io.EOF // the end, however it came
			}
			return slices.Concat(append(pieces, piece)...), err
		}
		pieces = append(pieces, bytes.Clone(piece))
	}
}

// burst notes whether whole lines are there that have not been looked at: lines
// that came together are all known before the next turn begins.
func (p *Peer) burst(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bursting = on
	if !on {
		p.calm.Broadcast()
		p.stir()
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
		return inputErrorf("Error parsing streaming input line (type=%s, %d chars): SyntaxError", typeOf(line), len(utf16.Encode([]rune(string(line)))))
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
		p.enqueue(in)
	case "control_request":
		if falsy(f.Request) {
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

var typeKey = regexp.MustCompile(`"type"\s*:\s*"(\w+)"`)

// typeOf is what a broken line seems to be.
func typeOf(line []byte) string {
	if found := typeKey.FindSubmatch(line); found != nil {
		return string(found[1])
	}
	return "unknown"
}

// enqueue takes a prompt, unless one with its uuid was taken before: that is
// only repeated, and only if it does not wait any more.
func (p *Peer) enqueue(in *prompt) {
	p.mu.Lock()
	if p.queue.known(in.message.UUID) {
		waits := p.queue.waits(in.message.UUID)
		p.mu.Unlock()
		if !waits {
			p.replay(in.message)
		}
		return
	}
	if p.greeting > 0 {
		in.unannounced = true
	} else {
		p.announce(in)
	}
	in.alone = p.current == nil && len(p.queue.waiting) == 0
	p.queue.push(in)
	if in.priority > 0 && p.current != nil && p.cut != nil {
		p.supersede()
	}
	p.stir()
	p.mu.Unlock()
}

// announce tells that a prompt was taken, which ends the idle state; p.mu is
// held.
func (p *Peer) announce(in *prompt) {
	in.unannounced = false
	p.setState("running")
	p.lifecycle(in, "queued")
}

// supersede ends the running turn for a prompt that is to be answered now; p.mu
// is held.
func (p *Peer) supersede() {
	defer p.out.hold()()
	p.current.cancelled = true
	p.cut(simulator.ErrSuperseded)
	p.withdrawEnded()
}

// replay repeats a prompt that has no turn of its own. Such an event tells no
// time.
func (p *Peer) replay(in protocol.UserMessage) {
	if !p.o.Replay || !simulator.Repeats(in) {
		return
	}
	yes := true
	p.write(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content},
		SessionID: p.o.SessionID(), UUID: in.UUID, IsReplay: &yes,
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
		q.answer <- reply{err: &HostError{Text: hostText(r.Error)}}
		return
	}
	q.answer <- reply{response: r.Response}
}

// hostText words an error of the host; empty = it sent none.
func hostText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return scriptText(raw)
}

func inputErrorf(format string, args ...any) error {
	return &InputError{Text: fmt.Sprintf(format, args...)}
}
