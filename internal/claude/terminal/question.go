package terminal

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// questionForm asks the questions of one AskUserQuestion call, each on its own page. If needed, a last page shows all answers for review.
type questionForm struct {
	input             json.RawMessage
	questions         []formQuestion
	answers           []string // answer to each question; empty means not answered
	pages             []*dialog
	pageIndex         int
	prompter          *prompter
	permissionRequest *pendingPermissionRequest
}

type formQuestion struct {
	Question    string `json:"question"`
	Header      string `json:"header"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// newQuestionForm returns the form of a call, or nil if the input has no questions.
func newQuestionForm(a *prompter, q *pendingPermissionRequest) *questionForm {
	input := q.request.Use.InputForHooksAndHosts()
	var in struct{ Questions []formQuestion }
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil
	}
	f := &questionForm{input: input, questions: in.Questions, answers: make([]string, len(in.Questions)), prompter: a, permissionRequest: q}
	for i := range in.Questions {
		f.pages = append(f.pages, f.newPage(i))
	}
	return f
}

func (f *questionForm) findQuestionLabelOrPrefix(labelPrefix string) string {
	return f.prompter.screen.labels.findLabelOrPrefix("question", labelPrefix)
}

func (f *questionForm) isOneSingleChoiceQuestion() bool {
	return len(f.questions) == 1 && !f.questions[0].MultiSelect
}

func (f *questionForm) currentPage() *dialog {
	if f.pageIndex == len(f.pages) {
		return f.reviewPage()
	}
	d := f.pages[f.pageIndex]
	d.head = []string{f.tabRow(), "", f.questions[f.pageIndex].Question, ""}
	return d
}

func (f *questionForm) tabRow() string {
	var tabs []string
	for i, q := range f.questions {
		tabs = append(tabs, map[bool]string{true: "☒ ", false: "☐ "}[f.answers[i] != ""]+q.Header)
	}
	if f.isOneSingleChoiceQuestion() {
		return " " + tabs[0]
	}
	return "←  " + strings.Join(tabs, "  ") + "  ✔ Submit  →"
}

func (f *questionForm) newPage(i int) *dialog {
	q := f.questions[i]
	d := &dialog{state: StateQuestion, kind: "single", showNumbers: true, topRuleGlyph: ruleGlyph, foot: []string{"", f.findQuestionLabelOrPrefix("Enter to select") + " · ↑/↓ to navigate · Esc to cancel"}}
	box := noCheckbox
	if q.MultiSelect {
		d.kind, box = "multi", checkboxUnchecked
	}
	if len(f.questions) > 1 {
		d.foot[1] = f.findQuestionLabelOrPrefix("Enter to select") + " · Tab/Arrow keys to navigate · Esc to cancel"
	}
	for _, o := range q.Options {
		d.options = append(d.options, dialogOption{label: o.Label, detail: o.Description, checkbox: box})
	}
	if q.MultiSelect {
		next := map[bool]string{true: "Submit", false: "Next"}[i == len(f.questions)-1]
		d.options = append(d.options, dialogOption{label: "Type something", isInput: true, checkbox: box}, dialogOption{label: next, isAction: true})
	} else {
		d.options = append(d.options, dialogOption{label: f.findQuestionLabelOrPrefix("Type something."), isInput: true})
	}
	d.options = append(d.options, dialogOption{label: f.findQuestionLabelOrPrefix("Chat about this"), lineAbove: true})
	d.owner = f
	if f.isOneSingleChoiceQuestion() {
		d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog { return f.handleChoice(d, c) })
	}
	return d
}

func (f *questionForm) onToggle(d *dialog) {
	f.answers[f.pageIndex] = f.checkedAnswers(f.pageIndex)
	d.head[0] = f.tabRow()
}

func (f *questionForm) checkedAnswers(i int) string {
	var chosen []string
	for _, o := range f.pages[i].options {
		switch {
		case o.checkbox != checkboxChecked:
		case o.isInput:
			chosen = append(chosen, o.detail)
		default:
			chosen = append(chosen, o.label)
		}
	}
	return strings.Join(chosen, ", ")
}

func (f *questionForm) changePage(by int) *dialog {
	f.pageIndex = min(max(f.pageIndex+by, 0), len(f.pages))
	return f.currentPage()
}

func (f *questionForm) handleChoice(d *dialog, c dialogChoice) *dialog {
	if f.pageIndex == len(f.pages) {
		if c.cancelled || c.index == 1 {
			return f.sendAnswerAndClose(d, "cancelled", interruptingRefusal())
		}
		return f.sendAnswerAndClose(d, strings.Join(f.answers, "; "), f.allowAnswer())
	}
	i := f.pageIndex
	q := f.questions[i]
	switch {
	case c.cancelled:
		return f.sendAnswerAndClose(d, "cancelled", interruptingRefusal())
	case c.index == len(d.options)-1:
		return f.sendAnswerAndClose(d, d.options[c.index].label, protocol.PermissionAnswer{Feedback: f.clarificationText()})
	case !q.MultiSelect && d.options[c.index].isInput:
		f.answers[i] = c.text
	case !q.MultiSelect:
		f.answers[i] = d.options[c.index].label
	}
	if f.isOneSingleChoiceQuestion() {
		return f.sendAnswerAndClose(d, f.answers[i], f.allowAnswer())
	}
	return f.changePage(1)
}

// clarificationText returns the text that tells the model that the user wants to talk about the questions first.
func (f *questionForm) clarificationText() string {
	var text strings.Builder
	text.WriteString("The user wants to clarify these questions.\n\n    Questions asked:")
	for i, q := range f.questions {
		answer := "(No answer provided)"
		if f.answers[i] != "" {
			answer = "Answer: " + f.answers[i]
		}
		text.WriteString("\n- \"" + q.Question + "\"\n  " + answer)
	}
	return text.String()
}

func (f *questionForm) reviewPage() *dialog {
	d := &dialog{state: StateQuestion, kind: "review", showNumbers: true, topRuleGlyph: ruleGlyph, head: []string{f.tabRow(), "", "Review your answers", ""}}
	for i, q := range f.questions {
		if f.answers[i] != "" {
			d.head = append(d.head, " ● "+q.Question, "   → "+f.answers[i])
		}
	}
	d.head = append(d.head, "")
	d.options = []dialogOption{{label: "Submit answers"}, {label: "Cancel"}}
	d.owner = f
	return d
}

func (f *questionForm) sendAnswerAndClose(d *dialog, chosenOption string, a protocol.PermissionAnswer) (noNextDialog *dialog) {
	f.prompter.recordAndSendAnswer(f.permissionRequest, d, chosenOption, a)
	return nil
}

func (f *questionForm) allowAnswer() protocol.PermissionAnswer {
	answers := plainjson.Object{}
	for i, q := range f.questions {
		if value, err := json.Marshal(f.answers[i]); err == nil && f.answers[i] != "" {
			answers = answers.Set(q.Question, value)
		}
	}
	raw, _ := answers.MarshalJSON()   // cannot fail, because all values are JSON
	in, _ := plainjson.Parse(f.input) // cannot fail, because newQuestionForm has read it
	in = slices.DeleteFunc(in, func(m plainjson.Member) bool { return m.Key == "answers" }).Set("answers", raw).Set("annotations", json.RawMessage("{}"))
	updated, _ := in.MarshalJSON() // cannot fail, for the same reason
	return protocol.PermissionAnswer{Allow: true, UpdatedInput: updated}
}
