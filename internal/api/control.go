package api

import (
	"bytes"
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type healthAnswer struct {
	OK       bool   `json:"ok"`
	Scenario string `json:"scenario,omitempty"`
}

type namespaceStateResponse struct {
	Namespace string `json:"namespace"`
	// Requests is the number of conversation requests that were answered. A scripted failure counts as an answer.
	Requests int      `json:"requests"`
	Unmet    []string `json:"unmet"` // lists the expectations of the scenario that are not met yet
	// Gates are the gates (points at which answers wait until a test releases them) that answers have reached.
	Gates   []journal.GateState `json:"gates"`
	Dropped int                 `json:"dropped_lines"` // the number of old journal lines that the namespace no longer keeps
}

// serveTestControlRoute handles /_claudeless/… for test code. The namespace comes from the path, the header, or the query.
func (s *Server) serveTestControlRoute(w http.ResponseWriter, r *http.Request, namespaceName, controlRoute string) {
	if q := r.URL.Query().Get("namespace"); q != "" {
		namespaceName = q
	}
	get, post := r.Method == http.MethodGet || r.Method == http.MethodHead, r.Method == http.MethodPost
	allowed := s.hasServerToken(r) || s.Token == "" && s.isRequestFromThisMachine(r)
	switch {
	case controlRoute == "health" && get:
		writeJSONResponse(w, http.StatusOK, healthAnswer{OK: true, Scenario: s.Scenario.Name})
	case !allowed:
		writeJSONResponse(w, http.StatusUnauthorized, wire.ErrorBody{Type: "authentication_error", Message: "the control routes require the server's token"})
	case controlRoute == "journal" && get:
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write(s.encodeJournalLines(s.getOrCreateNamespace(namespaceName))) // fails if the client has disconnected
	case controlRoute == "state" && get:
		writeJSONResponse(w, http.StatusOK, s.newNamespaceStateResponse(s.getOrCreateNamespace(namespaceName)))
	case controlRoute == "reset" && post:
		if err := s.resetNamespace(namespaceName); err != nil {
			writeJSONResponse(w, http.StatusInternalServerError, wire.ErrorBody{Type: "api_error", Message: "resetting the namespace: " + err.Error()})
			return
		}
		writeJSONResponse(w, http.StatusOK, healthAnswer{OK: true})
	case strings.HasPrefix(controlRoute, "gates/") && post:
		s.serveGateRelease(w, s.getOrCreateNamespace(namespaceName), strings.TrimPrefix(controlRoute, "gates/"))
	default:
		writeJSONResponse(w, http.StatusNotFound, wire.ErrorBody{Type: "not_found_error", Message: "no such control route: " + r.Method + " " + controlRoute})
	}
}

func writeJSONResponse(w http.ResponseWriter, status int, v any) {
	body, err := protocol.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails if the client has disconnected
}

func (s *Server) encodeJournalLines(ns *requestNamespace) []byte {
	ns.mu.Lock()
	entries := append([]retainedJournalLine(nil), ns.journalLines...)
	ns.mu.Unlock()
	var out bytes.Buffer
	at := s.Clock.Now()
	j := s.newJournal(&out, func() time.Time { return at })
	for _, e := range entries {
		at = e.recordedAt
		j.Write(e.body)
	}
	return out.Bytes()
}

func (s *Server) newNamespaceStateResponse(ns *requestNamespace) namespaceStateResponse {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	c := namespaceStateResponse{Namespace: ns.name, Requests: ns.requests, Unmet: []string{}, Dropped: ns.droppedLines, Gates: append([]journal.GateState{}, ns.summary.Gates()...)}
	for _, j := range append(slices.Clip(ns.unmetExpectations), ns.summary.CheckExpectations(s.Scenario)...) {
		if !j.IsMet {
			c.Unmet = append(c.Unmet, j.String())
		}
	}
	return c
}

func (s *Server) isRequestFromThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr == "" // in process
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (s *Server) hasServerToken(r *http.Request) bool {
	if s.Token == "" {
		return false
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return slices.ContainsFunc([]string{bearer, r.Header.Get("X-Claudeless-Token"), r.Header.Get("X-Api-Key"), r.URL.Query().Get("token")}, func(given string) bool {
		return subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
	})
}

// requestNamespace is the state that all requests of one namespace (a test with its own URL below /t/) share.
type requestNamespace struct {
	name      string
	memory    *requestNamespaceMemory
	stepGates gates

	mu                sync.Mutex
	unknownKeys       map[string]bool       // unknown keys of requests that were already reported
	journalLines      []retainedJournalLine // the latest lines
	droppedLines      int
	requests          int             // number of conversation requests
	sideAnswers       int             // counter that makes the ids of side answers and refusals different
	summary           journal.Summary // facts about the conversations, for expectations and gates
	unmetExpectations []scenarios.ExpectationResult
}

type retainedJournalLine struct {
	recordedAt time.Time
	body       journal.Body
}

const maxJournalLines = 2000

func (ns *requestNamespace) keepJournalLine(l retainedJournalLine) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if len(ns.journalLines) >= maxJournalLines {
		cut := maxJournalLines / 4
		ns.journalLines, ns.droppedLines = append([]retainedJournalLine(nil), ns.journalLines[cut:]...), ns.droppedLines+cut
	}
	ns.journalLines = append(ns.journalLines, l)
}

// gates are points at which answers wait until they are released. A gate that is released remains open.
type gates interface {
	markReached(name string) error
	waitUntilReleasedOrTimeout(ctx context.Context, name string) error // returns the error of ctx, or [gate.ErrGateWaitTimedOut]
	release(name string) error
}

// gatesInSharedDirectory keeps the state of gates in a directory, so that other processes can release them.
type gatesInSharedDirectory string

func (d gatesInSharedDirectory) markReached(name string) error {
	return gate.MarkGateReached(string(d), name)
}

func (d gatesInSharedDirectory) release(name string) error { return gate.Release(string(d), name) }

func (d gatesInSharedDirectory) waitUntilReleasedOrTimeout(ctx context.Context, name string) error {
	return gate.AwaitReleased(ctx, string(d), name, gate.DefaultMaxWaitAtGate)
}

// localGates are the gates of one namespace, kept in memory. The zero value is ready to use.
type localGates struct {
	mu       sync.Mutex
	released map[string]chan struct{} // by gate; the channel is closed when the gate is released
}

// gateChannel returns the channel that is closed when a gate is released. The mutex must be held.
func (o *localGates) gateChannel(name string) chan struct{} {
	if o.released == nil {
		o.released = map[string]chan struct{}{}
	}
	if o.released[name] == nil {
		o.released[name] = make(chan struct{})
	}
	return o.released[name]
}

func (o *localGates) markReached(name string) error { return gate.CheckName(name) }

func (o *localGates) release(name string) error {
	if err := gate.CheckName(name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	opens := o.gateChannel(name)
	select {
	case <-opens:
	default:
		close(opens)
	}
	return nil
}

func (o *localGates) waitUntilReleasedOrTimeout(ctx context.Context, name string) error {
	o.mu.Lock()
	opens := o.gateChannel(name)
	o.mu.Unlock()
	select {
	case <-opens:
		return nil
	case <-time.After(gate.DefaultMaxWaitAtGate):
		return gate.ErrGateWaitTimedOut
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) serveGateRelease(w http.ResponseWriter, ns *requestNamespace, route string) {
	name, ok := strings.CutSuffix(route, "/release")
	if !ok {
		writeJSONResponse(w, http.StatusNotFound, wire.ErrorBody{Type: "not_found_error", Message: "POST /_claudeless/gates/NAME/release opens a gate"})
		return
	}
	if err := ns.stepGates.release(name); err != nil {
		writeJSONResponse(w, http.StatusBadRequest, wire.ErrorBody{Type: "invalid_request_error", Message: err.Error()})
		return
	}
	writeJSONResponse(w, http.StatusOK, healthAnswer{OK: true})
}
