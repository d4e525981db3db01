package builtin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

const (
	defaultTimeoutMS = 120_000
	maxTimeoutMS     = 600_000
	// The same in the background.
	defaultBehindMS = 600_000
	maxBehindMS     = 7_200_000
	maxOutput       = 30_000   // characters shown of a command's output
	maxCaptured     = 64 << 20 // bytes kept of it
	previewBytes    = 2000
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
	TimedOutMS    int    `json:"timedOutAfterMs,omitempty"`
	CWDHint       string `json:"backgroundCwdHint,omitempty"`
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
		run: func(ctx context.Context, t *Tools, call protocol.ToolUse) executor.Result {
			return typed(func(ctx context.Context, t *Tools, in bashInput) protocol.ToolResult {
				if refusal := blockSleep(in); refusal != nil {
					return *refusal
				}
				r := &running{t: t, in: in, info: bashTask(call, in), limit: t.timeout(in)}
				if in.RunInBackground {
					return r.background(ctx)
				}
				return r.foreground(ctx)
			})(ctx, t, call)
		},
	}
}

func blockSleep(in bashInput) *protocol.ToolResult {
	if in.RunInBackground {
		return nil
	}
	what := shell.LongPause(in.Command)
	if what == "" {
		return nil
	}
	r := refuse("Blocked: %s. To wait for a condition, use Monitor with an until-loop (e.g. `until <check>; do sleep 2; done`). "+
		"To wait for a command you started, use run_in_background: true. Do not chain shorter sleeps to work around this block.", what)
	return &r
}

// running is a command that a call of Bash has started.
type running struct {
	t     *Tools
	in    bashInput
	info  task.Info
	limit time.Duration
	cmd   *shell.Command
	done  <-chan struct{} // closed at the end of cmd
	shown *task.Task      // nil = hosts do not see it as a task
}

// bashTask describes a command as a task.
func bashTask(call protocol.ToolUse, in bashInput) task.Info {
	info := task.Info{Kind: task.Bash, ToolUseID: call.ID, Description: cmp.Or(in.Description, in.Command), Command: in.Command}
	if call.Agent != nil {
		info.ParentID = call.Agent.ID
	}
	return info
}

// start begins the command where the shell is now. Its output goes where that
// of a task does, since it may become one.
func (r *running) start(ctx context.Context) (err error) {
	output := ""
	if r.t.o.Tasks != nil {
		r.info.ID, output = r.t.o.Tasks.Reserve(task.Bash)
	}
	if r.cmd, err = r.t.shell.Start(ctx, r.in.Command, output); err != nil {
		return err
	}
	r.done = r.cmd.Done()
	return nil
}

// foreground runs the command and waits for it, though not for ever.
func (r *running) foreground(ctx context.Context) protocol.ToolResult {
	if err := r.start(ctx); err != nil {
		if ctx.Err() != nil {
			return executor.Interrupted()
		}
		return fail("The command could not be started: %v", err)
	}
	switch r.wait(ctx) {
	case finished:
		result := r.result(r.cmd.End(), bashOutput{})
		r.close(task.Completed, result)
		return result
	case interrupted:
		r.drop()
		r.close(task.Killed, protocol.ToolResult{})
		return executor.Interrupted()
	default:
		if r.mayLeave() {
			return r.leave(ctx)
		}
		output := r.drop()
		result := fail("%s", joinLines("Exit code 143", "Command timed out after "+duration(r.limit), cutAt(trim(output), maxOutput)))
		r.close(task.Completed, result)
		return result
	}
}

// outcome is how the waiting for a command ended.
type outcome int

const (
	finished outcome = iota
	interrupted
	timedOut
)

// showAfter is when a command in the foreground begins to be shown as a task.
const showAfter = 3 * time.Second

// wait waits for the end of the command, of its time or of ctx. Hosts that see
// events as they come see a task while it lasts.
func (r *running) wait(ctx context.Context) outcome {
	limit, show := time.NewTimer(r.limit), time.NewTimer(showAfter)
	defer limit.Stop()
	defer show.Stop()
	for {
		select {
		case <-r.done:
			return finished
		case <-ctx.Done():
			return interrupted
		case <-limit.C:
			return timedOut
		case <-show.C:
			if r.t.o.Tasks != nil && r.t.o.Tasks.Live() {
				r.shown = r.t.o.Tasks.Start(r.info)
			}
		}
	}
}

