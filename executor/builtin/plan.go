package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Modes is the permission mode, which the tools that begin and end planning
// change.
type Modes interface {
	Mode() protocol.PermissionMode
	SetMode(protocol.PermissionMode) error
	Unplanned() protocol.PermissionMode // what the end of planning goes back to
}

// planTools is the mode and the file of plans.
type planTools struct {
	modes Modes         // nil = the mode stays as it is
	file  func() string // where the plan is kept; nil, or an empty answer = nowhere
}

func enterPlanModeTool(p *planTools) tool.Tool {
	return tool.Tool{
		Name:        "EnterPlanMode",
		Description: "Begins planning: nothing is written until the plan is accepted.",
		Input:       tool.Object(),
		Run: func(context.Context, protocol.ToolUse) tool.Result {
			const message = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
			r := tool.Plain(tool.Text(message, struct {
				Message string `json:"message"`
			}{message}))
			if p.modes == nil || p.modes.Mode() != protocol.ModePlan {
				r.Before = p.switchMode(protocol.ModePlan)
			}
			return r
		},
	}
}

func exitPlanModeTool(p *planTools) tool.Tool {
	return tool.Tool{
		Name:        "ExitPlanMode",
		Description: "Shows the plan to the user; when accepted, work begins.",
		Input: tool.Schema{Type: "object", Open: true, Props: []tool.Prop{
			tool.Opt("plan", tool.Str("The plan")),
			tool.Opt("allowedPrompts", tool.List("Commands the plan needs", tool.Schema{Type: "object", Open: true})),
		}},
		Check: func(context.Context, json.RawMessage) *protocol.ToolResult {
			if p.modes == nil || p.modes.Mode() == protocol.ModePlan {
				return nil
			}
			r := tool.Refuse("You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already approved, continue with implementation.")
			return &r
		},
		Run: tool.Traced(p, exitPlanMode),
	}
}

// exitPlanMode ends planning. The plan is that of the call, which is kept in
// the plan file, else what the file holds. A mode that a host has chosen with
// its answer stays.
func exitPlanMode(_ context.Context, p *planTools, in struct{ Plan *string }) tool.Result {
	plan, path := p.plan(in.Plan)
	message := "User has approved exiting plan mode. You can now proceed."
	if plan != nil {
		message = "User has approved your plan. You can now start coding. Start with updating your todo list if applicable"
		if path != "" {
			message += "\n\nYour plan has been saved to: " + path + "\nYou can refer back to it if needed during implementation."
		}
		message += "\n\n## Approved Plan:\n" + *plan
	}
	r := tool.Plain(tool.Text(message, struct {
		Plan     *string `json:"plan"`
		IsAgent  bool    `json:"isAgent"`
		FilePath string  `json:"filePath,omitempty"`
	}{plan, false, path}))
	if p.modes != nil && p.modes.Mode() == protocol.ModePlan {
		r.Before = p.switchMode(p.modes.Unplanned())
	}
	return r
}

// plan returns the plan, nil = there is none, and the file that holds it or
// would.
func (p *planTools) plan(given *string) (plan *string, path string) {
	if p.file != nil {
		path = p.file()
	}
	if given != nil && *given != "" {
		if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, []byte(*given), 0o600) != nil {
			path = "" // a plan that cannot be kept is a plan all the same
		}
		return given, path
	}
	if path == "" {
		return nil, ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, path
	}
	return new(string(data)), path
}

// switchMode sets the permission mode and returns the event that says so.
func (p *planTools) switchMode(mode protocol.PermissionMode) []protocol.Event {
	if p.modes == nil || p.modes.SetMode(mode) != nil {
		return nil
	}
	return []protocol.Event{protocol.ModeChanged(mode)}
}
