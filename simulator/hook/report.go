package hook

import "time"

// Report counts the hooks that ran for one event.
type Report struct {
	Event, Name string // Name includes the matched subject, such as "PreToolUse:Read"
	Hooks       int
	Blocked     int
	Failed      int // without blocking
	Cancelled   int
	Duration    time.Duration // duration of the slowest hook
	Output      int           // bytes on standard output
	Context     int           // bytes of additional context
}

// report records which hooks ran, if Options.Reports is set.
func (r *Runner) report(c *hookCall, answers []hookResult) {
	if !r.options.Reports {
		return
	}
	out := Report{Event: c.event, Name: c.name, Hooks: len(answers)}
	for i := range answers {
		a := &answers[i]
		switch _, _, refused := a.refusalReason(c); {
		case refused:
			out.Blocked++
		case a.outcome == outcomeError:
			out.Failed++
		case a.outcome == outcomeCancelled:
			out.Cancelled++
		}
		out.Duration = max(out.Duration, a.duration)
		out.Output += len(a.stdout)
		if own := a.output.Specific; own != nil {
			out.Context += len(own.AdditionalContext)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, out)
}

// TakeReports returns the hooks that ran since its last call, in the order in which they finished.
func (r *Runner) TakeReports() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.reports
	r.reports = nil
	return taken
}
