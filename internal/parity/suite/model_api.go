package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/scenarios"
)

// apiOptions configure a modelAPI. All are required.
type apiOptions struct {
	Scenario string // file
	Journal  string // journal file
	CWD      string // working directory of the run
	System   *process.System
}

// modelAPI serves the scenario of a case as the Messages API on loopback and records the requests. Close stops
// everything that listenAPI started.
type modelAPI struct {
	// URL is the base URL of the API.
	URL string

	servers []byte
	journal *os.File
	cancel  context.CancelFunc
	done    chan error
}

// listenAPI starts a server that runs until Close.
func listenAPI(ctx context.Context, o apiOptions) (*modelAPI, error) {
	s, err := scenarios.Load(o.Scenario, scenarios.LoadOptions{})
	if err != nil {
		return nil, err
	}
	a := &modelAPI{done: make(chan error, 1)}
	if a.servers, err = s.ServerConfig("claudeless", ""); err != nil {
		return nil, err
	}
	if a.journal, err = os.Create(o.Journal); err != nil {
		return nil, fmt.Errorf("recording requests: %w", err)
	}
	handler, err := api.New(api.Options{
		Scenario: s, Capture: a.journal, CWD: o.CWD, PID: o.System.PID,
		Clock: clock.New(clock.Options{Now: o.System.Now, NewID: o.System.NewID}),
	})
	if err != nil {
		return nil, errors.Join(err, a.journal.Close())
	}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ln, err := localhttp.Listen(ctx, localhttp.Options{})
	if err != nil {
		a.cancel()
		return nil, errors.Join(err, a.journal.Close())
	}
	a.URL = "http://" + ln.Addr().String()
	go func() { a.done <- localhttp.Serve(ctx, ln, handler, localhttp.Options{Grace: time.Millisecond}) }() // returns after Close
	return a, nil
}

// Servers returns the configuration of the scenario's MCP servers, for --mcp-config; nil means none.
func (a *modelAPI) Servers() []byte { return a.servers }

func (a *modelAPI) Close() error {
	a.cancel()
	return errors.Join(<-a.done, a.journal.Close())
}
