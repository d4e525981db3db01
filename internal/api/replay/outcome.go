package replay

import (
	"context"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// Key names the whole history.
func (f *Replay) Key() history.Digest { return f.groups[len(f.groups)-1].key }

// Kinds lists the history as it was understood.
func (f *Replay) Kinds() []string {
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

// Findings are what was odd since they were asked for last.
func (f *Replay) Findings() []string {
	found := f.findings
	f.findings = nil
	return found
}

// Valueless are the paths in templates that had no value.
func (f *Replay) Valueless() []Valueless { return f.valueless }

// Reply is what the last group asked first, and what the scenario said to it, after
// Run; false = the fold came to no answer.
func (f *Replay) Reply() (asked scenarios.Request, reply scenarios.Reply, ok bool) {
	if f.final == nil || f.final.answer == nil {
		return asked, reply, false
	}
	return f.final.answer.began, f.final.answer.reply, true
}

// Left is the step of the script that comes next, and where it stands; an empty text
// says that there is none.
func (f *Replay) Left(ctx context.Context) (text, file string, line int) {
	text, at, _ := f.final.engine.Fork().Unplayed(ctx)
	return text, at.File, at.Line
}

// NotOffered are the tools that the answer calls and the request does not offer, of
// clients that offer all they have; they are known after Compose.
func (f *Replay) NotOffered() []string { return f.missing }

// Held returns the gates that the answer waits at, in order.
func (f *Replay) Held() []PendingGate { return f.final.answer.held }

// Strikes tells whether the failure of the answer happens this time.
func (f *Replay) Strikes() bool {
	a := f.final.answer
	fail := a.reply.Failure
	return fail != nil && (fail.Times == 0 || f.before.struck[a.reply.Rule.Name]+f.attempt-1 < fail.Times)
}

// Answered notes that the attempt got its answer.
func (f *Replay) Answered() { f.memory.mark(f.talk(), f.Key(), f.attempt, false) }

// Failed notes that the attempt failed: the client will ask again.
func (f *Replay) Failed() { f.memory.mark(f.talk(), f.Key(), f.attempt, true) }

// Last is what the last message of the user means, and the calls that it may
// answer.
func (f *Replay) Last() ([]history.Step, []history.Use) {
	g := &f.groups[len(f.groups)-1]
	return g.Steps, g.Uses
}

// Misses are the turns of the scenario that went otherwise in the last group.
func (f *Replay) Misses() []scenarios.ExpectationResult {
	return f.final.engine.Misses()[len(f.before.engine.Misses()):]
}
