package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type question struct {
	Question string `json:"question"`
	Options  []struct {
		Label string `json:"label"`
	} `json:"options"`
}

func askUserQuestionTool() tool {
	return tool{
		name:        "AskUserQuestion",
		description: "Asks the user up to four questions with given answers to choose from.",
		input: object(
			req("questions", schema{Type: "array", Desc: "The questions", Min: 1, Max: 4, Items: &schema{Type: "object", Open: true, Props: []prop{
				req("question", str("The question")),
				opt("header", str("A word for it")),
				req("options", list("The answers to choose from", schema{Type: "object", Open: true, Props: []prop{
					req("label", str("The answer")),
					opt("description", str("What it means")),
					opt("preview", str("An example")),
				}})),
				opt("multiSelect", boolean("Several answers may be chosen")),
			}}}),
			opt("answers", schema{Type: "object", Desc: "Answers by question, filled in by the host", Open: true}),
			opt("annotations", schema{Type: "object", Desc: "Remarks by question, filled in by the host", Open: true}),
			opt("metadata", schema{Type: "object", Desc: "Where the question comes from", Open: true}),
		),
		run: typed(askUserQuestion),
	}
}

type askInput struct {
	Questions json.RawMessage            `json:"questions"`
	Answers   map[string]json.RawMessage `json:"answers"`
}

// answers keeps the order in which the questions were asked.
type answers []struct{ question, answer string }

func (as answers) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, a := range as {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(a.question))
		b.WriteByte(':')
		b.Write(quote(a.answer))
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

// askUserQuestion answers from the call (where a host has put the user's
// answers), else from the scenario, else with the first option.
func askUserQuestion(_ context.Context, t *Tools, in askInput) protocol.ToolResult {
	questions, err := decode[[]question](in.Questions)
	if err != nil {
		return refuse("InputValidationError: AskUserQuestion failed due to the following issue:\n%v", err)
	}
	given := make(map[string]string, len(in.Answers))
	for q, raw := range in.Answers {
		given[q] = answerText(raw)
	}
	var as answers
	for _, q := range questions {
		answer, ok := given[q.Question]
		delete(given, q.Question)
		if !ok && len(in.Answers) == 0 {
			if answer, ok = t.o.Answers[q.Question]; !ok && len(q.Options) > 0 {
				answer, ok = q.Options[0].Label, true
			}
		}
		if ok {
			as = append(as, struct{ question, answer string }{q.Question, answer})
		}
	}
	for _, q := range slices.Sorted(maps.Keys(given)) {
		as = append(as, struct{ question, answer string }{q, given[q]})
	}
	var pairs []string
	for _, a := range as {
		pairs = append(pairs, `"`+a.question+`"="`+a.answer+`"`)
	}
	return text("Your questions have been answered: "+strings.Join(pairs, ", ")+". You can now continue with these answers in mind.", struct {
		Questions json.RawMessage `json:"questions"`
		Answers   answers         `json:"answers"`
	}{in.Questions, as})
}

// answerText reads one answer: a text, or several of a multi-select question.
func answerText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var several []string
	if json.Unmarshal(raw, &several) == nil {
		return strings.Join(several, ", ")
	}
	return string(raw)
}

func enterPlanModeTool() tool {
	return tool{
		name:        "EnterPlanMode",
		description: "Begins planning: nothing is written until the plan is accepted.",
		input:       object(),
		run: func(_ context.Context, t *Tools, _ protocol.ToolUse) protocol.ToolResult {
			const message = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
			r := text(message, struct {
				Message string `json:"message"`
			}{message})
			r.Before = t.switchMode(protocol.ModePlan)
			return r
		},
	}
}

func exitPlanModeTool() tool {
	return tool{
		name:        "ExitPlanMode",
		description: "Shows the plan to the user; when accepted, work begins.",
		input: schema{Type: "object", Open: true, Props: []prop{
			opt("plan", str("The plan")),
			opt("allowedPrompts", list("Commands the plan needs", schema{Type: "object", Open: true})),
		}},
		run: typed(exitPlanMode),
	}
}

// exitPlanMode ends planning. The plan is that of the call, which is kept in
// the plan file, else what the file holds. A mode that a host has chosen with
// its answer stays.
func exitPlanMode(_ context.Context, t *Tools, in struct{ Plan *string }) protocol.ToolResult {
	plan, path := t.plan(in.Plan)
	message := "User has approved your plan. You can now start coding. Start with updating your todo list if applicable"
	if plan != nil {
		if path != "" {
			message += "\n\nYour plan has been saved to: " + path
		}
		message += "\n\n## Approved Plan:\n" + *plan
	}
	r := text(message, struct {
		Plan     *string `json:"plan"`
		IsAgent  bool    `json:"isAgent"`
		FilePath string  `json:"filePath,omitempty"`
	}{plan, false, path})
	if t.o.Mode != nil && t.o.Mode() == protocol.ModePlan {
		r.Before = t.switchMode(protocol.ModeDefault)
	}
	return r
}

// plan returns the plan, nil = there is none, and the file that holds it.
func (t *Tools) plan(given *string) (plan *string, path string) {
	if t.o.PlanFile != nil {
		path = t.o.PlanFile()
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
		return nil, ""
	}
	kept := string(data)
	return &kept, path
}

// switchMode sets the permission mode and returns the event that says so.
func (t *Tools) switchMode(mode protocol.PermissionMode) []protocol.Event {
	if t.o.SetMode == nil || t.o.SetMode(mode) != nil {
		return nil
	}
	return []protocol.Event{&protocol.System{Subtype: "status", Fields: []protocol.Field{
		{Key: "status", Value: json.RawMessage("null")}, {Key: "permissionMode", Value: mode},
	}}}
}
