package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/replay"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
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
	// sideAnswers are refused there. Who may ask for the rest is the listener's matter.
	Token string
	// Environ and Args are `env` and `args` in expressions, CWD is `cwd`. Secret
	// values of Environ are hidden in the journal.
	Environ, Args []string
	CWD           string
	PID           int // in journal lines
	// Gates is the directory of the gates that other processes see as well; "" = that
	// channel Environ, see [recordGate.Dir], and where it names none, each namespace has gates of
	// its own, which only the control routes open.
	Gates string
	// State is a directory in which several servers count the attempts at a request
	// together, and which has their gates; "" = each server counts its own.
	State string
	// Memory is how many entries each memory of a namespace holds: 0 = 4096,
	// negative = none.
	Memory int
	// Strict refuses prompts that no rule matches, as `unmatched = "error"` does.
	Strict bool
	// Failure strikes every answer that has none of its own; nil = nothing does.
	Failure *scenarios.Failure
}

// service is what all requests to a server share.
type service struct {
	Options

	began    time.Time
	replayer *replay.Replayer
	reader   *history.Reader
	journal  *journal.Journal // nil = nobody reads it

	mu         sync.Mutex
	namespaces map[string]*namespace
}

func newService(o Options) *service {
	o.Memory = cmp.Or(o.Memory, 4096)
	o.Scenario.HideSecrets(journal.SecretFinder(o.Environ))
	var ids replay.IDs
	if o.Scenario.Seed != nil {
		ids.Seed = history.Digest{}.Chain("seed", strconv.FormatInt(*o.Scenario.Seed, 10))
	} else {
		ids.Seed = history.Digest{}.Chain("id", o.Clock.NewID())
	}
	s := &service{
		Options: o, began: o.Clock.Now(), namespaces: map[string]*namespace{}, reader: history.NewReader(4 * o.Memory),
		replayer: replay.New(replay.Options{Scenario: o.Scenario, Environ: o.Environ, Args: o.Args, CWD: o.CWD, IDs: ids, Failure: o.Failure}),
	}
	if o.Capture != nil {
		s.journal = s.newJournal(o.Capture, o.Clock.Now)
	}
	return s
}

func (s *service) newJournal(w io.Writer, now func() time.Time) *journal.Journal {
	return journal.New(journal.Options{W: w, Now: now, PID: s.PID, Environ: s.Environ})
}

// namespace is the namespace of that name; it is made when nobody has used it.
func (s *service) namespace(name string) *namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	ns, ok := s.namespaces[name]
	if !ok {
		ns = newNamespace(name, s.Memory, s.newGates())
		if s.State != "" {
			ns.memory.UseCounter(s.attemptClaims(name))
		}
		s.namespaces[name] = ns
	}
	return ns
}

// newGates are those of a new namespace.
func (s *service) newGates() gates {
	dir := cmp.Or(s.Gates, s.State, gate.Dir(s.Environ))
	if dir == "" {
		return &localGates{}
	}
	return directoryGates(dir)
}

// attemptClaims are the attempts of all servers at the requests of a namespace.
func (s *service) attemptClaims(namespace string) gate.Claims {
	sum := sha256.Sum256([]byte(namespace))
	return gate.Claims{Dir: filepath.Join(s.State, "attempts", hex.EncodeToString(sum[:16]))}
}

// resetNamespace makes a namespace one that nobody has used.
func (s *service) resetNamespace(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.namespaces, name)
	if s.State == "" {
		return nil
	}
	return os.RemoveAll(s.attemptClaims(name).Dir)
}

// write records a line.
func (s *service) write(ns *namespace, b journal.Body) {
	ns.keepLine(journalLine{s.Clock.Now(), b})
	if s.journal != nil {
		s.journal.Write(b)
	}
}
