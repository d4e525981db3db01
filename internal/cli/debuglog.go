package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// debugLog is what --debug writes: one line for each thing that happens. The
// lines have the real CLI's form, the texts are our own.
type debugLog struct {
	w   io.WriteCloser
	now func() time.Time
}

// openDebug opens the log where the flags want it: on stderr, in a file, or
// beside the sessions.
func (r *run) openDebug() error {
	if !r.f.Debug && r.f.DebugFile == "" && !r.f.DebugToStderr {
		return nil
	}
	path := r.f.DebugFile
	switch {
	case r.f.DebugToStderr:
		r.debug = &debugLog{w: unclosed{r.sys.Stderr}, now: r.clock.Now}
	case path == "" && r.dir == "":
		return nil
	case path == "":
		path = filepath.Join(r.dir, "debug", r.session.ID()+".txt")
	}
	if r.debug == nil {
		file, err := r.openLog(path)
		if err != nil {
			return fmt.Errorf("opening the debug log: %w", err)
		}
		r.debug = &debugLog{w: file, now: r.clock.Now}
	}
	r.debug.printf("session %s in %s, scenario %s", r.session.ID(), r.cwd, cmp.Or(r.scenario.Name, "without a name"))
	return nil
}

func (r *run) openLog(path string) (*os.File, error) {
	path, err := r.sys.abs(r.f, path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// unclosed leaves a stream open that belongs to others.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (l *debugLog) printf(format string, args ...any) {
	if l == nil {
		return
	}
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\\n")
	// A log that cannot be written is no reason to fail.
	_, _ = fmt.Fprintf(l.w, "%s [DEBUG] %s\n", l.now().UTC().Format("2006-01-02T15:04:05.000Z"), text)
}

func (l *debugLog) close() {
	if l != nil {
		_ = l.w.Close() // as above
	}
}

// event writes the line of one event; most events have none.
func (l *debugLog) event(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Prompted:
		l.printf("prompt %s from %s: %q", ev.UUID, ev.Source, ev.Content.Plain())
	case *protocol.Init:
		l.printf("turn begins: model %s, mode %s, %d tools", ev.Model, ev.PermissionMode, len(ev.Tools))
	case *protocol.Matched:
		l.printf("answered by %s %s:%d", cmp.Or(ev.Rule, "no rule"), ev.File, ev.Line)
	case *protocol.ToolRan:
		l.printf("%s %s took %s, error %t", ev.Use.Name, ev.Use.ID, ev.Duration, ev.Result.IsError)
	case *protocol.CLIRetry:
		l.printf("request failed with %d, attempt %d: %s", ev.Status, ev.Attempt, ev.Message)
	case *protocol.Warning:
		l.printf("warning: %s", ev.Text)
	case *protocol.System:
		l.printf("system/%s", ev.Subtype)
	case *protocol.Result:
		l.printf("turn ends: %s, %s, %d turns", ev.Subtype, ev.TerminalReason, ev.NumTurns)
	}
}
