package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/guard"
)

// grace is how long what the command leaves behind may take to end.
const grace = 500 * time.Millisecond

// errSetUp is why a command was not even started: it is no matter of the verdict.
var errSetUp = errors.New("--guard=strict")

// ParseGuard reads the value of --guard.
func ParseGuard(s string) (guard.Level, error) { return guard.Parse(s) }

// link is the first of the files that [proc.Attach] hands down.
const link = 3

// Inside is the first process of a watched run, which becomes the command: its path,
// then its arguments with its name. It returns only when that failed.
func Inside(words, environ []string) error {
	return guard.Enter(link, words[0], words[1:], environ)
}

// InsideNetwork is Inside for a run in a network of its own.
func InsideNetwork(words, environ []string) error {
	return guard.EnterNetwork(link, words[0], words[1:], environ)
}

// startedCommand is the command under way.
type startedCommand struct {
	*proc.Attached
	network *guard.Network // nil = that of this program, and nothing is watched
	poll    *guard.Poller  // nil = nothing is polled
	known   []int          // processes of this program's own making
	beside  bool           // there are other runs in this program
	reaper  *guard.Reaper  // nil = there is none
}

// start starts the command with these streams.
func (r *run) start(ctx context.Context, o proc.AttachOptions) (*startedCommand, error) {
	o.Command = proc.Command{Path: r.Command[0], Args: r.Command[1:], Env: r.environ()}
	c := &startedCommand{beside: len(r.Faults) > 0}
	if !c.beside {
		c.known = guard.Descendants(os.Getpid())
		guard.Adopt()
	}
	var err error
	if r.Guard == guard.Strict {
		err = r.enclose(ctx, c, o)
	} else {
		err = r.watched(ctx, c, o)
	}
	if err == nil && !c.beside {
		c.known = append(c.known, c.Own()...)
		c.reaper = guard.Reap(r.System.Notify, c.known)
	}
	return c, err
}

// watched starts the command in the network of this program and looks out for a real
// claude among the programs that it starts: at each of their starts where that is
// allowed, else again and again.
func (r *run) watched(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	wanted := r.Guard == guard.Path && r.Setup.Real.Path == "" && !c.beside
	if wanted && guard.MayWatch() {
		err := r.inside(ctx, c, o)
		if !errors.Is(err, errSetUp) {
			return err
		}
	}
	var err error
	c.Attached, err = proc.Attach(ctx, o)
	if err == nil && wanted {
		c.poll = guard.Poll(&r.api.log, r.own())
	}
	return err
}

// enclose starts the command in a network of its own.
func (r *run) enclose(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	o.Network = true
	err := r.inside(ctx, c, o)
	if errors.Is(err, errSetUp) {
		return fmt.Errorf("%w; --guard=path does without", err)
	}
	return err
}

// inside starts the command by way of this very binary, which hands over the watch
// over it.
func (r *run) inside(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	path, err := o.Look()
	if err != nil {
		return err
	}
	ours, theirs, err := guard.Link()
	if err != nil {
		return fmt.Errorf("%w: %w", errSetUp, err)
	}
	words := []string{"exec", "--inside"}
	if o.Network {
		words = append(words, "--own-network")
	}
	o.Args = append(append(words, "--", path), r.Command...)
	o.Path, o.Files = r.Setup.Self, []*os.File{theirs}
	c.Attached, err = proc.Attach(ctx, o)
	theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w; it takes user namespaces, or the superuser", errSetUp, err), ours.Close())
	}
	c.network, err = guard.Join(ours, guard.WatchOptions{
		PID: c.PID(), Log: &r.api.log, Own: r.own(), Real: r.Setup.Real.Path != "", OwnNetwork: o.Network, Cut: guard.Cut(),
	})
	if err == nil {
		if c.network.API != nil {
			r.api.serve(ctx, c.network.API, c.network.Proxy)
		}
		err = c.network.Go()
	}
	if err != nil {
		c.Stop(grace)
		c.close()
		c.network = nil
		return fmt.Errorf("%w: %w", errSetUp, err)
	}
	return nil
}

// close ends the watch.
func (c *startedCommand) close() {
	c.reaper.Stop()
	c.poll.Stop()
	if c.network != nil {
		c.network.Close()
	}
}
