package debug

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/debug/item"
)

// RelayQuestion is an expression that an older client is to evaluate.
type RelayQuestion struct {
	EvalID    string `json:"eval_id"`
	SessionID string `json:"session_id"`
	PauseID   string `json:"pause_id"`
	Expr      string `json:"expr"`
}

// RelayAnswer is what it gave.
type RelayAnswer struct {
	EvalID    string          `json:"eval_id"`
	SessionID string          `json:"session_id"`
	PauseID   string          `json:"pause_id"`
	Result    string          `json:"result"`
	Stdout    string          `json:"stdout"`
	Error     json.RawMessage `json:"error"` // a string, an object, or null
	CID       string          `json:"result_cid"`
	Data      *string         `json:"result_data"`
	Format    item.Format     `json:"result_serialization_format"`
}

// failure is the text of an error: as it is, or "name: message" of an object.
func (r RelayAnswer) failure() string {
	var text string
	if json.Unmarshal(r.Error, &text) == nil {
		return text
	}
	var e struct{ Name, Message string }
	if json.Unmarshal(r.Error, &e) == nil && e.Message != "" {
		return strings.TrimPrefix(e.Name+": "+e.Message, ": ")
	}
	return string(r.Error)
}

// relayed is a question to an older client; it is guarded by Hub.mu.
type relayed struct {
	RelayQuestion
	session *session
	pause   *pause
	answer  chan Answer   // takes one
	gone    chan struct{} // closed when the session ends first
}

// relay lets an older client evaluate and waits for it.
func (h *Hub) relay(ctx context.Context, p *pause, s *session, q Question) (Answer, error) {
	h.mu.Lock()
	if _, ok := h.open[p.id]; !ok || s.ClosedAt != nil {
		h.mu.Unlock()
		return Answer{}, refuse(CodeSessionClosed, "", "session_id", s.ID)
	}
	r := &relayed{
		RelayQuestion: RelayQuestion{EvalID: h.o.NewID(), SessionID: s.ID, PauseID: p.id, Expr: q.Expr},
		session:       s, pause: p, answer: make(chan Answer, 1), gone: make(chan struct{}),
	}
	h.evals[r.EvalID] = r
	p.queue = append(p.queue, r)
	h.mu.Unlock()
	select {
	case a := <-r.answer:
		return a, nil
	case <-r.gone:
		return Answer{}, refuse(CodeSessionClosed, "the call was resumed or the session closed", "session_id", s.ID)
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(r)
	return Answer{}, refuse(CodeEvalTimeout, "the client did not answer within "+q.Timeout.String())
}

// drop forgets a question; h.mu is held.
func (h *Hub) drop(r *relayed) {
	delete(h.evals, r.EvalID)
	r.pause.queue = slices.DeleteFunc(r.pause.queue, func(o *relayed) bool { return o == r })
}

// NextQuestion gives an older client the next expression to evaluate at its
// pause; nil = there is none.
func (h *Hub) NextQuestion(pauseID string) *RelayQuestion {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.open[pauseID]
	if !ok || len(p.queue) == 0 {
		return nil
	}
	next := p.queue[0]
	p.queue = p.queue[1:]
	return &next.RelayQuestion
}

// DeliverAnswer takes what an older client evaluated.
func (h *Hub) DeliverAnswer(r RelayAnswer) error {
	if r.EvalID == "" || r.SessionID == "" || r.PauseID == "" {
		return refuse("missing_fields", "eval_id, session_id and pause_id required")
	}
	a := Answer{SessionID: r.SessionID, Output: r.Result, Stdout: r.Stdout, ResultCID: r.CID}
	if r.CID != "" && r.Data != nil {
		it := item.Item{CID: r.CID, Data: r.Data, Format: r.Format}
		if err := item.Keep(h.store, it); err != nil {
			a.ResultCID = ""
		} else if r.Result == "" { // JavaScript clients send no text
			a.Output = item.Text(h.store, it)
		}
	}
	if text := string(r.Error); text != "" && text != "null" {
		a.IsError, a.Output = true, r.failure()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sessions[r.SessionID]
	if !ok {
		return refuse(CodeSessionNotFound, "", "session_id", r.SessionID)
	}
	if s.ClosedAt != nil {
		return refuse(CodeSessionClosed, "", "session_id", r.SessionID)
	}
	q, ok := h.evals[r.EvalID]
	if !ok || q.session != s {
		return refuse(CodeEvalNotFound, "", "eval_id", r.EvalID)
	}
	h.drop(q)
	q.answer <- a
	return nil
}
