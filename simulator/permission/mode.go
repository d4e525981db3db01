package permission

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ModeError says why a mode cannot be set. Its text and code are what
// set_permission_mode answers (spec: cli-contract 4.3).
type ModeError struct {
	Code    string // such as "invalid_mode", "bypass_not_launched"
	Message string
}

func (e *ModeError) Error() string { return e.Message }

// ParseMode reads a mode in the real spelling (acceptEdits) or in kebab-case
// (accept-edits). "manual" and, from older scenarios, "delegate" mean default.
func ParseMode(s string) (protocol.PermissionMode, error) {
	switch strings.ToLower(strings.ReplaceAll(s, "-", "")) {
	case "default", "manual", "delegate":
		return protocol.ModeDefault, nil
	case "acceptedits":
		return protocol.ModeAcceptEdits, nil
	case "auto":
		return protocol.ModeAuto, nil
	case "bypasspermissions":
		return protocol.ModeBypass, nil
	case "dontask":
		return protocol.ModeDontAsk, nil
	case "plan":
		return protocol.ModePlan, nil
	}
	return "", fmt.Errorf("unknown permission mode %q", s)
}

// Mode returns the mode in force.
func (p *Policy) Mode() protocol.PermissionMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// SetMode switches the mode. m must be in the real spelling; the error is a
// [*ModeError] and leaves the mode as it was.
func (p *Policy) SetMode(m protocol.PermissionMode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setMode(m)
}

func (p *Policy) setMode(m protocol.PermissionMode) error {
	switch m {
	case protocol.ModeBypass:
		if p.opts.NoBypass {
			return &ModeError{Code: "bypass_disabled", Message: "Cannot set permission mode to bypassPermissions because it is disabled by settings or configuration"}
		}
		if !p.opts.BypassAllowed {
			return &ModeError{Code: "bypass_not_launched", Message: "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions"}
		}
	case protocol.ModeAuto:
		if p.opts.NoAuto {
			return &ModeError{Code: "auto_mode_settings", Message: "Cannot set permission mode to auto: auto mode disabled by settings"}
		}
	case protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeDontAsk, protocol.ModePlan:
	default:
		return &ModeError{Code: "invalid_mode", Message: "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"}
	}
	p.mode = m
	return nil
}
