package builtin

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Limits of a wakeup's delay.
const (
	minWakeupDelay = time.Minute
	maxWakeupDelay = time.Hour
)

type wakeupInput struct {
	Delay  *float64 `json:"delaySeconds"`
	Reason *string  `json:"reason"`
	Prompt *string  `json:"prompt"`
	Stop   bool     `json:"stop"`
}

type wakeupOutput struct {
	At        int64 `json:"scheduledFor"`
	Delay     int   `json:"clampedDelaySeconds"`
	Clamped   bool  `json:"wasClamped"`
	Stopped   bool  `json:"stopped,omitempty"`
	Cancelled *int  `json:"cancelledWakeups,omitempty"`
}

func scheduleWakeupTool(s *cronJobs) tool.Tool {
	return tool.Tool{
		Name:        "ScheduleWakeup",
		Description: "Schedules the next run of a loop. claudeless stores the wakeup but does not run it.",
		Input: tool.Object(
			tool.Optional("delaySeconds", tool.Num("Seconds until the next run: 60 to 3600")),
			tool.Optional("reason", tool.String("Reason for the delay")),
			tool.Optional("prompt", tool.String("Prompt of the next run")),
			tool.Optional("stop", tool.Boolean("End the loop")),
			tool.Optional("noop", tool.Boolean("Nothing has changed")),
		),
		Run: tool.TypedRun(s, scheduleWakeup),
	}
}

func isWakeup(j task.Job) bool { return !j.At.IsZero() }

func scheduleWakeup(_ context.Context, s *cronJobs, in wakeupInput) protocol.ToolResult {
	switch {
	case s.tasks == nil:
		return tool.NeedsResult("ScheduleWakeup", "has no background in this session")
	case in.Stop:
		return s.stopLoop()
	case in.Delay == nil || in.Reason == nil:
		return tool.Fail("`delaySeconds` and `reason` are required when `stop` is not true.")
	case in.Prompt == nil:
		return tool.Fail("`prompt` is required when `stop` is not true.")
	}
	wanted := math.Floor(*in.Delay + 0.5)
	delay := max(minWakeupDelay.Seconds(), min(wanted, maxWakeupDelay.Seconds()))
	clamped := ""
	if delay != wanted {
		clamped = fmt.Sprintf(" (clamped to %.0fs from your requested value)", delay)
	}
	now := s.clock.Now()
	at := wakeupAt(now, time.Duration(delay)*time.Second)
	s.tasks.Unschedule(isWakeup)
	c, _ := task.ParseCron(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())) // a minute of the day is always valid
	j := s.tasks.NewJob(c, *in.Prompt)
	j.At = at
	s.tasks.Schedule(j)
	return tool.Text(fmt.Sprintf("Next wakeup scheduled for %s (in %.0fs)%s. If you owe the user a status update this tick, write it now as ordinary response "+
		"text; then end the turn — the harness re-invokes you when the wakeup fires or a task-notification arrives.",
		at.Format("15:04:05"), at.Sub(now).Seconds(), clamped),
		wakeupOutput{At: at.UnixMilli(), Delay: int(delay), Clamped: clamped != ""})
}

// wakeupAt returns the first full minute that is not before the end of the delay. If that minute is more than
// maxWakeupDelay after now, it returns the minute before it.
func wakeupAt(now time.Time, delay time.Duration) time.Time {
	at := now.Add(delay)
	full := at.Truncate(time.Minute)
	if next := full.Add(time.Minute); full.Before(at) && !next.After(now.Add(maxWakeupDelay)) {
		return next
	}
	return full
}

func (s *cronJobs) stopLoop() protocol.ToolResult {
	n := s.tasks.Unschedule(isWakeup)
	what := "any dynamic loop in this session is ended; there was no pending wakeup to cancel. If you are running a fixed-interval /loop " +
		"(a recurring cron), it is NOT stopped by this call — cancel it with CronDelete."
	if n > 0 {
		what = fmt.Sprintf("cancelled %d pending wakeup(s); no further dynamic-loop wakeups scheduled.", n)
	}
	return tool.Text("Loop stopped — "+what+" If you armed a Monitor for this loop, TaskStop it now. Then write the loop's outcome for the user as "+
		"ordinary visible response text — and end the turn.", wakeupOutput{Stopped: true, Cancelled: &n})
}
