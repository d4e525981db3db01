package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Schedule is a cron expression with five fields: minute, hour, day of the month, month, day of the week. Its
// grammar and its description in words are those of the real CLI 2.1.329.
type Schedule struct {
	expr   string
	fields [5]uint64 // bit n: the value n is set
}

const (
	cronMinute = iota
	cronHour
	cronDay
	cronMonth
	cronWeekday
)

// ParseCron parses an expression of five fields. Each field is a list of "*", values, ranges, and steps such as "*/5"
// or "0-30/10". It returns false if the expression is invalid.
func ParseCron(expr string) (Schedule, bool) {
	words := strings.Fields(expr)
	c := Schedule{expr: expr}
	if len(words) != len(c.fields) {
		return Schedule{}, false
	}
	for i, r := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}} { // 7 is also Sunday
		for part := range strings.SplitSeq(words[i], ",") {
			bits, ok := parseCronPart(part, r[0], r[1])
			if !ok {
				return Schedule{}, false
			}
			c.fields[i] |= bits
		}
	}
	const sunday, alsoSunday = 1 << 0, 1 << 7
	if c.fields[cronWeekday]&alsoSunday != 0 {
		c.fields[cronWeekday] = c.fields[cronWeekday]&^alsoSunday | sunday
	}
	return c, true
}

// parseCronPart returns the values of one part of a list as a bit set.
func parseCronPart(part string, low, high int) (uint64, bool) {
	span, steps, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = parseCronNumber(steps); !ok || step == 0 {
			return 0, false
		}
	}
	from, to := low, high
	if span != "*" {
		first, last, ranged := strings.Cut(span, "-")
		if stepped && !ranged {
			return 0, false
		}
		if !ranged {
			last = first
		}
		var ok1, ok2 bool
		from, ok1 = parseCronNumber(first)
		to, ok2 = parseCronNumber(last)
		if !ok1 || !ok2 || from < low || to > high || from > to {
			return 0, false
		}
	}
	var bits uint64
	for v := from; v <= to; v += step {
		bits |= 1 << v
	}
	return bits, true
}

