package replay

import (
	"context"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// Key names the whole history.
func (f *Replay) Key() history.Digest { return f.groups[len(f.groups)-1].key }

// StepKinds lists the history as it was understood.
func (f *Replay) StepKinds() []string {
	out := make([]string, 0, 2*len(f.groups))
	for i := range f.groups {
		g := &f.groups[i]
		if g.Assistant {
			out = append(out, "answer")
			continue
		}
		for range g.Context {
			out = append(out, "context")
		}
		for _, in := range g.Steps {
			out = append(out, string(in.Kind))
		}
	}
	return out
}

// Attempt counts the requests with this history, from 1; it is known after Run.
func (f *Replay) Attempt() int { return f.attempt }

// TakeFindings are what was odd since they were asked for last.
func (f *Replay) TakeFindings() []string {
	found := f.findings
	f.findings = nil
	return found
}

// MissingValue are the paths in templates that had no value.
func (f *Replay) MissingValues() []MissingValue { return f.missingValues }

// Reply is what the last group asked first, and what the scenario said to it, after
// Run; false = the fold came to no answer.
func (f *Replay) Reply() (asked scenarios.Request, reply scenarios.Reply, ok bool) {
	if f.final == nil || f.final.answer == nil {
		return asked, reply, false
	}
	return f.final.answer.firstRequest, f.final.answer.reply, true
}

// NextStep is the step of the script that comes next, and where it stands; an empty text
// says that there is none.
func (f *Replay) NextStep(ctx context.Context) (text, file string, line int) {
	text, at, _ := f.final.engine.Fork().Unplayed(ctx)
	return text, at.File, at.Line
}

// UnofferedTools are the tools that the answer calls and the request does not offer, of
// clients that offer all they have; they are known after Compose.
func (f *Replay) UnofferedTools() []string { return f.unofferedTools }

// PendingGates returns the gates that the answer waits at, in order.
func (f *Replay) PendingGates() []PendingGate { return f.final.answer.pendingGates }

// FailsNow tells whether the failure of the answer happens this time.
func (f *Replay) FailsNow() bool {
	a := f.final.answer
	fail := a.reply.Failure
	return fail != nil && (fail.Times == 0 || f.beforeLast.failureCounts[a.reply.Rule.Name]+f.attempt-1 < fail.Times)
}

// RecordSuccess notes that the attempt got its answer.
func (f *Replay) RecordSuccess() { f.memory.recordOutcome(f.conversation(), f.Key(), f.attempt, false) }

// RecordFailure notes that the attempt failed: the client will ask again.
func (f *Replay) RecordFailure() { f.memory.recordOutcome(f.conversation(), f.Key(), f.attempt, true) }

// LastMessage is what the last message of the user means, and the calls that it may
// answer.
func (f *Replay) LastMessage() ([]history.Step, []history.ToolUse) {
	g := &f.groups[len(f.groups)-1]
	return g.Steps, g.Uses
}

// Misses are the turns of the scenario that went otherwise in the last group.
func (f *Replay) Misses() []scenarios.ExpectationResult {
	return f.final.engine.Misses()[len(f.beforeLast.engine.Misses()):]
}
