package task

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Job is a prompt that is scheduled.
type Job struct {
	ID        string
	Cron      Schedule
	Prompt    string
	Recurring bool
	Created   time.Time
	// At is when it runs, where that is not for the schedule to say.
	At time.Time
}

// The bounds of how far a job is moved from what its schedule says.
const (
	mostLate  = 30 * time.Minute
	mostEarly = 90 * time.Second
	// warm is how far apart runs of every five minutes are.
	warm = 285 * time.Second
)

// Next is when the job runs first, in milliseconds: each job is moved by a part
// of its own of its period, recurring ones to later, others that would run at a
// half or a full hour to earlier (observed with 2.1.329).
func (j Job) Next() float64 {
	if !j.At.IsZero() {
		return millis(j.At)
	}
	first, ok := j.Cron.Next(j.Created)
	if !ok {
		return 0
	}
	switch {
	case !j.Recurring && first.Minute()%30 == 0:
		return max(millis(first)-j.part()*ms(mostEarly), millis(j.Created))
	case !j.Recurring:
		return millis(first)
	case j.Cron.String() == "Every 5 minutes":
		return millis(j.Created.Add(warm))
	}
	second, ok := j.Cron.Next(first)
	if !ok {
		return millis(first)
	}
	return millis(first) + min(j.part()*0.5*ms(second.Sub(first)), ms(mostLate))
}

// part is the job's own number below 1.
func (j Job) part() float64 {
	n, err := strconv.ParseUint(j.ID, 16, 32)
	if err != nil {
		return 0
	}
	return float64(n) / (math.MaxUint32 + 1)
}

func millis(t time.Time) float64 { return float64(t.UnixMilli()) }

func ms(d time.Duration) float64 { return float64(d / time.Millisecond) }

// NewJob makes a job of now that is not scheduled yet.
func (s *Set) NewJob(c Schedule, prompt string) Job {
	return Job{ID: strings.ReplaceAll(s.o.NewID(), "-", "")[:8], Cron: c, Prompt: prompt, Created: s.o.Now()}
}

// Schedule keeps a job for the session. Nothing here runs it.
func (s *Set) Schedule(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduled = append(s.scheduled, j)
}

// Unschedule forgets the jobs that are meant and tells how many those were.
func (s *Set) Unschedule(meant func(Job) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.scheduled)
	s.scheduled = slices.DeleteFunc(s.scheduled, meant)
	return before - len(s.scheduled)
}

// Scheduled lists the jobs of the session, oldest first.
func (s *Set) Scheduled() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.scheduled)
}
