package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/internal/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

const (
	defaultTimeoutMS = 120_000
	maxTimeoutMS     = 600_000
	maxOutput        = 30_000   // characters shown of a command's output
	maxCaptured      = 64 << 20 // bytes kept of it
	previewBytes     = 2000
)

type bashInput struct {
	Command         string  `json:"command"`
	Timeout         *number `json:"timeout"`
	Description     string  `json:"description"`
	RunInBackground bool    `json:"run_in_background"`
}

type bashOutput struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"`
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	NoOutputExpected bool   `json:"noOutputExpected"`
	// CodeMeaning is set when a code other than 0 is no failure.
	CodeMeaning   string `json:"returnCodeInterpretation,omitempty"`
	TaskID        string `json:"backgroundTaskId,omitempty"`
	PersistedPath string `json:"persistedOutputPath,omitempty"`
	PersistedSize int    `json:"persistedOutputSize,omitempty"`
}

func bashTool() tool {
	return tool{
		name:        "Bash",
		description: "Runs a shell command. The working directory stays for the next command.",
		input: object(
			req("command", str("The command")),
			opt("timeout", num("Most milliseconds to run (default 120000, at most 600000)")),
			opt("description", str("What the command does, in a few words")),
			opt("run_in_background", boolean("Do not wait for the command")),
			opt("dangerouslyDisableSandbox", boolean("Run outside the sandbox; there is none here")),
		),
		check: typedCheck(func(_ *Tools, in bashInput) *protocol.ToolResult { return blockSleep(in) }),
		run: func(ctx context.Context, t *Tools, call protocol.ToolUse) protocol.ToolResult {
			return typed(func(ctx context.Context, t *Tools, in bashInput) protocol.ToolResult {
				if in.RunInBackground {
					return t.background(ctx, call, in)
				}
				shown := t.watch(call, in)
				r := bash(ctx, t, in)
				shown.end(ctx, r)
				return r
			})(ctx, t, call)
		},
	}
}

func blockSleep(in bashInput) *protocol.ToolResult {
	rest, n := sleepChain(in)
	if n == 0 {
		return nil
	}
	r := refuse("Blocked: sleep %d followed by: %s. To wait for a condition, use Monitor with an until-loop (e.g. `until <check>; do sleep 2; done`). "+
		"To wait for a command you started, use run_in_background: true. Do not chain shorter sleeps to work around this block.", n, rest)
	return &r
}

// longSleep is the shortest pause, in seconds, that is refused before another
// command.
const longSleep = 25

// sleepChain finds "sleep N; …" with a long N.
func sleepChain(in bashInput) (rest string, seconds int) {
	if in.RunInBackground || !strings.HasPrefix(strings.TrimSpace(in.Command), "sleep ") {
		return "", 0
	}
	script, err := shellcmd.Parse(in.Command)
	if err != nil || script.Opaque || len(script.Commands) < 2 || len(script.Commands[0].Args) != 2 {
		return "", 0
	}
	n, err := strconv.Atoi(script.Commands[0].Args[1])
	if err != nil || n < longSleep {
		return "", 0
	}
	var texts []string
	for _, c := range script.Commands[1:] {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, " "), n
}

func bash(ctx context.Context, t *Tools, in bashInput) protocol.ToolResult {
	if refusal := blockSleep(in); refusal != nil {
		return *refusal
	}
	timeout := t.timeout(in)
	res, cwd, err := t.shell(ctx, in.Command, timeout)
	switch {
	case ctx.Err() != nil:
		return executor.Interrupted()
	case err != nil:
		return fail("The command could not be started: %v", err)
	}
	raw := string(res.Stdout)
	output := trim(raw)
	if res.TimedOut {
		return fail("%s", joinLines("Exit code 143", "Command timed out after "+duration(timeout), cutAt(output, maxOutput)))
	}
	note := t.moveTo(cwd)
	out := bashOutput{NoOutputExpected: silent(in.Command)}
	if note != "" {
		out.Stderr = "\n" + note
	}
	if res.Exit.Code != 0 {
		if out.CodeMeaning = codeMeaning(in.Command, res.Exit.Code); out.CodeMeaning == "" {
			return fail("%s", joinLines(fmt.Sprintf("Exit code %d", res.Exit.Code), cutAt(output, maxOutput), note))
		}
	}
	shown := t.fit(output, raw, &out)
	r := text(joinLines(shown, note), nil)
	if r.Content.Text == "" {
		r.Content.Text = "(Bash completed with no output)"
	}
	r.ExplicitOK, r.Output = true, out
	return r
}

// showAfter is when a command in the foreground begins to be shown as a task.
const showAfter = 3 * time.Second

