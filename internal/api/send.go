package api

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// responseSender is the way back to a client: what went out on it, and whether the client
// stayed. It knows no scenario.
type responseSender struct {
	w     http.ResponseWriter
	r     *http.Request
	clock Clock

	status      int      // 0 = nothing was sent
	events      int      // channel a stream
	disconnects []string // how the client left
}

// sendJSON answers with a value.
func (s *responseSender) sendJSON(status int, v any) {
	body, err := protocol.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"error","error":{"type":"api_error","message":"the answer cannot be written"}}`)
	}
	s.sendBytes(status, body)
}

func (s *responseSender) sendBytes(status int, body []byte) {
	if _, err := s.sendHeader(status, len(body)).Write(body); err != nil {
		s.recordEarlyDisconnect()
	}
}

// sendHeader sends the head of an answer in JSON of so many bytes.
func (s *responseSender) sendHeader(status, length int) http.ResponseWriter {
	h := s.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(length)}
	s.status = status
	s.w.WriteHeader(status)
	return s.w
}

// send answers with a message, streamed when that was asked for.
func (s *responseSender) send(r *history.Request, script *wire.EventList, m *wire.Message) {
	if r.Stream {
		s.stream(script)
		return
	}
	var pause time.Duration
	for _, e := range script.Events {
		pause += e.Pause
	}
	if pause > 0 && s.clock.Sleep(s.r.Context(), pause) != nil {
		s.recordEarlyDisconnect()
		return
	}
	s.sendJSON(http.StatusOK, m.Body())
}

// stream sends events at their pace. What comes without a pause between goes out
// together; false = the client has gone.
func (s *responseSender) stream(script *wire.EventList) bool {
	h := s.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	s.status = http.StatusOK
	s.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(s.w)
	var out bytes.Buffer
	for i := range script.Events {
		e := &script.Events[i]
		if e.Pause > 0 {
			if !s.flush(flush, &out) || s.clock.Sleep(s.r.Context(), e.Pause) != nil {
				return s.recordDisconnect()
			}
		}
		e.AppendTo(&out)
		s.events++
	}
	if !s.flush(flush, &out) {
		return s.recordDisconnect()
	}
	return true
}

func (s *responseSender) flush(to *http.ResponseController, out *bytes.Buffer) bool {
	if out.Len() > 0 {
		if _, err := s.w.Write(out.Bytes()); err != nil {
			return false
		}
		out.Reset()
	}
	err := to.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// sendTruncated sends the beginning of a body that would have been longer.
func (s *responseSender) sendTruncated(before []byte, length int) {
	if _, err := s.sendHeader(http.StatusOK, length).Write(before); err == nil {
		var out bytes.Buffer
		s.flush(http.NewResponseController(s.w), &out)
	}
}

// waitForClient says nothing more until the client has gone.
func (s *responseSender) waitForClient() {
	<-s.r.Context().Done()
	s.recordDisconnect()
}

// abort ends an answer that was begun.
func (s *responseSender) abort(how string) {
	switch how {
	case "error", "end":
	case "silence":
		s.waitForClient()
	case "close":
		s.closeConnection(closeFIN)
	default:
		s.closeConnection(closeReset)
	}
}

// connectionEnd is how a connection is given up.
type connectionEnd int

const (
	closeFIN   connectionEnd = iota // FIN
	closeReset                      // RST
)

// closeConnection gives the connection up.
func (s *responseSender) closeConnection(how connectionEnd) {
	conn, _, err := http.NewResponseController(s.w).Hijack()
	if err != nil { // no connection of our own: the server gives it up
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && how == closeReset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// recordDisconnect notes that the client left in the middle.
func (s *responseSender) recordDisconnect() bool {
	s.disconnects = append(s.disconnects, "aborted: the client left after "+strconv.Itoa(s.events)+" events")
	return false
}

// recordEarlyDisconnect notes that it left before there was anything to read.
func (s *responseSender) recordEarlyDisconnect() {
	s.disconnects = append(s.disconnects, "aborted: the client left before the answer")
}
