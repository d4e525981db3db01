// Package messages is the Messages API face: a scenario served over HTTP in the
// form of /v1/messages, to the real CLI, to SDKs, to whatever speaks it.
//
// Its one invariant: a request is its history. A fresh engine is fed the history in
// order and answers the last message; nothing that decides an answer is kept
// between requests. Three bounded memories (attempts at a history, where a
// session stood when its history was cut, scripts of sub-agents on their way) are
// caches: losing them changes only what they are for. The package knows no
// simulator, runs no tool and starts nothing.
package messages

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Clock is a run's time and ids.
type Clock interface {
	Now() time.Time
	// Sleep waits; it returns early with the ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
	// NewID is a fresh UUID. It is asked once, where the scenario has no seed.
	NewID() string
}

// Options say what is served. Scenario and Clock are required.
type Options struct {
	Scenario *scenarios.Scenario
	Clock    Clock
	// Capture receives the journal, one line a write; nil = nobody reads it.
	Capture io.Writer
	// Token is needed for the control routes; "" = this machine needs none, and
	// others are refused there. Who may ask for the rest is the listener's matter.
	Token string
	// Environ and Args are `env` and `args` in expressions, CWD is `cwd`. Secret
	// values of Environ are hidden in the journal.
	Environ, Args []string
	CWD           string
	PID           int // in journal lines
	// Memory is how many entries each memory of a namespace holds: 0 = 4096,
	// negative = none.
	Memory int
}

// Server answers the Messages API. It is safe for concurrent use.
type Server struct {
	o        Options
	began    time.Time
	blank    *scenarios.Engine // at the beginning of a conversation; it is only forked
	seed     digest
	hashSeed maphash.Seed
	journal  *journal.Journal // nil = nobody reads it

	mentionsContext bool
	scripts         bool // some call starts a scripted sub-agent

	mu     sync.Mutex
	known  known
	spaces map[string]*namespace
}

// known are parts of bodies that were read before, by their bytes.
type known struct {
	valid cache[uint64, struct{}]
	tools cache[uint64, *toolset]
	read  cache[uint64, *content]
}

// New makes a server; it starts nothing and needs no end.
func New(o Options) (*Server, error) {
	if o.Scenario == nil || o.Clock == nil {
		return nil, errors.New("messages: a scenario and a clock are needed")
	}
	o.Memory = cmp.Or(o.Memory, 4096)
	s := &Server{
		o: o, began: o.Clock.Now(), hashSeed: maphash.MakeSeed(), spaces: map[string]*namespace{},
		blank:           scenarios.NewEngine(o.Scenario, scenarios.EngineOptions{Env: o.Environ, Args: o.Args, CWD: o.CWD}),
		mentionsContext: o.Scenario.Mentions("context"), scripts: o.Scenario.ScriptsAgents(),
		known: known{
			valid: newCache[uint64, struct{}](256), tools: newCache[uint64, *toolset](64), read: newCache[uint64, *content](4 * o.Memory),
		},
	}
	if o.Scenario.Seed != nil {
		s.seed = digest{}.chain("seed", strconv.FormatInt(*o.Scenario.Seed, 10))
	} else {
		s.seed = digest{}.chain("id", o.Clock.NewID())
	}
	if o.Capture != nil {
		s.journal = s.newJournal(o.Capture)
	}
	return s, nil
}

func (s *Server) newJournal(w io.Writer) *journal.Journal {
	return journal.New(journal.Options{W: w, Now: s.o.Clock.Now, PID: s.o.PID, Environ: s.o.Environ})
}

// Err is the first error of writing the journal.
func (s *Server) Err() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Err()
}

// space is the namespace of that name; it is made when nobody has used it.
func (s *Server) space(name string) *namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	ns, ok := s.spaces[name]
	if !ok {
		ns = s.newNamespace(name)
		s.spaces[name] = ns
	}
	return ns
}

// write records a line.
func (s *Server) write(ns *namespace, b journal.Body) {
	ns.note(entry{s.o.Clock.Now(), b})
	if s.journal != nil {
		s.journal.Write(b)
	}
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
		s.control(w, r, name, route)
		return
	}
	x := &exchange{s: s, ns: s.space(name), w: w, r: r, began: s.o.Clock.Now(), client: readClient(r, name, r.URL.Path)}
	x.route(path)
}

// local tells whether a request comes from this machine.
func (s *Server) local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr == "" // in process
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// trusted tells whether a request holds the token.
func (s *Server) trusted(r *http.Request) bool {
	if s.o.Token == "" {
		return false
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, given := range []string{bearer, r.Header.Get("X-Claudeless-Token"), r.Header.Get("X-Api-Key"), r.URL.Query().Get("token")} {
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.o.Token)) == 1 {
			return true
		}
	}
	return false
}

// route finds the endpoint.
func (x *exchange) route(path string) {
	post := x.r.Method == http.MethodPost
	if strings.Contains(path, "/v1/v1/") {
		x.refuse(&refusal{status: http.StatusNotFound, message: "the base URL must not end in /v1: the client adds it (" + x.path + ")", final: true})
		return
	}
	_, model, isModel := strings.Cut(path, "/v1/models/")
	switch {
	case strings.HasSuffix(path, "/v1/messages") && post:
		x.messages()
	case strings.HasSuffix(path, "/v1/messages/count_tokens") && post:
		x.countTokens()
	case strings.HasSuffix(path, "/v1/models") && x.r.Method == http.MethodGet:
		x.models()
	case isModel && x.r.Method == http.MethodGet:
		x.model(model)
	case strings.HasSuffix(path, "/v1/messages"), strings.HasSuffix(path, "/v1/messages/count_tokens"), strings.HasSuffix(path, "/v1/models"):
		x.refuse(&refusal{status: http.StatusMethodNotAllowed, message: x.r.Method + " is not allowed here"})
	case x.r.Method == http.MethodHead, path == "/", strings.HasSuffix(path, "/api/hello"):
		x.side("hello", func() { x.w.WriteHeader(http.StatusOK) })
	case strings.Contains(path, "/api/event_logging"), strings.Contains(path, "telemetry"), strings.Contains(path, "/metrics"):
		x.side("telemetry", func() { x.json(http.StatusOK, struct{}{}) })
	default:
		x.refuse(&refusal{status: http.StatusNotFound, message: "nothing is served at " + x.r.Method + " " + x.path})
	}
}

// side answers a request beside the conversation and records it.
func (x *exchange) side(kind string, answer func()) {
	x.headers("")
	answer()
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.namespace, Session: x.session, Kind: kind, Path: x.path, Status: max(x.status, http.StatusOK), MS: x.ms(),
	})
}
