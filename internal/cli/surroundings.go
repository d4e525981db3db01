package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// locate finds the working and the state directory (design: state directory).
func (r *run) locate() error {
	cwd, err := r.f.Dir(r.sys)
	if err != nil {
		return err
	}
	r.cwd = cwd
	for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := r.sys.Getenv(name); dir != "" {
			r.dir, err = r.f.Abs(r.sys, dir)
			return err
		}
	}
	if home := r.sys.Getenv("HOME"); home != "" {
		r.dir = filepath.Join(home, ".claudeless")
	}
	return nil
}

// environ is the environment of the programs we start: ours, with the way back
// to this very binary.
func (r *run) environ() []string {
	env := slices.Clone(r.sys.Environ)
	if r.sys.Getenv("CLAUDELESS_BIN") == "" {
		if bin, err := r.sys.Executable(); err == nil {
			env = append(env, "CLAUDELESS_BIN="+bin)
		}
	}
	return append(env, "CLAUDE_CODE_ENTRYPOINT="+r.entrypoint())
}

// shellEnviron is the environment of the commands that the model runs: they can
// tell who runs them (observed with 2.1.329).
func (r *run) shellEnviron() []string {
	env := append(r.environ(),
		"AI_AGENT=claude-code_"+strings.ReplaceAll(r.version(), ".", "-")+"_agent",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_SESSION_ID="+r.session.ID(),
		"CLAUDE_EFFORT="+r.effort(),
		"CLAUDE_PID="+strconv.Itoa(os.Getpid()),
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
	)
	if exe, err := r.sys.Executable(); err == nil {
		env = append(env, "CLAUDE_CODE_EXECPATH="+exe)
	}
	return env
}

func (r *run) version() string {
	for _, v := range []string{r.f.ClaudeVersion, r.sys.Getenv("CLAUDELESS_CLAUDE_VERSION"), r.scenario.ClaudeVersion} {
		if v != "" {
			return v
		}
	}
	return persona.Version
}

func (r *run) entrypoint() string {
	if e := r.sys.Getenv("CLAUDE_CODE_ENTRYPOINT"); e != "" {
		return e
	}
	return "sdk-cli"
}

// workspace lists the working directories beside the first at start: those of
// the settings, then those of the flags, as far as there are any.
func (r *run) workspace() []permission.Directory {
	var dirs []permission.Directory
	for _, d := range r.found(r.settings.Permissions.Directories) {
		dirs = append(dirs, permission.Directory{Path: d, Source: fromSettings})
	}
	for _, d := range r.f.AddDirs {
		if abs, ok := r.directory(d); ok && !slices.ContainsFunc(dirs, func(d permission.Directory) bool { return d.Path == abs }) {
			dirs = append(dirs, permission.Directory{Path: abs, Source: "cliArg"})
		}
	}
	return dirs
}