// watched is a command in the foreground that may become a task to show.
type watched struct {
	timer *time.Timer
	once  sync.Once
	info  task.Info
	start func(task.Info) *task.Task
	task  *task.Task // nil before it is shown
}

// watch begins to look at a command; end must be called. Nil = there is nobody
// to show it to while it runs.
func (t *Tools) watch(call protocol.ToolUse, in bashInput) *watched {
	if t.o.Tasks == nil || !t.o.Tasks.Live() {
		return nil
	}
	w := &watched{info: bashTask(call, in), start: t.o.Tasks.Start}
	w.timer = time.AfterFunc(showAfter, w.show)
	return w
}

func (w *watched) show() { w.once.Do(func() { w.task = w.start(w.info) }) }

func (w *watched) end(ctx context.Context, r protocol.ToolResult) {
	if w == nil || w.timer.Stop() {
		return
	}
	w.show() // waits for the timer's, which is under way
	end := task.End{Status: task.Completed, Summary: w.info.Description}
	switch {
	case ctx.Err() != nil:
		end.Status = task.Killed
	case r.IsError:
		end.Status = task.Failed
	}
	w.task.End(end)
}

// bashTask describes a command as a task.
func bashTask(call protocol.ToolUse, in bashInput) task.Info {
	info := task.Info{Kind: task.Bash, ToolUseID: call.ID, Description: cmp.Or(in.Description, in.Command), Command: in.Command}
	if call.Agent != nil {
		info.ParentID = call.Agent.ID
	}
	return info
}

// background starts a command and does not wait for it. It begins where the
// shell is now and leaves the shell there.
func (t *Tools) background(ctx context.Context, call protocol.ToolUse, in bashInput) protocol.ToolResult {
	if t.o.Tasks == nil {
		return fail("There is no background in this session. Run the command in the foreground, or give the call a result in the scenario.")
	}
	info := bashTask(call, in)
	info.Background = true
	k := t.o.Tasks.Start(info)
	dir := t.Dir()
	t.o.Tasks.Go(ctx, k, func(ctx context.Context) task.End {
		o := proc.RunOptions{Command: t.command(dir), Combined: true, Limit: 1, Tee: k}
		res, err := runShell(ctx, o, in.Command, "/bin/bash")
		if ctx.Err() != nil {
			return task.End{Status: task.Killed, Summary: fmt.Sprintf("Background command %q was stopped", info.Description)}
		}
		return ended(info.Description, res, err)
	})
	where := ""
	if k.OutputFile != "" {
		where = " Output is being written to: " + k.OutputFile + "."
	}
	r := text("Command running in background with ID: "+k.ID+"."+where+
		" You will be notified when it completes. To check interim output, use Read on that file path.", bashOutput{TaskID: k.ID})
	r.ExplicitOK = true
	return r
}

func ended(name string, res proc.Result, err error) task.End {
	head := fmt.Sprintf("Background command %q ", name)
	switch {
	case err != nil:
		return task.End{Status: task.Failed, Summary: head + "could not be started: " + err.Error()}
	case res.Exit.Code != 0:
		return task.End{Status: task.Failed, Summary: fmt.Sprintf("%sfailed with exit code %d", head, res.Exit.Code)}
	}
	return task.End{Status: task.Completed, Summary: head + "completed (exit code 0)"}
}

func (t *Tools) timeout(in bashInput) time.Duration {
	ms := cmp.Or(t.milliseconds("BASH_DEFAULT_TIMEOUT_MS"), defaultTimeoutMS)
	if in.Timeout != nil && *in.Timeout > 0 {
		ms = int(*in.Timeout)
	}
	most := cmp.Or(t.milliseconds("BASH_MAX_TIMEOUT_MS"), maxTimeoutMS)
	return time.Duration(min(ms, most)) * time.Millisecond
}

func (t *Tools) milliseconds(key string) int {
	n, err := strconv.Atoi(t.env(key))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// cwdFD is where a shell leaves the directory it ended in: above what commands
// use by their own numbers, below what bash takes for process substitution.
const cwdFD = 40

// wrapper runs $1 as if it were the script and leaves the final directory in
// the file $2. It is one line: messages of the shell count lines from it.
const wrapper = `__claudeless_cwd=$2 __claudeless_cmd=$1; ` +
	`trap 'pwd -P >"$__claudeless_cwd" 2>/dev/null' EXIT; set --; eval "$__claudeless_cmd"`

// shell runs a command and returns the directory it ended in, "" = not known.
func (t *Tools) shell(ctx context.Context, command string, timeout time.Duration) (res proc.Result, cwd string, err error) {
	dir := t.Dir()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = t.o.CWD // somebody removed it
	}
	o := proc.RunOptions{Command: t.command(dir), Combined: true, Limit: maxCaptured, Timeout: timeout, Aside: cwdFD}
	if res, err = runShell(ctx, o, wrapper, "/bin/bash", command, fmt.Sprintf("/dev/fd/%d", cwdFD)); err != nil {
		return res, "", err
	}
	return res, strings.TrimSuffix(string(res.Aside), "\n"), nil // empty when the command replaced the shell
}

