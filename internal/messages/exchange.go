package messages

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// maxBody is the size of the largest request that the API takes.
const maxBody = 32 << 20

// exchange is one request and its answer.
type exchange struct {
	client

	s     *Server
	ns    *namespace
	w     http.ResponseWriter
	r     *http.Request
	began time.Time

	status   int // 0 = nothing was sent
	sent     int // events of a stream
	findings []string
	line     journal.Request
}

func (x *exchange) ms() float64 {
	return float64(x.s.o.Clock.Now().Sub(x.began)) / float64(time.Millisecond)
}

// messages answers POST /v1/messages.
func (x *exchange) messages() {
	if err := x.converse(); err != nil {
		x.failed(err)
	}
}

// failed answers with what went wrong.
func (x *exchange) failed(err error) {
	no, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
	case errors.Is(err, errSyntax):
		no = &refusal{status: http.StatusBadRequest, message: err.Error()}
	case x.r.Context().Err() != nil:
		x.aborted()
		return
	default: // an expression of the scenario
		no = &refusal{status: http.StatusInternalServerError, message: "the scenario: " + err.Error(), final: true}
	}
	x.refuse(no)
}

// converse answers a request that is part of a conversation, or one beside it. An
// error is one that came before the answer.
func (x *exchange) converse() error {
	r, messages, err := x.read(false)
	if err != nil {
		return err
	}
	if kind := r.sideKind(messages[len(messages)-1]); kind != "" {
		x.beside(kind, r, messages[len(messages)-1])
		return nil
	}
	f := x.s.newFold(x.ns, r, messages)
	err = f.run(x.r.Context())
	x.findings = append(x.findings, f.findings...)
	f.findings = nil
	x.describe(f)
	if err != nil {
		return err
	}
	a := f.final.answer
	if a.reply.Unmatched && len(a.reply.NearMisses) > 0 {
		return &refusal{status: http.StatusBadRequest, message: strings.Join(a.reply.NearMisses, "\n"), final: true}
	}
	m := f.compose()
	x.findings = append(x.findings, f.findings...)
	strikes := f.strikes()
	f.mark(strikes && a.reply.Failure.Type != scenarios.FailStreamFault)
	if err := x.wait(f); err != nil {
		return err
	}
	x.line.Attempt = f.try.n
	id := x.s.id("req", f.key(), fmt.Sprint(f.try.n))
	if strikes {
		x.fail(f, m, id)
	} else {
		x.headers(id)
		x.send(r, m.play(f.pace(), x.s.o.Scenario.API.Pad, f.key()), m)
	}
	x.observe(f)
	x.end()
	return nil
}

// strikes tells whether the failure of the answer happens this time.
func (f *fold) strikes() bool {
	a := f.final.answer
	fail := a.reply.Failure
	return fail != nil && (fail.Times == 0 || f.before.struck[a.reply.Rule.Name]+f.try.n-1 < fail.Times)
}

// pace is that of the answer, or the scenario's.
func (f *fold) pace() scenarios.Stream {
	if p := f.final.answer.reply.Stream; p != nil {
		return *p
	}
	return f.s.o.Scenario.Stream
}

// wait is the scripted delay of the answer.
func (x *exchange) wait(f *fold) error {
	a := f.final.answer
	d := time.Duration(a.reply.DelayMS) * time.Millisecond
	if ms := x.s.o.Scenario.Timeouts.ResponseDelayMS; ms != nil && a.asked.Results == nil {
		d += time.Duration(*ms) * time.Millisecond
	}
	if d <= 0 {
		return x.r.Context().Err()
	}
	return x.s.o.Clock.Sleep(x.r.Context(), d)
}

// read reads and checks a request, and notes what is odd about it.
func (x *exchange) read(counting bool) (*request, []*content, error) {
	if err := x.admit(); err != nil {
		return nil, nil, err
	}
	body, err := x.body()
	if err != nil {
		return nil, nil, err
	}
	r, err := x.s.readRequest(body, x.client)
	x.line.Model, x.line.Stream, x.line.Tools = r.model, r.stream, r.tools.names
	if err != nil {
		return nil, nil, err
	}
	x.unknown(r)
	if r.thread == "continue" {
		return nil, nil, &refusal{
			status: http.StatusNotFound, message: "this thread is not known: send the whole history", code: "thread_not_found", final: true,
		}
	}
	messages, err := x.s.contents(r)
	if err != nil {
		return nil, nil, err
	}
	return r, messages, r.check(messages, counting)
}

// admit looks at the headers.
func (x *exchange) admit() error {
	key, bearer := x.header.Get("X-Api-Key"), x.header.Get("Authorization")
	switch {
	case key != "" && bearer != "":
		x.findings = append(x.findings, "authorization: both x-api-key and authorization were sent")
	case key == "" && bearer == "" && x.s.o.Scenario.API.RequireAuth:
		return &refusal{status: http.StatusUnauthorized, message: "x-api-key header is required", final: true}
	}
	if x.s.o.Scenario.API.Strict && x.header.Get("Anthropic-Version") == "" {
		return &refusal{status: http.StatusBadRequest, message: "anthropic-version: header is required"}
	}
	if kind := x.header.Get("Content-Type"); kind != "" && !strings.Contains(strings.ToLower(kind), "json") {
		return &refusal{status: http.StatusUnsupportedMediaType, message: "content-type: must be application/json, not " + kind}
	}
	return nil
}

