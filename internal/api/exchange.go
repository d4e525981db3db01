package api

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

type exchange struct {
	history.RequestSender
	responseSender

	server    *Server
	namespace *requestNamespace
	startedAt time.Time

	refusesUnmatchedPrompts bool // a prompt without a matching rule is refused
	findings                []string
	journalLine             journal.Request
}

func (x *exchange) elapsedMS() float64 {
	return float64(x.server.Clock.Now().Sub(x.startedAt)) / float64(time.Millisecond)
}

const organizationID = "00000000-0000-4000-8000-000000000000"

// setCommonResponseHeaders sets the headers of every response. If requestIDOrEmpty is empty, it generates the id.
func (x *exchange) setCommonResponseHeaders(requestIDOrEmpty string) (requestID string) {
	if requestIDOrEmpty == "" {
		x.namespace.mu.Lock()
		x.namespace.sideAnswers++
		n := x.namespace.sideAnswers
		x.namespace.mu.Unlock()
		requestIDOrEmpty = x.server.replayer.ID("req", history.Digest{}, x.Namespace, x.Path, strconv.Itoa(n))
	}
	h := x.w.Header()
	h["Request-Id"] = []string{requestIDOrEmpty}
	h["Anthropic-Organization-Id"] = []string{organizationID}
	reset := []string{x.startedAt.UTC().Add(time.Minute).Format(time.RFC3339)}
	for _, l := range [...]struct{ name, limit, remaining string }{
		{"Requests", "4000", "3999"},
		{"Tokens", "4800000", "4799000"},
		{"Input-Tokens", "4000000", "3999000"},
		{"Output-Tokens", "800000", "799000"},
	} {
		name := "Anthropic-Ratelimit-" + l.name
		h[name+"-Limit"], h[name+"-Remaining"], h[name+"-Reset"] = []string{l.limit}, []string{l.remaining}, reset
	}
	for name, value := range x.server.Scenario.API.Headers {
		h.Set(name, value)
	}
	return requestIDOrEmpty
}

func (x *exchange) sendRefusal(refusal *history.RejectedRequestError) {
	id := x.setCommonResponseHeaders("")
	if refusal.NoRetry {
		x.w.Header().Set("X-Should-Retry", "false")
	}
	x.journalLine.Error = refusal.Message
	x.sendJSON(refusal.Status, wire.NewErrorResponse(scenarios.APIError{Status: refusal.Status, Message: refusal.Message}, refusal.Code, id))
	x.writeJournalLine()
}

func (x *exchange) sendRefusalOrServerError(err error) {
	no, ok := errors.AsType[*history.RejectedRequestError](err)
	switch {
	case ok:
	case x.r.Context().Err() != nil:
		x.recordDisconnectAndReturnFalse()
		x.writeJournalLine()
		return
	default: // an expression of the scenario failed
		no = &history.RejectedRequestError{Status: http.StatusInternalServerError, Message: "the scenario: " + err.Error(), NoRetry: true}
	}
	x.sendRefusal(no)
}

func (x *exchange) writeJournalLine() {
	l := &x.journalLine
	l.Namespace, l.Path, l.Session, l.Agent, l.Betas = x.Namespace, x.Path, x.Session, x.Agent, x.Betas
	l.Attempt, l.Status, l.MS, l.Findings = max(1, l.Attempt), x.sentStatus, x.elapsedMS(), append(x.findings, x.disconnects...)
	x.server.recordJournalLine(x.namespace, *l)
}

// maxRequestBytes is the maximum size of a request, as in the real API.
const maxRequestBytes = 32 << 20

func (x *exchange) checkHeadersAndParseRequest() (*history.Request, error) {
	if err := x.validateHeadersAndSetStrictness(); err != nil {
		return nil, err
	}
	body, err := x.readAndUncompressBody()
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) {
		return nil, &history.RejectedRequestError{Status: http.StatusBadRequest, Message: "the request body is not valid JSON: it is not UTF-8"}
	}
	r, err := x.server.reader.Read(body, x.RequestSender)
	x.journalLine.Model, x.journalLine.Stream, x.journalLine.Tools = r.Model, r.Stream, r.Tools.Names
	x.reportUnknownKeys(r)
	return r, err
}

