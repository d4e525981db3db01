package hook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// exitBlock is how a command refuses (spec: cli-contract 5.5).
const exitBlock = 2

// call is one run of one event.
type call struct {
	event     string
	name      string // event, or event:subject
	toolUseID string
	cwd       string
	sessionID string
	stdin     []byte
	prompt    string     // of the events of a prompt
	effort    string     // empty = the event has none
	unchecked *sync.Once // of the runner
}

// hookResult is what one hook did.
type hookResult struct {
	entry  *entry
	id     string // of its frames
	output protocol.HookOutput
	// plain is text on standard output that is no JSON object.
	plain string
	// block is the reason of exit status 2 as users see it; bare is the same
	// without the command.
	block, bare    string
	blocked        bool
	stdout, stderr string
	progress       []partialOutput // what it had printed meanwhile
	exit           *int            // nil = it did not end by itself
	outcome        outcome
	fault          fault
	timedOut       bool
	killed         bool // by a signal
	detached       bool // still running; says nothing
	took           time.Duration
}

// partialOutput is what a command has printed at some time.
type partialOutput struct{ stdout, stderr string }

type outcome string

const (
	succeeded outcome = "success"
	failed    outcome = "error"
	cancelled outcome = "cancelled"
)

// fault says why a hook gave no verdict.
type fault int

const (
	noFault      fault = iota
	faultFailed        // it ran and failed
	faultMissing       // there is no such command
	faultSilent        // no answer in time
	faultInvalid       // an answer that breaks the contract; text in stderr
	faultGone          // the host is gone
	faultUnknown       // a kind of hook that is not simulated
)

// read takes what a configured hook printed when it succeeded: an object is
// its output, anything else plain text.
func (a *hookResult) read(event string) {
	object, ok := asObject(a.stdout)
	if !ok {
		a.plain = a.stdout
		return
	}
	out, err := parseOutput(event, object)
	if err != nil {
		a.outcome, a.fault = failed, faultInvalid
		a.stderr = invalidOutput(object, err)
		if _, read := errors.AsType[*shapeError](err); !read { // as if it had not run at all
			a.stdout, a.exit = "", new(1)
		}
		return
	}
	a.output = out
}

// failure is the answer of a configured hook that ended without a verdict.
func failure(ctx, limited context.Context, err error) hookResult {
	if limited.Err() != nil && ctx.Err() == nil {
		return hookResult{outcome: cancelled, fault: faultSilent, timedOut: true}
	}
	return hookResult{outcome: failed, fault: faultFailed, stderr: err.Error()}
}
