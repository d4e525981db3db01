// Package api serves a scenario as the Messages API (/v1/messages) over HTTP, for the real CLI, SDKs and any other client.
//
// Every request is answered from its own history: a fresh engine of the scenario receives the history in order and answers the last
// message. Between requests, the package keeps only bounded caches, such as how often the same history was sent, and the state of sessions
// whose history was cut. The package runs no tools and starts no listener.
package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Err returns the first error of writing the journal.
func (s *Server) Err() (journalWriteError error) {
	if s.journal == nil {
		return nil
	}
	return s.journal.Err()
}

// ServeHTTP handles a request below any base path. /t/NAME and the header X-Claudeless-Test select a namespace.
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
		RequestSender: history.SenderFromRequestHeaders(r, name, r.URL.Path), responseSender: responseSender{w: w, r: r, clock: s.Clock},
		server: s, namespace: s.getOrCreateNamespace(name), startedAt: s.Clock.Now(),
	}
	x.serveEndpoint(path)
}

func (x *exchange) serveEndpoint(path string) {
	post := x.r.Method == http.MethodPost
	if strings.Contains(path, "/v1/v1/") {
		x.sendRefusal(&history.RejectedRequestError{Status: http.StatusNotFound, Message: "the base URL must not end in /v1: the client adds it (" + x.Path + ")", NoRetry: true})
		return
	}
	_, model, isModel := strings.Cut(path, "/v1/models/")
	switch {
	case strings.HasSuffix(path, "/v1/messages") && post:
		if err := x.serveConversationOrSideRequest(); err != nil {
			x.sendRefusalOrServerError(err)
		}
	case strings.HasSuffix(path, "/v1/messages/count_tokens") && post:
		x.serveTokenCount()
	case strings.HasSuffix(path, "/v1/models") && x.r.Method == http.MethodGet:
		x.serveModelList()
	case isModel && x.r.Method == http.MethodGet:
		x.answerAndJournalSideRequest("models", "", func() { x.sendJSON(http.StatusOK, wire.ModelInfoFor(model)) })
	case strings.HasSuffix(path, "/v1/messages"), strings.HasSuffix(path, "/v1/messages/count_tokens"), strings.HasSuffix(path, "/v1/models"):
		x.sendRefusal(&history.RejectedRequestError{Status: http.StatusMethodNotAllowed, Message: x.r.Method + " is not allowed here"})
	case x.r.Method == http.MethodHead, path == "/", strings.HasSuffix(path, "/api/hello"):
		x.answerAndJournalSideRequest("hello", "", func() { x.w.WriteHeader(http.StatusOK) })
	case strings.Contains(path, "/api/event_logging"), strings.Contains(path, "telemetry"), strings.Contains(path, "/metrics"):
		x.answerAndJournalSideRequest("telemetry", "", func() { x.sendJSON(http.StatusOK, struct{}{}) })
	default:
		x.sendRefusal(&history.RejectedRequestError{Status: http.StatusNotFound, Message: "nothing is served at " + x.r.Method + " " + x.Path})
	}
}

// serveTokenCount handles POST /v1/messages/count_tokens. It estimates tokens in the same way as for the usage in answers.
func (x *exchange) serveTokenCount() {
	r, err := x.checkHeadersAndParseRequest()
	if err == nil {
		err = r.CheckAsTokenCountRequest()
	}
	if err != nil {
		x.sendRefusalOrServerError(err)
		return
	}
	x.answerAndJournalSideRequest("count_tokens", r.Model, func() {
		x.sendJSON(http.StatusOK, struct {
			InputTokens int `json:"input_tokens"`
		}{scenarios.EstimateTokens(r.InputSizeInBytes())})
	})
}

func (x *exchange) serveModelList() {
	query := x.r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			x.sendRefusal(history.InvalidRequest("limit", "Input should be between 1 and 1000"))
			return
		}
		limit = n
	}
	var all []string
	for _, f := range claudecode.KnownModels() {
		all = append(all, f.Name)
	}
	from, to := 0, len(all)
	if at := slices.Index(all, query.Get("after_id")); at >= 0 {
		from = at + 1
	}
	if at := slices.Index(all, query.Get("before_id")); at >= 0 {
		to = max(from, at)
		from = max(from, to-limit)
	}
	page := wire.ModelPage{Data: []wire.ModelInfo{}}
	for _, id := range all[from:min(to, from+limit)] {
		page.Data = append(page.Data, wire.ModelInfoFor(id))
	}
	page.HasMore = from+len(page.Data) < to
	if query.Get("before_id") != "" {
		page.HasMore = from > 0
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	x.answerAndJournalSideRequest("models", "", func() { x.sendJSON(http.StatusOK, page) })
}

func (x *exchange) answerAndJournalSideRequest(kind, model string, answer func()) {
	x.setCommonResponseHeaders("")
	answer()
	x.server.recordJournalLine(x.namespace, journal.SideRequest{Namespace: x.Namespace, Session: x.Session, Kind: kind, Path: x.Path, Model: model, Status: max(x.sentStatus, http.StatusOK), MS: x.elapsedMS()})
}
