package runner

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
	"github.com/claudeless/claudeless/internal/screens/pty"
	"github.com/claudeless/claudeless/internal/screens/recording"
)

// Terminal is a pseudo-terminal for the command.
type Terminal struct {
	// Size is its size; the zero value is that of this program's terminal, which it follows, or else 110x36.
	Size pty.Size
	// Screens is the directory that receives the screens; empty = none are kept.
	Screens string
}

// session is a terminal in which the command runs.
type session struct {
	pair     pty.Pair
	recorder *recording.Recorder
	console  *console.Console
	resizes  func() // stops following the size; nil = not following
}

// openTerminal makes the terminal of the command.
func (r *run) openTerminal() (*session, error) {
	size, follows := r.Terminal.Size, false
	if size == (pty.Size{}) {
		size = pty.Size{Cols: 110, Rows: 36}
		if file, ok := r.System.Stdin.(*os.File); ok && r.System.StdinIsTTY {
			if own, ok := pty.SizeOf(file); ok {
				size, follows = pty.Size{Cols: min(own.Cols, pty.MaxCols), Rows: min(own.Rows, pty.MaxRows)}, true
			}
		}
	}
	cwd, err := r.System.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	s := &session{}
	s.recorder, err = recording.New(recording.Options{
		Cols: size.Cols, Rows: size.Rows, Now: r.System.Now, Dir: r.Terminal.Screens, Environ: r.System.Environ, Secrets: []string{r.key},
		Texts: map[string]string{"dir": cwd},
	})
	if err != nil {
		return nil, err
	}
	if s.pair, err = pty.Open(size); err != nil {
		_, closed := s.recorder.Close()
		return nil, errors.Join(err, closed)
	}
	if follows && r.System.Lifetime != nil {
		s.resizes = func() {}
	}
	return s, nil
}

// attach returns how the command is started in the terminal.
func (s *session) attach() proc.AttachOptions {
	return proc.AttachOptions{Stdin: s.pair.Terminal, Stdout: s.pair.Terminal, Stderr: s.pair.Terminal, OwnTerminal: true}
}

// connect passes keys and output through from now on.
func (s *session) connect(r *run) error {
	var err error
	var keys io.Reader
	if r.System.Stdin != nil {
		keys = r.System.Stdin
	}
	s.console, err = console.Start(console.Options{Pair: s.pair, Keys: keys, Display: r.System.Stdout, Watcher: s.recorder})
	if err != nil {
		return fmt.Errorf("passing the terminal through: %w", err)
	}
	_ = s.pair.Terminal.Close() // the command has its own
	if s.resizes != nil {
		s.follow(r)
	}
	return nil
}

// follow passes the size of this program's terminal on when it changes.
func (s *session) follow(r *run) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	unsubscribe := r.System.Notify(signals, resizeSignal)
	go func() { // ends when done is closed
		for {
			select {
			case <-signals:
				s.console.Resize()
			case <-done:
				return
			}
		}
	}()
	s.resizes = func() { unsubscribe(); close(done) }
}

// close gives this program's terminal back and returns what was seen.
func (s *session) close() (*verdict.Terminal, error) {
	var err error
	if s.console == nil {
		err = s.pair.Close()
	} else {
		if s.resizes != nil {
			s.resizes()
		}
		err = s.console.Stop(s.recorder.Screen())
	}
	summary, closed := s.recorder.Close()
	seen := &verdict.Terminal{Screens: summary.Screens, States: summary.States, LostKeys: summary.LostKeys}
	for _, d := range summary.Dialogs {
		seen.Dialogs = append(seen.Dialogs, verdict.Dialog{State: d.State, Answer: d.Answer})
	}
	return seen, errors.Join(err, closed)
}