// body reads and unpacks the body.
func (x *exchange) body() ([]byte, error) {
	var from io.Reader = x.r.Body
	var err error
	switch encoding := strings.ToLower(x.header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		from, err = gzip.NewReader(x.r.Body)
	case "deflate":
		from = flate.NewReader(x.r.Body)
	case "br":
		from = brotli.NewReader(x.r.Body)
	case "zstd":
		var dec *zstd.Decoder
		if dec, err = zstd.NewReader(x.r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody+1)); err == nil {
			defer dec.Close()
			from = dec
		}
	default:
		return nil, &refusal{status: http.StatusUnsupportedMediaType, message: "content-encoding: " + encoding + " is not known"}
	}
	var b bytes.Buffer
	if err == nil {
		if n := x.r.ContentLength; n > 0 && n <= maxBody {
			b.Grow(int(n) + bytes.MinRead)
		}
		_, err = b.ReadFrom(io.LimitReader(from, maxBody+1))
	}
	switch {
	case b.Len() > maxBody || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		// The client is still sending: it reads the answer once it is done.
		_, _ = io.Copy(io.Discard, io.LimitReader(x.r.Body, 2*maxBody))
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, message: "Request exceeds the maximum size of 32 MB"}
	case err != nil && x.r.Context().Err() == nil:
		return nil, &refusal{status: http.StatusBadRequest, message: "the request body cannot be read: " + err.Error()}
	}
	return b.Bytes(), err
}

// unknown notes keys that no request of the namespace had before: clients grow
// new ones.
func (x *exchange) unknown(r *request) {
	x.ns.mu.Lock()
	defer x.ns.mu.Unlock()
	for _, key := range r.unknown {
		if !x.ns.unknown[key] {
			x.ns.unknown[key] = true
			x.line.UnknownKeys = append(x.line.UnknownKeys, key)
		}
	}
	if x.line.UnknownKeys != nil {
		x.findings = append(x.findings, "unknown_keys: "+strings.Join(x.line.UnknownKeys, ", "))
	}
}

// describe fills in the journal line of a request that was folded.
func (x *exchange) describe(f *fold) {
	x.line.Messages, x.line.Attempt = f.kinds(), f.try.n
	if f.final == nil {
		return
	}
	a := f.final.answer
	x.line.Prompt = a.asked.Prompt
	x.line.Rule, x.line.File, x.line.Line = a.reply.Rule.Name, a.reply.Rule.File, a.reply.Rule.Line
}

// beside answers a request beside the conversation. It touches no rule and no
// count.
func (x *exchange) beside(kind string, r *request, last *content) {
	text := x.s.sideText(kind, last)
	key := digest{}.chain("side", kind, last.firstText(), r.model)
	m := &message{id: x.s.id("msg", key), model: r.model, stop: "end_turn", blocks: []protocol.Block{protocol.Text(text)}}
	m.usage = scenarios.Estimate(scenarios.Request{Prompt: last.firstText()}, m.blocks)
	x.headers(x.s.id("req", key))
	x.send(r, m.play(scenarios.Stream{}, x.s.o.Scenario.API.Pad, key), m)
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.namespace, Session: x.session, Kind: kind, Path: x.path, Model: r.model, Unclassified: kind == "other", Status: x.status, MS: x.ms(),
	})
}

// observe tells the namespace what a conversation did, for expectations; what is
// sent again has been told.
func (x *exchange) observe(f *fold) {
	x.ns.mu.Lock()
	defer x.ns.mu.Unlock()
	x.ns.requests++
	if f.try.n > 1 {
		return
	}
	x.ns.seen.Request(scenarios.RequestSeen{Model: f.r.model, AfterMS: float64(x.began.Sub(x.s.began)) / float64(time.Millisecond)})
	if ref := f.final.answer.reply.Rule; ref.Name != "" {
		x.ns.seen.Rule(ref)
	}
	x.ns.misses = append(x.ns.misses, f.final.engine.Misses()[len(f.before.engine.Misses()):]...)
	g := &f.groups[len(f.groups)-1]
	for _, in := range g.steps {
		if in.kind == "prompt" || in.kind == "added" {
			x.ns.seen.Prompt(in.text)
		}
		for _, r := range in.results {
			for _, u := range g.uses {
				if u.id == r.id {
					x.ns.seen.Call(u.name, u.input)
					x.line.Calls = append(x.line.Calls, journal.Called{Tool: u.name, ToolUseID: u.id, Input: u.input, Result: r.text, IsError: r.isError})
				}
			}
		}
	}
}

// end writes the journal line.
func (x *exchange) end() {
	l := &x.line
	l.Namespace, l.Path, l.Session, l.Agent, l.Betas = x.namespace, x.path, x.session, x.agent, x.betas
	l.Attempt, l.Status, l.MS, l.Findings = max(1, l.Attempt), x.status, x.ms(), x.findings
	x.s.write(x.ns, *l)
}

// aborted ends an exchange whose client has gone, or whose server ends.
func (x *exchange) aborted() {
	x.gone()
	x.end()
}