// close ends the task that shows a command in the foreground.
func (r *running) close(status task.Status, result protocol.ToolResult) {
	if r.shown == nil {
		return
	}
	if result.IsError {
		status = task.Failed
	}
	r.shown.End(task.End{Status: status, Summary: r.info.Description})
}

// drop stops the command and returns what it has printed.
func (r *running) drop() string {
	r.cmd.Stop()
	r.cmd.End()
	defer r.cmd.Discard()
	return r.cmd.Output(maxCaptured)
}

// result is what a command that ended with a code has to say; out holds what is
// known already.
func (r *running) result(code int, out bashOutput) protocol.ToolResult {
	raw := r.cmd.Output(maxCaptured)
	if out.TaskID == "" {
		r.cmd.Discard()
	} else {
		r.cmd.Close()
	}
	output, note := trim(raw), ""
	if out.TaskID == "" && r.cmd.Follow() {
		note = "Shell cwd was reset to " + r.t.Dir()
		out.Stderr = "\n" + note
	}
	out.NoOutputExpected = shell.Silent(r.in.Command)
	if code != 0 {
		if out.CodeMeaning = shell.CodeMeaning(r.in.Command, code); out.CodeMeaning == "" {
			return fail("%s", joinLines(fmt.Sprintf("Exit code %d", code), cutAt(output, maxOutput), note))
		}
	}
	if m := dataImage().FindStringSubmatch(output); m != nil {
		return imageResult(m[1], m[2], output, out)
	}
	where := ""
	if out.TaskID != "" {
		where = r.where("Command running in background with ID: "+out.TaskID+".", "")
	}
	shown := text(cmp.Or(joinLines(r.t.fit(output, raw, &out), note, where), noOutput), nil)
	shown.ExplicitOK, shown.Output = true, out
	if file := shell.Shows(r.in.Command); file != "" {
		r.t.sawWhole(file, raw)
	}
	return shown
}

// sawWhole notes that a command has shown a file, if that is what it printed.
func (t *Tools) sawWhole(file, printed string) {
	path := t.path(file)
	if data, err := readRegular(path); err == nil && len(data) <= maxOutput && string(data) == printed {
		t.know(path, printed)
	}
}

// noOutput stands for the output of a command that wrote nothing.
const noOutput = "(Bash completed with no output)"

// Rewrite is what the model reads of an output that somebody else puts in place
// of a tool's own; false = it is not of the tool's form, or the tool has none
// that is known. Bash has.
func Rewrite(tool string, output json.RawMessage) (protocol.Content, bool) {
	var out struct {
		Stdout, Stderr *string
		Interrupted    *bool
	}
	if tool != "Bash" || json.Unmarshal(output, &out) != nil || out.Stdout == nil || out.Stderr == nil || out.Interrupted == nil {
		return protocol.Content{}, false
	}
	return protocol.Content{Text: cmp.Or(joinLines(*out.Stdout, *out.Stderr), noOutput)}, true
}

