package api

import (
	"context"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// HistoryDigest returns the digest of the whole history.
func (f *replay) HistoryDigest() history.Digest { return f.groups[len(f.groups)-1].key }

// StepKinds lists the kinds of the history's steps.
func (f *replay) StepKinds() []string {
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

// Attempt returns how often this history was requested, from 1. It may be called after Run.
func (f *replay) Attempt() int { return f.attempt }

// TakeFindings returns and clears the findings about the request.
func (f *replay) TakeFindings() []string {
	found := f.findings
	f.findings = nil
	return found
}

// MissingValues returns the paths in templates that had no value.
func (f *replay) MissingValues() []missingValue { return f.missingValues }

// Reply returns, after Run, the first request of the last group and the scenario's reply to it. It
// returns false if the scenario gave no answer.
func (f *replay) Reply() (asked scenarios.Request, reply scenarios.Reply, ok bool) {
	if f.finalState == nil || f.finalState.answer == nil {
		return asked, reply, false
	}
	return f.finalState.answer.firstRequest, f.finalState.answer.reply, true
}

// NextStep returns the next step of the scenario and its position in the file. The text is empty if there is no next
// step.
func (f *replay) NextStep(ctx context.Context) (text, file string, line int) {
	text, at, _ := f.finalState.engine.Fork().Unplayed(ctx)
	return text, at.File, at.Line
}

// UnofferedTools returns the tools that the answer calls and the request does not offer. It may be called after
// BuildMessage. The list is empty for Claude Code, because its requests do not list all of its tools.
func (f *replay) UnofferedTools() []string { return f.unofferedTools }

// PendingGates returns the gates that the answer waits at, in order.
func (f *replay) PendingGates() []pendingGate { return f.finalState.answer.pendingGates }

// ShouldFail reports whether the scripted failure happens for this attempt.
func (f *replay) ShouldFail() bool {
	a := f.finalState.answer
	fail := a.reply.Failure
	return fail != nil && (fail.Times == 0 || f.stateBeforeLast.failureCounts[a.reply.Rule.Name]+f.attempt-1 < fail.Times)
}

// RecordSuccess records that the attempt was answered.
func (f *replay) RecordSuccess() {
	f.memory.recordOutcome(f.conversationKey(), f.HistoryDigest(), f.attempt, false)
}

// RecordFailure records that the attempt failed, so that the client repeats the request.
func (f *replay) RecordFailure() {
	f.memory.recordOutcome(f.conversationKey(), f.HistoryDigest(), f.attempt, true)
}

// LastMessage returns the steps of the last user message and the calls whose results it may contain.
func (f *replay) LastMessage() ([]history.Step, []history.ToolUse) {
	g := &f.groups[len(f.groups)-1]
	return g.Steps, g.Uses
}

// UnmetExpectations returns the expectations about results that the last group did not meet.
func (f *replay) UnmetExpectations() []scenarios.ExpectationResult {
	return f.finalState.engine.UnmetResults()[len(f.stateBeforeLast.engine.UnmetResults()):]
}
