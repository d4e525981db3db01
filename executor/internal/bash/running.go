package bash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

type runningCommand struct {
	commands *CommandRunner
	input    bashInput
	info     task.Info
	timeout  time.Duration
	// keepsDirectory is true if the command must not change the shell's directory: a sub-agent runs it, or the
	// environment variable CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR is set.
	keepsDirectory bool
	cmd            *tool.ShellCommand
	done           <-chan struct{} // closed when the command has exited
	task           *task.Task      // nil means that the command is not a task

	files          *files.SeenFileTracker        // files known to the caller, which is the session or a sub-agent
	versionsBefore files.ModificationTimesByPath // versions of the known files before a command that edits files in place; nil for other commands
	repository     *gitworktree.Snapshot         // state before the command; nil means that the result does not list changes
}

// startProcess starts the command in the shell's directory. If the session can run background tasks, the output goes to the
// file of a task, because the command may later move to the background.
func (r *runningCommand) startProcess(ctx context.Context) (err error) {
	output := ""
	if r.commands.options.Tasks != nil {
		r.info.ID, output = r.commands.options.Tasks.Reserve(task.KindBash)
	}
	r.files = r.commands.options.Files.TrackerOfCallerInContext(ctx)
	if tool.EditsInPlace(r.input.Command) {
		r.versionsBefore = r.files.CurrentModTimes()
	}
	if o := r.commands.options; o.Snapshot != nil && !r.input.RunInBackground && !isReadOnlyCommand(r.input.Command) {
		r.repository = o.Snapshot(ctx, o.Shell.Dir())
	}
	if r.cmd, err = r.commands.options.Shell.Start(ctx, r.input.Command, output); err != nil {
		return err
	}
	r.done = r.cmd.Done()
	return nil
}

// runUntilExitOrTimeout runs the command and waits. After the timeout, it moves the command to the background or stops it.
func (r *runningCommand) runUntilExitOrTimeout(ctx context.Context) protocol.ToolResult {
	if err := r.startProcess(ctx); err != nil {
		if ctx.Err() != nil {
			return interruptedResult()
		}
		return tool.Fail("The command could not be started: %v", err)
	}
	switch r.waitForExitOrTimeout(ctx) {
	case outcomeFinished:
		code := r.cmd.Wait()
		result := r.finishCommandAndMoveShellDir(code, bashOutput{NoSandbox: r.input.NoSandbox, EditDiff: r.commands.differ.DiffSince(ctx, r.repository)})
		r.endTask(task.StatusCompleted, result)
		return result
	case outcomeInterrupted:
		if executor.IsProcessEnding(ctx) { // the CLI kills its commands when it ends, and reports them as failed
			r.cmd.Stop()
			r.cmd.Wait()
			r.endTask(task.StatusKilled, protocol.ToolResult{})
			return r.finishCommandAndMoveShellDir(128+int(syscall.SIGKILL), bashOutput{})
		}
		r.stopAndTakeOutput()
		r.endTask(task.StatusKilled, protocol.ToolResult{})
		return interruptedResult()
	default:
		// A command that begins with a sleep is stopped, not moved to the background: its result is not worth waiting for.
		if r.commands.options.Tasks != nil && !r.commands.areBackgroundTasksDisabled() && !tool.BeginsWithSleep(r.input.Command) {
			return r.moveToBackgroundOrFinish(ctx)
		}
		output := r.stopAndTakeOutput()
		result := tool.Fail("%s", joinNonEmptyLines("Exit code 143", "Command timed out after "+formatDuration(r.timeout), tool.Prefix(trimBlankLinesAndTrailingSpace(output), r.commands.outputLimitBytes())))
		r.endTask(task.StatusCompleted, result)
		return result
	}
}

type foregroundWaitOutcome int

const (
	outcomeFinished foregroundWaitOutcome = iota
	outcomeInterrupted
	outcomeTimedOut
)

// delayBeforeShowingForegroundCommandAsTask is the time after which hosts see a foreground command as a task.
const delayBeforeShowingForegroundCommandAsTask = 3 * time.Second

func interruptedResult() protocol.ToolResult {
	result := executor.InterruptedResult()
	result.Output = bashOutput{Interrupted: true, CodeMeaning: "Command failed with exit code 145"}
	return result
}

// waitForExitOrTimeout waits until the command exits, its timeout expires or ctx is cancelled. After
// delayBeforeShowingForegroundCommandAsTask, it reports the command as a task to hosts that receive events while the call runs.
func (r *runningCommand) waitForExitOrTimeout(ctx context.Context) foregroundWaitOutcome {
	timeout, show := time.NewTimer(r.timeout), time.NewTimer(delayBeforeShowingForegroundCommandAsTask)
	defer timeout.Stop()
	defer show.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-r.done:
			return outcomeFinished
		case <-cancelled:
			superseded, ok := errors.AsType[executor.SupersededError](context.Cause(ctx))
			if !ok || cancelled == superseded.ProcessEnds {
				return outcomeInterrupted
			}
			cancelled = superseded.ProcessEnds
		case <-timeout.C:
			return outcomeTimedOut
		case <-show.C:
			if r.commands.options.Tasks != nil && r.commands.options.Tasks.ShowsEventsLive() {
				r.task = r.commands.options.Tasks.Start(r.info)
			}
		}
	}
}

