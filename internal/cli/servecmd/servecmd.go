// Package servecmd implements claudeless serve: a scenario as the Messages API, or a recording proxy for the real one.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Serve serves a scenario as the Messages API.
type Serve struct {
	Scenario string `arg:"" optional:"" help:"Scenario file, or the name of a built-in scenario"`
	Record   string `placeholder:"URL" help:"Forward requests to this API instead of running a scenario; add --capture to record them for claudeless import"`
	Addr     string `placeholder:"HOST:PORT" help:"Address to listen on (default: a free port of 127.0.0.1); an address that other machines can reach requires --token"`
	PortFile string `placeholder:"FILE" help:"Write the port to FILE once the server accepts connections"`
	Token    string `placeholder:"TEXT" help:"Token required in requests to the /_claudeless routes, and as the API key of clients on other machines"`
	StateDir string `placeholder:"DIR" help:"Directory in which the servers of one test run share gates and the counts of failures with times = N"`
	Strict   bool   `help:"If no rule matches a prompt, answer with status 400, as unmatched = \"error\" in the scenario does"`
	Capture  string `placeholder:"FILE" help:"Append the journal to FILE, one JSON object per line"`
}

// Settings of the garbage collector. Requests are short and allocate little permanent memory: if the collector ran
// whenever the heap has doubled, it would take a third of the time. Therefore the heap may grow to five times the live
// data (gcPercent). Near garbageCollectorMemoryLimitBytes, the collector runs more often.
const (
	gcPercent                        = 400
	garbageCollectorMemoryLimitBytes = 256 << 20
)

// Run serves until a signal, or until the parent process has exited.
func (c *Serve) Run(ctx context.Context, s *process.System) error {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(garbageCollectorMemoryLimitBytes))
	access := localhttp.Access{OwnOriginOnly: true} // the server sends no CORS headers, so pages of other origins cannot use it
	if !localhttp.IsLoopback(c.Addr) {
		access = localhttp.Access{OwnOriginOnly: true, Token: c.Token, TokenHeader: "X-Api-Key"}
	}
	var capture io.Writer
	if c.Capture != "" {
		file, err := os.OpenFile(c.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the capture file: %w", err)
		}
		defer file.Close()
		capture = file
	}
	handler, err := c.newHandler(s, capture)
	if err != nil {
		return err
	}
	ctx, release := s.ContextUntilSignal(ctx)
	defer release()
	ctx, stop := s.ContextUntilOrphaned(ctx)
	defer stop()
	err = errors.Join(localhttp.Run(ctx, handler, localhttp.Options{
		Addr: c.Addr, PortFile: c.PortFile, Access: access,
		OnListen: func(a net.Addr) { fmt.Fprintf(s.Stderr, "listening on http://%s\n", a) },
	}), handler.Err())
	if errors.Is(err, localhttp.ErrNoToken) {
		return process.WithHint(err.Error(), "set a token with --token TEXT; clients send it as their API key")
	}
	return err
}

// apiHandler handles requests; Err returns the first error of writing the journal.
type apiHandler interface {
	http.Handler
	Err() error
}

func (c *Serve) newHandler(s *process.System, capture io.Writer) (apiHandler, error) {
	switch {
	case c.Record != "" && (c.Scenario != "" || capture == nil || !localhttp.IsLoopback(c.Addr)):
		return nil, errors.New("invalid flags with --record: it needs --capture FILE and an --addr on this machine, and takes no scenario")
	case c.Record != "":
		j := journal.New(journal.Options{W: capture, Now: s.Now, PID: s.PID, Environ: s.Environ})
		return NewRecordingProxy(RecordingProxyOptions{Upstream: c.Record, Journal: j, Now: s.Now})
	case c.Scenario == "":
		return nil, errors.New("missing scenario: give a scenario file, or --record URL")
	}
	var err error
	o := api.Options{Clock: clock.New(clock.Options{Now: s.Now, NewID: s.NewID}), Token: c.Token, Environ: s.Environ, Args: s.Args, PID: s.PID, Capture: capture, Strict: c.Strict, State: c.StateDir}
	if o.Scenario, err = scenarios.Open(c.Scenario); err != nil {
		return nil, err
	}
	if o.CWD, err = s.Getwd(); err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	return api.New(o)
}
