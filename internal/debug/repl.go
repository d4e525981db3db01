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

// evalTimeout bounds an evaluation that names no limit. It is above the 30 s
// that the older clients give themselves, so that their own answer arrives.
const evalTimeout = 35 * time.Second

// Question is one expression at a pause.
type Question struct {
	// Session is an open session of the pause; empty = one is made.
	Session string
	// PauseID may be empty when Session is set.
	PauseID string
	Expr    string
	Timeout time.Duration // 0 = 35 s
}

// StartSession opens a session at a pause and returns its id.
func (h *Hub) StartSession(pauseID string) (string, error) {
	if pauseID == "" {
		return "", Refuse("missing_pause_id", "pause_id required")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.find(pauseID)
	if err != nil {
		return "", err
	}
	return h.openSession(p).ID, nil
}

// Evaluate runs one expression at a pause: here for callers of ours, in the
// caller's own process for older clients. A bad expression is an answer with
// IsError, not an error.
func (h *Hub) Evaluate(ctx context.Context, q Question) (Answer, error) {
	if strings.TrimSpace(q.Expr) == "" {
		return Answer{}, Refuse(CodeMissingExpression, "expression required")
	}
	p, s, err := h.place(q)
	if err != nil {
		return Answer{}, err
	}
	if q.Timeout <= 0 {
		q.Timeout = evalTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	a := Answer{SessionID: s.ID}
	if e, ok := p.call.caller.(Evaluator); ok {
		a, err = e.Evaluate(ctx, EvaluationRequest{PauseID: p.id, SessionID: s.ID, Expr: q.Expr, Gone: s.gone})
		a.SessionID, err = s.ID, unanswered(ctx, s, q, err)
	} else {
		h.answer(ctx, p, q.Expr, &a)
	}
	if err != nil {
		return Answer{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.write(s, Entry{
		Index: len(s.Transcript), Input: q.Expr, Output: a.Output, Stdout: a.Stdout, IsError: a.IsError,
		ResultCID: a.ResultCID, Timestamp: seconds(h.o.Now()),
	})
	return a, nil
}

// unanswered tells why a caller did not evaluate.
func unanswered(ctx context.Context, s *session, q Question, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-s.gone:
		return Refuse(CodeSessionClosed, "the call was resumed or the session closed", "session_id", s.ID)
	default:
	}
	if ctx.Err() != nil {
		return Refuse(CodeEvalTimeout, "the client did not answer within "+q.Timeout.String())
	}
	return err
}

// place finds the pause and the session of a question.
func (h *Hub) place(q Question) (*pause, *session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.Session == "" {
		p, err := h.find(q.PauseID)
		if err != nil {
			return nil, nil, err
		}
		return p, h.openSession(p), nil
	}
	s, ok := h.byID[q.Session]
	switch {
	case !ok:
		return nil, nil, Refuse(CodeSessionNotFound, "", "session_id", q.Session)
	case q.PauseID != "" && s.PauseID != q.PauseID:
		return nil, nil, Refuse(CodeInvalidSession, "the session is of another pause", "session_id", q.Session)
	case s.ClosedAt != nil:
		return nil, nil, Refuse(CodeSessionClosed, "", "session_id", q.Session)
	}
	p, err := h.find(s.PauseID)
	return p, s, err
}

// assignment is "name := expression".
var assignment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*:=(?s)(.*)$`) })

// answer evaluates an expression here.
func (h *Hub) answer(ctx context.Context, p *pause, expr string, a *Answer) {
	name := ""
	offset := 0
	if m := assignment().FindStringSubmatchIndex(expr); m != nil {
		name, offset = expr[m[2]:m[3]], m[4]
		expr = expr[m[4]:]
	}
	out, err := h.run(ctx, p, expr)
	if err == nil {
		a.Output, err = render(out)
	}
	if err != nil {
		a.IsError, a.Output = true, err.Error()
		if at, ok := errors.AsType[*eval.Error](err); ok {
			a.Output = fmt.Sprintf("%s (column %d)", at.Message, at.Offset+offset+1)
		}
		return
	}
	if cid, _, err := h.store.PutJSON([]byte(a.Output)); err == nil {
		a.ResultCID = cid
	}
	if name != "" {
		h.mu.Lock()
		p.call.vars[name] = out
		h.mu.Unlock()
	}
}

func render(v any) (string, error) {
	out, err := eval.AppendJSON(nil, v)
	if odd, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		err = fmt.Errorf("the value has no form in JSON: %s", odd.Str)
	}
	return string(out), err
}

// value evaluates an expression whose value becomes an input or a result.
func (h *Hub) value(ctx context.Context, p *pause, expr string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, evalTimeout)
	defer cancel()
	v, err := h.run(ctx, p, expr)
	if err != nil {
		return nil, badCondition(err)
	}
	text, err := render(v)
	return json.RawMessage(text), err
}

func (h *Hub) run(ctx context.Context, p *pause, expr string) (any, error) {
	program, err := eval.Compile(expr, eval.Breakpoint())
	if err != nil {
		return nil, err
	}
	return program.Run(ctx, h.names(p.call, p.data, p.phase, p.o))
}

// Names are the values that expressions see at a pause.
func (h *Hub) Names(pauseID string) (map[string]any, error) {
	h.mu.Lock()
	p, err := h.find(pauseID)
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return h.names(p.call, p.data, p.phase, p.o), nil
}

// Session is the evaluations somebody made at one pause.
type Session struct {
	ID           string   `json:"session_id"`
	PauseID      string   `json:"pause_id"`
	PID          int      `json:"pid"`
	StartedAt    float64  `json:"started_at"`
	ClosedAt     *float64 `json:"closed_at"`
	FunctionName string   `json:"function_name"`
	CallID       string   `json:"call_id"`
	ProcessKey   string   `json:"process_key"`
	Signature    string   `json:"signature"`
	Evaluator    string   `json:"evaluator"` // local, client
	Transcript   []Entry  `json:"transcript"`
	Values       Values   `json:"-"` // of the call
}

// MarshalJSON writes the call's arguments among the other members.
func (s Session) MarshalJSON() ([]byte, error) {
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
	type bare Session
	return join(bare(s), arguments)
}

// Entry is one evaluation of a session.
type Entry struct {
	Index     int     `json:"index"`
	Input     string  `json:"input"`
	Output    string  `json:"output"`
	Stdout    string  `json:"stdout"`
	IsError   bool    `json:"is_error"`
	ResultCID string  `json:"result_cid"`
	Timestamp float64 `json:"timestamp"`
}

type session struct {
	Session
	gone chan struct{} // closed when it ends
}

// sessions are the newest ones.
type sessions struct {
	*core
	byID  map[string]*session
	ids   []string // oldest first
	last  time.Time
	bytes int // of all transcripts
}

// openSession makes a session; its id holds the time, so no two are begun in
// one microsecond. l.mu is held.
func (l *sessions) openSession(p *pause) *session {
	now := l.o.Now().Truncate(time.Microsecond)
	if !now.After(l.last) {
		now = l.last.Add(time.Microsecond)
	}
	l.last = now
	d := p.data
	s := &session{gone: make(chan struct{}), Session: Session{
		ID: fmt.Sprintf("%d-%.6f", d.PID, seconds(now)), PauseID: p.id, PID: d.PID, StartedAt: seconds(now),
		FunctionName: d.MethodName, CallID: d.CallID, ProcessKey: d.ProcessKey, Signature: d.Signature, Evaluator: d.Evaluator,
		Transcript: []Entry{}, Values: d.values(),
	}}
	l.byID[s.ID] = s
	l.ids = append(l.ids, s.ID)
	if len(l.ids) > maxSessions {
		old := l.byID[l.ids[0]]
		l.forget(old, len(old.Transcript))
		delete(l.byID, old.ID)
		l.ids = l.ids[1:]
	}
	p.sessions = append(p.sessions, s.ID)
	p.call.sessions = append(p.call.sessions, s.ID)
	return s
}

// IsSessionID reports whether a text has the form of a session's id, whether or
// not there is such a session: a process id, a dash and Unix seconds.
func IsSessionID(id string) bool {
	pid, at, ok := strings.Cut(id, "-")
	if _, err := strconv.ParseUint(pid, 10, 63); err != nil || !ok {
		return false
	}
	_, err := strconv.ParseFloat(at, 64)
	return err == nil
}

// Session returns one session.
func (l *sessions) Session(id string) (Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.byID[id]
	if !ok {
		return Session{}, Refuse(CodeSessionNotFound, "", "session_id", id)
	}
	return s.view(), nil
}

func (s *session) view() Session {
	v := s.Session
	v.Transcript = slices.Clone(s.Transcript)
	return v
}

// Sessions lists all sessions that are remembered, the oldest first.
func (l *sessions) Sessions() []Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Session, 0, len(l.ids))
	for _, id := range l.ids {
		all = append(all, l.byID[id].view())
	}
	return all
}

// CloseSession ends a session; closing it again is fine.
func (l *sessions) CloseSession(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.byID[id]
	if !ok {
		return Refuse(CodeSessionNotFound, "", "session_id", id)
	}
	l.closeSession(s)
	return nil
}

// closeSession ends a session and whatever waits in it; l.mu is held.
func (l *sessions) closeSession(s *session) {
	if s.ClosedAt != nil {
		return
	}
	now := seconds(l.o.Now())
	s.ClosedAt = &now
	close(s.gone)
}

// closeAll ends the sessions of a pause; l.mu is held.
func (l *sessions) closeAll(ids []string) {
	for _, id := range ids {
		if s, ok := l.byID[id]; ok {
			l.closeSession(s)
		}
	}
}

// write adds to a session's transcript. Of too much the oldest is given up: its
// own, and what other sessions hold when all together hold too much. l.mu is
// held.
func (l *sessions) write(s *session, e Entry) {
	if l.byID[s.ID] != s {
		return
	}
	s.Transcript = append(s.Transcript, e)
	l.bytes += e.size()
	if len(s.Transcript) > maxTranscript {
		l.forget(s, 1)
	}
	for _, id := range l.ids {
		if l.bytes <= maxTranscriptBytes {
			break
		}
		old := l.byID[id]
		l.forget(old, len(old.Transcript))
	}
}

// forget gives up the oldest n entries of a session; l.mu is held.
func (l *sessions) forget(s *session, n int) {
	for _, e := range s.Transcript[:n] {
		l.bytes -= e.size()
	}
	s.Transcript = slices.Clone(s.Transcript[n:])
}

func (e Entry) size() int { return len(e.Input) + len(e.Output) + len(e.Stdout) }
