package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type question struct {
	Question    string   `json:"question"`
	Options     []option `json:"options"`
	MultiSelect bool     `json:"multiSelect"`
}

type option struct {
	Label string `json:"label"`
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
			opt("response", str("What the user said in the place of answers, filled in by the host")),
			opt("metadata", schema{Type: "object", Desc: "Where the question comes from", Open: true}),
		),
		run: typed(askUserQuestion),
	}
}

type askInput struct {
	Questions   json.RawMessage       `json:"questions"`
	Answers     ordered.Object        `json:"answers"`
	Annotations map[string]annotation `json:"annotations"`
	Response    string                `json:"response"`
}

// annotation is what the user has left beside an answer.
type annotation struct {
	Preview string `json:"preview,omitempty"`
	Notes   string `json:"notes,omitempty"`
}

type askOutput struct {
	Questions   json.RawMessage       `json:"questions"`
	Answers     ordered.Object        `json:"answers"`
	Annotations map[string]annotation `json:"annotations,omitempty"`
	Response    string                `json:"response,omitempty"`
}

// askUserQuestion answers from the call (where a host has put the user's
// answers), else from the scenario. A question that neither answers stays
// without an answer (observed with 2.1.329).
func askUserQuestion(_ context.Context, t *Tools, in askInput) protocol.ToolResult {
	questions, err := decode[[]question](in.Questions)
	if err != nil {
		return refuse("InputValidationError: AskUserQuestion failed due to the following issue:\n%v", err)
	}
	out := askOutput(in)
	if len(out.Answers) == 0 {
		out.Answers = ordered.Object{}
		for _, q := range questions {
			if answer, ok := t.o.Answers[q.Question]; ok {
				out.Answers = out.Answers.With(q.Question, quote(answer))
			}
		}
	}
	return text(out.told(questions), out)
}

// told is what the model reads: a reply in the place of all answers, or the
// answers, which are the user's own words unless each of them is an option.
func (o askOutput) told(questions []question) string {
	if o.Response != "" {
		return "The user responded: " + o.Response
	}
	var pairs []string
	chosen := true
	for _, q := range questions {
		answer := answerText(o.Answers.Get(q.Question))
		if answer == "" {
			continue
		}
		pair, beside := `"`+q.Question+`"="`+answer+`"`, o.Annotations[q.Question]
		if beside.Preview != "" {
			pair += " selected preview:\n" + beside.Preview
		}
		if beside.Notes != "" {
			pair += " notes: " + beside.Notes
		}
		pairs = append(pairs, pair)
		chosen = chosen && beside.Notes == "" && q.offers(answer)
	}
	switch all := strings.Join(pairs, ", "); {
	case all == "":
		return "The user did not answer the questions."
	case chosen:
		return "Your questions have been answered: " + all + ". You can now continue with these answers in mind."
	default:
		return "The user answered: " + all +
			". Read the answers carefully — they may request clarification, changes, or that you not proceed — and follow what they actually say."
	}
}

// offers tells whether the answer is one of the options, or a list of some
// where several may be chosen.
func (q question) offers(answer string) bool {
	parts := []string{answer}
	if q.MultiSelect {
		parts = strings.Split(answer, ", ")
	}
	for _, part := range parts {
		if !slices.ContainsFunc(q.Options, func(o option) bool { return o.Label == part }) {
			return false
		}
	}
	return true
}

// answerText reads one answer: a text, or several.
func answerText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var several []string
	if json.Unmarshal(raw, &several) == nil {
		return strings.Join(several, ",")
	}
	return string(raw)
}

func enterPlanModeTool() tool {
	return tool{
		name:        "EnterPlanMode",
		description: "Begins planning: nothing is written until the plan is accepted.",
		input:       object(),
		run: func(_ context.Context, t *Tools, _ protocol.ToolUse) executor.Result {
			const message = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
			r := executor.Plain(text(message, struct {
				Message string `json:"message"`
			}{message}))
			if t.o.Mode == nil || t.o.Mode() != protocol.ModePlan {
				r.Before = t.switchMode(protocol.ModePlan)
			}
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
		check: func(_ context.Context, t *Tools, _ json.RawMessage) *protocol.ToolResult {
			if t.o.Mode == nil || t.o.Mode() == protocol.ModePlan {
				return nil
			}
			r := refuse("You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already approved, continue with implementation.")
			return &r
		},
		run: traced(exitPlanMode),
	}
}

// exitPlanMode ends planning. The plan is that of the call, which is kept in
// the plan file, else what the file holds. A mode that a host has chosen with
// its answer stays.
func exitPlanMode(_ context.Context, t *Tools, in struct{ Plan *string }) executor.Result {
	plan, path := t.plan(in.Plan)
	message := "User has approved exiting plan mode. You can now proceed."
	if plan != nil {
		message = "User has approved your plan. You can now start coding. Start with updating your todo list if applicable"
		if path != "" {
			message += "\n\nYour plan has been saved to: " + path + "\nYou can refer back to it if needed during implementation."
		}
		message += "\n\n## Approved Plan:\n" + *plan
	}
	r := executor.Plain(text(message, struct {
		Plan     *string `json:"plan"`
		IsAgent  bool    `json:"isAgent"`
		FilePath string  `json:"filePath,omitempty"`
	}{plan, false, path}))
	if t.o.Mode != nil && t.o.Mode() == protocol.ModePlan {
		r.Before = t.switchMode(protocol.ModeDefault)
	}
	return r
}

// plan returns the plan, nil = there is none, and the file that holds it or
// would.
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
		return nil, path
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
