// Package filecmd is the commands about files of our own formats: check, fixture, serve.
//
// Its one invariant: nothing is decided here; a command is its flags, one call of a domain package, and what that has to
// say.
package filecmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/claudeless/claudeless/internal/clock"
	"github.com/claudeless/claudeless/internal/messages"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/serve"
	"github.com/claudeless/claudeless/scenarios"
)

// Serve serves a scenario as the Messages API.
type Serve struct {
	Scenario string `arg:"" help:"File, or name of a scenario of the library."`
	Addr     string `placeholder:"HOST:PORT" help:"Listen there; default any port of 127.0.0.1. Another machine's reach needs --token."`
	PortFile string `placeholder:"FILE" help:"Write the port there once it is listened to."`
	Token    string `placeholder:"TEXT" help:"What the control routes ask for, and other machines as their API key."`
	Capture  string `placeholder:"FILE" help:"Write the journal there, one JSON object a line."`
}

// Run serves until a signal, or until the process that started it has ended.
func (c *Serve) Run(ctx context.Context, s *process.System) (err error) {
	var access serve.Access
	if !serve.Loopback(c.Addr) {
		access = serve.Access{Token: c.Token, Header: "X-Api-Key"}
	}
	o := messages.Options{
		Clock: clock.New(clock.Options{Now: s.Now, NewID: s.NewID}), Token: c.Token, Environ: s.Environ, Args: s.Args, PID: s.PID,
	}
	if o.Scenario, err = scenarios.Open(c.Scenario); err != nil {
		return err
	}
	if o.CWD, err = s.Getwd(); err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if c.Capture != "" {
		file, err := os.OpenFile(c.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the capture file: %w", err)
		}
		defer file.Close()
		o.Capture = file
	}
	server, err := messages.New(o)
	if err != nil {
		return err
	}
	ctx, release := s.UntilSignal(ctx)
	defer release()
	ctx, stop := s.UntilOrphan(ctx)
	defer stop()
	return errors.Join(serve.Run(ctx, server, serve.Options{
		Addr: c.Addr, PortFile: c.PortFile, Access: access,
		Listening: func(a net.Addr) { fmt.Fprintf(s.Stderr, "listening on http://%s\n", a) },
	}), server.Err())
}
