package hook

import (
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Properties of the events.

// precedesPrompt reports whether an event precedes a prompt.
func precedesPrompt(event string) bool {
	return event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

// precedesEnd reports whether an event precedes the end of a conversation.
func precedesEnd(event string) bool { return event == "Stop" || event == "SubagentStop" }

// leavesNoTrace reports whether hooks of the event leave no trace except frames and
// failures.
func leavesNoTrace(event string) bool {
	return event == "MessageDisplay" || event == "PermissionRequest" || event == "InstructionsLoaded"
}

// decides reports whether hooks of the event give a permission decision.
func decides(event string) bool { return event == "PreToolUse" || event == "PreModelSwitch" }

// takesPlainText reports whether printed text that is not JSON is context for the
// model.
func takesPlainText(event string) bool {
	return event == "SessionStart" || event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

// neverToHost reports whether the event calls no callbacks: those before and after
// the host's part of the session (spec: cli-contract 5.1). The host is notified of
// cleared and compacted conversations (observed with 2.1.329).
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
