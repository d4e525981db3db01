package procio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
)

// RelayRealClaude records the start of the real claude in the journal, runs it with the command line argv, and returns
// its exit code. Normally the real claude replaces this process. This process stays the parent of claude in three
// cases: it has to apply a fault to the output, signals and exit of claude, it has to record the exit
// (FaultStayParentToRecordExit), or the system cannot replace a process.
func RelayRealClaude(ctx context.Context, s *process.System, fault string, argv []string) (int, error) {
	f := FaultByName(fault)
	if f == nil && fault != "" && fault != FaultNone && fault != FaultStayParentToRecordExit || len(argv) == 0 {
		return 0, fmt.Errorf("cannot start the real claude: no command was given, or the fault %q is unknown", fault)
	}
	if f != nil && f.Interface != "cli" {
		f = nil // faults of the API are applied by its server
	}
	as := *s
	as.Args = argv
	w := &supervisor{sys: &as, path: s.Getenv("CLAUDELESS_CAPTURE"), realCacheDir: realClaudeLogCacheDir(s)}
	w.openJournal(nil, f)
	if w.file != nil {
		defer w.file.Close()
	}
	if f == nil && fault != FaultStayParentToRecordExit {
		if err := proc.ReplaceProcess(proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}); !errors.Is(err, errors.ErrUnsupported) {
			return 0, err
		}
	}
	e := New(Options{System: s, Journal: w.journal, Fault: f})
	if f == nil {
		return runForeground(ctx, s, e, argv)
	}
	return relayThroughWrapper(ctx, s, e, argv)
}

// realClaudeLogCacheDir returns the directory in which a real claude with this environment keeps logs.
func realClaudeLogCacheDir(s *process.System) string {
	const name = "claude-cli-nodejs"
	switch home := s.Getenv("HOME"); runtime.GOOS {
	case "windows":
		return filepath.Join(s.Getenv("LOCALAPPDATA"), name, "Cache")
	case "darwin":
		return filepath.Join(home, "Library", "Caches", name)
	default:
		return filepath.Join(cmp.Or(s.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), name)
	}
}

// runForeground runs the command as a child with the streams of this process, and returns its exit code. If a signal
// ended the child, this process kills itself with the same signal.
func runForeground(ctx context.Context, s *process.System, e *Wrapper, argv []string) (int, error) {
	a, err := proc.StartAttached(ctx, proc.AttachOptions{
		Command: proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Terminal: s.StdinIsTTY,
	})
	if err != nil {
		return 0, err
	}
	inner := e.System()
	exit := waitWithSignals(a, inner)
	if exit.Signal != "" && inner.Lifetime != nil {
		if err := inner.Lifetime.Kill(syscall.Signal(exit.Code - 128)); err != nil {
			return exit.Code, err
		}
	}
	return e.RecordExit(exit.Code, ""), nil
}

// waitWithSignals forwards signals to the child until it exits, and then kills the rest of its process group.
func waitWithSignals(a *proc.Attached, s *process.System) proc.Exit {
	stop := process.OnSignals(s.Lifetime, func(sig os.Signal) {
		if sig, ok := sig.(syscall.Signal); ok {
			a.Signal(sig)
		}
	}, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	exit := a.Exit()
	stop()
	a.StopGroup(0)
	return exit
}

func relayThroughWrapper(ctx context.Context, s *process.System, e *Wrapper, argv []string) (int, error) {
	inner := e.System()
	from, to, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer from.Close()
	// stderr also needs a pipe: node makes its streams non-blocking, which also affects other users of the open file.
	loud := struct{ io.Writer }{s.Stderr}
	a, err := proc.StartAttached(ctx, proc.AttachOptions{
		Command: proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}, Stdin: s.Stdin, Stdout: to, Stderr: loud, Terminal: s.StdinIsTTY,
	})
	if err := errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	copied := make(chan struct{})
	go func() { // returns when all writers have closed the pipe
		defer close(copied)
		_ = copyLines(inner.Stdout, from) // the reader does not read the rest
	}()
	exit := waitWithSignals(a, inner)
	<-copied
	return e.RecordExit(exit.Code, ""), nil
}

// copyLines copies JSON lines one by one, and other output in one piece, because the wrapper examines each write.
func copyLines(to io.Writer, from io.Reader) error {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		kept = append(kept, buf[:n]...)
		for bytes.HasPrefix(kept, []byte("{")) {
			end := bytes.IndexByte(kept, '\n') + 1
			if end == 0 {
				break
			}
			if _, err := to.Write(kept[:end]); err != nil {
				return err
			}
			kept = kept[end:]
		}
		if err != nil {
			if len(kept) > 0 {
				_, err = to.Write(kept)
			}
			return err
		}
	}
}
