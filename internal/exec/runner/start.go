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

// Inside is the first process of a network of its own, which becomes the command:
// its path, then its arguments with its name. It returns only when that failed.
func Inside(words, environ []string) error {
	const link = 3 // the first of the files that [proc.Attach] hands down
	return guard.Enter(link, words[0], words[1:], environ)
}

// started is the command under way.
type started struct {
	*proc.Attached
	network *guard.Network // nil = that of this program
	known   []int          // processes of this program's own making
	beside  bool           // there are other runs in this program
	reaper  *guard.Reaper  // nil = there is none
}

// start starts the command with these streams.
func (r *run) start(ctx context.Context, o proc.AttachOptions) (*started, error) {
	o.Command = proc.Command{Path: r.Command[0], Args: r.Command[1:], Env: r.environ()}
	c := &started{beside: len(r.Faults) > 0}
	if !c.beside {
		c.known = guard.Descendants(os.Getpid())
		guard.Adopt()
	}
	var err error
	if r.Guard == guard.Strict {
		err = r.enclose(ctx, c, o)
	} else {
		c.Attached, err = proc.Attach(ctx, o)
	}
	if err == nil && !c.beside {
		c.known = append(c.known, c.Own()...)
		c.reaper = guard.Reap(r.System.Notify, c.known)
	}
	return c, err
}

// enclose starts the command in a network of its own, by way of this very binary.
func (r *run) enclose(ctx context.Context, c *started, o proc.AttachOptions) error {
	path, err := o.Look()
	if err != nil {
		return err
	}
	ours, theirs, err := guard.Link()
	if err != nil {
		return fmt.Errorf("%w: %w", errSetUp, err)
	}
	o.Args = append([]string{"exec", "--inside", "--", path}, r.Command...)
	o.Path, o.Network, o.Files = r.Setup.Self, true, []*os.File{theirs}
	c.Attached, err = proc.Attach(ctx, o)
	theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w; it takes user namespaces, or the superuser: --guard=path does without", errSetUp, err), ours.Close())
	}
	c.network, err = guard.Join(ours, guard.WatchOptions{PID: c.PID(), Log: &r.api.log, Own: r.own(), Real: r.Setup.Real.Path != ""})
	if err == nil {
		r.api.serve(ctx, c.network.API, c.network.Proxy)
		err = c.network.Go()
	}
	if err != nil {
		c.Stop(grace)
		c.close()
		return fmt.Errorf("%w: %w; --guard=path does without", errSetUp, err)
	}
	return nil
}

// close ends the watch.
func (c *started) close() {
	c.reaper.Stop()
	if c.network != nil {
		c.network.Close()
	}
}
