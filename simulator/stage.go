package simulator

import "github.com/claudeless/claudeless/simulator/protocol"

// stage is what the acts of a turn (asking the model, running calls, going on,
// commands of the CLI itself) stand on. Each part has its own state.
type stage struct {
	s          *Simulator
	out        *out
	ledger     *ledger
	behind     *behind
	prompts    *prompts
	hooks      *points
	structured *structured
}

// newStage sets the stage for one prompt.
func newStage(s *Simulator, in protocol.UserMessage, yield func(protocol.Event, error) bool) *stage {
	st := &stage{
		s: s, out: &out{s: s, yield: yield}, ledger: &ledger{s: s, started: s.o.Clock.Now()},
		structured: &structured{schema: s.main.Schema, tries: s.o.Limits.SchemaTries},
	}
	st.behind = &behind{s: s, out: st.out, ledger: st.ledger}
	st.prompts = &prompts{s: s, out: st.out, in: in}
	if in.UUIDs == nil && in.UUID != "" {
		st.prompts.in.UUIDs = []string{in.UUID}
	}
	st.hooks = &points{s: s, out: st.out, prompts: st.prompts}
	return st
}
