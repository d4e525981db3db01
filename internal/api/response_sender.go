package api

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// responseSender writes a response and records what was sent and whether the client disconnected.
type responseSender struct {
	w     http.ResponseWriter
	r     *http.Request
	clock ClockWithIDs

	sentStatus     int      // 0 means nothing was sent
	sentEventCount int      // number of stream events sent
	disconnects    []string // how the client disconnected
}

func (s *responseSender) sendJSON(status int, v any) {
	body, err := protocol.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"error","error":{"type":"api_error","message":"the answer cannot be written"}}`)
	}
	s.sendJSONBytes(status, body)
}

func (s *responseSender) sendJSONBytes(status int, body []byte) {
	if _, err := s.sendJSONHeader(status, len(body)).Write(body); err != nil {
		s.recordDisconnectBeforeAnswer()
	}
}

func (s *responseSender) sendJSONHeader(status, length int) http.ResponseWriter {
	h := s.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(length)}
	s.sentStatus = status
	s.w.WriteHeader(status)
	return s.w
}

func (s *responseSender) sendMessage(r *history.Request, script *wire.EventList, m *wire.Message) {
	if r.Stream {
		s.sendEvents(script)
		return
	}
	var pause time.Duration
	for _, e := range script.Events {
		pause += e.Pause
	}
	if pause > 0 && s.clock.Sleep(s.r.Context(), pause) != nil {
		s.recordDisconnectBeforeAnswer()
		return
	}
	s.sendJSON(http.StatusOK, m.Body())
}

// sendEvents sends events at their pace; false means that the client has disconnected.
func (s *responseSender) sendEvents(script *wire.EventList) bool {
	h := s.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	s.sentStatus = http.StatusOK
	s.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(s.w)
	var out bytes.Buffer
	for i := range script.Events {
		e := &script.Events[i]
		if e.Pause > 0 && (!s.writeAndFlushBuffer(flush, &out) || s.clock.Sleep(s.r.Context(), e.Pause) != nil) {
			return s.recordDisconnectAndReturnFalse()
		}
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", e.Name, e.Data)
		s.sentEventCount++
	}
	return s.writeAndFlushBuffer(flush, &out) || s.recordDisconnectAndReturnFalse()
}

func (s *responseSender) writeAndFlushBuffer(controller *http.ResponseController, buffered *bytes.Buffer) (isConnected bool) {
	if buffered.Len() > 0 {
		if _, err := s.w.Write(buffered.Bytes()); err != nil {
			return false
		}
		buffered.Reset()
	}
	err := controller.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// sendTruncatedBody sends only the beginning of a body, although the header announces announcedLength bytes.
func (s *responseSender) sendTruncatedBody(beginning []byte, announcedLength int) {
	if _, err := s.sendJSONHeader(http.StatusOK, announcedLength).Write(beginning); err == nil {
		var out bytes.Buffer
		s.writeAndFlushBuffer(http.NewResponseController(s.w), &out)
	}
}

// waitForClientDisconnect sends nothing and waits until the client disconnects.
func (s *responseSender) waitForClientDisconnect() {
	<-s.r.Context().Done()
	s.recordDisconnectAndReturnFalse()
}

// breakOffStartedResponse ends a started response. If endingKind is "error" or "end", nothing more is sent. With "silence"
// it waits until the client disconnects. With "close" it closes the connection with FIN, and with any other value with RST.
func (s *responseSender) breakOffStartedResponse(endingKind string) {
	switch endingKind {
	case "error", "end":
	case "silence":
		s.waitForClientDisconnect()
	case "close":
		s.closeTCPConnection(closeWithTCPFIN)
	default:
		s.closeTCPConnection(closeWithTCPReset)
	}
}

type tcpCloseKind int

const (
	closeWithTCPFIN tcpCloseKind = iota
	closeWithTCPReset
)

func (s *responseSender) closeTCPConnection(closeKind tcpCloseKind) {
	conn, _, err := http.NewResponseController(s.w).Hijack()
	if err != nil { // the connection cannot be taken over; the panic makes the server close it
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && closeKind == closeWithTCPReset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (s *responseSender) recordDisconnectAndReturnFalse() bool {
	s.disconnects = append(s.disconnects, "aborted: the client disconnected after "+strconv.Itoa(s.sentEventCount)+" events")
	return false
}

func (s *responseSender) recordDisconnectBeforeAnswer() {
	s.disconnects = append(s.disconnects, "aborted: the client disconnected before the answer")
}