func (r *runningCommand) endTask(status task.FinalStatus, result protocol.ToolResult) {
	if r.task == nil {
		return
	}
	if result.IsError {
		status = task.StatusFailed
	}
	r.task.End(task.End{Status: status, Summary: r.info.Description})
}

func (r *runningCommand) stopAndTakeOutput() string {
	r.cmd.Stop()
	r.cmd.Wait()
	defer r.cmd.CloseAndRemoveOutput()
	return r.cmd.Output(maxCapturedBytes)
}

// minForegroundWait is the shortest time that a call waits for its command, even if the timeout of the call is shorter.
// If the command exits within this time, the call returns the result of the command.
const minForegroundWait = 2 * time.Second

// moveToBackgroundOrFinish moves the command to the background. If it exits within minForegroundWait, its result is returned.
func (r *runningCommand) moveToBackgroundOrFinish(ctx context.Context) protocol.ToolResult {
	if r.task == nil {
		r.info.Background = true
		r.task = r.commands.options.Tasks.Start(r.info)
	} else {
		r.task.MoveToBackground()
	}
	out := bashOutput{TaskID: r.info.ID, NoSandbox: r.input.NoSandbox}
	if r.waitForExit(ctx, minForegroundWait-r.timeout) {
		code := r.cmd.Wait()
		result, end := r.finishCommandAndMoveShellDir(code, out), r.writeExitCode(code)
		end.KnownToModel = true
		r.task.End(end)
		return result
	}
	raw := r.cmd.Output(maxCapturedBytes) // the output is read before Go, because the task's function closes it
	limit, aboutLimit := defaultBackgroundTimeoutMS*time.Millisecond, "If it is still running after 10m in the background, it will be stopped and you will be notified. "
	if r.task.IsTerminal {
		limit, aboutLimit = math.MaxInt64, ""
	}
	r.commands.options.Tasks.GoDetached(ctx, r.task, func(ctx context.Context) task.End { return r.waitOrStopAtTimeout(ctx, limit) })
	if ctx.Err() != nil {
		return executor.InterruptedResult()
	}
	output, note := trimBlankLinesAndTrailingSpace(raw), ""
	if output == "" {
		note = "No output had been read from it when it was moved. A program that buffers its output, or a pipe into one such as tail, " +
			"can keep the output file empty until the command finishes. "
	}
	out.TimedOutMS = int(r.timeout / time.Millisecond)
	if tool.ChangesDirectory(r.input.Command) {
		out.CWDHint = "Session cwd remains " + r.commands.options.Shell.Dir() + "; directory changes made by the backgrounded command do not apply to subsequent commands."
	}
	moved := fmt.Sprintf("Command did not complete within its %.0fs timeout and was moved to the background (ID: %s).",
		max(1, math.Round(r.timeout.Seconds())), out.TaskID)
	result := tool.TextResult(joinNonEmptyLines(r.commands.storeAndLimitOutput(output, raw, &out), r.backgroundCommandNotice(moved, aboutLimit+
		"It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. "+note),
		out.CWDHint), nil)
	result.ShowsIsErrorFalse, result.Output = true, out
	return result
}

