package permission

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Request is the question that an Ask puts to an [Asker].
func (p *Policy) Request(use protocol.ToolUse, v Verdict) protocol.PermissionRequest {
	use.Input = use.Observed()
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
	if kindOf(use.Name) != kindUser { // a question to the user speaks for itself
		r.Description, _, _ = strings.Cut(tool.Description, "\n")
		r.Description = cmp.Or(p.about(use), r.Description)
	}
	if tool.Server != "" {
		r.DisplayName = tool.RawName
		r.Server = &protocol.ServerRef{Name: tool.Server, Source: tool.ServerSource}
		planning := p.Mode() == protocol.ModePlan
		if planning || v.AskRule { // nothing that is proposed would change it
			r.Suggestions = nil
		}
		if !planning {
			r.ServerAskOnly = new(!v.AskRule)
		}
	}
	return r
}

// about says in short what a call of a built-in tool is about: what a command
// says of itself, a path, an address; empty = the tool's description must do.
func (p *Policy) about(use protocol.ToolUse) string {
	var input struct {
		Description  string `json:"description"`
		Command      string `json:"command"`
		FilePath     string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
		URL          string `json:"url"`
		Query        string `json:"query"`
	}
	if json.Unmarshal(use.Input, &input) != nil {
		return ""
	}
	switch use.Name {
	case "Bash":
		return cmp.Or(input.Description, shortened(input.Command))
	case "Read", "Write", "Edit":
		return p.shown(input.FilePath)
	case "NotebookEdit":
		return p.shown(input.NotebookPath)
	case "WebFetch":
		return shortened(input.URL)
	case "WebSearch":
		return shortened(input.Query)
	}
	return ""
}

// shortened keeps the first 50 characters of what a description quotes, the last
// of them an ellipsis when there is more.
func shortened(s string) string {
	const most = 50
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// shown is a path as people see it: from the working directory where it lies
// inside, else from the home directory.
func (p *Policy) shown(path string) string {
	if path == "" {
		return ""
	}
	abs, home := p.abs(path), p.opts.Home
	if rel, err := filepath.Rel(p.opts.CWD, abs); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home != "" && under(home, abs) && abs != home {
		return "~" + strings.TrimPrefix(abs, strings.TrimSuffix(home, "/"))
	}
	return path
}
