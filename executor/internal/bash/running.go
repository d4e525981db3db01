package bash

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// runningCommand is a command that a call of Bash has started.
type runningCommand struct {
	c     *Commands
	in    bashInput
	info  task.Info
	limit time.Duration
	cmd   *shell.Command
	done  <-chan struct{} // closed at the end of cmd
	shown *task.Task      // nil = hosts do not see it as a task
}

// start begins the command where the shell is now. Its output goes where that
// of a task does, since it may become one.
func (r *runningCommand) start(ctx context.Context) (err error) {
	output := ""
	if r.c.o.Tasks != nil {
		r.info.ID, output = r.c.o.Tasks.Reserve(task.Bash)
	}
	if r.cmd, err = r.c.o.Shell.Start(ctx, r.in.Command, output); err != nil {
		return err
	}
	r.done = r.cmd.Done()
	return nil
}

// foreground runs the command and waits for it, though not for ever.
func (r *runningCommand) foreground(ctx context.Context) protocol.ToolResult {
	if err := r.start(ctx); err != nil {
		if ctx.Err() != nil {
			return executor.Interrupted()
		}
		return tool.Fail("The command could not be started: %v", err)
	}
	switch r.wait(ctx) {
	case finished:
		result := r.result(r.cmd.End(), bashOutput{NoSandbox: r.in.NoSandbox})
		r.close(task.Completed, result)
		return result
	case interrupted:
		r.drop()
		r.close(task.Killed, protocol.ToolResult{})
		return executor.Interrupted()
	default:
		// One that begins with a pause has nothing to go on with in the background.
		if r.c.o.Tasks != nil && r.c.o.Shell.Getenv(noBackground) == "" && !shell.Pauses(r.in.Command) {
			return r.leave(ctx)
		}
		output := r.drop()
		result := tool.Fail("%s", joinLines("Exit code 143", "Command timed out after "+duration(r.limit), cutAt(trim(output), maxOutput)))
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
func (r *runningCommand) wait(ctx context.Context) outcome {
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
			if r.c.o.Tasks != nil && r.c.o.Tasks.Live() {
				r.shown = r.c.o.Tasks.Start(r.info)
			}
		}
	}
}

// close ends the task that shows a command in the foreground.
func (r *runningCommand) close(status task.Status, result protocol.ToolResult) {
	if r.shown == nil {
		return
	}
	if result.IsError {
		status = task.Failed
	}
	r.shown.End(task.End{Status: status, Summary: r.info.Description})
}

// drop stops the command and returns what it has printed.
func (r *runningCommand) drop() string {
	r.cmd.Stop()
	r.cmd.End()
	defer r.cmd.Discard()
	return r.cmd.Output(maxCaptured)
}

// noBackground is the variable that keeps commands in the foreground.
const noBackground = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"

// answerAfter is how long a call lasts at least whose command is moved to the
// background: it may be the end of the command that it tells.
const answerAfter = 2 * time.Second

// leave moves the command to the background.
func (r *runningCommand) leave(ctx context.Context) protocol.ToolResult {
	if r.shown == nil {
		r.info.Background = true
		r.shown = r.c.o.Tasks.Start(r.info)
	} else {
		r.shown.Detach()
	}
	out := bashOutput{TaskID: r.info.ID, NoSandbox: r.in.NoSandbox}
	if r.endsBefore(ctx, answerAfter-r.limit) {
		code := r.cmd.End()
		result, end := r.result(code, out), r.ended(code)
		end.Told = true
		r.shown.End(end)
		return result
	}
	raw := r.cmd.Output(maxCaptured) // the task closes it
	r.c.o.Tasks.Go(ctx, r.shown, func(ctx context.Context) task.End { return r.behind(ctx, defaultBehindMS*time.Millisecond) })
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
		out.CWDHint = "Session cwd remains " + r.c.o.Shell.Dir() + "; directory changes made by the backgrounded command do not apply to subsequent commands."
	}
	moved := fmt.Sprintf("Command did not complete within its %.0fs timeout and was moved to the background (ID: %s).",
		max(1, math.Round(r.limit.Seconds())), out.TaskID)
	result := tool.Text(joinLines(r.c.fit(output, raw, &out), r.where(moved, "If it is still running after 10m in the background, it will be "+
		"stopped and you will be notified. It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. "+note),
		out.CWDHint), nil)
	result.ExplicitOK, result.Output = true, out
	return result
}

