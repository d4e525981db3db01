package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// shellEnviron is the environment of the commands that the model runs: they can
// tell who runs them (observed with 2.1.329).
func (r *run) shellEnviron() []string {
	env := append(slices.Clone(r.Environ),
		"AI_AGENT=claude-code_"+strings.ReplaceAll(r.Version, ".", "-")+"_agent",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_SESSION_ID="+r.session.ID(),
		"CLAUDE_EFFORT="+r.effort(),
		"CLAUDE_PID="+strconv.Itoa(r.PID),
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
	)
	if r.Executable != "" {
		env = append(env, "CLAUDE_CODE_EXECPATH="+r.Executable)
	}
	return env
}

// shownDirs are the working directories that init names: what only the project's
// files add is not news, nor is what lies inside it unless the host added it.
func (r *run) shownDirs(added []permission.Directory) []string {
	var own, others []settings.Directory
	for _, d := range r.Settings.Permissions.Directories {
		if d.Source == settings.Project || d.Source == settings.Local {
			own = append(own, d)
		} else {
			others = append(others, d)
		}
	}
	hidden, told := r.Found(own), r.Found(others)
	var dirs []string
	for _, d := range added {
		fromProject := d.Source == launch.FromSettings && slices.Contains(hidden, d.Path) && !slices.Contains(told, d.Path)
		if !fromProject && (d.Source == fromSession || !strings.HasPrefix(d.Path+"/", r.CWD+"/")) {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxLinks bounds how many links that lead nowhere are followed in a row.
const maxLinks = 40

// resolveLinks follows the symbolic links of an absolute path as far as it
// exists, those that lead nowhere included: what is written through them comes
// into being there.
func resolveLinks(path string) string { return followLinks(path, maxLinks) }

func followLinks(path string, most int) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(target, rest)
		}
		if to, err := os.Readlink(dir); err == nil && most > 0 {
			if !filepath.IsAbs(to) {
				to = filepath.Join(followLinks(filepath.Dir(dir), most-1), to)
			}
			return followLinks(filepath.Join(to, rest), most-1)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// matchFiles finds what an absolute pattern of the shell matches, and a little
// more: dot files, and any character where the pattern lists some.
func matchFiles(pattern string) []string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']'); {
		case pattern[i] == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		case pattern[i] == '[' && end >= 0:
			b.WriteByte('?')
			i += 2 + end
		case pattern[i] == '[' || pattern[i] == ']':
			b.WriteString(`\` + pattern[i:i+1])
		default:
			b.WriteByte(pattern[i])
		}
	}
	found, err := filepath.Glob(b.String())
	if err != nil {
		return nil // no pattern that Glob reads is malformed
	}
	return found
}

// warnModel says on stderr, once for each, that the real CLI does not know the
// model in force (spec: cli-observed 1). Those of scenarios are made up at will.
func (r *run) warnModel() {
	name := r.current.Model()
	if model.Of(model.Resolve(name)).Known || name == r.Scenario.DefaultModel || slices.Contains(r.modelsNoted, name) {
		return
	}
	r.modelsNoted = append(r.modelsNoted, name)
	note, err := protocol.Marshal(struct {
		Model  string `json:"model"`
		Source string `json:"query_source"`
	}{name, "sdk"})
	if err == nil {
		fmt.Fprintf(r.sys.Stderr, "[claude-code:unrecognized_model] %s\n", note)
	}
}

// socketPath is where the real CLI listens for messages; nobody listens here. A
// repeatable run has no number of its own.
func (r *run) socketPath() string {
	pid := r.PID
	if r.Clock.Repeatable() {
		pid = 1
	}
	return filepath.Join(r.Temp, "cc-socks", strconv.Itoa(pid)+".sock")
}

// sessionError puts the errors of a session that cannot be opened in the real
// CLI's words; a missing conversation keeps its type, because it has a result.
func sessionError(err error) error {
	if used, ok := errors.AsType[*transcript.InUseError](err); ok {
		return process.Verbatimf("Error: %v", used)
	}
	return err
}

func (r *run) openJournal() error {
	if r.Records.Capture == "" {
		return nil
	}
	file, err := os.OpenFile(r.Records.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.warn("opening --capture: " + err.Error())
		return nil
	}
	r.captured.Closer = file
	r.journal = journal.New(journal.Options{W: file, Now: r.Clock.Now, PID: r.PID, SessionID: r.session.ID(), Environ: r.Environ})
	r.journal.Write(r.Records.Run)
	return nil
}

// debugLog is what --debug writes: one line for each thing that happens. The
// lines have the real CLI's form, the texts are our own.
type debugLog struct {
	w   io.WriteCloser
	now func() time.Time
}

// openDebug opens the log where the flags want it: on stderr, in a file, or
// beside the sessions.
func (r *run) openDebug() error {
	if !r.Records.Debug {
		return nil
	}
	path := r.Records.DebugFile
	switch {
	case r.Records.DebugToStderr:
		r.debug = &debugLog{w: unclosed{r.sys.Stderr}, now: r.Clock.Now}
	case path == "" && r.State == "":
		return nil
	case path == "":
		path = filepath.Join(r.State, "debug", r.session.ID()+".txt")
	}
	if r.debug == nil {
		file, err := openLog(path)
		if err != nil {
			return fmt.Errorf("opening the debug log: %w", err)
		}
		r.debug = &debugLog{w: file, now: r.Clock.Now}
	}
	r.debug.printf("session %s in %s, scenario %s", r.session.ID(), r.CWD, cmp.Or(r.Scenario.Name, "without a name"))
	return nil
}

func openLog(path string) (*os.File, error) {
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
