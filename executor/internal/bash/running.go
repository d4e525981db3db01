package bash

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// runningCommand is a command that a Bash call has started.
type runningCommand struct {
	c     *Commands
	in    bashInput
	info  task.Info
	limit time.Duration
	stays bool // it does not move the shell: one of an agent
	cmd   *tool.ShellCommand
	done  <-chan struct{} // closed at the end of cmd
	shown *task.Task      // nil = not shown as a task

	before files.Versions // of the files that the session knows, if the command edits files in place
}

// start starts the command in the shell's directory. Its output goes to the file of
// a task, since it may become one.
func (r *runningCommand) start(ctx context.Context) (err error) {
	output := ""
	if r.c.o.Tasks != nil {
		r.info.ID, output = r.c.o.Tasks.Reserve(task.Bash)
	}
	if tool.EditsInPlace(r.in.Command) {
		r.before = r.c.o.Files.Versions()
	}
	if r.cmd, err = r.c.o.Shell.Start(ctx, r.in.Command, output); err != nil {
		return err
	}
	r.done = r.cmd.Done()
	return nil
}

// foreground runs the command and waits for it until its timeout.
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
		r.stopAndRead()
		r.close(task.Killed, protocol.ToolResult{})
		return executor.Interrupted()
	default:
		// A command that begins with a sleep is not worth continuing in the
		// background.
		if r.c.o.Tasks != nil && r.c.o.Shell.Getenv(noBackground) == "" && !tool.BeginsWithSleep(r.in.Command) {
			return r.moveToBackground(ctx)
		}
		output := r.stopAndRead()
		result := tool.Fail("%s", joinLines("Exit code 143", "Command timed out after "+duration(r.limit), tool.Prefix(trim(output), r.c.maxOutput())))
		r.close(task.Completed, result)
		return result
	}
}

// outcome says why waiting for a command ended.
type outcome int

const (
	finished outcome = iota
	interrupted
	timedOut
)

// showAfter is the time after which a foreground command is shown as a task.
const showAfter = 3 * time.Second

// wait waits for the end of the command, its timeout or ctx. Hosts that receive
// events as they happen see a task in the meantime.
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

// close ends the task that shows a foreground command.
func (r *runningCommand) close(status task.Status, result protocol.ToolResult) {
	if r.shown == nil {
		return
	}
	if result.IsError {
		status = task.Failed
	}
	r.shown.End(task.End{Status: status, Summary: r.info.Description})
}

// stopAndRead stops the command and returns its output.
func (r *runningCommand) stopAndRead() string {
	r.cmd.Stop()
	r.cmd.End()
	defer r.cmd.Discard()
	return r.cmd.Output(maxCaptured)
}

// noBackground is the variable that disables background commands.
const noBackground = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"

// minCallTime is the minimum duration of a call whose command is moved to the
// background, because the command may end within that time.
const minCallTime = 2 * time.Second

// moveToBackground moves the command to the background.
func (r *runningCommand) moveToBackground(ctx context.Context) protocol.ToolResult {
	if r.shown == nil {
		r.info.Background = true
		r.shown = r.c.o.Tasks.Start(r.info)
	} else {
		r.shown.Detach()
	}
	out := bashOutput{TaskID: r.info.ID, NoSandbox: r.in.NoSandbox}
	if r.endsBefore(ctx, minCallTime-r.limit) {
		code := r.cmd.End()
		result, end := r.result(code, out), r.taskEnd(code)
		end.ModelKnows = true
		r.shown.End(end)
		return result
	}
	raw := r.cmd.Output(maxCaptured) // the task closes it
	r.c.o.Tasks.Go(ctx, r.shown, func(ctx context.Context) task.End {
		return r.waitInBackground(ctx, defaultBackgroundMS*time.Millisecond)
	})
	if ctx.Err() != nil {
		return executor.Interrupted()
	}
	output, note := trim(raw), ""
	if output == "" {
		note = "No output had been read from it when it was moved. A program that buffers its output, or a pipe into one such as tail, " +
			"can keep the output file empty until the command finishes. "
	}
	out.TimedOutMS = int(r.limit / time.Millisecond)
	if tool.ChangesDirectory(r.in.Command) {
		out.CWDHint = "Session cwd remains " + r.c.o.Shell.Dir() + "; directory changes made by the backgrounded command do not apply to subsequent commands."
	}
	moved := fmt.Sprintf("Command did not complete within its %.0fs timeout and was moved to the background (ID: %s).",
		max(1, math.Round(r.limit.Seconds())), out.TaskID)
	result := tool.Text(joinLines(r.c.limitOutput(output, raw, &out), r.readHint(moved, "If it is still running after 10m in the background, it will be "+
		"stopped and you will be notified. It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. "+note),
		out.CWDHint), nil)
	result.ExplicitOK, result.Output = true, out
	return result
}

