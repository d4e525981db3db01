package messages

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/claudeless/claudeless/internal/messages/history"
	"github.com/claudeless/claudeless/internal/messages/wire"
)

// send answers with a message, streamed when that was asked for.
func (x *exchange) send(r *history.Request, s *wire.Script, m *wire.Message) {
	if r.Stream {
		x.stream(s)
		return
	}
	var pause time.Duration
	for _, e := range s.Events {
		pause += e.Wait
	}
	if pause > 0 && x.s.Clock.Sleep(x.r.Context(), pause) != nil {
		x.findings = append(x.findings, "aborted: the client left before the answer")
		return
	}
	x.json(http.StatusOK, m.Body())
}

// stream sends events at their pace. What comes without a pause between goes out
// together; false = the client has gone.
func (x *exchange) stream(s *wire.Script) bool {
	h := x.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	x.status = http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(x.w)
	var out bytes.Buffer
	for i := range s.Events {
		e := &s.Events[i]
		if e.Wait > 0 {
			if !x.flush(flush, &out) || x.s.Clock.Sleep(x.r.Context(), e.Wait) != nil {
				return x.gone()
			}
		}
		e.AppendTo(&out)
		x.sent++
	}
	if !x.flush(flush, &out) {
		return x.gone()
	}
	return true
}

func (x *exchange) flush(to *http.ResponseController, out *bytes.Buffer) bool {
	if out.Len() > 0 {
		if _, err := x.w.Write(out.Bytes()); err != nil {
			return false
		}
		out.Reset()
	}
	err := to.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}
