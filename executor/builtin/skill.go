package builtin

import (
	"context"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Skill is a loaded skill: its text for the model, and the tools that need no permission while the model follows it.
type Skill struct {
	Name, Text   string
	Tools        []string
	Model        string // full name of the model in the skill's file; empty means none
	Previous     string // text of this skill that is already in the conversation; empty means none
	WasCompacted bool   // a compaction has removed Previous from the conversation
}

// Skills loads the skills of a session.
type Skills interface {
	// ActivateSkill loads a skill. The error explains why it is not available.
	ActivateSkill(ctx context.Context, name, args string) (Skill, error)
	// Check returns an error if a skill is not available. It is called before permissions are checked.
	Check(name string) error
}

type skillInput struct {
	Skill string `json:"skill"`
	Args  string `json:"args"`
}

func skillTool(s Skills) tool.Tool {
	return tool.Tool{
		Name: "Skill",
		Run:  tool.TypedRunReturningEvents(s, loadSkill),
		Check: tool.TypedCheck(s, func(_ context.Context, s Skills, in skillInput) *protocol.ToolResult {
			if s == nil {
				return nil
			}
			if err := s.Check(in.Skill); err != nil {
				return new(tool.Refuse("%v", err))
			}
			return nil
		}),
	}
}

// loadSkill returns a short result. The user message in EventsAfter contains the text of the skill.
func loadSkill(ctx context.Context, s Skills, in skillInput) tool.Result {
	loaded, err := Skill{}, errors.New("Unknown skill: "+in.Skill)
	if s != nil {
		loaded, err = s.ActivateSkill(ctx, in.Skill, in.Args)
	}
	if err != nil {
		return tool.ResultWithoutEvents(tool.Refuse("%v", err))
	}
	in.Skill = strings.TrimPrefix(in.Skill, "/")
	r := tool.ResultWithoutEvents(tool.TextResult("Launching skill: "+in.Skill, struct {
		Success bool     `json:"success"`
		Name    string   `json:"commandName"`
		Tools   []string `json:"allowedTools,omitempty"`
		Model   string   `json:"model,omitempty"`
	}{true, in.Skill, loaded.Tools, loaded.Model}))
	short := in.Skill[strings.LastIndex(in.Skill, ":")+1:]
	message := func(text string, expansion *protocol.ExpandedCommand) *protocol.UserEvent {
		content := protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}}
		return &protocol.UserEvent{Message: content, IsSynthetic: true, Expansion: expansion, Companion: true}
	}
	reminds := loaded.Previous == loaded.Text
	switch {
	case loaded.Previous == "":
	case reminds && loaded.WasCompacted:
		loaded.Text = "Skill /" + short + " was loaded earlier (see the invoked-skills reminder above); this is a NEW invocation — follow those instructions now, including any setup steps."
	case reminds:
		loaded.Text = "Skill /" + short + " is already loaded above; instructions unchanged."
		if in.Args != "" {
			loaded.Text += " Arguments: " + in.Args
		}
	default:
		r.EventsAfter = append(r.EventsAfter, message("(Re-invocation of /"+short+" — the skill instructions were previously loaded; the arguments or dynamic output below are new.)", nil))
	}
	r.EventsAfter = append(r.EventsAfter, message(loaded.Text, &protocol.ExpandedCommand{Name: loaded.Name, Tools: loaded.Tools, Reminds: reminds}))
	return r
}
