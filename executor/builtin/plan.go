package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// PermissionModes reads and changes the permission mode, for the tools EnterPlanMode and ExitPlanMode.
type PermissionModes interface {
	Mode() protocol.PermissionMode
	SetMode(protocol.PermissionMode) error
	ModeAfterPlan() protocol.PermissionMode // the mode that follows plan mode
}

type planTools struct {
	modes PermissionModes // nil means the mode does not change
	paths SessionPaths    // nil means that there is no plan file
}

func (p *planTools) tools() []tool.Tool {
	return []tool.Tool{enterPlanModeTool(p), exitPlanModeTool(p)}
}

func enterPlanModeTool(p *planTools) tool.Tool {
	return tool.Tool{
		Name: "EnterPlanMode",
		Run: func(context.Context, protocol.ToolUse) tool.Result {
			const message = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
			r := tool.ResultWithoutEvents(tool.TextResult(message, tool.StructuredOutput("message", message)))
			if p.modes == nil || p.modes.Mode() != protocol.ModePlan {
				r.EventsBefore = p.setModeAndReturnEvents(protocol.ModePlan)
			}
			return r
		},
	}
}

func exitPlanModeTool(p *planTools) tool.Tool {
	return tool.Tool{
		Name: "ExitPlanMode",
		Check: func(context.Context, json.RawMessage) *protocol.ToolResult {
			if p.modes == nil || p.modes.Mode() == protocol.ModePlan {
				return nil
			}
			return new(tool.Refuse("You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already approved, continue with implementation."))
		},
		Prepare: func(in *tool.OrderedObject) bool { return p.addPlanFileContentAndPath(in) },
		Run:     p.exitPlanMode,
	}
}

// exitPlanMode ends plan mode. The plan is the content of the plan file. If a host or a hook has changed the plan in the call,
// that plan is used instead and written to the file. If the host has already left plan mode, the mode it chose stays.
func (p *planTools) exitPlanMode(_ context.Context, call protocol.ToolUse) tool.Result {
	plan, path := p.currentPlan()
	message, heading := "User has approved exiting plan mode. You can now proceed.", "## Approved Plan:"
	given, _ := tool.Decode[struct{ Plan string }](call.Input) // the input is already validated
	edited := call.ObservedInput == nil && given.Plan != "" && (plan == nil || *plan != given.Plan)
	if edited {
		plan, heading = &given.Plan, "## Approved Plan (edited by user):"
		if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, []byte(*plan), 0o600) != nil {
			path = "" // a plan that cannot be saved is still valid
		}
	}
	if plan != nil {
		message = "User has approved your plan. You can now start coding. Start with updating your todo list if applicable"
		if path != "" {
			message += "\n\nYour plan has been saved to: " + path + "\nYou can refer back to it if needed during implementation."
		}
		message += "\n\n" + heading + "\n" + *plan
	}
	r := tool.ResultWithoutEvents(tool.TextResult(message, struct {
		Plan      *string `json:"plan"`
		IsAgent   bool    `json:"isAgent"`
		FilePath  string  `json:"filePath,omitempty"`
		WasEdited bool    `json:"planWasEdited,omitempty"`
	}{plan, false, path, edited}))
	if p.modes != nil && p.modes.Mode() == protocol.ModePlan {
		r.EventsBefore = p.setModeAndReturnEvents(p.modes.ModeAfterPlan())
	}
	return r
}

// currentPlan returns the plan (nil means none) and the path of the file for it ("" means no file).
func (p *planTools) currentPlan() (plan *string, path string) {
	if p.paths != nil {
		path = p.paths.PlanFileCreatingName()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, path
	}
	return new(string(data)), path
}

func (p *planTools) addPlanFileContentAndPath(callInput *tool.OrderedObject) (hasPlanFile bool) {
	plan, path := p.currentPlan()
	if plan != nil {
		*callInput = callInput.Set("plan", tool.Quote(*plan)).Set("planFilePath", tool.Quote(path))
	}
	return plan != nil
}

// removePlanWrittenByModel removes a plan that the model has written into the call instead of the plan file. Hosts and hooks do not see it.
func removePlanWrittenByModel(exitPlanModeCall protocol.ToolUse) (inputWithoutModelPlan json.RawMessage) {
	return tool.Tool{Prepare: func(in *tool.OrderedObject) bool {
		return exitPlanModeCall.Name == "ExitPlanMode" && in.Get("planFilePath") == nil && tool.RemoveKeys(in, "plan")
	}}.PreparedInput(exitPlanModeCall.Input)
}

func (p *planTools) setModeAndReturnEvents(mode protocol.PermissionMode) []protocol.Event {
	if p.modes == nil || p.modes.SetMode(mode) != nil {
		return nil
	}
	return []protocol.Event{protocol.ModeChangedEvent(mode)}
}
