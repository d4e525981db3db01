package compat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/debug"
)

// EvalRequest is an expression for an older client to evaluate.
type EvalRequest struct {
	EvalID    string `json:"eval_id"`
	SessionID string `json:"session_id"`
	PauseID   string `json:"pause_id"`
	Expr      string `json:"expr"`
}

// EvalResponse is the client's response to an evaluation.
type EvalResponse struct {
	EvalID    string                  `json:"eval_id"`
	SessionID string                  `json:"session_id"`
	PauseID   string                  `json:"pause_id"`
	Result    string                  `json:"result"`
	Stdout    string                  `json:"stdout"`
	Error     json.RawMessage         `json:"error"` // a string, an object, or null
	CID       string                  `json:"result_cid"`
	Data      *string                 `json:"result_data"`
	Format    ItemSerializationFormat `json:"result_serialization_format"`
}

// errorText returns the text of an error: a string unchanged, or "name: message" of an object.
func (r EvalResponse) errorText() string {
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

type pendingEvaluations struct {
	mu               sync.Mutex
	pendingByID      map[string]*pendingEval   // pending evaluations by eval id
	unfetchedByPause map[string][]*pendingEval // evaluations that are not fetched yet, by pause
}

type pendingEval struct {
	EvalRequest
	result chan debug.EvaluationResult // buffered for one result
}

// Evaluate sends an expression to the client of a paused call and waits for the result.
func (c olderClientAdapter) Evaluate(ctx context.Context, a debug.EvaluationRequest) (debug.EvaluationResult, error) {
	r := &pendingEval{
		EvalRequest: EvalRequest{EvalID: c.hub.NewID(), SessionID: a.SessionID, PauseID: a.PauseID, Expr: a.Expr},
		result:      make(chan debug.EvaluationResult, 1),
	}
	l := &c.relay
	l.mu.Lock()
	l.pendingByID[r.EvalID] = r
	l.unfetchedByPause[a.PauseID] = append(l.unfetchedByPause[a.PauseID], r)
	l.mu.Unlock()
	select {
	case answer := <-r.result:
		return answer, nil
	case <-a.Closed:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeRequestLocked(r)
	return debug.EvaluationResult{}, context.Canceled
}

// removeRequestLocked removes a request; l.mu must be held.
func (l *pendingEvaluations) removeRequestLocked(r *pendingEval) {
	delete(l.pendingByID, r.EvalID)
	left := slices.DeleteFunc(l.unfetchedByPause[r.PauseID], func(o *pendingEval) bool { return o == r })
	if l.unfetchedByPause[r.PauseID] = left; len(left) == 0 {
		delete(l.unfetchedByPause, r.PauseID)
	}
}

// TakeEvalRequest returns the next expression for a client to evaluate at its pause; nil means none.
func (c *Clients) TakeEvalRequest(pauseID string) *EvalRequest {
	l := &c.relay
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.unfetchedByPause[pauseID]
	if len(queue) == 0 {
		return nil
	}
	if l.unfetchedByPause[pauseID] = queue[1:]; len(queue) == 1 {
		delete(l.unfetchedByPause, pauseID)
	}
	return &queue[0].EvalRequest
}

// DeliverEvalResponse passes a client's response to the evaluation that waits for it. If none waits, it returns an error.
func (c *Clients) DeliverEvalResponse(r EvalResponse) error {
	if r.EvalID == "" || r.SessionID == "" || r.PauseID == "" {
		return &debug.Error{Code: "missing_fields", Message: "eval_id, session_id and pause_id required"}
	}
	a := debug.EvaluationResult{SessionID: r.SessionID, Output: r.Result, Stdout: r.Stdout, ResultCID: r.CID}
	if r.CID != "" && r.Data != nil {
		it := Item{CID: r.CID, Data: r.Data, Format: r.Format}
		if err := StoreItemUnlessTooLarge(c.hub.Store(), it); err != nil {
			a.ResultCID = ""
		} else if r.Result == "" { // JavaScript clients send no text
			a.Output = ItemDisplayText(c.hub.Store(), it)
		}
	}
	if text := string(r.Error); text != "" && text != "null" {
		a.IsError, a.Output = true, r.errorText()
	}
	s, err := c.hub.Session(r.SessionID)
	if err != nil {
		return err
	}
	if s.ClosedAt != nil {
		return &debug.Error{Code: debug.CodeSessionClosed, Detail: Fields{"session_id": r.SessionID}}
	}
	l := &c.relay
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok := l.pendingByID[r.EvalID]
	if !ok || q.SessionID != r.SessionID {
		return &debug.Error{Code: debug.CodeEvalNotFound, Detail: Fields{"eval_id": r.EvalID}}
	}
	l.removeRequestLocked(q)
	q.result <- a
	return nil
}
