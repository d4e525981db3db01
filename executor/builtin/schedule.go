package builtin

import (
	"bytes"
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

// maxJobs is the maximum number of scheduled jobs.
const maxJobs = 50

// cronJobs holds the scheduled prompts of a session.
type cronJobs struct {
	tasks   *task.Set // nil means no background tasks
	clock   tool.Clock
	dir     string // project directory, which contains the file of durable jobs
	session string // session id, if known
}

type cronInput struct {
	Cron      string `json:"cron"`
	Prompt    string `json:"prompt"`
	Recurring *bool  `json:"recurring"`
	Durable   bool   `json:"durable"`
}

func (s *cronJobs) tools() []tool.Tool {
	return []tool.Tool{cronCreateTool(s), cronListTool(s), cronDeleteTool(s), scheduleWakeupTool(s)}
}

func cronCreateTool(s *cronJobs) tool.Tool {
	return tool.Tool{
		Name:        "CronCreate",
		Description: "Schedules a prompt. Nothing here runs it when its time has come.",
		Input: tool.Object(
			tool.Required("cron", tool.String("When, in five fields: minute, hour, day of the month, month, day of the week")),
			tool.Required("prompt", tool.String("The prompt")),
			tool.Optional("recurring", tool.Boolean("At every such time (the default), or only at the next")),
			tool.Optional("durable", tool.Boolean("Keep it in a file for later sessions")),
		),
		Check: tool.TypedCheck(s, func(_ context.Context, s *cronJobs, in cronInput) *protocol.ToolResult {
			_, refusal := s.newCron(in)
			return refusal
		}),
		Run: tool.TypedRun(s, cronCreate),
	}
}

// newCron parses the schedule of a new job, or returns the result that explains why it is invalid.
func (s *cronJobs) newCron(in cronInput) (task.Schedule, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Schedule, *protocol.ToolResult) {
		return task.Schedule{}, new(tool.Refuse(format, args...))
	}
	c, ok := task.ParseCron(in.Cron)
	if !ok {
		return no("Invalid cron expression '%s'. Expected 5 fields: M H DoM Mon DoW.", in.Cron)
	}
	if _, ok := c.Next(s.clock.Now()); !ok {
		return no("Cron expression '%s' does not match any calendar date in the next year.", in.Cron)
	}
	if len(s.allJobs()) >= maxJobs {
		return no("Too many scheduled jobs (max %d). Cancel one first.", maxJobs)
	}
	return c, nil
}

func cronCreate(_ context.Context, s *cronJobs, in cronInput) protocol.ToolResult {
	c, refusal := s.newCron(in)
	switch {
	case refusal != nil:
		return *refusal
	case s.tasks == nil:
		return tool.NeedsResult("CronCreate", "has no background in this session")
	}
	j := storedCronJob{Job: s.tasks.NewJob(c, in.Prompt), durable: in.Durable}
	j.Recurring = in.Recurring == nil || *in.Recurring
	kept, lasts := "Session-only (not written to disk, dies when Claude exits)", "It will fire once then auto-delete."
	kind := "one-shot task"
	if j.Recurring {
		kind, lasts = "recurring job", "Auto-expires after 30 days. Use CronDelete to cancel sooner."
	}
	if in.Durable {
		kept = "Persisted to .claude/scheduled_tasks.json"
		if err := s.writeJobs(append(s.durableJobs(), j)); err != nil {
			return tool.Fail("%v", err)
		}
	} else {
		s.tasks.Schedule(j.Job)
	}
	return tool.Text(fmt.Sprintf("Scheduled %s %s (%s). Next run: %s. %s. %s", kind, j.ID, c, j.timeOfDay(), kept, lasts), struct {
		ID        string  `json:"id"`
		Human     string  `json:"humanSchedule"`
		Recurring bool    `json:"recurring"`
		Durable   bool    `json:"durable"`
		Next      float64 `json:"nextFireAt"`
		MaxAge    int64   `json:"maxAgeMs,omitempty"` // maximum age of recurring jobs
	}{j.ID, c.String(), j.Recurring, in.Durable, j.NextRun(), maxAge(j.Recurring)})
}

// maxAge returns the milliseconds after which a recurring job ends; 0 means it does not recur.
func maxAge(recurring bool) int64 {
	if !recurring {
		return 0
	}
	return (30 * 24 * time.Hour).Milliseconds()
}

func cronListTool(s *cronJobs) tool.Tool {
	return tool.Tool{
		Name:        "CronList",
		Description: "Lists the scheduled prompts.",
		Input:       tool.Object(),
		Run:         tool.TypedRun(s, cronList),
	}
}

// listedJob is a job in the form that hosts receive. Durable is set for jobs of the session.
type listedJob struct {
	ID        string  `json:"id"`
	Cron      string  `json:"cron"`
	Human     string  `json:"humanSchedule"`
	Prompt    string  `json:"prompt"`
	Recurring bool    `json:"recurring,omitempty"`
	Durable   *bool   `json:"durable,omitempty"`
	Next      float64 `json:"nextFireAt"`
}