// found are the directories of the settings that there are.
func (r *run) found(given []settings.Directory) []string {
	var dirs []string
	for _, d := range given {
		if abs, ok := r.directory(d.Path); ok && !slices.Contains(dirs, abs) {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// directory makes the path of a directory absolute and tells whether there is
// one.
func (r *run) directory(path string) (string, bool) {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		path = filepath.Join(r.sys.Getenv("HOME"), rest)
	}
	abs, err := r.f.Abs(r.sys, path)
	return abs, err == nil && isDir(abs)
}

// shownDirs are the working directories that init names: what only the project's
// files add is not news, nor is what lies inside it unless the host added it.
func (r *run) shownDirs(added []permission.Directory) []string {
	var own, others []settings.Directory
	for _, d := range r.settings.Permissions.Directories {
		if d.Source == settings.Project || d.Source == settings.Local {
			own = append(own, d)
		} else {
			others = append(others, d)
		}
	}
	hidden, told := r.found(own), r.found(others)
	var dirs []string
	for _, d := range added {
		fromProject := d.Source == fromSettings && slices.Contains(hidden, d.Path) && !slices.Contains(told, d.Path)
		if !fromProject && (d.Source == fromSession || !strings.HasPrefix(d.Path+"/", r.cwd+"/")) {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

func (r *run) addDirs() []string { return paths(r.workspace()) }

func paths(dirs []permission.Directory) []string {
	list := []string{}
	for _, d := range dirs {
		list = append(list, d.Path)
	}
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// resolveLinks follows the symbolic links of an absolute path as far as it
// exists.
func resolveLinks(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(target, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// millis reads a duration in milliseconds from the environment.
func (r *run) millis(name string, otherwise time.Duration) time.Duration {
	if n := r.number(name); n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	return otherwise
}

func (r *run) number(name string) int {
	n, err := strconv.Atoi(r.sys.Getenv(name))
	if err != nil {
		return 0
	}
	return n
}

// retries is how often a failed request is made again: -1 for none.
func (r *run) retries() int {
	switch value := r.sys.Getenv("CLAUDE_CODE_MAX_RETRIES"); value {
	case "":
		return 0
	case "0":
		return -1
	default:
		return r.number("CLAUDE_CODE_MAX_RETRIES")
	}
}

// retryScale stretches the waits between retries: CLAUDELESS_RETRY_SCALE, 1 as
// long as the real CLI waits. Without it a run does not wait at all.
func (r *run) retryScale() float64 {
	var scale float64
	if _, err := fmt.Sscanf(r.sys.Getenv("CLAUDELESS_RETRY_SCALE"), "%g", &scale); err != nil || scale < 0 {
		return 0
	}
	return scale
}

// timeout is scenario > environment > otherwise.
func (r *run) timeout(scenario *int, name string, otherwise time.Duration) time.Duration {
	if scenario != nil {
		return time.Duration(*scenario) * time.Millisecond
	}
	return r.millis(name, otherwise)
}

func (r *run) responseDelay() time.Duration {
	return r.timeout(r.scenario.Timeouts.ResponseDelayMS, "CLAUDELESS_RESPONSE_DELAY_MS", 0)
}

// toolTimeout bounds MCP calls; less than a second of MCP_TOOL_TIMEOUT counts as one (spec: mcp 4.1).
func (r *run) toolTimeout() time.Duration {
	if d := r.millis("MCP_TOOL_TIMEOUT", 0); d > 0 {
		return max(d, time.Second)
	}
	return r.timeout(r.scenario.Timeouts.MCPTimeoutMS, "CLAUDELESS_MCP_TIMEOUT_MS", 0)
}

func (r *run) modelName() string {
	return r.aliased(cmp.Or(r.f.Model, r.sys.Getenv("ANTHROPIC_MODEL"), r.settings.Model, r.scenario.DefaultModel))
}

// aliased puts the model that the environment has for a short name in its
// place; no name at all is the default model.
func (r *run) aliased(name string) string {
	switch name {
	case "", "default":
		return cmp.Or(r.sys.Getenv("ANTHROPIC_DEFAULT_MODEL"), model.Default)
	case "opus", "sonnet", "haiku":
		return cmp.Or(r.sys.Getenv("ANTHROPIC_DEFAULT_"+strings.ToUpper(name)+"_MODEL"), name)
	}
	return name
}

// warnModel says on stderr, once for each, that the real CLI does not know the
// model in force (spec: cli-observed 1). Those of scenarios are made up at will.
func (r *run) warnModel() {
	name := r.sim.ModelName()
	if model.Of(model.Resolve(name)).Known || name == r.scenario.DefaultModel || slices.Contains(r.modelsNoted, name) {
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

// configError is a .claude.json that cannot be read as JSON.
type configError struct{ path, backup, reason string }

func (e *configError) Error() string {
	text := fmt.Sprintf("The configuration file %s is not valid JSON: %s.", e.path, e.reason)
	if e.backup != "" {
		text += " It has been kept as " + e.backup + "."
	}
	return text
}

// checkConfig refuses a broken .claude.json, which ends a run of the real CLI
// before it starts, and keeps a copy of it (spec: cli-observed 8).
func (r *run) checkConfig() error {
	path := r.store().File
	raw, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	broken := json.Unmarshal(raw, &object)
	if broken == nil {
		return nil
	}
	bad := &configError{path: path, reason: broken.Error()}
	dir := filepath.Join(r.dir, "backups")
	backup := filepath.Join(dir, fmt.Sprintf("%s.corrupted.%d", filepath.Base(path), r.clock.Now().UnixMilli()))
	if os.MkdirAll(dir, 0o700) == nil && os.WriteFile(backup, raw, 0o600) == nil {
		bad.backup = backup
	}
	return bad
}

// socketPath is where the real CLI listens for messages; nobody listens here. A
// repeatable run has no number of its own.
func (r *run) socketPath() string {
	dir := r.sys.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	pid := os.Getpid()
	if r.clock.Repeatable() {
		pid = 1
	}
	return filepath.Join(dir, "cc-socks", strconv.Itoa(pid)+".sock")
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
	path := r.f.Capture
	if path == "" {
		return nil
	}
	path, err := r.f.Abs(r.sys, path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.warn("opening --capture: " + err.Error())
		return nil
	}
	r.captured = file
	r.journal = journal.New(journal.Options{W: file, Now: r.clock.Now, PID: os.Getpid(), SessionID: r.session.ID(), Environ: r.sys.Environ})
	r.journal.Start(r.journalRun())
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
	path, err := r.f.Abs(r.sys, path)
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
