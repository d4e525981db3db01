package hook

import "github.com/claudeless/claudeless/simulator/protocol"

// toolOf is the call an event is about; ok is false for other events.
func toolOf(in protocol.HookInput) (use protocol.ToolUse, ok bool) {
	switch in := in.(type) {
	case protocol.PreToolUseHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseFailureHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PermissionRequestHook:
		return protocol.ToolUse{Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PermissionDeniedHook:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	}
	return protocol.ToolUse{}, false
}