// endsBefore tells whether the command ends within d.
func (r *runningCommand) endsBefore(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
	case <-time.After(d):
	}
	return false
}

// where says how to hear more of a command in the background.
func (r *runningCommand) where(head, more string) string {
	if r.shown.OutputFile != "" {
		head += " Output is being written to: " + r.shown.OutputFile + "."
	}
	return head + " You will be notified when it completes. " + more + "To check interim output, use Read on that file path."
}

// background starts a command and does not wait for it. It begins where the
// shell is now and leaves the shell there.
func (r *runningCommand) background(ctx context.Context) protocol.ToolResult {
	if r.c.o.Tasks == nil {
		return tool.Fail("There is no background in this session. Run the command in the foreground, or give the call a result in the scenario.")
	}
	r.info.Background = true
	err := r.start(ctx)
	r.shown = r.c.o.Tasks.Start(r.info)
	r.c.o.Tasks.Go(ctx, r.shown, func(ctx context.Context) task.End {
		if err != nil {
			return task.End{Status: task.Failed, Summary: r.summary() + "could not be started: " + err.Error()}
		}
		return r.behind(ctx, r.limit)
	})
	result := tool.Text(r.where("Command running in background with ID: "+r.shown.ID+".", ""), bashOutput{TaskID: r.shown.ID})
	result.ExplicitOK = true
	return result
}

// behind waits for a command in the background.
func (r *runningCommand) behind(ctx context.Context, limit time.Duration) task.End {
	defer r.cmd.Close()
	over := time.After(limit)
	end := task.End{Status: task.Killed, Summary: r.summary() + "was stopped"}
	select {
	case <-r.done:
		return r.ended(r.cmd.End())
	case <-ctx.Done():
	case <-over:
		end.Summary += " after reaching its background time limit"
	}
	r.cmd.Stop()
	r.cmd.End()
	_, _ = r.shown.Write([]byte("\n[killed]\n")) // it does not fail
	return end
}

func (r *runningCommand) summary() string {
	return fmt.Sprintf("Background command %q ", r.info.Description)
}

// ended is the end of a task whose command has ended by itself.
func (r *runningCommand) ended(code int) task.End {
	_, _ = fmt.Fprintf(r.shown, "\n[exited with code %d]\n", code) // it does not fail
	if code != 0 {
		return task.End{Status: task.Failed, Summary: fmt.Sprintf("%sfailed with exit code %d", r.summary(), code)}
	}
	return task.End{Status: task.Completed, Summary: r.summary() + "completed (exit code 0)"}
}

// result is what a command that ended with a code has to say; out holds what is
// known already.
func (r *runningCommand) result(code int, out bashOutput) protocol.ToolResult {
	raw := r.cmd.Output(maxCaptured)
	if out.TaskID == "" {
		r.cmd.Discard()
	} else {
		r.cmd.Close()
	}
	output, note := trim(raw), ""
	if out.TaskID == "" && r.cmd.Follow() {
		note = "Shell cwd was reset to " + r.c.o.Shell.Dir()
		out.Stderr = "\n" + note
	}
	out.NoOutputExpected = shell.Silent(r.in.Command)
	if code != 0 {
		if out.CodeMeaning = shell.CodeMeaning(r.in.Command, code); out.CodeMeaning == "" {
			return tool.Fail("%s", joinLines(fmt.Sprintf("Exit code %d", code), cutAt(output, maxOutput), note))
		}
	}
	if m := dataImage().FindStringSubmatch(output); m != nil {
		return imageResult(m[1], m[2], output, out)
	}
	where := ""
	if out.TaskID != "" {
		where = r.where("Command running in background with ID: "+out.TaskID+".", "")
	}
	shown := tool.Text(cmp.Or(joinLines(r.c.fit(output, raw, &out), note, where), noOutput), nil)
	shown.ExplicitOK, shown.Output = true, out
	if file := shell.Shows(r.in.Command); file != "" && len(raw) <= maxOutput {
		r.c.o.Reader.Printed(file, raw)
	}
	return shown
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
