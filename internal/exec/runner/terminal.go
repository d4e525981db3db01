package runner

import (
	"fmt"
	"os"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
)

// openTerminal makes the terminal of the command and says how the command is started in it.
func (r *run) openTerminal() (*console.Console, proc.AttachOptions, error) {
	cwd, err := r.System.Getwd()
	if err != nil {
		return nil, proc.AttachOptions{}, fmt.Errorf("%w: finding the working directory: %w", errSetUp, err)
	}
	o := console.Options{
		Settings: *r.Terminal, Display: r.System.Stdout, Clock: faultRun{r.System},
		Environ: r.System.Environ, Secrets: []string{r.key}, Texts: map[string]string{"dir": cwd},
	}
	if r.System.Stdin != nil {
		o.Keys = r.System.Stdin
	}
	c, err := console.Open(o)
	if err != nil {
		return nil, proc.AttachOptions{}, fmt.Errorf("%w: %w", errSetUp, err)
	}
	return c, proc.AttachOptions{Stdin: c.Terminal(), Stdout: c.Terminal(), Stderr: c.Terminal(), OwnTerminal: true}, nil
}

// closeTerminal gives this program's terminal back and returns what the command has shown.
func closeTerminal(c *console.Console) (*verdict.Terminal, error) {
	summary, err := c.Stop()
	seen := &verdict.Terminal{Screens: summary.Screens, States: summary.States, LostKeys: summary.LostKeys}
	for _, d := range summary.Dialogs {
		seen.Dialogs = append(seen.Dialogs, verdict.Dialog{State: d.State, Answer: d.Answer})
	}
	return seen, err
}

// followSize passes the size of this program's terminal on until stop is called.
func (r *run) followSize(c *console.Console) (stop func()) {
	if c == nil || !c.Follows() || r.System.Lifetime == nil {
		return func() {}
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	unsubscribe := r.System.Notify(signals, resizeSignal)
	go func() { // ends when done is closed
		for {
			select {
			case <-signals:
				c.Resize()
			case <-done:
				return
			}
		}
	}()
	return func() { unsubscribe(); close(done) }
}