// endsBefore reports whether the command ends within d.
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

// readHint tells the model how to read more output of a background command.
func (r *runningCommand) readHint(head, more string) string {
	if r.shown.OutputFile != "" {
		head += " Output is being written to: " + r.shown.OutputFile + "."
	}
	return head + " You will be notified when it completes. " + more + "To check interim output, use Read on that file path."
}

// background starts a command without waiting for it. The command starts in the
// shell's directory and does not change it.
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
		return r.waitInBackground(ctx, r.limit)
	})
	result := tool.Text(r.readHint("Command running in background with ID: "+r.shown.ID+".", ""), bashOutput{TaskID: r.shown.ID})
	result.ExplicitOK = true
	return result
}

// waitInBackground waits for a background command.
func (r *runningCommand) waitInBackground(ctx context.Context, limit time.Duration) task.End {
	defer r.cmd.Close()
	over := time.After(limit)
	end := task.End{Status: task.Killed, Summary: r.summary() + "was stopped"}
	select {
	case <-r.done:
		return r.taskEnd(r.cmd.End())
	case <-ctx.Done():
	case <-over:
		end.Summary += " after reaching its background time limit"
	}
	r.cmd.Stop()
	r.cmd.End()
	_, _ = r.shown.Write([]byte("\n[killed]\n")) // it cannot fail
	return end
}

func (r *runningCommand) summary() string {
	return fmt.Sprintf("Background command %q ", r.info.Description)
}

// taskEnd returns the end of a task whose command ended normally.
func (r *runningCommand) taskEnd(code int) task.End {
	_, _ = fmt.Fprintf(r.shown, "\n[exited with code %d]\n", code) // it cannot fail
	if code != 0 {
		return task.End{Status: task.Failed, Summary: fmt.Sprintf("%sfailed with exit code %d", r.summary(), code)}
	}
	return task.End{Status: task.Completed, Summary: r.summary() + "completed (exit code 0)"}
}

// result builds the result of a command with an exit code; out holds the fields
// that are already known.
func (r *runningCommand) result(code int, out bashOutput) protocol.ToolResult {
	raw := r.cmd.Output(maxCaptured)
	if out.TaskID == "" {
		r.cmd.Discard()
	} else {
		r.cmd.Close()
	}
	output, note := trim(raw), ""
	if out.TaskID == "" && !r.stays && r.cmd.Follow() {
		note = "Shell cwd was reset to " + r.c.o.Shell.Dir()
		out.Stderr = "\n" + note
	}
	out.NoOutputExpected = tool.PrintsNothing(r.in.Command)
	if code != 0 {
		if out.CodeMeaning = tool.CodeMeaning(r.in.Command, code); out.CodeMeaning == "" {
			return tool.Fail("%s", joinLines(fmt.Sprintf("Exit code %d", code), tool.Prefix(output, r.c.maxOutput()), note))
		}
	}
	if m := dataImage().FindStringSubmatch(output); m != nil {
		return imageResult(m[1], m[2], output, out)
	}
	where := ""
	if out.TaskID != "" {
		where = r.readHint("Command running in background with ID: "+out.TaskID+".", "")
	}
	if code == 0 {
		out.StaleHint = r.c.staleHint(r.before)
	}
	shown := tool.Text(cmp.Or(joinLines(r.c.limitOutput(output, raw, &out), note, out.StaleHint, where), noOutput), nil)
	shown.ExplicitOK, shown.Output = true, out
	if file := tool.PrintedFile(r.in.Command); file != "" && len(raw) <= r.c.maxOutput() {
		r.c.o.Files.RecordPrinted(file, raw)
	} else if file := tool.ViewedFile(r.in.Command); file != "" {
		r.c.o.Files.RecordViewed(file)
	}
	return shown
}

// duration formats a timeout: 1s, 2m 0s, 1h 0m 0s.
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
