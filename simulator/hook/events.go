package hook

import (
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Properties of the events.

// isHiddenFromHost reports whether callbacks are not called for the event, because it precedes or follows the host's
// part of the session (spec: cli-contract 5.1). The host is notified of cleared and compacted conversations (observed
// with 2.1.329).
func isHiddenFromHost(in protocol.HookInput) bool {
	switch in := in.(type) {
	case protocol.SessionStartHook:
		return in.Source != "clear" && in.Source != "compact"
	case protocol.SessionEndHook:
		return in.Reason != "clear"
	case protocol.SetupHook:
		return true
	case protocol.InstructionsLoadedHook:
		return in.LoadReason == "session_start"
	}
	return false
}