// dataImage matches an output that is a picture.
var dataImage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^data:(image/[A-Za-z0-9.+_-]+);base64,([A-Za-z0-9+/=]+)$`)
})

func imageResult(kind, encoded, output string, out bashOutput) protocol.ToolResult {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || sizeOf(data) == nil {
		return fail("Unable to resize image — image processing is unavailable and dimensions could not be read from the file header. " +
			"Please convert the image to PNG, JPEG, GIF, or WebP.")
	}
	out.Stdout, out.IsImage = output, true
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Image(kind, encoded)}}, Output: out}
}

// mayLeave tells whether a command that takes too long goes on in the
// background. One that begins with a pause has nothing to go on with.
func (r *running) mayLeave() bool {
	return r.t.o.Tasks != nil && r.t.env(noBackground) == "" && !shell.Pauses(r.in.Command)
}

// noBackground is the variable that keeps commands in the foreground.
const noBackground = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"

// answerAfter is how long a call lasts at least whose command is moved to the
// background: it may be the end of the command that it tells.
const answerAfter = 2 * time.Second

// leave moves the command to the background.
func (r *running) leave(ctx context.Context) protocol.ToolResult {
	if r.shown == nil {
		r.info.Background = true
		r.shown = r.t.o.Tasks.Start(r.info)
	} else {
		r.shown.Detach()
	}
	out := bashOutput{TaskID: r.info.ID}
	if r.endsBefore(ctx, answerAfter-r.limit) {
		code := r.cmd.End()
		result, end := r.result(code, out), r.ended(code)
		end.Told = true
		r.shown.End(end)
		return result
	}
	raw := r.cmd.Output(maxCaptured) // the task closes it
	r.t.o.Tasks.Go(ctx, r.shown, func(ctx context.Context) task.End { return r.behind(ctx, defaultBehindMS*time.Millisecond) })
	if ctx.Err() != nil {
		return executor.Interrupted()
	}
	output, note := trim(raw), ""
	if output == "" {
		note = "No output had been read from it when it was moved. A program that buffers its output, or a pipe into one such as tail, " +
			"can keep the output file empty until the command finishes. "
	}
	out.TimedOutMS = int(r.limit / time.Millisecond)
	if shell.ChangesDirectory(r.in.Command) {
		out.CWDHint = "Session cwd remains " + r.t.Dir() + "; directory changes made by the backgrounded command do not apply to subsequent commands."
	}
	moved := fmt.Sprintf("Command did not complete within its %.0fs timeout and was moved to the background (ID: %s).",
		max(1, math.Round(r.limit.Seconds())), out.TaskID)
	result := text(joinLines(r.t.fit(output, raw, &out), r.where(moved, "If it is still running after 10m in the background, it will be "+
		"stopped and you will be notified. It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. "+note),
		out.CWDHint), nil)
	result.ExplicitOK, result.Output = true, out
	return result
}

// endsBefore tells whether the command ends within d.
func (r *running) endsBefore(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// where says how to hear more of a command in the background.
func (r *running) where(head, more string) string {
	if r.shown.OutputFile != "" {
		head += " Output is being written to: " + r.shown.OutputFile + "."
	}
	return head + " You will be notified when it completes. " + more + "To check interim output, use Read on that file path."
}

// background starts a command and does not wait for it. It begins where the
// shell is now and leaves the shell there.
func (r *running) background(ctx context.Context) protocol.ToolResult {
	if r.t.o.Tasks == nil {
		return fail("There is no background in this session. Run the command in the foreground, or give the call a result in the scenario.")
	}
	r.info.Background = true
	err := r.start(ctx)
	r.shown = r.t.o.Tasks.Start(r.info)
	r.t.o.Tasks.Go(ctx, r.shown, func(ctx context.Context) task.End {
		if err != nil {
			return task.End{Status: task.Failed, Summary: r.summary() + "could not be started: " + err.Error()}
		}
		return r.behind(ctx, r.limit)
	})
	result := text(r.where("Command running in background with ID: "+r.shown.ID+".", ""), bashOutput{TaskID: r.shown.ID})
	result.ExplicitOK = true
	return result
}

// behind waits for a command in the background.
func (r *running) behind(ctx context.Context, limit time.Duration) task.End {
	defer r.cmd.Close()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	end := task.End{Status: task.Killed, Summary: r.summary() + "was stopped"}
	select {
	case <-r.done:
		return r.ended(r.cmd.End())
	case <-ctx.Done():
	case <-timer.C:
		end.Summary += " after reaching its background time limit"
	}
	r.cmd.Stop()
	r.cmd.End()
	_, _ = r.shown.Write([]byte("\n[killed]\n")) // it does not fail
	return end
}

func (r *running) summary() string { return fmt.Sprintf("Background command %q ", r.info.Description) }

// ended is the end of a task whose command has ended by itself.
func (r *running) ended(code int) task.End {
	_, _ = fmt.Fprintf(r.shown, "\n[exited with code %d]\n", code) // it does not fail
	if code != 0 {
		return task.End{Status: task.Failed, Summary: fmt.Sprintf("%sfailed with exit code %d", r.summary(), code)}
	}
	return task.End{Status: task.Completed, Summary: r.summary() + "completed (exit code 0)"}
}

// timeout is how long the command may run.
func (t *Tools) timeout(in bashInput) time.Duration {
	ms, most := defaultBehindMS, maxBehindMS
	if !in.RunInBackground {
		ms = cmp.Or(t.milliseconds("BASH_DEFAULT_TIMEOUT_MS"), defaultTimeoutMS)
		most = max(ms, cmp.Or(t.milliseconds("BASH_MAX_TIMEOUT_MS"), maxTimeoutMS))
	}
	if in.Timeout != nil && *in.Timeout > 0 {
		ms = int(*in.Timeout)
	}
	return time.Duration(min(ms, most)) * time.Millisecond
}

func (t *Tools) milliseconds(key string) int {
	n, err := strconv.Atoi(t.env(key))
	if err != nil {
		return 0
	}
	return max(n, 0)
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
