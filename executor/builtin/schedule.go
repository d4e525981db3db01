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

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// maxJobs is how many jobs may be scheduled at once.
const maxJobs = 50

type cronInput struct {
	Cron      string `json:"cron"`
	Prompt    string `json:"prompt"`
	Recurring *bool  `json:"recurring"`
	Durable   bool   `json:"durable"`
}

func cronCreateTool() tool {
	return tool{
		name:        "CronCreate",
		description: "Schedules a prompt. Nothing here runs it when its time has come.",
		input: object(
			req("cron", str("When, in five fields: minute, hour, day of the month, month, day of the week")),
			req("prompt", str("The prompt")),
			opt("recurring", boolean("At every such time (the default), or only at the next")),
			opt("durable", boolean("Keep it in a file for later sessions")),
		),
		check: typedCheck(func(t *Tools, in cronInput) *protocol.ToolResult {
			_, refusal := t.newCron(in)
			return refusal
		}),
		run: typed(cronCreate),
	}
}

// newCron reads the schedule of a job to come, or says why there is none.
func (t *Tools) newCron(in cronInput) (task.Cron, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Cron, *protocol.ToolResult) {
		r := refuse(format, args...)
		return task.Cron{}, &r
	}
	c, ok := task.ParseCron(in.Cron)
	if !ok {
		return no("Invalid cron expression '%s'. Expected 5 fields: M H DoM Mon DoW.", in.Cron)
	}
	if _, ok := c.Next(t.o.Now()); !ok {
		return no("Cron expression '%s' does not match any calendar date in the next year.", in.Cron)
	}
	if len(t.jobs()) >= maxJobs {
		return no("Too many scheduled jobs (max %d). Cancel one first.", maxJobs)
	}
	return c, nil
}

func cronCreate(_ context.Context, t *Tools, in cronInput) protocol.ToolResult {
	c, refusal := t.newCron(in)
	switch {
	case refusal != nil:
		return *refusal
	case t.o.Tasks == nil:
		return needsResult("CronCreate", "has no background in this session")
	}
	j := job{Job: t.o.Tasks.NewJob(c, in.Prompt), durable: in.Durable}
	j.Recurring = in.Recurring == nil || *in.Recurring
	kept, lasts := "Session-only (not written to disk, dies when Claude exits)", "It will fire once then auto-delete."
	kind := "one-shot task"
	if j.Recurring {
		kind, lasts = "recurring job", "Auto-expires after 7 days. Use CronDelete to cancel sooner."
	}
	if in.Durable {
		kept = "Persisted to .claude/scheduled_tasks.json"
		if err := t.writeJobs(append(t.durableJobs(), j)); err != nil {
			return fail("%v", err)
		}
	} else {
		t.o.Tasks.Schedule(j.Job)
	}
	return text(fmt.Sprintf("Scheduled %s %s (%s). Next run: %s. %s. %s", kind, j.ID, c, j.clock(), kept, lasts), struct {
		ID        string  `json:"id"`
		Human     string  `json:"humanSchedule"`
		Recurring bool    `json:"recurring"`
		Durable   bool    `json:"durable"`
		Next      float64 `json:"nextFireAt"`
	}{j.ID, c.String(), j.Recurring, in.Durable, j.Next()})
}

func cronListTool() tool {
	return tool{
		name:        "CronList",
		description: "Lists the scheduled prompts.",
		input:       object(),
		run:         typed(cronList),
	}
}

// listedJob is a job as hosts see it; Durable is there for jobs of the session.
type listedJob struct {
	ID        string  `json:"id"`
	Cron      string  `json:"cron"`
	Human     string  `json:"humanSchedule"`
	Prompt    string  `json:"prompt"`
	Recurring bool    `json:"recurring,omitempty"`
	Durable   *bool   `json:"durable,omitempty"`
	Next      float64 `json:"nextFireAt"`
}

