package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

const maxCronJobs = 50

// cronJobs stores the scheduled prompts of a session. They can be listed and deleted, but they never run.
type cronJobs struct {
	tasks      *task.Set // stores the prompts that are not durable; nil means that the session has no background tasks
	clock      tool.ClockWithIDs
	projectDir string // project directory; it contains the file of durable jobs
	sessionID  string // session id; empty means unknown
	pid        int    // process id of the session; 0 means unknown
}

type cronCreateInput struct {
	Cron      string `json:"cron"`
	Prompt    string `json:"prompt"`
	Recurring *bool  `json:"recurring"`
	Durable   bool   `json:"durable"`
}

func (s *cronJobs) tools() []tool.Tool {
	return []tool.Tool{
		cronCreateTool(s), cronDeleteTool(s),
		{Name: "CronList", Run: tool.TypedRun(s, cronList)},
		{Name: "ScheduleWakeup", Run: tool.TypedRun(s, scheduleWakeup)},
	}
}

func cronCreateTool(s *cronJobs) tool.Tool {
	return tool.Tool{
		Name: "CronCreate",
		Check: tool.TypedCheck(s, func(_ context.Context, s *cronJobs, in cronCreateInput) *protocol.ToolResult {
			_, refusal := s.parseNewSchedule(in)
			return refusal
		}),
		Run: tool.TypedRun(s, cronCreate),
	}
}

func (s *cronJobs) parseNewSchedule(in cronCreateInput) (task.Schedule, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Schedule, *protocol.ToolResult) {
		return task.Schedule{}, new(tool.Refuse(format, args...))
	}
	c, ok := task.ParseCron(in.Cron)
	if !ok {
		return no("Invalid cron expression '%s'. Expected 5 fields: M H DoM Mon DoW.", in.Cron)
	}
	if _, ok := c.NextWithinYear(s.clock.Now()); !ok {
		return no("Cron expression '%s' does not match any calendar date in the next year.", in.Cron)
	}
	if len(s.allJobs()) >= maxCronJobs {
		return no("Too many scheduled jobs (max %d). Cancel one first.", maxCronJobs)
	}
	return c, nil
}

func cronCreate(_ context.Context, s *cronJobs, in cronCreateInput) protocol.ToolResult {
	c, refusal := s.parseNewSchedule(in)
	switch {
	case refusal != nil:
		return *refusal
	case s.tasks == nil:
		return tool.FailUnsimulated("CronCreate", "cannot schedule prompts in this session")
	}
	j := cronJob{Job: s.tasks.NewJob(c, in.Prompt), isDurable: in.Durable}
	j.Recurring = in.Recurring == nil || *in.Recurring
	kept, lasts := "Session-only (not written to disk, dies when Claude exits)", "It will fire once then auto-delete."
	kind := "one-shot task"
	if j.Recurring {
		kind, lasts = "recurring job", "Auto-expires after 30 days. Use CronDelete to cancel sooner."
	}
	if in.Durable {
		kept = "Persisted to .claude/scheduled_tasks.json"
		if err := s.writeDurableJobs(append(s.readDurableJobs(), j)); err != nil {
			return tool.Fail("%v", err)
		}
	} else {
		s.tasks.AddJob(j.Job)
	}
	out := tool.StructuredOutput("id", j.ID, "humanSchedule", c.String(), "recurring", j.Recurring, "durable", in.Durable, "nextFireAt", j.FirstRunMillis())
	if j.Recurring {
		out = append(out, tool.StructuredOutput("maxAgeMs", maxJobAgeMS(true))...)
	}
	return tool.TextResult(fmt.Sprintf("Scheduled %s %s (%s). Next run: %s. %s. %s", kind, j.ID, c, j.nextRunText(), kept, lasts), out)
}

// maxJobAgeMS returns the milliseconds after which a recurring job expires; 0 for other jobs.
func maxJobAgeMS(recurring bool) int64 {
	if !recurring {
		return 0
	}
	return (30 * 24 * time.Hour).Milliseconds()
}

// cronJobOutput is a job in the form that hosts receive. Durable is false for a job that ends with the session. For a job that is stored
// in a file, Durable is nil, so its key is omitted.
type cronJobOutput struct {
	ID        string  `json:"id"`
	Cron      string  `json:"cron"`
	Human     string  `json:"humanSchedule"`
	Prompt    string  `json:"prompt"`
	Recurring bool    `json:"recurring,omitempty"`
	Durable   *bool   `json:"durable,omitempty"`
	Next      float64 `json:"nextFireAt"`
}

