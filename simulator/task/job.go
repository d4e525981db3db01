package task

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

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
