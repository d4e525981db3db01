package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type askedQuestion struct {
	Question    string           `json:"question"`
	Options     []questionOption `json:"options"`
	MultiSelect bool             `json:"multiSelect"`
}

type questionOption struct {
	Label string `json:"label"`
}

type scriptedAnswers map[string]string

type askUserQuestionInput struct {
	Questions   json.RawMessage             `json:"questions"`
	Answers     tool.OrderedObject          `json:"answers"`
	Annotations map[string]answerAnnotation `json:"annotations"`
	Response    string                      `json:"response"`
}

type answerAnnotation struct {
	Preview string `json:"preview,omitempty"`
	Notes   string `json:"notes,omitempty"`
}

type askUserQuestionOutput struct {
	Questions   json.RawMessage             `json:"questions"`
	Answers     tool.OrderedObject          `json:"answers"`
	Annotations map[string]answerAnnotation `json:"annotations,omitzero"`
	Response    string                      `json:"response,omitempty"`
}

func askUserQuestionTool(a scriptedAnswers) tool.Tool {
	return tool.Tool{
		Name: "AskUserQuestion", RenameAliases: tool.NormalizeValuesToSchema("AskUserQuestion"), Run: tool.TypedRun(a, answerFromHostOrScenario),
		Check: tool.TypedCheck(a, func(_ context.Context, _ scriptedAnswers, in askUserQuestionInput) *protocol.ToolResult {
			questions, _ := tool.Decode[[]askedQuestion](in.Questions) // they are already validated
			texts := map[string]bool{}
			isRepeated := false
			for _, q := range questions {
				labels := map[string]bool{}
				for _, o := range q.Options {
					labels[o.Label] = true
				}
				texts[q.Question] = true
				isRepeated = isRepeated || len(labels) < len(q.Options)
			}
			if !isRepeated && len(texts) == len(questions) {
				return nil
			}
			return tool.InvalidInputResult("AskUserQuestion", []tool.Issue{tool.CustomIssue("Question texts must be unique, option labels must be unique within each question")})
		}),
	}
}

// answerFromHostOrScenario returns the answers that a host added to the call or, if it added none, those of the scenario. A
// question without an answer stays unanswered (observed with 2.1.329).
func answerFromHostOrScenario(_ context.Context, a scriptedAnswers, in askUserQuestionInput) protocol.ToolResult {
	questions, err := tool.Decode[[]askedQuestion](in.Questions)
	if err != nil {
		return tool.Refuse("InputValidationError: AskUserQuestion failed due to the following issue:\n%v", err)
	}
	out := askUserQuestionOutput(in)
	if len(out.Answers) == 0 {
		out.Answers = tool.OrderedObject{}
		for _, q := range questions {
			if answer, ok := a[q.Question]; ok {
				out.Answers = out.Answers.Set(q.Question, tool.Quote(answer))
			}
		}
	}
	return tool.TextResult(out.modelText(questions), out)
}

// modelText returns the text for the model: the user's reply (Response) or a list of the answers. If an answer is the
// user's own text or has notes, the list ends with the advice to read the answers carefully.
func (o askUserQuestionOutput) modelText(questions []askedQuestion) string {
	if o.Response != "" {
		return "The user responded: " + o.Response
	}
	var pairs []string
	chosen := true
	for _, q := range questions {
		answer, parts := q.decodeAnswer(o.Answers.Get(q.Question))
		if answer == "" {
			continue
		}
		pair, remark := `"`+q.Question+`"="`+answer+`"`, o.Annotations[q.Question]
		if remark.Preview != "" {
			pair += " selected preview:\n" + remark.Preview
		}
		if remark.Notes != "" {
			pair += " notes: " + remark.Notes
		}
		pairs = append(pairs, pair)
		chosen = chosen && remark.Notes == "" && !slices.ContainsFunc(parts, func(label string) bool {
			return !slices.ContainsFunc(q.Options, func(o questionOption) bool { return o.Label == label })
		})
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

// decodeAnswer decodes an answer, which is a string or a list of strings. text is the whole answer. parts are the
// options that the user chose, or only text if the question allows only one option (observed with 2.1.330).
func (q askedQuestion) decodeAnswer(raw json.RawMessage) (text string, parts []string) {
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &text) == nil:
		parts = strings.Split(text, ", ")
	case json.Unmarshal(raw, &parts) == nil:
		text = strings.Join(parts, ",")
	default:
		text = string(raw)
	}
	if !q.MultiSelect {
		parts = []string{text}
	}
	return text, parts
}
