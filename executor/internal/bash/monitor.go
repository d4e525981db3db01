package bash

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

const (
	defaultMonitorTimeoutMS      = 300_000
	maxEffectiveMonitorTimeoutMS = 600_000 // longer timeouts are shortened to this one
)

// eventBatchTime is the time during which lines of output are collected into one event.
const eventBatchTime = 200 * time.Millisecond

type monitorInput struct {
	Command     string                  `json:"command"`
	Description string                  `json:"description"`
	TimeoutMS   *tool.IntFromJSONNumber `json:"timeout_ms"`
	WS          json.RawMessage         `json:"ws"`
}

type monitorOutput struct {
	TaskID     string `json:"taskId"`
	TimeoutMS  int    `json:"timeoutMs"`
	Persistent bool   `json:"persistent"`
}

// Monitor returns the tool that reports each line that a command prints.
func Monitor(c *CommandRunner) tool.Tool {
	return tool.Tool{
		Name: "Monitor",
		Check: tool.TypedCheck(c, func(_ context.Context, _ *CommandRunner, in monitorInput) *protocol.ToolResult {
			if (in.Command == "") != (in.WS == nil) {
				return nil
			}
			return tool.InvalidInputResult("Monitor", []tool.Issue{tool.CustomIssue("exactly one of command or ws")})
		}),
		Run: tool.TypedRunWithCall(c, runMonitor),
	}
}

func runMonitor(ctx context.Context, c *CommandRunner, call protocol.ToolUse, in monitorInput) protocol.ToolResult {
	switch {
	case in.WS != nil:
		return tool.FailUnsimulated(call.Name, "cannot open a WebSocket: claudeless does not simulate WebSockets")
	case c.options.Tasks == nil:
		return tool.FailUnsimulated(call.Name, "cannot run in the background in this session")
	}
	ms := defaultMonitorTimeoutMS
	if in.TimeoutMS != nil {
		ms = min(int(*in.TimeoutMS), maxEffectiveMonitorTimeoutMS)
	}
	info := taskInfoOfCall(call, bashInput{Command: in.Command, Description: in.Description})
	info.Background = true
	m := &monitoredCommandWatcher{task: c.options.Tasks.Start(info), timeout: time.Duration(ms) * time.Millisecond, lines: make(chan string)}
	c.options.Tasks.GoDetached(ctx, m.task, func(ctx context.Context) task.End {
		ctx, cancel := context.WithTimeout(ctx, m.timeout)
		defer cancel()
		go func() { // This goroutine stops when the command exits or ctx is cancelled. m.reportLinesUntilCommandEnds waits for it.
			m.exitCode, m.stderrText, m.err = c.options.Shell.RunStreamingStdout(ctx, in.Command, m)
			if len(m.partialLine) > 0 { // the last line may lack a newline
				m.lines <- string(m.partialLine)
			}
			close(m.lines)
		}()
		return m.reportLinesUntilCommandEnds(ctx)
	})
	return tool.TextResult(fmt.Sprintf("Monitor started (task %s, expires in %s unless the source ends first; you get one notice at expiry — re-arm if "+
		"you still need the watch). You will be notified on each event. Keep working — do not poll or sleep. Events may arrive while you are "+
		"waiting for the user — an event is not their reply.", m.task.ID, formatMinutesAndSeconds(m.timeout)), monitorOutput{TaskID: m.task.ID, TimeoutMS: ms})
}

// monitoredCommandWatcher reports the lines that a command prints as events of a background task.
type monitoredCommandWatcher struct {
	task        *task.Task
	timeout     time.Duration
	lines       chan string
	partialLine []byte

	// The following fields are the outcome of the command. They are set before the channel lines is closed.
	exitCode   int
	stderrText string
	err        error
}

// Write receives the output of the command and sends its complete lines to m.lines.
func (m *monitoredCommandWatcher) Write(p []byte) (int, error) {
	_, _ = m.task.Write(p) // writing to a task cannot fail
	m.partialLine = append(m.partialLine, p...)
	for {
		line, rest, ok := bytes.Cut(m.partialLine, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		m.lines <- string(line)
		m.partialLine = rest
	}
}

func (m *monitoredCommandWatcher) reportLinesUntilCommandEnds(ctx context.Context) task.End {
	var batch []string
	var due <-chan time.Time
	reported := 0
	for {
		select {
		case line, more := <-m.lines:
			if !more {
				return m.reportLastLinesAndEndTask(ctx, strings.Join(batch, "\n"), reported)
			}
			if batch = append(batch, line); due == nil {
				due = time.After(eventBatchTime)
			}
		case <-due:
			m.task.NotifyModelOfEvent(strings.Join(batch, "\n"))
			batch, due = nil, nil
			reported++
		}
	}
}

// reportLastLinesAndEndTask reports the last lines and returns how the task ended. unreportedLines
// are the lines that no earlier event contains; reportedEventCount is the number of earlier events.
func (m *monitoredCommandWatcher) reportLastLinesAndEndTask(ctx context.Context, unreportedLines string, reportedEventCount int) task.End {
	_, _ = m.task.Write([]byte(m.stderrText)) // writing to a task cannot fail
	head := fmt.Sprintf("Monitor %q ", m.task.Description)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if unreportedLines != "" {
			m.task.NotifyModelOfEvent(unreportedLines)
			reportedEventCount++
		}
		m.task.NotifyModelOfEvent(fmt.Sprintf("[Monitor expired after %s with %d events delivered. Re-arm it if you still need the watch.]", formatMinutesAndSeconds(m.timeout), reportedEventCount))
		return task.End{Status: task.StatusKilled, Summary: m.task.Description, KnownToModel: true}
	case ctx.Err() != nil:
		return task.End{Status: task.StatusKilled, Summary: m.task.Description}
	case m.err != nil:
		return task.End{Status: task.StatusFailed, Summary: head + "could not be started: " + m.err.Error()}
	case m.exitCode != 0:
		return task.End{Status: task.StatusFailed, Summary: fmt.Sprintf("%sscript failed (exit %d)", head, m.exitCode), Event: unreportedLines}
	case unreportedLines == "" && reportedEventCount == 0:
		return task.End{Status: task.StatusCompleted, Summary: head + "ended without producing output (exit 0)"}
	}
	return task.End{Status: task.StatusCompleted, Summary: head + "stream ended", Event: unreportedLines}
}

// formatMinutesAndSeconds formats a duration without trailing zeros: 5m, 1m 30s, 2s.
func formatMinutesAndSeconds(d time.Duration) string {
	minutes, seconds := int(d/time.Minute), int(d%time.Minute/time.Second)
	var parts []string
	if minutes > 0 {
		parts = append(parts, fmt.Sprintf("%dm", minutes))
	}
	if seconds > 0 {
		parts = append(parts, fmt.Sprintf("%ds", seconds))
	}
	return cmp.Or(strings.Join(parts, " "), "0s")
}