func cronList(_ context.Context, s *cronJobs, _ struct{}) protocol.ToolResult {
	out := struct {
		Jobs []listedJob `json:"jobs"`
	}{[]listedJob{}}
	var lines []string
	for _, j := range s.allJobs() {
		l := listedJob{ID: j.ID, Cron: j.Cron.Expression(), Human: j.Cron.String(), Prompt: j.Prompt, Recurring: j.Recurring, Next: j.NextRun()}
		kind, kept := "one-shot", ""
		if j.Recurring {
			kind = "recurring"
		}
		if !j.durable {
			kept, l.Durable = " [session-only]", new(bool)
		}
		out.Jobs = append(out.Jobs, l)
		lines = append(lines, fmt.Sprintf("%s — %s (%s)%s, next run %s: %s", j.ID, l.Human, kind, kept, j.timeOfDay(), promptSummary(j.Prompt)))
	}
	if len(lines) == 0 {
		return tool.Text("No scheduled jobs.", out)
	}
	return tool.Text(strings.Join(lines, "\n"), out)
}

// promptSummary returns the first line of a prompt, truncated for a list.
func promptSummary(prompt string) string {
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
		Name:        "CronDelete",
		Description: "Cancels a scheduled prompt.",
		Input:       tool.Object(tool.Required("id", tool.String("The job"))),
		Check: tool.TypedCheck(s, func(_ context.Context, s *cronJobs, in struct{ ID string }) *protocol.ToolResult {
			if slices.ContainsFunc(s.allJobs(), func(j storedCronJob) bool { return j.ID == in.ID }) {
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
		gone = s.tasks.Unschedule(func(j task.Job) bool { return j.ID == in.ID })
	}
	durable := s.durableJobs()
	if left := slices.DeleteFunc(slices.Clone(durable), func(j storedCronJob) bool { return j.ID == in.ID }); len(left) < len(durable) {
		gone++
		if err := s.writeJobs(left); err != nil {
			return tool.Fail("%v", err)
		}
	}
	if gone == 0 {
		return tool.Refuse("No scheduled job with id '%s'", in.ID)
	}
	return tool.Text("Cancelled job "+in.ID+".", struct {
		ID string `json:"id"`
	}{in.ID})
}

// storedCronJob is a scheduled prompt, stored in the session or in a file.
type storedCronJob struct {
	task.Job
	durable bool
	stored  json.RawMessage // the job as stored in the file; nil means that it is not stored
}

// timeOfDay returns the next time at which the job runs, to the minute.
func (j storedCronJob) timeOfDay() string {
	at := time.UnixMilli(int64(math.Round(j.NextRun()))).In(j.Created.Location())
	return at.Round(time.Minute).Format("Jan 2 3:04pm")
}

// allJobs lists all jobs, those in the file first.
func (s *cronJobs) allJobs() []storedCronJob {
	all := s.durableJobs()
	if s.tasks != nil {
		for _, j := range s.tasks.Scheduled() {
			all = append(all, storedCronJob{Job: j})
		}
	}
	return all
}

// storedJob is a job in the file. The creator fields are set if the session knows them.
type storedJob struct {
	ID        string `json:"id"`
	Cron      string `json:"cron"`
	Prompt    string `json:"prompt"`
	Created   int64  `json:"createdAt"`
	Recurring bool   `json:"recurring,omitempty"`
	Session   string `json:"createdBySessionId,omitempty"`
	Project   string `json:"createdInProject"`
	SignIn    string `json:"createdUnderSignIn"`
}

type jobFile struct {
	Tasks []json.RawMessage `json:"tasks"`
}

func (s *cronJobs) jobsPath() string { return filepath.Join(s.dir, ".claude", "scheduled_tasks.json") }

// durableJobs reads the file and skips entries that are not jobs.
func (s *cronJobs) durableJobs() []storedCronJob {
	var file jobFile
	data, err := os.ReadFile(s.jobsPath())
	if err != nil || json.Unmarshal(data, &file) != nil {
		return nil
	}
	var list []storedCronJob
	for _, raw := range file.Tasks {
		var kept storedJob
		if json.Unmarshal(raw, &kept) != nil || kept.ID == "" {
			continue
		}
		c, ok := task.ParseCron(kept.Cron)
		if !ok {
			continue
		}
		list = append(list, storedCronJob{durable: true, stored: raw, Job: task.Job{
			ID: kept.ID, Cron: c, Prompt: kept.Prompt, Recurring: kept.Recurring, Created: time.UnixMilli(kept.Created).In(s.clock.Now().Location()),
		}})
	}
	return list
}

func (s *cronJobs) writeJobs(list []storedCronJob) error {
	file := jobFile{Tasks: []json.RawMessage{}}
	for _, j := range list {
		if j.stored == nil {
			raw, err := protocol.Marshal(storedJob{
				ID: j.ID, Cron: j.Cron.Expression(), Prompt: j.Prompt, Created: j.Created.UnixMilli(), Recurring: j.Recurring,
				Session: s.session, Project: s.dir, SignIn: "none",
			})
			if err != nil {
				return err
			}
			j.stored = raw
		}
		file.Tasks = append(file.Tasks, j.stored)
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file); err != nil {
		return err
	}
	path := s.jobsPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data.Bytes(), 0o644)
}
