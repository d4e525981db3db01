package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// evalTimeout limits an evaluation if EvaluateParams.Timeout is 0. Older clients report a timeout themselves after
// 30 s; evalTimeout is longer, so that their report arrives.
const evalTimeout = 35 * time.Second

// EvaluateParams is one expression to evaluate while a call is paused.
type EvaluateParams struct {
	Session string // the id of an open session of the pause; empty means that Evaluate starts a new session
	PauseID string // may be empty when Session is set
	Expr    string
	Timeout time.Duration // 0 means 35 s
}

// StartREPLSession opens a session in which expressions are evaluated while a call is paused. It returns the session's id.
func (h *Hub) StartREPLSession(pauseID string) (string, error) {
	if pauseID == "" {
		return "", NewError("missing_pause_id", "pause_id required")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.findOpenPause(pauseID)
	if err != nil {
		return "", err
	}
	return h.createREPLSession(p).ID, nil
}

// Evaluate evaluates one expression at a pause: in this process for claudeless's own callers, in the caller's
// process for older clients. An invalid expression gives a result with IsError, not an error.
func (h *Hub) Evaluate(ctx context.Context, q EvaluateParams) (EvaluationResult, error) {
	if strings.TrimSpace(q.Expr) == "" {
		return EvaluationResult{}, NewError(CodeMissingExpression, "expression required")
	}
	p, s, err := h.findOrOpenREPLSession(q)
	if err != nil {
		return EvaluationResult{}, err
	}
	if q.Timeout <= 0 {
		q.Timeout = evalTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	a := EvaluationResult{SessionID: s.ID}
	if e, ok := p.call.caller.(Evaluator); ok {
		a, err = e.Evaluate(ctx, EvaluationRequest{PauseID: p.id, SessionID: s.ID, Expr: q.Expr, Closed: s.closed})
		a.SessionID, err = s.ID, evaluationError(ctx, s, q, err)
	} else {
		h.evaluateExprOrAssignmentInHub(ctx, p, q.Expr, &a)
	}
	if err != nil {
		return EvaluationResult{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appendTranscriptEntry(s, EvaluatedExpression{
		Index: len(s.Transcript), Input: q.Expr, Output: a.Output, Stdout: a.Stdout, IsError: a.IsError,
		ResultCID: a.ResultCID, Timestamp: unixSeconds(h.options.Now()),
	})
	return a, nil
}

func evaluationError(ctx context.Context, s *liveREPLSession, q EvaluateParams, clientError error) error {
	if clientError == nil {
		return nil
	}
	select {
	case <-s.closed:
		return NewError(CodeSessionClosed, "the call was resumed or the session closed", "session_id", s.ID)
	default:
	}
	if ctx.Err() != nil {
		return NewError(CodeEvalTimeout, "the client did not answer within "+q.Timeout.String())
	}
	return clientError
}

func (h *Hub) findOrOpenREPLSession(q EvaluateParams) (*openPause, *liveREPLSession, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.Session == "" {
		p, err := h.findOpenPause(q.PauseID)
		if err != nil {
			return nil, nil, err
		}
		return p, h.createREPLSession(p), nil
	}
	s, ok := h.byID[q.Session]
	switch {
	case !ok:
		return nil, nil, NewError(CodeSessionNotFound, "", "session_id", q.Session)
	case q.PauseID != "" && s.PauseID != q.PauseID:
		return nil, nil, NewError(CodeInvalidSession, "the session for expressions belongs to another paused call", "session_id", q.Session)
	case s.ClosedAt != nil:
		return nil, nil, NewError(CodeSessionClosed, "", "session_id", q.Session)
	}
	p, err := h.findOpenPause(s.PauseID)
	return p, s, err
}

var variableAssignmentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*:=(?s)(.*)$`) })

func (h *Hub) evaluateExprOrAssignmentInHub(ctx context.Context, p *openPause, expr string, result *EvaluationResult) {
	name := ""
	offset := 0
	if m := variableAssignmentPattern().FindStringSubmatchIndex(expr); m != nil {
		name, offset = expr[m[2]:m[3]], m[4]
		expr = expr[m[4]:]
	}
	out, err := h.evaluateExprWithPauseVariables(ctx, p, expr)
	if err == nil {
		result.Output, err = valueAsJSONText(out)
	}
	if err != nil {
		result.IsError, result.Output = true, err.Error()
		if at, ok := errors.AsType[*eval.Error](err); ok {
			result.Output = fmt.Sprintf("%s (column %d)", at.Message, at.Offset+offset+1)
		}
		return
	}
	if cid, _, err := h.store.PutJSON([]byte(result.Output)); err == nil {
		result.ResultCID = cid
	}
	if name != "" {
		h.mu.Lock()
		p.call.vars[name] = out
		h.mu.Unlock()
	}
}

func valueAsJSONText(v any) (string, error) {
	out, err := eval.AppendJSON(nil, v)
	if odd, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		err = fmt.Errorf("the value cannot be written as JSON: %s", odd.Str)
	}
	return string(out), err
}

func (h *Hub) evaluateToJSON(ctx context.Context, p *openPause, expr string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, evalTimeout)
	defer cancel()
	v, err := h.evaluateExprWithPauseVariables(ctx, p, expr)
	if err != nil {
		return nil, newInvalidExpressionError(err)
	}
	text, err := valueAsJSONText(v)
	return json.RawMessage(text), err
}

func (h *Hub) evaluateExprWithPauseVariables(ctx context.Context, p *openPause, expr string) (any, error) {
	program, err := eval.Compile(expr, eval.ToolCallEnv())
	if err != nil {
		return nil, err
	}
	return program.Run(ctx, h.expressionVariables(p.call, p.data, p.phase, p.outcome))
}

// Variables returns the variables that expressions can use while a call is paused.
func (h *Hub) Variables(pauseID string) (map[string]any, error) {
	h.mu.Lock()
	p, err := h.findOpenPause(pauseID)
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return h.expressionVariables(p.call, p.data, p.phase, p.outcome), nil
}

// REPLSession is a sequence of expressions that are evaluated while one call is paused.
type REPLSession struct {
	ID           string                `json:"session_id"`
	PauseID      string                `json:"pause_id"`
	PID          int                   `json:"pid"`
	StartedAt    float64               `json:"started_at"`
	ClosedAt     *float64              `json:"closed_at"`
	FunctionName string                `json:"function_name"`
	CallID       string                `json:"call_id"`
	ProcessKey   string                `json:"process_key"`
	Signature    string                `json:"signature"`
	Evaluator    string                `json:"evaluator"` // "local" or "client"
	Transcript   []EvaluatedExpression `json:"transcript"`
	Values       CallArguments         `json:"-"` // values of the call
}

// MarshalJSON writes the session's fields and the call's arguments as members of one object.
func (s REPLSession) MarshalJSON() ([]byte, error) {
	raw, err := protocol.Marshal(s.Values)
	if err != nil {
		return nil, err
	}
	var arguments struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
		Pretty json.RawMessage `json:"pretty_args"`
		Named  json.RawMessage `json:"pretty_kwargs"`
	}
	if err := json.Unmarshal(raw, &arguments); err != nil {
		return nil, err
	}
	type bare REPLSession
	return mergeJSONObjects(bare(s), arguments)
}

// EvaluatedExpression is one expression that was evaluated in a debug session, with its result.
type EvaluatedExpression struct {
	Index     int     `json:"index"`
	Input     string  `json:"input"`
	Output    string  `json:"output"`
	Stdout    string  `json:"stdout"`
	IsError   bool    `json:"is_error"`
	ResultCID string  `json:"result_cid"`
	Timestamp float64 `json:"timestamp"`
}

type liveREPLSession struct {
	REPLSession
	closed chan struct{} // closed when the session ends
}

type replSessionStore struct {
	*hubState
	byID      map[string]*liveREPLSession
	ids       []string // oldest first
	lastStart time.Time
	bytes     int // size of all transcripts
}

// createREPLSession creates a session. Its start time is unique, because it is part of the session's id. l.mu must be held.
func (l *replSessionStore) createREPLSession(p *openPause) *liveREPLSession {
	now := l.options.Now().Truncate(time.Microsecond)
	if !now.After(l.lastStart) {
		now = l.lastStart.Add(time.Microsecond)
	}
	l.lastStart = now
	d := p.data
	s := &liveREPLSession{closed: make(chan struct{}), REPLSession: REPLSession{
		ID: fmt.Sprintf("%d-%.6f", d.PID, unixSeconds(now)), PauseID: p.id, PID: d.PID, StartedAt: unixSeconds(now),
		FunctionName: d.MethodName, CallID: d.CallID, ProcessKey: d.ProcessKey, Signature: d.Signature, Evaluator: d.Evaluator,
		Transcript: []EvaluatedExpression{}, Values: d.valuesOrDefault(),
	}}
	l.byID[s.ID] = s
	l.ids = append(l.ids, s.ID)
	if len(l.ids) > maxSessions {
		old := l.byID[l.ids[0]]
		l.dropOldestTranscriptEntries(old, len(old.Transcript))
		delete(l.byID, old.ID)
		l.ids = l.ids[1:]
	}
	p.sessions = append(p.sessions, s.ID)
	p.call.sessions = append(p.call.sessions, s.ID)
	return s
}

// HasREPLSessionIDForm reports whether a text has the form of a session id: a process id, a dash and Unix seconds.
func HasREPLSessionIDForm(text string) bool {
	pid, at, ok := strings.Cut(text, "-")
	if _, err := strconv.ParseUint(pid, 10, 63); err != nil || !ok {
		return false
	}
	_, err := strconv.ParseFloat(at, 64)
	return err == nil
}

func (l *replSessionStore) REPLSessionByID(id string) (REPLSession, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.byID[id]
	if !ok {
		return REPLSession{}, NewError(CodeSessionNotFound, "", "session_id", id)
	}
	return s.publicState(), nil
}

func (s *liveREPLSession) publicState() REPLSession {
	v := s.REPLSession
	v.Transcript = slices.Clone(s.Transcript)
	return v
}

// REPLSessions lists all sessions that are kept, oldest first.
func (l *replSessionStore) REPLSessions() []REPLSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]REPLSession, 0, len(l.ids))
	for _, id := range l.ids {
		all = append(all, l.byID[id].publicState())
	}
	return all
}

// CloseREPLSession ends a session. Closing it again is not an error.
func (l *replSessionStore) CloseREPLSession(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.byID[id]
	if !ok {
		return NewError(CodeSessionNotFound, "", "session_id", id)
	}
	l.closeREPLSessionLocked(s)
	return nil
}

// closeREPLSessionLocked ends a session and its pending evaluations; l.mu must be held.
func (l *replSessionStore) closeREPLSessionLocked(s *liveREPLSession) {
	if s.ClosedAt != nil {
		return
	}
	s.ClosedAt = new(unixSeconds(l.options.Now()))
	close(s.closed)
}

// appendTranscriptEntry adds an entry to a session's transcript. If the transcript has too many entries, it drops the oldest.
// If all transcripts together are too large, it empties the transcripts of the oldest sessions. l.mu must be held.
func (l *replSessionStore) appendTranscriptEntry(s *liveREPLSession, e EvaluatedExpression) {
	if l.byID[s.ID] != s {
		return
	}
	s.Transcript = append(s.Transcript, e)
	l.bytes += e.bytesOfInputAndOutputs()
	if len(s.Transcript) > maxTranscriptEntries {
		l.dropOldestTranscriptEntries(s, 1)
	}
	for _, id := range l.ids {
		if l.bytes <= maxTotalBytesOfSessionTranscripts {
			break
		}
		old := l.byID[id]
		l.dropOldestTranscriptEntries(old, len(old.Transcript))
	}
}

// dropOldestTranscriptEntries drops the oldest n entries of a session; l.mu must be held.
func (l *replSessionStore) dropOldestTranscriptEntries(s *liveREPLSession, n int) {
	for _, e := range s.Transcript[:n] {
		l.bytes -= e.bytesOfInputAndOutputs()
	}
	s.Transcript = slices.Clone(s.Transcript[n:])
}

func (e EvaluatedExpression) bytesOfInputAndOutputs() int {
	return len(e.Input) + len(e.Output) + len(e.Stdout)
}
