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

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// byteOrderMark may precede the first line of stdin and is ignored.
const byteOrderMark = "\ufeff"

// readAndDispatchLines reads lines until EOF. An error makes the process exit.
func (p *Conn) readAndDispatchLines(ctx context.Context) error {
	in := bufio.NewReaderSize(p.in, 64<<10)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // the peeked bytes are buffered
	}
	for {
		line, err := readBoundedLine(in)
		p.setLinesPending(true)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if fault := p.dispatchLine(ctx, process.ReplaceInvalidUTF8LikeJavaScriptStream(bytes.TrimSuffix(line, []byte("\n")))); fault != nil {
				return fault
			}
		}
		rest, _ := in.Peek(in.Buffered()) // only buffered bytes, so it cannot fail
		p.setLinesPending(bytes.IndexByte(rest, '\n') >= 0)
		if err != nil {
			p.closeInputAndRejectRequests()
			return nil
		}
	}
}

// dispatchLine handles one line of stdin. An error makes the process exit.
func (p *Conn) dispatchLine(ctx context.Context, line []byte) error {
	switch {
	case !json.Valid(line):
		return unparsableLineError(line, "SyntaxError")
	case string(bytes.TrimSpace(line)) == "null": // in JavaScript, null has no properties (observed with 2.1.330)
		return unparsableLineError(line, "TypeError")
	}
	var f incomingFrame
	if json.Unmarshal(line, &f) != nil {
		return nil // ignored, like frames of unknown types
	}
	switch f.Type {
	case "user":
		in, err := parsePromptFrame(line)
		if err != nil || in == nil {
			return err
		}
		p.enqueueIfNewInterruptingIfUrgent(in)
	case "assistant":
		host := plainjson.DecodeIgnoringErrors[protocol.HostAssistantMessage](line)
		p.queueAssistantMessageIfNew(host)
		if host.UUID != "" {
			p.out.writeEventsOutsideTurn(protocol.CommandLifecycleEvent(host.UUID, "completed"))
		}
		if p.out.echoesPromptsAndResponses && host.Message != nil {
			p.out.writeFrame(json.RawMessage(line))
		}
	case "control_request":
		if plainjson.IsFalsy(f.Request) {
			return invalidStdinLineErrorf("Error: Missing request on control_request")
		}
		f.isBehindPrompt = p.hasUnstartedPrompt()
		switch subtype := decodeRequest(f).Subtype; {
		case subtype == "interrupt":
			p.interruptTurnAndRespond(f)
		case subtype == "initialize":
			p.startInitializeInGoroutine(ctx, f)
		case !p.postponeUntilInitializeAnswered(f):
			p.serveRequestAndWriteResponse(ctx, f)
		}
	case "control_response":
		p.requestsToHost.deliverResponse(line, f.Response)
	case "control_cancel_request":
		p.requestsOfHost.cancelRequest(string(f.RequestID))
	}
	return nil
}

// unparsableLineError returns the error for a line that is not a frame. jsErrorName is a JavaScript error such as SyntaxError.
func unparsableLineError(line []byte, jsErrorName string) error {
	return invalidStdinLineErrorf("Error parsing streaming input line (type=%s, %d chars): %s", guessFrameType(line), len(utf16.Encode([]rune(string(line)))), jsErrorName)
}

var frameTypeMemberPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"type"\s*:\s*"(\w+)"`) })

func guessFrameType(line []byte) string {
	if found := frameTypeMemberPattern().FindSubmatch(line); found != nil {
		return string(found[1])
	}
	return "unknown"
}

func (p *Conn) serveRequestAndWriteResponse(ctx context.Context, f incomingFrame) {
	r := decodeRequest(f)
	if p.session.IsSlow(r.Subtype) {
		p.serveRequestInGoroutine(ctx, f, func(ctx context.Context) (ResponseWithEvents, error) { return p.session.Serve(ctx, r) }, func() {})
		return
	}
	a, err := p.session.Serve(ctx, r)
	p.writeResponseWithEvents(f.RequestID, a, err)
}

func decodeRequest(f incomingFrame) HostRequest {
	keys := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](f.Request) // a value that is not an object has no keys
	return HostRequest{ID: f.RequestID, Subtype: plainjson.JSString(keys["subtype"]), Body: f.Request, IsBehindPrompt: f.isBehindPrompt}
}

// serveRequestInGoroutine runs a slow handler in a goroutine and sends the response. Afterwards it calls afterResponse. A
// request that the host has cancelled gets no response.
func (p *Conn) serveRequestInGoroutine(ctx context.Context, request incomingFrame, handler func(ctx context.Context) (ResponseWithEvents, error), afterResponse func()) {
	id := string(request.RequestID)
	p.requestsOfHost.startHandlerIfAccepting(ctx, id, func(ctx context.Context) {
		a, err := handler(ctx)
		if ctx.Err() == nil {
			p.writeResponseWithEvents(request.RequestID, a, err)
		}
		afterResponse()
		p.requestsOfHost.remove(id)
		p.wakeTurnLoop()
	})
}

func (p *Conn) writeResponseWithEvents(id json.RawMessage, a ResponseWithEvents, err error) {
	if a.AfterWrite != nil {
		defer a.AfterWrite()
	}
	if err != nil {
		p.out.writeFrame(errorResponse(id, err))
		return
	}
	p.out.writeEventsOutsideTurn(a.EventsBefore...)
	ok := successBody{Subtype: "success", RequestID: id, Response: a.Payload}
	if a.forInitialize {
		ok.Permissions, ok.Dialogs = new(p.requestsToHost.pendingPermissions()), new([]json.RawMessage{})
	}
	p.out.writeFrame(responseFrame{"control_response", ok})
	p.out.writeEventsOutsideTurn(a.EventsAfter...)
}

type interruptResult struct {
	StillQueued []string `json:"still_queued"`
	Cancelled   []string `json:"cancelled,omitzero"` // nil means that the host did not request this list
}

// interruptTurnAndRespond handles a request to interrupt. It stops the background agents and the turn that runs or is about to run. It
// withdraws the requests to the host and writes the response; only then does the turn write its remaining events (spec: cli-contract 4.4).
func (p *Conn) interruptTurnAndRespond(f incomingFrame) {
	in := plainjson.DecodeIgnoringErrors[struct {
		CancelQueued bool `json:"cancel_queued"`
	}](f.Request)
	defer p.out.lines.delayTurnOutputUntilRelease()()
	p.session.StopBackgroundAgents()
	p.interruptTurnOrNextPrompt(in.CancelQueued, func(still, gone []*queuedPrompt) {
		answer := interruptResult{StillQueued: promptUUIDs(still)}
		if in.CancelQueued {
			answer.Cancelled = promptUUIDs(gone)
		}
		p.writeResponseWithEvents(f.RequestID, ResponseWithEvents{Payload: answer}, nil)
	})
}

// startInitializeInGoroutine handles the initialize request. Other requests, except interrupt, wait until it is answered.
// Turns wait until the host's own servers are connected.
func (p *Conn) startInitializeInGoroutine(ctx context.Context, f incomingFrame) {
	answered, previousAnswered := make(chan struct{}), p.lastInitialize
	p.lastInitialize = answered
	connectAfterAnswer := func() {}
	again := p.beginInitialize()
	p.serveRequestInGoroutine(ctx, f, func(work context.Context) (ResponseWithEvents, error) {
		if previousAnswered != nil {
			<-previousAnswered // closed at the latest when the request is cancelled
		}
		g := &InitializeRequest{HostRequest: decodeRequest(f), RepeatedOrLate: again}
		g.connect = func(connect func(context.Context)) {
			now := func() { p.connectUntilServerMessage(work, answered, func() { connect(ctx) }) }
			if again {
				connectAfterAnswer = now
				return
			}
			now()
		}
		a, err := p.session.Initialize(work, g)
		if err == nil {
			p.recordInitializedAndQueuePrompt(g.FirstPrompt)
		}
		if g.connect != nil {
			g.ConnectUntilHostServerMessage(func(context.Context) {})
		}
		if again {
			a.EventsAfter = append(a.EventsAfter, &protocol.SystemEvent{Subtype: "background_tasks_changed", Fields: []protocol.Field{{Key: "tasks", Value: []string{}}}})
		}
		a.forInitialize = true
		return a, err
	}, func() {
		close(answered)
		connectAfterAnswer()
		p.servePostponedRequestsAndEndInitialize(ctx)
	})
}

// connectUntilServerMessage starts connectAll and returns when connectAll ends, ctx is cancelled or one of the
// host's servers gets a message.
func (p *Conn) connectUntilServerMessage(ctx context.Context, initializeAnswered <-chan struct{}, connectAll func()) {
	reached, spoken := context.WithCancel(ctx)
	p.initialConnect.beginPhase(spoken, initializeAnswered)
	p.requestsOfHost.group.Go(func() { // returns when the servers have settled or the session is closed
		connectAll()
		p.recordInitializeServersConnected()
		p.initialConnect.stopReportingMessages()
		spoken()
		p.wakeTurnLoop()
	})
	<-reached.Done()
}

func (p *Conn) servePostponedRequestsAndEndInitialize(ctx context.Context) {
	for {
		f, ok := p.takePostponedRequestOrEndInitialize()
		if !ok {
			return
		}
		p.serveRequestAndWriteResponse(ctx, f)
	}
}
