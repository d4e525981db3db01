package permission

import (
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Request is the question that an Ask puts to an [Asker].
func (p *Policy) Request(use protocol.ToolUse, v Verdict) protocol.PermissionRequest {
	r := protocol.PermissionRequest{
		Use:                use,
		DisplayName:        use.Name,
		Suggestions:        v.Suggestions,
		BlockedPath:        v.BlockedPath,
		Safety:             v.Safety,
		DecisionReason:     v.Reason,
		DecisionReasonType: v.ReasonType,
		RequiresUser:       v.RequiresUser,
	}
	if p.opts.Tool == nil {
		return r
	}
	tool, found := p.opts.Tool(use.Name)
	if !found {
		return r
	}
	r.Description, _, _ = strings.Cut(tool.Description, "\n")
	if own := ownDescription(use); own != "" {
		r.Description = own
	}
	if tool.Server != "" {
		r.DisplayName = tool.Title
		if r.DisplayName == "" {
			r.DisplayName = tool.RawName
		}
		r.Server = &protocol.ServerRef{Name: tool.Server, Source: tool.ServerSource}
	}
	return r
}

// ownDescription is what a command says of itself.
func ownDescription(use protocol.ToolUse) string {
	if use.Name != "Bash" {
		return ""
	}
	var input struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(use.Input, &input) != nil {
		return ""
	}
	return input.Description
}
