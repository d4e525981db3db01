// Package api is the Messages API face: a scenario served over HTTP in the
// form of /v1/messages, to the real CLI, to SDKs, to whatever speaks it.
//
// Its one invariant: a request is its history. A fresh engine is fed the history in
// order and answers the last message; nothing that decides an answer is kept
// between requests. Three bounded memories (attempts at a history, where a
// session stood when its history was cut, scripts of sub-agents on their way) are
// caches: losing them changes only what they are for. The package knows no
// simulator, runs no tool and starts nothing.
package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// Server answers the Messages API. It is safe for concurrent use.
type Server struct{ service *service }

// New makes a server; it starts nothing and needs no end.
func New(o Options) (*Server, error) {
	if o.Scenario == nil || o.Clock == nil {
		return nil, errors.New("messages: a scenario and a clock are needed")
	}
	return &Server{newService(o)}, nil
}

// Err is the first error of writing the journal.
func (s *Server) Err() error {
	if s.service.journal == nil {
		return nil
	}
	return s.service.journal.Err()
}

// Unmet says which expectations the conversations of a namespace do not fulfil so
// far, one line each; "" is the nameless namespace.
func (s *Server) Unmet(namespace string) []string {
	return s.service.condition(s.service.space(namespace)).Unmet
}

// ServeHTTP answers one request. The API is found below any base path; /t/NAME and
// the header X-Claudeless-Test choose a namespace.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path := r.Header.Get("X-Claudeless-Test"), r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		var at string
		name, at, _ = strings.Cut(rest, "/")
		path = "/" + at
	}
	if route, ok := strings.CutPrefix(path, "/_claudeless/"); ok {
		s.service.control(w, r, name, route)
		return
	}
	x := &exchange{
		Client: history.ReadClient(r, name, r.URL.Path), sender: sender{w: w, r: r, clock: s.service.Clock},
		s: s.service, ns: s.service.space(name), began: s.service.Clock.Now(),
	}
	x.route(path)
}
