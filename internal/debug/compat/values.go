package compat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/debug"
)

func (c *OlderClients) storeItemOrIgnoreMissingData(it Item) error {
	err := StoreItemUnlessTooLarge(c.hub.Store(), it)
	if e, ok := errors.AsType[*debug.Error](err); ok && e.Code == debug.CodeContentIDNotFound {
		return nil
	}
	return err
}

// storeOptionalItem stores an item. It returns the item without its bytes, and its displayed form. If the store lacks the bytes,
// the displayed form is clientForm, which the client sent. For an item without a content id (CID), it returns nil and clientForm.
func (c *OlderClients) storeOptionalItem(it Item, clientForm json.RawMessage) (*Item, json.RawMessage, error) {
	if it.CID == "" {
		return nil, clientForm, nil
	}
	if err := c.storeItemOrIgnoreMissingData(it); err != nil {
		return nil, nil, err
	}
	it.Data = nil // the store already contains the data
	if _, err := c.hub.StoredValueByContentID(it.CID); err == nil || len(clientForm) == 0 {
		clientForm = ItemDisplayJSON(c.hub.Store(), it)
	}
	return &it, clientForm, nil
}

// describeRegisteredFunction describes the value of a registered function, or returns clientMetadata if the store lacks
// the value. It adds the client's own reference to the function and the time of registration.
func (c *OlderClients) describeRegisteredFunction(functionItem Item, clientMetadata json.RawMessage) (functionDescription json.RawMessage, describeError error) {
	var ref any
	if json.Unmarshal(functionItem.ClientRef, &ref) != nil {
		ref = nil
	}
	var m map[string]any
	if _, err := c.hub.StoredValueByContentID(functionItem.CID); err == nil {
		m = describeFunction(c.hub, functionItem)
	} else if json.Unmarshal(clientMetadata, &m) == nil && m != nil && ref == nil {
		return clientMetadata, nil
	}
	if ref != nil {
		if m == nil {
			m = map[string]any{}
		}
		setKeyIfMissing(m, "client_ref", ref)
		setKeyIfMissing(m, "registered_at", float64(c.hub.Now().UnixMicro())/1e6)
	}
	if m == nil {
		return nil, nil
	}
	return json.Marshal(m)
}

// describeFunction describes a function: by the text of its placeholder if it cannot be pickled, else by a summary.
func describeFunction(h *debug.Hub, it Item) map[string]any {
	var m map[string]any
	if json.Unmarshal(ItemDisplayJSON(h.Store(), it), &m) != nil || m == nil {
		m = map[string]any{}
	}
	if _, placeholder := m["__cideldill_placeholder__"]; placeholder {
		return m
	}
	setKeyIfMissing(m, "summary", ItemDisplayText(h.Store(), it))
	setKeyIfMissing(m, "object_name", nil)
	setKeyIfMissing(m, "object_path", nil)
	return m
}

func setKeyIfMissing(m map[string]any, key string, value any) {
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}

const maxResendItems = 10_000

// valueResendRequests records which values clients were asked to send again. Some clients then send other bytes with the
// content id (CID) of the old bytes. Such a value is stored under the content id of the new bytes.
type valueResendRequests struct {
	mu            sync.Mutex
	requestedKeys map[string]struct{} // keys consist of process and content id
	order         []string
}

func (a *valueResendRequests) recordRequest(process, cid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := process + " " + cid
	if _, ok := a.requestedKeys[key]; ok {
		return
	}
	if a.requestedKeys == nil {
		a.requestedKeys = map[string]struct{}{}
	}
	a.requestedKeys[key] = struct{}{}
	a.order = append(a.order, key)
	if len(a.order) > maxResendItems {
		delete(a.requestedKeys, a.order[0])
		a.order = a.order[1:]
	}
}

func (a *valueResendRequests) wasRequested(processKey, cid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.requestedKeys[processKey+" "+cid]
	return ok
}

// storeCallItemsOrRequestResend stores the values of a call. The error names all values whose bytes must be sent again.
func (c *OlderClients) storeCallItemsOrRequestResend(processKey string, items []*Item) error {
	var missing []string
	for _, it := range items {
		err := StoreItemUnlessTooLarge(c.hub.Store(), *it)
		e, ok := errors.AsType[*debug.Error](err)
		switch {
		case ok && e.Code == debug.CodeContentIDNotFound:
			missing = append(missing, it.CID)
			c.resent.recordRequest(processKey, it.CID)
			continue
		case ok && e.Code == "cid_mismatch" && c.resent.wasRequested(processKey, it.CID):
			it.CID, _ = e.Detail["expected_cid"].(string)
			err = StoreItemUnlessTooLarge(c.hub.Store(), *it)
		}
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return debug.NewError(debug.CodeContentIDNotFound, "send these values again, with all their data", "missing_cids", missing)
	}
	return nil
}

// FunctionSignature is a function's signature as text; JavaScript clients send the parameter count instead. Empty means none.
type FunctionSignature string

// UnmarshalJSON accepts any value. The values 0, false and null mean no signature.
func (s *FunctionSignature) UnmarshalJSON(textOrParameterCount []byte) error {
	var text string
	if json.Unmarshal(textOrParameterCount, &text) == nil {
		*s = FunctionSignature(text)
		return nil
	}
	*s = FunctionSignature(strings.TrimSpace(string(textOrParameterCount)))
	if *s == "0" || *s == "false" || *s == "null" {
		*s = ""
	}
	return nil
}

func (c *OlderClients) storeOutcomeItemsAndSetDisplayForms(outcomeKeys outcomeItemMembers, displayedResult, displayedException *json.RawMessage) (storedOutcome OutcomeFromOlderClient, err error) {
	storedOutcome.Result, *displayedResult, err = c.storeOptionalItem(Item{CID: outcomeKeys.ResultCID, ClientRef: outcomeKeys.ResultRef, Data: outcomeKeys.ResultData, Format: outcomeKeys.ResultFormat}, *displayedResult)
	if err != nil {
		return storedOutcome, err
	}
	storedOutcome.ErrorItem, *displayedException, err = c.storeOptionalItem(Item{CID: outcomeKeys.ErrorCID, ClientRef: outcomeKeys.ErrorRef, Data: outcomeKeys.ErrorData, Format: outcomeKeys.ErrorFormat}, *displayedException)
	return storedOutcome, err
}

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
func (c *OlderClients) TakeEvalRequest(pauseID string) *EvalRequest {
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
func (c *OlderClients) DeliverEvalResponse(r EvalResponse) error {
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
	s, err := c.hub.REPLSessionByID(r.SessionID)
	if err != nil {
		return err
	}
	if s.ClosedAt != nil {
		return &debug.Error{Code: debug.CodeSessionClosed, Detail: ResponseFields{"session_id": r.SessionID}}
	}
	l := &c.relay
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok := l.pendingByID[r.EvalID]
	if !ok || q.SessionID != r.SessionID {
		return &debug.Error{Code: debug.CodeEvalNotFound, Detail: ResponseFields{"eval_id": r.EvalID}}
	}
	l.removeRequestLocked(q)
	q.result <- a
	return nil
}