func cronList(_ context.Context, t *Tools, _ struct{}) protocol.ToolResult {
	out := struct {
		Jobs []listedJob `json:"jobs"`
	}{[]listedJob{}}
	var lines []string
	for _, j := range t.jobs() {
		l := listedJob{ID: j.ID, Cron: j.Cron.Expr(), Human: j.Cron.String(), Prompt: j.Prompt, Recurring: j.Recurring, Next: j.Next()}
		kind, kept := "one-shot", ""
		if j.Recurring {
			kind = "recurring"
		}
		if !j.durable {
			kept, l.Durable = " [session-only]", new(bool)
		}
		out.Jobs = append(out.Jobs, l)
		lines = append(lines, fmt.Sprintf("%s — %s (%s)%s, next run %s: %s", j.ID, l.Human, kind, kept, j.clock(), summary(j.Prompt)))
	}
	if len(lines) == 0 {
		return text("No scheduled jobs.", out)
	}
	return text(strings.Join(lines, "\n"), out)
}

// summary is the first line of a prompt, cut to what a list shows.
func summary(prompt string) string {
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

func cronDeleteTool() tool {
	return tool{
		name:        "CronDelete",
		description: "Cancels a scheduled prompt.",
		input:       object(req("id", str("The job"))),
		check: typedCheck(func(t *Tools, in struct{ ID string }) *protocol.ToolResult {
			if slices.ContainsFunc(t.jobs(), func(j job) bool { return j.ID == in.ID }) {
				return nil
			}
			r := refuse("No scheduled job with id '%s'", in.ID)
			return &r
		}),
		run: typed(cronDelete),
	}
}

func cronDelete(_ context.Context, t *Tools, in struct{ ID string }) protocol.ToolResult {
	gone := 0
	if t.o.Tasks != nil {
		gone = t.o.Tasks.Unschedule(func(j task.Job) bool { return j.ID == in.ID })
	}
	durable := t.durableJobs()
	if left := slices.DeleteFunc(slices.Clone(durable), func(j job) bool { return j.ID == in.ID }); len(left) < len(durable) {
		gone++
		if err := t.writeJobs(left); err != nil {
			return fail("%v", err)
		}
	}
	if gone == 0 {
		return refuse("No scheduled job with id '%s'", in.ID)
	}
	return text("Cancelled job "+in.ID+".", struct {
		ID string `json:"id"`
	}{in.ID})
}

// job is a scheduled prompt and where it is kept: in the session, or in a file.
type job struct {
	task.Job
	durable bool
	stored  json.RawMessage // how the file has it; nil = it has not
}

// clock is when the job runs next, to the minute.
func (j job) clock() string {
	at := time.UnixMilli(int64(math.Round(j.Next()))).In(j.Created.Location())
	return at.Round(time.Minute).Format("Jan 2 3:04pm")
}

// jobs lists what is scheduled: what is kept in the file first.
func (t *Tools) jobs() []job {
	all := t.durableJobs()
	if t.o.Tasks != nil {
		for _, j := range t.o.Tasks.Scheduled() {
			all = append(all, job{Job: j})
		}
	}
	return all
}

// storedJob is a job in the file. Who wrote it is told as far as the session
// knows.
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

func (t *Tools) jobsPath() string { return filepath.Join(t.o.CWD, ".claude", "scheduled_tasks.json") }

// durableJobs reads the file; what is no job in it is passed over.
func (t *Tools) durableJobs() []job {
	var file jobFile
	data, err := os.ReadFile(t.jobsPath())
	if err != nil || json.Unmarshal(data, &file) != nil {
		return nil
	}
	var jobs []job
	for _, raw := range file.Tasks {
		var s storedJob
		if json.Unmarshal(raw, &s) != nil || s.ID == "" {
			continue
		}
		c, ok := task.ParseCron(s.Cron)
		if !ok {
			continue
		}
		jobs = append(jobs, job{durable: true, stored: raw, Job: task.Job{
			ID: s.ID, Cron: c, Prompt: s.Prompt, Recurring: s.Recurring, Created: time.UnixMilli(s.Created).In(t.o.Now().Location()),
		}})
	}
	return jobs
}

func (t *Tools) writeJobs(jobs []job) error {
	file := jobFile{Tasks: []json.RawMessage{}}
	for _, j := range jobs {
		if j.stored == nil {
			raw, err := protocol.Marshal(storedJob{
				ID: j.ID, Cron: j.Cron.Expr(), Prompt: j.Prompt, Created: j.Created.UnixMilli(), Recurring: j.Recurring,
				Session: t.env("CLAUDE_CODE_SESSION_ID"), Project: t.o.CWD, SignIn: "none",
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
	path := t.jobsPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data.Bytes(), 0o644)
}
