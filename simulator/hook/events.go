package hook

import (
	"github.com/claudeless/claudeless/simulator/protocol"
)

// What the events are like.

// ofPrompt names the events that precede a prompt.
func ofPrompt(event string) bool {
	return event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

// ends names the events that precede the end of a conversation.
func ends(event string) bool { return event == "Stop" || event == "SubagentStop" }

// unseen names the events whose hooks leave no trace but their frames and
// failures.
func unseen(event string) bool {
	return event == "MessageDisplay" || event == "PermissionRequest" || event == "InstructionsLoaded"
}

// decides names the events whose hooks give a permission decision.
func decides(event string) bool { return event == "PreToolUse" || event == "PreModelSwitch" }

// takesPlainText names the events for which printed text that is no JSON is
// context for the model.
func takesPlainText(event string) bool {
	return event == "SessionStart" || event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

// neverToHost tells which events call no callbacks: those before and after what
// the host takes part in (spec: cli-contract 5.1). It hears of a conversation
// that is cleared or compacted (observed with 2.1.329).
func neverToHost(in protocol.HookInput) bool {
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
