package hook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// exitBlock is the exit status with which a command refuses (spec: cli-contract
// 5.5).
const exitBlock = 2

// call is one run of the hooks of an event.
type call struct {
	event     string
	name      string // event, or event:subject
	toolUseID string
	cwd       string
	sessionID string
	stdin     []byte
	prompt    string     // for events of a prompt
	effort    string     // empty = not part of the event
	unchecked *sync.Once // of the runner
}

// hookResult is the result of one hook.
type hookResult struct {
	entry  *entry
	id     string // id in its frames
	output protocol.HookOutput
	// plain is standard output that is not a JSON object.
	plain string
	// block is the reason of exit status 2 as users see it; bare is the same
	// without the command.
	block, bare    string
	blocked        bool
	stdout, stderr string
	progress       []partialOutput // output while it was running
	exit           *int            // nil = it was killed
	outcome        outcome
	fault          fault
	timedOut       bool
	killed         bool // by a signal
	detached       bool // still running in the background; no verdict
	duration       time.Duration
}

// partialOutput is the output of a command at one moment.
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
	faultMissing       // the command does not exist
	faultSilent        // no answer before the timeout
	faultInvalid       // an invalid answer; text in stderr
	faultGone          // the host is gone
	faultUnknown       // a hook type that is not simulated
)

// read interprets the output of a successful configured hook: an object is its
// output, anything else plain text.
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
		if _, read := errors.AsType[*shapeError](err); !read { // as if it had not run
			a.stdout, a.exit = "", new(1)
		}
		return
	}
	a.output = out
}

// failure returns the result of a configured hook that ended without a verdict.
func failure(ctx, limited context.Context, err error) hookResult {
	if limited.Err() != nil && ctx.Err() == nil {
		return hookResult{outcome: cancelled, fault: faultSilent, timedOut: true}
	}
	return hookResult{outcome: failed, fault: faultFailed, stderr: err.Error()}
}

// printed returns the hook's output, without errors about its form.
func (a *hookResult) printed() string {
	if a.fault == faultInvalid && a.stdout != "" {
		return a.stdout
	}
	return a.stdout + a.stderr
}
