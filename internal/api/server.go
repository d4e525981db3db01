// Package api serves a scenario as the Messages API (/v1/messages) over HTTP,
// for the real CLI, SDKs and any other client.
//
// Every request is answered from its own history: a fresh engine of the scenario receives the history in order and
// answers the last message. Only three bounded caches are kept between requests: attempts at a history, the position of
// a session with a cut history, the scripts of running sub-agents. The package runs no tools and starts no listener.
package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// Server handles the Messages API. It is safe for concurrent use.
type Server struct{ service *service }

// New creates a server; it starts nothing and needs no Close.
func New(o Options) (*Server, error) {
	if o.Scenario == nil || o.Clock == nil {
		return nil, errors.New("api: Scenario and Clock must be set")
	}
	return &Server{newService(o)}, nil
}

// Err returns the first error of writing the journal.
func (s *Server) Err() error {
	if s.service.journal == nil {
		return nil
	}
	return s.service.journal.Err()
}

// UnmetExpectations lists the expectations a namespace's conversations have not met, one per line; "" is the default.
func (s *Server) UnmetExpectations(namespace string) []string {
	return s.service.namespaceState(s.service.namespaceFor(namespace)).Unmet
}

// ServeHTTP handles one request. The API is available below any base path; /t/NAME
// and the header X-Claudeless-Test select a namespace.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path := r.Header.Get("X-Claudeless-Test"), r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		var at string
		name, at, _ = strings.Cut(rest, "/")
		path = "/" + at
	}
	if route, ok := strings.CutPrefix(path, "/_claudeless/"); ok {
		s.service.serveControl(w, r, name, route)
		return
	}
	x := &exchange{
		Client: history.ReadClient(r, name, r.URL.Path), responseSender: responseSender{w: w, r: r, clock: s.service.Clock},
		service: s.service, namespace: s.service.namespaceFor(name), startedAt: s.service.Clock.Now(),
	}
	x.chooseEndpoint(path)
}
