package simulator

import (
	"context"
	"slices"
)

// refusesEarly reports whether the next call may be refused while its message is still streamed. known is true if the
// tool of the call exists. Then all earlier calls of the message must have results. If the tool does not exist, earlier
// calls that can run in parallel need no results.
func (m *message) refusesEarly(known bool) bool {
	return !slices.ContainsFunc(m.calls, func(c preparedCall) bool { return c.earlyResult == nil && (known || !c.canRunInParallel()) })
}

// emitRefusalAt refuses the last call if its refusal is due at this point of the stream. The events of the refusal are
// emitted at once, unless permission was denied (InNextBlock): then [message.advanceRefusal] emits them one by one,
// between later events of the stream.
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