func cronList(_ context.Context, s *cronJobs, _ struct{}) protocol.ToolResult {
	jobs, lines := []cronJobOutput{}, []string{}
	for _, j := range s.allJobs() {
		l := cronJobOutput{ID: j.ID, Cron: j.Cron.Expression(), Human: j.Cron.String(), Prompt: j.Prompt, Recurring: j.Recurring, Next: j.FirstRunMillis()}
		kind, kept := "one-shot", ""
		if j.Recurring {
			kind = "recurring"
		}
		if !j.isDurable {
			kept, l.Durable = " [session-only]", new(bool)
		}
		jobs = append(jobs, l)
		lines = append(lines, fmt.Sprintf("%s — %s (%s)%s, next run %s: %s", j.ID, l.Human, kind, kept, j.nextRunText(), truncatedFirstLine(j.Prompt)))
	}
	return tool.TextResult(cmp.Or(strings.Join(lines, "\n"), "No scheduled jobs."), tool.StructuredOutput("jobs", jobs))
}

// truncatedFirstLine returns the first line of a prompt, truncated to 80 UTF-16 units.
func truncatedFirstLine(prompt string) string {
	const most = 80
	line, _, more := strings.Cut(prompt, "\n")
	units := utf16.Encode([]rune(line))
	switch {
	case len(units) > most || more && len(units) == most:
		return string(utf16.Decode(units[:most-1])) + "…"
	case more:
		return line + "…"
	}
	return line
}

func cronDeleteTool(s *cronJobs) tool.Tool {
	return tool.Tool{
		Name: "CronDelete",
		Check: tool.TypedCheck(s, func(_ context.Context, s *cronJobs, in struct{ ID string }) *protocol.ToolResult {
			if slices.ContainsFunc(s.allJobs(), func(j cronJob) bool { return j.ID == in.ID }) {
				return nil
			}
			return new(tool.Refuse("No scheduled job with id '%s'", in.ID))
		}),
		Run: tool.TypedRun(s, cronDelete),
	}
}

func cronDelete(_ context.Context, s *cronJobs, in struct{ ID string }) protocol.ToolResult {
	gone := 0
	if s.tasks != nil {
		gone = s.tasks.RemoveJobs(func(j task.Job) bool { return j.ID == in.ID })
	}
	durable := s.readDurableJobs()
	if left := slices.DeleteFunc(slices.Clone(durable), func(j cronJob) bool { return j.ID == in.ID }); len(left) < len(durable) {
		gone++
		if err := s.writeDurableJobs(left); err != nil {
			return tool.Fail("%v", err)
		}
	}
	if gone == 0 {
		return tool.Refuse("No scheduled job with id '%s'", in.ID)
	}
	return tool.TextResult("Cancelled job "+in.ID+".", tool.StructuredOutput("id", in.ID))
}

type cronJob struct {
	task.Job
	isDurable  bool
	storedJSON json.RawMessage // the job's JSON in the file of durable jobs; nil means that the file does not contain the job yet
}

func (j cronJob) nextRunText() string {
	return time.UnixMilli(int64(math.Round(j.FirstRunMillis()))).In(j.Created.Location()).Round(time.Minute).Format("Jan 2 3:04pm")
}

func (s *cronJobs) allJobs() []cronJob {
	all := s.readDurableJobs()
	if s.tasks != nil {
		for _, j := range s.tasks.Jobs() {
			all = append(all, cronJob{Job: j})
		}
	}
	return all
}

type storedCronJob struct {
	ID        string `json:"id"`
	Cron      string `json:"cron"`
	Prompt    string `json:"prompt"`
	Created   int64  `json:"createdAt"`
	Recurring bool   `json:"recurring,omitempty"`
	MaxAge    int64  `json:"maxAgeMs,omitempty"`
	Session   string `json:"createdBySessionId,omitempty"`
	PID       int    `json:"createdByPid,omitempty"`
	Project   string `json:"createdInProject"`
	SignIn    string `json:"createdUnderSignIn"`
}

type durableJobFile struct {
	Tasks []json.RawMessage `json:"tasks"`
}

