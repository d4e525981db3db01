// Package api serves a scenario as the Messages API (/v1/messages) over HTTP,
// for the real CLI, SDKs and any other client.
//
// Every request is answered from its own history: a fresh engine of the scenario receives the history in order and
// answers the last message. Only three bounded caches are kept between requests: attempts at a history, the position of
// a session with a cut history, the scripts of running sub-agents. The package runs no tools and starts no listener.
package api

import (
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// Err returns the first error of writing the journal.
func (s *Server) Err() (journalWriteError error) {
	if s.journal == nil {
		return nil
	}
	return s.journal.Err()
}

// UnmetExpectations lists the expectations that the conversations of a namespace have not met, one per line.
func (s *Server) UnmetExpectations(namespace string) []string {
	return s.newNamespaceStateResponse(s.namespaceFor(namespace)).Unmet
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
		s.serveTestControlRoute(w, r, name, route)
		return
	}
	x := &exchange{
		Client: history.ClientFromRequestHeaders(r, name, r.URL.Path), responseSender: responseSender{w: w, r: r, clock: s.Clock},
		server: s, namespace: s.namespaceFor(name), startedAt: s.Clock.Now(),
	}
	x.chooseEndpoint(path)
}
