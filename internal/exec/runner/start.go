package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
)

const leftoverGrace = 500 * time.Millisecond

// errStrictGuardFailed is wrapped by errors before the command starts, so that the caller can try a weaker guard.
var errStrictGuardFailed = errors.New("--guard=strict")

// ParseGuard parses the value of --guard.
func ParseGuard(s string) (guard.StrictnessLevel, error) { return guard.ParseLevel(s) }

// guardLinkFD connects a child with the guard. It is the number that [proc.StartAttached] gives the first file it passes on.
const guardLinkFD = 3

// ExecGuarded replaces this process, the first one of a guarded run, by the command. words[0] is the path of the
// program. The other words are its argv, with the program's name first. ExecGuarded returns only if it fails.
func ExecGuarded(words, environ []string) error {
	return guard.ExecWithSyscallWatch(guardLinkFD, words[0], words[1:], environ)
}

// ExecGuardedInOwnNetworkNamespace is like ExecGuarded for a run in its own network namespace.
func ExecGuardedInOwnNetworkNamespace(programPathThenArgv, environ []string) error {
	return guard.ExecInOwnNetworkWithSyscallWatch(guardLinkFD, programPathThenArgv[0], programPathThenArgv[1:], environ)
}

type startedCommand struct {
	*proc.Attached
	network      *guard.Network          // guard and network of the command; nil means that it runs without a guard in the network of this program
	poller       *guard.RealClaudePoller // nil means not polling
	ownProcesses []int
	hasOtherRuns bool                // this program runs other commands at the same time
	reaper       *guard.OrphanReaper // nil means none
}

func (r *run) startCommand(ctx context.Context, o proc.AttachOptions) (*startedCommand, error) {
	o.Command = proc.Command{Path: r.Command[0], Args: r.Command[1:], Env: r.commandEnviron()}
	c := &startedCommand{hasOtherRuns: len(r.Faults) > 0}
	if !c.hasOtherRuns {
		c.ownProcesses = guard.Descendants(os.Getpid())
		guard.AdoptOrphans()
	}
	var err error
	if r.Guard == guard.LevelStrict {
		err = r.startInNetwork(ctx, c, o)
	} else {
		err = r.startInSharedNetworkWatchingForRealClaude(ctx, c, o)
	}
	if err == nil && !c.hasOtherRuns {
		c.ownProcesses = append(c.ownProcesses, c.CommandAndGuardPIDs()...)
		c.reaper = guard.StartReaper(r.System.Notify, c.ownProcesses)
	}
	return c, err
}

// startInSharedNetworkWatchingForRealClaude starts the command in the network of this program, and watches for a real claude
// among the programs that the command starts: by system call notifications if permitted, otherwise by polling.
func (r *run) startInSharedNetworkWatchingForRealClaude(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	wanted := r.Guard == guard.LevelPathAndProxy && r.Setup.Real.Path == "" && !c.hasOtherRuns
	if wanted && guard.CanWatchSyscalls() {
		if err := r.startAsChildWithSyscallWatching(ctx, c, o); !errors.Is(err, errStrictGuardFailed) {
			return err
		}
	}
	var err error
	c.Attached, err = proc.StartAttached(ctx, o)
	if err == nil && wanted {
		c.poller = guard.StartRealClaudePoller(&r.api.log, r.ownFiles())
	}
	return err
}

func (r *run) startInNetwork(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	o.Network = true
	err := r.startAsChildWithSyscallWatching(ctx, c, o)
	if errors.Is(err, errStrictGuardFailed) {
		return fmt.Errorf("%w; use --guard=path instead", err)
	}
	return err
}

// startAsChildWithSyscallWatching starts this binary as a child, which sends a descriptor to watch its calls and becomes the
// command.
func (r *run) startAsChildWithSyscallWatching(ctx context.Context, c *startedCommand, o proc.AttachOptions) error {
	path, err := o.LookPath()
	if err != nil {
		return err
	}
	ours, theirs, err := guard.NewLink()
	if err != nil {
		return fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	words := []string{"exec", "--inside"}
	if o.Network {
		words = append(words, "--own-network")
	}
	o.Args = append(append(words, "--", path), r.Command...)
	o.Path, o.Files = r.Setup.Executable, []*os.File{theirs}
	c.Attached, err = proc.StartAttached(ctx, o)
	theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w; --guard=strict needs user namespaces or root", errStrictGuardFailed, err), ours.Close())
	}
	c.network, err = guard.StartWatching(ours, guard.WatchOptions{
		PID: c.PID(), Log: &r.api.log, OwnFiles: r.ownFiles(), ExpectsReal: r.Setup.Real.Path != "", OwnNetwork: o.Network, NoNetwork: guard.HasOnlyLoopbackInterfaces(),
	})
	if err == nil {
		if c.network.API != nil {
			r.api.serve(ctx, c.network.API, c.network.Proxy)
		}
		err = c.network.StartWaitingCommand()
	}
	if err != nil {
		c.StopGroup(leftoverGrace)
		c.close()
		c.network = nil
		return fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	return nil
}

func (c *startedCommand) close() {
	c.reaper.ReapOnceMoreAndStop()
	c.poller.ScanOnceMoreAndStop()
	if c.network != nil {
		c.network.Close()
	}
}

func (r *run) openTerminal() (*console.Console, proc.AttachOptions, error) {
	cwd, err := r.System.Getwd()
	if err != nil {
		return nil, proc.AttachOptions{}, fmt.Errorf("%w: finding the working directory: %w", errStrictGuardFailed, err)
	}
	c, err := console.Open(console.Options{
		Settings: *r.Terminal, Keys: r.System.Stdin, Display: r.System.Stdout, Clock: systemClock{r.System},
		Environ: r.System.Environ, Secrets: []string{r.apiKey}, Texts: map[string]string{"dir": cwd},
	})
	if err != nil {
		return nil, proc.AttachOptions{}, fmt.Errorf("%w: %w", errStrictGuardFailed, err)
	}
	return c, proc.AttachOptions{Stdin: c.Terminal(), Stdout: c.Terminal(), Stderr: c.Terminal(), OwnTerminal: true}, nil
}

// stopConsoleAndSummarizeScreens restores this program's terminal and returns the screens of the command.
func stopConsoleAndSummarizeScreens(commandConsole *console.Console) (*verdict.Terminal, error) {
	summary, err := commandConsole.Stop()
	seen := &verdict.Terminal{Screens: summary.Screens, States: summary.States, LostKeys: summary.LostKeys}
	for _, d := range summary.Dialogs {
		seen.Dialogs = append(seen.Dialogs, verdict.Dialog{State: d.State, Answer: d.Answer})
	}
	return seen, err
}

// followTerminalSize passes the size of this program's terminal on to c until stop is called.
func (r *run) followTerminalSize(c *console.Console) (stop func()) {
	resizes := process.ResizeSignals()
	if c == nil || !c.NeedsResizeWhenTerminalResizes() || resizes == nil {
		return func() {}
	}
	return process.OnSignals(r.System.Lifetime, func(os.Signal) { c.Resize() }, resizes...)
}