// command is a shell to come, in a directory.
func (t *Tools) command(dir string) proc.Command {
	return proc.Command{Env: append(slices.Clone(t.o.Environ), "CLAUDECODE=1", "GIT_EDITOR=true", "PWD="+dir), Dir: dir}
}

// runShell runs "sh -c script args…" with the first shell there is.
func runShell(ctx context.Context, o proc.RunOptions, script string, args ...string) (res proc.Result, err error) {
	for _, sh := range []string{"bash", "/bin/bash", "sh", "/bin/sh"} {
		o.Path, o.Args = sh, append([]string{"-c", script}, args...)
		if res, err = proc.Run(ctx, o); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return res, err
}

// moveTo takes over the directory a command ended in, if it is one of the
// session's; else the shell is put back and the note says so.
func (t *Tools) moveTo(dir string) (note string) {
	if dir == "" {
		return ""
	}
	for _, root := range append([]string{t.o.CWD}, t.o.AdditionalDirs...) {
		for _, base := range []string{root, resolved(root)} {
			if rel, err := filepath.Rel(base, dir); err == nil && filepath.IsLocal(rel) {
				t.mu.Lock()
				t.cwd = filepath.Join(root, rel)
				t.mu.Unlock()
				return ""
			}
		}
	}
	t.mu.Lock()
	t.cwd = t.o.CWD
	t.mu.Unlock()
	return "Shell cwd was reset to " + t.o.CWD
}

func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// fit sets Stdout and returns what the model sees of it: output that is too
// large is kept in a file and shown as a preview.
func (t *Tools) fit(output, raw string, out *bashOutput) string {
	out.Stdout = output
	if len(output) <= maxOutput {
		return output
	}
	out.Stdout = cutAt(output, maxOutput)
	if t.o.OutputDir == "" {
		return out.Stdout + fmt.Sprintf("\n\n... [%d lines truncated] ...", strings.Count(output[len(out.Stdout):], "\n")+1)
	}
	path := filepath.Join(t.o.OutputDir, task.ID(task.Bash, t.newName())+".txt")
	if err := os.MkdirAll(t.o.OutputDir, 0o755); err != nil {
		return out.Stdout + "\n\n[the rest could not be kept: " + err.Error() + "]"
	}
	if err := os.WriteFile(path, []byte(raw), 0o644); err != nil {
		return out.Stdout + "\n\n[the rest could not be kept: " + err.Error() + "]"
	}
	out.PersistedPath, out.PersistedSize = path, len(raw)
	preview := cutAt(output, previewBytes)
	if i := strings.LastIndexByte(preview, '\n'); i > previewBytes/2 {
		preview = preview[:i]
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%s). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>",
		size(len(output)), path, preview)
}

// cutAt keeps the first n bytes and no half character.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// trim drops empty lines before the output and all space after it.
func trim(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

func joinLines(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
}

// duration words a time-out: 1s, 2m 0s, 1h 0m 0s.
func duration(d time.Duration) string {
	s := int(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh %dm %ds", s/3600, s/60%60, s%60)
}

// silent says that the command is not expected to print anything.
func silent(command string) bool {
	script, err := shellcmd.Parse(command)
	if err != nil || len(script.Commands) == 0 {
		return false
	}
	return !slices.ContainsFunc(script.Commands, func(c shellcmd.Command) bool {
		switch c.Name() {
		case "mv", "cp", "rm", "mkdir", "rmdir", "chmod", "chown", "chgrp", "touch", "ln", "cd", "export", "unset", "wait":
			return false
		}
		return true
	})
}

// codeMeaning explains codes that are answers and not failures: those of the
// command that ran last.
func codeMeaning(command string, code int) string {
	if code != 1 || strings.ContainsAny(command, "`") || strings.Contains(command, "$(") || strings.Contains(command, "<(") {
		return ""
	}
	script, err := shellcmd.Parse(command)
	if err != nil || len(script.Commands) == 0 {
		return ""
	}
	switch script.Commands[len(script.Commands)-1].Name() {
	case "grep", "rg":
		return "No matches found"
	case "find":
		return "Some directories were inaccessible"
	case "diff":
		return "Files differ"
	case "test", "[":
		return "Condition is false"
	}
	return ""
}