func (s *cronJobs) durableJobsFilePath() string {
	return filepath.Join(s.projectDir, ".claude", "scheduled_tasks.json")
}

func (s *cronJobs) readDurableJobs() []cronJob {
	var file durableJobFile
	if data, err := os.ReadFile(s.durableJobsFilePath()); err != nil || json.Unmarshal(data, &file) != nil {
		return nil
	}
	var list []cronJob
	for _, raw := range file.Tasks {
		var kept storedCronJob
		if json.Unmarshal(raw, &kept) != nil || kept.ID == "" {
			continue
		}
		c, ok := task.ParseCron(kept.Cron)
		if !ok {
			continue
		}
		list = append(list, cronJob{isDurable: true, storedJSON: raw, Job: task.Job{
			ID: kept.ID, Cron: c, Prompt: kept.Prompt, Recurring: kept.Recurring, Created: time.UnixMilli(kept.Created).In(s.clock.Now().Location()),
		}})
	}
	return list
}

func (s *cronJobs) writeDurableJobs(list []cronJob) error {
	file := durableJobFile{Tasks: []json.RawMessage{}}
	for _, j := range list {
		if j.storedJSON == nil {
			raw, err := protocol.Marshal(storedCronJob{
				ID: j.ID, Cron: j.Cron.Expression(), Prompt: j.Prompt, Created: j.Created.UnixMilli(), Recurring: j.Recurring,
				MaxAge: maxJobAgeMS(j.Recurring), Session: s.sessionID, PID: s.pid, Project: s.projectDir, SignIn: "none",
			})
			if err != nil {
				return err
			}
			j.storedJSON = raw
		}
		file.Tasks = append(file.Tasks, j.storedJSON)
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file); err != nil {
		return err
	}
	path := s.durableJobsFilePath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data.Bytes(), 0o644)
}

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

func isWakeup(j task.Job) bool { return !j.At.IsZero() }

func scheduleWakeup(_ context.Context, s *cronJobs, in wakeupInput) protocol.ToolResult {
	switch {
	case s.tasks == nil:
		return tool.FailUnsimulated("ScheduleWakeup", "cannot schedule prompts in this session")
	case in.Stop:
		return s.cancelDynamicLoopWakeups()
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
	at := roundedUpWakeupTime(now, time.Duration(delay)*time.Second)
	s.tasks.RemoveJobs(isWakeup)
	c, _ := task.ParseCron(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())) // the expression contains a time of day, so it is always valid
	j := s.tasks.NewJob(c, *in.Prompt)
	j.At = at
	s.tasks.AddJob(j)
	return tool.TextResult(fmt.Sprintf("Next wakeup scheduled for %s (in %.0fs)%s. If you owe the user a status update this tick, write it now as ordinary response "+
		"text; then end the turn — the harness re-invokes you when the wakeup fires or a task-notification arrives.",
		at.Format("15:04:05"), at.Sub(now).Seconds(), clamped),
		wakeupOutput{At: at.UnixMilli(), Delay: int(delay), Clamped: clamped != ""})
}

// roundedUpWakeupTime returns now plus delay, rounded up to a full minute. It rounds down if the result would otherwise be more
// than maxWakeupDelay after now.
func roundedUpWakeupTime(now time.Time, delay time.Duration) time.Time {
	at := now.Add(delay)
	full := at.Truncate(time.Minute)
	if next := full.Add(time.Minute); full.Before(at) && !next.After(now.Add(maxWakeupDelay)) {
		return next
	}
	return full
}

func (s *cronJobs) cancelDynamicLoopWakeups() (cancellationResult protocol.ToolResult) {
	n := s.tasks.RemoveJobs(isWakeup)
	what := "any dynamic loop in this session is ended; there was no pending wakeup to cancel. If you are running a fixed-interval /loop " +
		"(a recurring cron), it is NOT stopped by this call — cancel it with CronDelete."
	if n > 0 {
		what = fmt.Sprintf("cancelled %d pending wakeup(s); no further dynamic-loop wakeups scheduled.", n)
	}
	return tool.TextResult("Loop stopped — "+what+" If you armed a Monitor for this loop, TaskStop it now. Then write the loop's outcome for the user as "+
		"ordinary visible response text — and end the turn.", wakeupOutput{Stopped: true, Cancelled: &n})
}
