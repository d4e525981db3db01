package hook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// blockExitCode is the exit status of a command that blocks a call, a prompt or a turn's end (spec: cli-contract 5.5).
const blockExitCode = 2

type hookCall struct {
	event                     string
	name                      string // "EVENT" or "EVENT:SUBJECT"
	toolUseID, cwd, sessionID string
	stdin                     []byte
	prompt                    string        // prompt id; set for events that belong to a prompt
	effort                    string        // empty means that the event has none
	unchecked                 *sync.Once    // see Runner.uncheckedOnce
	slowestDenial             time.Duration // duration of the hook whose denial is the text of the refused call
	startShown                bool          // the hook_started events have been shown
	ids                       []string      // ids for attachments, one for each hook; nil means that all attachments have the id toolUseID
}

type hookResult struct {
	entry  *hookEntry
	id     string // id of the hook in its frames
	output protocol.HookOutput
	// plainText is standard output that is not a JSON object; empty otherwise.
	plainText string
	// blockReason is the reason of a hook that blocked with exit status 2, as users see it: after the label of the
	// hook. rawReason is the same reason without the label.
	blockReason, rawReason string
	isBlocked              bool
	stdout, stderr         string
	progress               []partialOutput // output while the hook was running
	exitCode               *int            // nil means that the hook was killed
	outcome                runOutcome
	noVerdict              noVerdictReason
	timedOut               bool
	wasKilled              bool            // the hook was killed by a signal
	isDetached             bool            // the hook runs or ran in the background, so it gives no decision
	ended                  chan hookResult // receives the result of a detached hook
	duration               time.Duration
}

type partialOutput struct{ stdout, stderr string }

type runOutcome string

const (
	outcomeSuccess   runOutcome = "success"
	outcomeError     runOutcome = "error"
	outcomeCancelled runOutcome = "cancelled"
)

type noVerdictReason int

const (
	verdictGiven           noVerdictReason = iota
	noVerdictBecauseFailed                 // the hook ran and failed
	noVerdictBecauseCommandNotFound
	noVerdictBecauseTimedOut
	noVerdictBecauseInvalidOutput // the answer was invalid; stderr contains the message
	noVerdictBecauseHostGone
	noVerdictBecauseTypeNotSimulated // a hook type that is not simulated
)

// readOutput interprets the output of a successful configured hook: a JSON object is parsed, all else is plain text.
func (a *hookResult) readOutput(event string) {
	object, ok := parseObjectText(a.stdout)
	if !ok {
		a.plainText = a.stdout
		return
	}
	out, err := parseOutput(event, object)
	if err != nil {
		a.outcome, a.noVerdict = outcomeError, noVerdictBecauseInvalidOutput
		a.stderr = invalidOutputText(object, err)
		if _, read := errors.AsType[*shapeError](err); !read { // the CLI treats a hook with invalid JSON as one that did not run
			a.stdout, a.exitCode = "", new(1)
		}
		return
	}
	a.output = out
}

func timeoutOrErrorResult(ctx, timeoutCtx context.Context, err error) hookResult {
	if timeoutCtx.Err() != nil && ctx.Err() == nil {
		return hookResult{outcome: outcomeCancelled, noVerdict: noVerdictBecauseTimedOut, timedOut: true}
	}
	return hookResult{outcome: outcomeError, noVerdict: noVerdictBecauseFailed, stderr: err.Error()}
}

// stdoutAndOwnStderr returns the output of the hook on stdout and stderr. If the output on stdout was invalid, it leaves out
// stderr, because stderr then contains the message about the invalid output.
func (a *hookResult) stdoutAndOwnStderr() string {
	if a.noVerdict == noVerdictBecauseInvalidOutput && a.stdout != "" {
		return a.stdout
	}
	return a.stdout + a.stderr
}
