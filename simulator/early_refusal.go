package simulator

import (
	"context"
	"slices"
)

// refusesEarly reports whether the next call may be refused while its message is still streamed. If its tool is known,
// all earlier calls of the message must already have results. If its tool is unknown, earlier calls without a result
// are allowed too if they can run in parallel.
func (m *message) refusesEarly(known bool) bool {
	return !slices.ContainsFunc(m.calls, func(c preparedCall) bool { return c.earlyResult == nil && (known || !c.canRunInParallel()) })
}

// emitRefusalAt refuses the last call if the stream has reached the point of that refusal. It emits the refusal at
// once, except a denied permission (InNextBlock), whose parts come between later events (see [message.advanceRefusal]).
func (m *message) emitRefusalAt(ctx context.Context, at RefusalPoint) error {
	if m.refusalPoint == AfterMessage || m.refusalPoint > at {
		return nil
	}
	point := m.refusalPoint
	m.refusalPoint = AfterMessage
	c := &m.calls[len(m.calls)-1]
	r, err := m.round.refuseCall(ctx, c, len(m.final.Calls)-1)
	if err != nil {
		return err
	}
	m.refusedCall = &refusedCall{call: *c, executedCall: r}
	if point < InNextBlock {
		m.flushRefusal()
	}
	return m.out.checkOpen()
}

// refusedCall is a refused call whose events are not all emitted yet.
type refusedCall struct {
	call preparedCall
	executedCall
	denied bool // permission_denied was emitted
}

// advanceRefusal emits the next part of a refusal: permission_denied, then the result.
func (m *message) advanceRefusal() {
	switch r := m.refusedCall; {
	case r == nil:
	case r.denied:
		m.refusedCall = nil
		m.round.emitOutcome(r.call, r.executedCall)
	default:
		r.denied = true
		m.round.emitDenial(r.executedCall)
	}
}

func (m *message) flushRefusal() {
	for m.refusedCall != nil {
		m.advanceRefusal()
	}
}
