package messages

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// health is the answer of the control route of that name.
type health struct {
	OK       bool   `json:"ok"`
	Scenario string `json:"scenario,omitempty"`
}

// condition is what a namespace has done so far.
type condition struct {
	Namespace string `json:"namespace"`
	// Requests of conversations that were answered, scripted failures included.
	Requests int `json:"requests"`
	// Unmet are the expectations of the scenario that are not fulfilled so far.
	Unmet []string `json:"unmet"`
	// Dropped counts journal lines that are no longer kept here.
	Dropped int `json:"dropped_lines"`
}

// control answers /_claudeless/… for those who steer a test. The namespace is that
// of the path, of the header, or of the query.
func (s *Server) control(w http.ResponseWriter, r *http.Request, name, route string) {
	if q := r.URL.Query().Get("namespace"); q != "" {
		name = q
	}
	get, post := r.Method == http.MethodGet || r.Method == http.MethodHead, r.Method == http.MethodPost
	allowed := s.trusted(r) || s.o.Token == "" && s.local(r)
	switch {
	case route == "health" && get:
		answerJSON(w, http.StatusOK, health{OK: true, Scenario: s.o.Scenario.Name})
	case !allowed:
		answerJSON(w, http.StatusUnauthorized, errorBody{Type: "authentication_error", Message: "the control routes need the token of the server"})
	case route == "journal" && get:
		w.Header().Set("Content-Type", "application/x-ndjson")
		if _, err := w.Write(s.lines(s.space(name))); err != nil {
			return // whoever asked has gone
		}
	case route == "state" && get:
		answerJSON(w, http.StatusOK, s.condition(s.space(name)))
	case route == "reset" && post:
		s.mu.Lock()
		delete(s.spaces, name)
		s.mu.Unlock()
		answerJSON(w, http.StatusOK, health{OK: true})
	default:
		answerJSON(w, http.StatusNotFound, errorBody{Type: "not_found_error", Message: "no such control route: " + r.Method + " " + route})
	}
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	body, err := protocol.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		return // whoever asked has gone
	}
}

// lines is the journal of a namespace as it would stand in a file.
func (s *Server) lines(ns *namespace) []byte {
	ns.mu.Lock()
	entries := append([]entry(nil), ns.lines...)
	ns.mu.Unlock()
	var out bytes.Buffer
	at := s.o.Clock.Now()
	j := journal.New(journal.Options{W: &out, Now: func() time.Time { return at }, PID: s.o.PID, Environ: s.o.Environ})
	for _, e := range entries {
		at = e.at
		j.Write(e.body)
	}
	return out.Bytes()
}

func (s *Server) condition(ns *namespace) condition {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	c := condition{Namespace: ns.name, Requests: ns.requests, Unmet: []string{}, Dropped: ns.dropped}
	for _, j := range append(slices.Clip(ns.misses), s.o.Scenario.Judge(&ns.seen)...) {
		if !j.Met {
			c.Unmet = append(c.Unmet, j.String())
		}
	}
	return c
}

// Unmet says which expectations the conversations of a namespace do not fulfil so
// far, one line each; "" is the nameless namespace.
func (s *Server) Unmet(namespace string) []string { return s.condition(s.space(namespace)).Unmet }
