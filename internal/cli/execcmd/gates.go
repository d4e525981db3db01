package execcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/gate"
)

// GatesCommand is the command for the gates of a run, at which steps wait. It lists, awaits and releases gates.
type GatesCommand struct {
	List    gatesListCommand    `cmd:"" help:"List the gates that were reached or released"`
	Wait    gatesWaitCommand    `cmd:"" help:"Wait until a step has reached a gate"`
	Release gatesReleaseCommand `cmd:"" help:"Release a gate: waiting steps continue, and later steps do not wait"`
}

type gatesDirFlag struct {
	Dir string `placeholder:"DIR" help:"Directory of the gates (default: CLAUDELESS_GATES, else next to the journal named by CLAUDELESS_CAPTURE)"`
}

func (g gatesDirFlag) flagOrEnvironmentDir(s *process.System) (string, error) {
	if g.Dir != "" {
		return g.Dir, nil
	}
	if dir := gate.Dir(s.Environ); dir != "" {
		return dir, nil
	}
	return "", process.WithHint("cannot find the directory of the gates", "run this command inside claudeless exec, or set the directory with --dir or CLAUDELESS_GATES")
}

type gatesListCommand struct {
	gatesDirFlag `embed:""`
}

// Run prints one line for each gate that a step has reached or that was released.
func (c *gatesListCommand) Run(s *process.System) error {
	dir, err := c.flagOrEnvironmentDir(s)
	if err != nil {
		return err
	}
	list, err := gate.List(dir)
	for _, g := range list {
		state := "reached"
		if g.Released {
			state = "released"
		}
		fmt.Fprintf(s.Stdout, "%s\t%s\n", g.Name, state)
	}
	return err
}

type gatesWaitCommand struct {
	gatesDirFlag `embed:""`
	Name         string        `arg:"" help:"Name of the gate"`
	Timeout      time.Duration `default:"30s" help:"How long to wait at most (default 30s)"`
}

// Run returns when a step has reached the gate.
func (c *gatesWaitCommand) Run(ctx context.Context, s *process.System) error {
	dir, err := c.flagOrEnvironmentDir(s)
	if err != nil {
		return err
	}
	ctx, signals := s.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	if err := gate.AwaitReached(ctx, dir, c.Name, c.Timeout); err != nil {
		return process.SignalErrorOr(ctx, fmt.Errorf("waiting for a step to reach the gate %s: %w", c.Name, err))
	}
	return nil
}

type gatesReleaseCommand struct {
	gatesDirFlag `embed:""`
	Name         string `arg:"" help:"Name of the gate"`
}

func (c *gatesReleaseCommand) Run(s *process.System) error {
	dir, err := c.flagOrEnvironmentDir(s)
	if err != nil {
		return err
	}
	return gate.Release(dir, c.Name)
}