func parseCronNumber(s string) (int, bool) {
	if s == "" || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// NextWithinYear returns the first time after t that matches the schedule; false means none within a year.
func (c Schedule) NextWithinYear(t time.Time) (time.Time, bool) {
	end := t.AddDate(1, 0, 1)
	t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute()+1, 0, 0, t.Location())
	for t.Before(end) {
		switch {
		case !c.fieldAllows(cronMonth, int(t.Month())) || !c.matchesDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
		case !c.fieldAllows(cronHour, t.Hour()):
			t = t.Add(time.Hour - time.Duration(t.Minute())*time.Minute)
		case !c.fieldAllows(cronMinute, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

func (c Schedule) fieldAllows(field, value int) bool { return c.fields[field]>>value&1 == 1 }

// matchesDay reports whether the day of t matches. If day of month and day of week are limited, one match is enough.
func (c Schedule) matchesDay(t time.Time) bool {
	const everyDay, everyWeekday = 1<<32 - 2, 1<<7 - 1
	day, weekday := c.fieldAllows(cronDay, t.Day()), c.fieldAllows(cronWeekday, int(t.Weekday()))
	if c.fields[cronDay] != everyDay && c.fields[cronWeekday] != everyWeekday {
		return day || weekday
	}
	return day && weekday
}

// Expression returns the schedule as written.
func (c Schedule) Expression() string { return c.expr }

// String describes a common schedule in words. For other schedules, it returns the expression.
func (c Schedule) String() string {
	words := strings.Fields(c.expr)
	if len(words) != len(c.fields) {
		return c.expr
	}
	minute, hour, weekday := words[cronMinute], words[cronHour], words[cronWeekday]
	if words[cronDay] != "*" || words[cronMonth] != "*" {
		return c.expr
	}
	m, fixed := parseCronNumber(minute)
	switch h, daily := parseCronNumber(hour); {
	case hour == "*" && weekday == "*" && minute == "*":
		return "Every minute"
	case hour == "*" && weekday == "*" && !fixed:
		if n, ok := stepOfField(minute); ok {
			return everyText(n, "minute")
		}
	case hour == "*" && weekday == "*":
		return "Every hour" + atMinuteTextUnlessZero(m)
	case fixed && !daily && weekday == "*":
		if n, ok := stepOfField(hour); ok {
			return everyText(n, "hour") + atMinuteTextUnlessZero(m)
		}
	case fixed && daily:
		if days := weekdayText(weekday); days != "" {
			return days + " at " + time.Date(0, 1, 1, h, m, 0, 0, time.UTC).Format("3:04 PM")
		}
	}
	return c.expr
}

func stepOfField(field string) (int, bool) {
	step, ok := strings.CutPrefix(field, "*/")
	if !ok {
		return 0, false
	}
	return parseCronNumber(step)
}

func everyText(n int, unit string) string {
	if n == 1 {
		return "Every " + unit
	}
	return fmt.Sprintf("Every %d %ss", n, unit)
}

func atMinuteTextUnlessZero(minute int) string {
	if minute == 0 {
		return ""
	}
	return fmt.Sprintf(" at :%02d", minute)
}

func weekdayText(weekday string) string {
	switch {
	case weekday == "*":
		return "Every day"
	case weekday == "1-5":
		return "Weekdays"
	case len(weekday) == 1 && weekday >= "0" && weekday <= "7":
		return "Every " + time.Weekday((weekday[0]-'0')%7).String()
	}
	return ""
}

// Job is a scheduled prompt.
type Job struct {
	ID        string
	Cron      Schedule
	Prompt    string
	Recurring bool
	Created   time.Time
	// At is the run time of a job that ignores its schedule. Zero means that the job follows its schedule.
	At time.Time
}

// The maximum deviation of a job's run from its schedule.
const (
	maxRecurringJobDelay             = 30 * time.Minute
	maxOneTimeJobStartBeforeSchedule = 90 * time.Second
	// firstRunDelayOfFiveMinuteJob is the time between the creation and the first run of a job that runs every five minutes.
	firstRunDelayOfFiveMinuteJob = 285 * time.Second
)

// FirstRunMillis returns the time of the first run in Unix milliseconds. If At is set, it returns At. Otherwise the time deviates from
// the schedule as in the real CLI (observed with 2.1.329). A recurring job runs later by a fraction of its period. A job for every five
// minutes runs firstRunDelayOfFiveMinuteJob after its creation. A job that runs once, at a full or half hour, runs a little earlier.
func (j Job) FirstRunMillis() float64 {
	if !j.At.IsZero() {
		return unixMillis(j.At)
	}
	first, ok := j.Cron.NextWithinYear(j.Created)
	if !ok {
		return 0
	}
	switch {
	case !j.Recurring && first.Minute()%30 == 0:
		return max(unixMillis(first)-j.jitterFractionFromID()*milliseconds(maxOneTimeJobStartBeforeSchedule), unixMillis(j.Created))
	case !j.Recurring:
		return unixMillis(first)
	case j.Cron.String() == "Every 5 minutes":
		return unixMillis(j.Created.Add(firstRunDelayOfFiveMinuteJob))
	}
	second, ok := j.Cron.NextWithinYear(first)
	if !ok {
		return unixMillis(first)
	}
	return unixMillis(first) + min(j.jitterFractionFromID()*0.5*milliseconds(second.Sub(first)), milliseconds(maxRecurringJobDelay))
}

// jitterFractionFromID returns a fraction below 1 that depends on the job's id.
func (j Job) jitterFractionFromID() float64 {
	n, err := strconv.ParseUint(j.ID, 16, 32)
	if err != nil {
		return 0
	}
	return float64(n) / (math.MaxUint32 + 1)
}

func unixMillis(t time.Time) float64 { return float64(t.UnixMilli()) }

func milliseconds(d time.Duration) float64 { return float64(d / time.Millisecond) }

// NewJob returns a new job, which [Set.AddJob] can store.
func (s *Set) NewJob(c Schedule, prompt string) Job {
	return Job{ID: strings.ReplaceAll(s.options.NewID(), "-", "")[:8], Cron: c, Prompt: prompt, Created: s.options.Now()}
}

// AddJob stores a scheduled job of the session. This package does not run it.
func (s *Set) AddJob(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduledJobs = append(s.scheduledJobs, j)
}

// RemoveJobs removes the jobs for which matches returns true, and returns their number.
func (s *Set) RemoveJobs(matches func(Job) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.scheduledJobs)
	s.scheduledJobs = slices.DeleteFunc(s.scheduledJobs, matches)
	return before - len(s.scheduledJobs)
}

// NextWakeup returns the wake-up that is scheduled for one point in time, if there is one. A session has at most one.
func NextWakeup(s *Set) (wakeup Job, ok bool) {
	for _, j := range s.Jobs() {
		if !j.At.IsZero() {
			return j, true
		}
	}
	return Job{}, false
}

// Jobs lists the jobs of the session, oldest first.
func (s *Set) Jobs() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.scheduledJobs)
}

// ForHooks lists the running background tasks for the input of hooks.
func ForHooks(s *Set) (list protocol.NeverNullJSONList[protocol.BackgroundTask]) {
	for _, i := range s.RunningInBackground() {
		kind := "shell"
		if i.Kind == KindAgent {
			kind = "subagent"
		}
		list = append(list, protocol.BackgroundTask{ID: i.ID, Type: kind, Status: "running", Description: i.Description, Command: i.Command, AgentType: i.AgentType})
	}
	return list
}