// waitForExit waits until the command exits, d has passed or ctx is cancelled. It reports whether the command exited.
func (r *runningCommand) waitForExit(ctx context.Context, d time.Duration) bool {
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

// backgroundCommandNotice returns a text for the model: opening, a note that the model will be notified when the
// command exits, and closing. If the command has an output file, the text names it and advises the model to read it.
func (r *runningCommand) backgroundCommandNotice(opening, closing string) string {
	notice := " You will be notified when it completes. "
	if r.task.EndsWithAgent {
		notice = " If it exits while you are still working you will be notified, but it is terminated when you give your final response and no notification can follow that " +
			"— so do not end your turn to wait for it; if you need its result, wait for it before giving your final response. "
	}
	if r.task.OutputFile == "" {
		return strings.TrimSuffix(opening+notice+closing, " ")
	}
	return opening + " Output is being written to: " + r.task.OutputFile + "." + notice + closing + "To check interim output, use Read on that file path."
}

func (r *runningCommand) startedInBackgroundNotice(taskID string) string {
	opening := "Command running in background with ID: " + taskID + "."
	if !r.task.IsTerminal || r.task.EndsWithAgent || r.task.OutputFile == "" {
		return r.backgroundCommandNotice(opening, "")
	}
	return opening + " Output is being written to: " + r.task.OutputFile + ". You will be notified when it completes — do not poll that file or sleep while waiting. " +
		"Read the file only if the user asks for progress, or if you need a line it prints before you can go on, such as a server's ready line or port."
}

// startProcessInBackground starts a command without waiting until it exits. The command does not change the shell's directory.
func (r *runningCommand) startProcessInBackground(ctx context.Context) protocol.ToolResult {
	if r.commands.options.Tasks == nil {
		return tool.Fail("This session cannot run commands in the background. Run the command in the foreground, or give the call a result in the scenario.")
	}
	r.info.Background = true
	err := r.startProcess(ctx)
	r.task = r.commands.options.Tasks.Start(r.info)
	r.commands.options.Tasks.GoDetached(ctx, r.task, func(ctx context.Context) task.End {
		if err != nil {
			return task.End{Status: task.StatusFailed, Summary: r.backgroundTaskSummaryPrefix() + "could not be started: " + err.Error()}
		}
		return r.waitOrStopAtTimeout(ctx, r.timeout)
	})
	result := tool.TextResult(r.startedInBackgroundNotice(r.task.ID), bashOutput{TaskID: r.task.ID})
	result.ShowsIsErrorFalse = true
	return result
}

// waitOrStopAtTimeout waits until the command exits. After the timeout, or if ctx is cancelled, it stops the command.
func (r *runningCommand) waitOrStopAtTimeout(ctx context.Context, timeout time.Duration) task.End {
	defer r.cmd.Close()
	over := time.After(timeout)
	end := task.End{Status: task.StatusKilled, Summary: r.backgroundTaskSummaryPrefix() + "was stopped"}
	select {
	case <-r.done:
		return r.writeExitCode(r.cmd.Wait())
	case <-ctx.Done():
	case <-over:
		end.Summary += " after reaching its background time limit"
	}
	r.cmd.Stop()
	r.cmd.Wait()
	_, _ = r.task.Write([]byte("\n[killed]\n")) // writing to a task cannot fail
	return end
}

func (r *runningCommand) backgroundTaskSummaryPrefix() string {
	return fmt.Sprintf("Background command %q ", r.info.Description)
}

// writeExitCode writes the exit code to the output of the task and returns the end of the task. The command must have exited by itself.
func (r *runningCommand) writeExitCode(code int) task.End {
	_, _ = fmt.Fprintf(r.task, "\n[exited with code %d]\n", code) // writing to a task cannot fail
	if code != 0 {
		return task.End{Status: task.StatusFailed, Summary: fmt.Sprintf("%sfailed with exit code %d", r.backgroundTaskSummaryPrefix(), code)}
	}
	return task.End{Status: task.StatusCompleted, Summary: r.backgroundTaskSummaryPrefix() + "completed (exit code 0)"}
}

// finishCommandAndMoveShellDir returns the result of a command that exited with code, and closes or removes its output file. Unless the command
// has a task, it also moves the shell to the directory in which the command ended. The caller has already set some fields of out.
func (r *runningCommand) finishCommandAndMoveShellDir(code int, out bashOutput) protocol.ToolResult {
	raw := r.cmd.Output(maxCapturedBytes)
	if out.TaskID == "" {
		r.cmd.CloseAndRemoveOutput()
	} else {
		r.cmd.Close()
	}
	output, note, left := trimBlankLinesAndTrailingSpace(raw), "", ""
	if out.TaskID == "" && !r.keepsDirectory {
		if left = r.cmd.MoveShellToCommandEndDir(); left != "" {
			note = "Shell cwd was reset to " + r.commands.options.Shell.Dir()
			out.Stderr = "\n" + note
		}
	}
	out.NoOutputExpected = tool.PrintsNothingOnSuccess(r.input.Command)
	if code != 0 {
		if out.CodeMeaning = tool.ExitCodeMeaning(r.input.Command, code); out.CodeMeaning == "" {
			return tool.Fail("%s", joinNonEmptyLines(fmt.Sprintf("Exit code %d", code), tool.Prefix(validUTF8WithoutTrailingSpace(raw), r.commands.outputLimitBytes()), note))
		}
	}
	if m := imageDataURLPattern().FindStringSubmatch(output); m != nil {
		return imageResult(m[1], m[2], output, out)
	}
	where := ""
	if out.TaskID != "" {
		where = r.startedInBackgroundNotice(out.TaskID)
	}
	if code == 0 {
		out.StaleHint = r.commands.modifiedSeenFilesHint(r.versionsBefore)
	}
	shown := tool.TextResult(cmp.Or(joinNonEmptyLines(r.commands.storeAndLimitOutput(output, raw, &out), note, out.StaleHint, where), noOutputText), nil)
	shown.ShowsIsErrorFalse, shown.Output, shown.ForbiddenDir = true, out, left
	if file := tool.FilePrintedByCat(r.input.Command); file != "" && len(raw) <= r.commands.outputLimitBytes() {
		r.files.RecordSeenIfPrintedWhole(file, raw)
	} else if file := tool.PrintedFile(r.input.Command); file != "" {
		r.files.RecordPartlySeen(file)
	}
	return shown
}

func formatDuration(d time.Duration) string {
	s := int(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh %dm %ds", s/3600, s/60%60, s%60)
}