func (x *exchange) validateHeadersAndSetStrictness() error {
	key, bearer := x.Header.Get("X-Api-Key"), x.Header.Get("Authorization")
	x.refusesUnmatchedPrompts = x.server.Strict || x.server.Scenario.Unmatched == "error"
	if strict := x.Header.Get("X-Claudeless-Strict"); strict != "" {
		var err error
		if x.refusesUnmatchedPrompts, err = strconv.ParseBool(strings.ToLower(strict)); err != nil {
			return &history.RejectedRequestError{Status: http.StatusBadRequest, Message: "x-claudeless-strict: must be true, false, 1 or 0, not " + strconv.Quote(strict), NoRetry: true}
		}
	}
	switch {
	case key != "" && bearer != "":
		x.findings = append(x.findings, "authorization: both x-api-key and authorization were sent")
	case key == "" && bearer == "" && x.server.Scenario.API.RequireAuth:
		return &history.RejectedRequestError{Status: http.StatusUnauthorized, Message: "x-api-key header is required", NoRetry: true}
	}
	if x.server.Scenario.API.Strict && x.Header.Get("Anthropic-Version") == "" {
		return &history.RejectedRequestError{Status: http.StatusBadRequest, Message: "anthropic-version: header is required"}
	}
	if kind := x.Header.Get("Content-Type"); kind != "" && !strings.Contains(strings.ToLower(kind), "json") {
		return &history.RejectedRequestError{Status: http.StatusUnsupportedMediaType, Message: "content-type: must be application/json, not " + kind}
	}
	return nil
}

func (x *exchange) readAndUncompressBody() ([]byte, error) {
	var from io.Reader = x.r.Body
	var err error
	switch encoding := strings.ToLower(x.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		from, err = gzip.NewReader(x.r.Body)
	case "deflate":
		from = flate.NewReader(x.r.Body)
	case "br":
		from = brotli.NewReader(x.r.Body)
	case "zstd":
		var dec *zstd.Decoder
		if dec, err = zstd.NewReader(x.r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRequestBytes+1)); err == nil {
			defer dec.Close()
			from = dec
		}
	default:
		return nil, &history.RejectedRequestError{Status: http.StatusUnsupportedMediaType, Message: "content-encoding: " + encoding + " is not known"}
	}
	var b bytes.Buffer
	if err == nil {
		if n := x.r.ContentLength; n > 0 && n <= maxRequestBytes {
			b.Grow(int(n) + bytes.MinRead)
		}
		_, err = b.ReadFrom(io.LimitReader(from, maxRequestBytes+1))
	}
	switch {
	case b.Len() > maxRequestBytes || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		// The rest of the body is read too, because the client reads the response only after it has sent the body.
		_, _ = io.Copy(io.Discard, io.LimitReader(x.r.Body, 2*maxRequestBytes))
		return nil, &history.RejectedRequestError{Status: http.StatusRequestEntityTooLarge, Message: "Request exceeds the maximum size of 32 MB"}
	case err != nil && x.r.Context().Err() == nil:
		return nil, &history.RejectedRequestError{Status: http.StatusBadRequest, Message: "the request body cannot be read: " + err.Error()}
	}
	return b.Bytes(), err
}

// reportUnknownKeys records the unknown keys of a request, each key only once for the namespace. New client versions add keys.
func (x *exchange) reportUnknownKeys(r *history.Request) {
	x.namespace.mu.Lock()
	defer x.namespace.mu.Unlock()
	for _, key := range r.UnknownKeys {
		if !x.namespace.unknownKeys[key] {
			x.namespace.unknownKeys[key] = true
			x.journalLine.UnknownKeys = append(x.journalLine.UnknownKeys, key)
		}
	}
	if x.journalLine.UnknownKeys != nil {
		x.findings = append(x.findings, "unknown_keys: "+strings.Join(x.journalLine.UnknownKeys, ", "))
	}
}
