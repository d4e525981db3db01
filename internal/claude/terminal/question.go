package terminal

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// form asks the questions of one AskUserQuestion call, a page each. Several questions, or
// several answers to one, end with a page that shows the answers.
type form struct {
	input     json.RawMessage
	questions []formQuestion
	answers   []string // by question; empty = not answered
	pages     []*dialog
	at        int
	prompter  *prompter
	question  *pendingQuestion
}

type formQuestion struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Multi    bool   `json:"multiSelect"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// newForm returns the form of a call, or nil if the input has no questions.
func newForm(a *prompter, q *pendingQuestion) *form {
	input := q.request.Use.DisplayInput()
	var in struct {
		Questions []formQuestion `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil
	}
	f := &form{input: input, questions: in.Questions, answers: make([]string, len(in.Questions)), prompter: a, question: q}
	for i := range in.Questions {
		f.pages = append(f.pages, f.newPage(i))
	}
	return f
}

// label returns a label of questions.
func (f *form) label(begin string) string { return f.prompter.screen.labels.text("question", begin) }

// single reports whether the form is one question with one answer, which needs no review.
func (f *form) single() bool { return len(f.questions) == 1 && !f.questions[0].Multi }

// page returns the dialog of the current page.
func (f *form) page() *dialog {
	if f.at == len(f.pages) {
		return f.review()
	}
	d := f.pages[f.at]
	d.head = []string{f.tabs(), "", f.questions[f.at].Question, ""}
	return d
}

// tabs returns the line with the headers of the questions.
func (f *form) tabs() string {
	var tabs []string
	for i, q := range f.questions {
		box := "☐ "
		if f.answers[i] != "" {
			box = "☒ "
		}
		tabs = append(tabs, box+q.Header)
	}
	if f.single() {
		return " " + tabs[0]
	}
	return "←  " + strings.Join(tabs, "  ") + "  ✔ Submit  →"
}

func (f *form) newPage(i int) *dialog {
	q := f.questions[i]
	d := &dialog{state: Question, kind: "single", numbers: true, rule: ruleGlyph, foot: []string{"", f.label("Enter to select") + " · ↑/↓ to navigate · Esc to cancel"}}
	box := noTick
	if q.Multi {
		d.kind, box = "multi", unticked
	}
	if len(f.questions) > 1 {
		d.foot[1] = f.label("Enter to select") + " · Tab/Arrow keys to navigate · Esc to cancel"
	}
	for _, o := range q.Options {
		d.options = append(d.options, option{label: o.Label, detail: o.Description, tick: box})
	}
	if q.Multi {
		next := "Next"
		if i == len(f.questions)-1 {
			next = "Submit"
		}
		d.options = append(d.options, option{label: "Type something", input: true, tick: box}, option{label: next, action: true})
	} else {
		d.options = append(d.options, option{label: f.label("Type something."), input: true})
	}
	d.options = append(d.options, option{label: f.label("Chat about this"), apart: true})
	d.owner = f
	if f.single() {
		d.owner = chooser(func(c choice) *dialog { return f.choose(d, c) })
	}
	return d
}

// toggled implements [formOwner].
func (f *form) toggled(d *dialog) {
	f.answers[f.at] = f.ticked(f.at)
	d.head[0] = f.tabs()
}

// ticked returns the selected answers of a question, separated by commas.
func (f *form) ticked(i int) string {
	var chosen []string
	for _, o := range f.pages[i].options {
		switch {
		case o.tick != ticked:
		case o.input:
			chosen = append(chosen, o.detail)
		default:
			chosen = append(chosen, o.label)
		}
	}
	return strings.Join(chosen, ", ")
}

// turn implements [formOwner].
func (f *form) turn(by int) *dialog {
	f.at = min(max(f.at+by, 0), len(f.pages))
	return f.page()
}

// choose implements [formOwner].
func (f *form) choose(d *dialog, c choice) *dialog {
	if f.at == len(f.pages) {
		if c.cancelled || c.index == 1 {
			return f.end(d, "cancelled", refusal())
		}
		return f.end(d, strings.Join(f.answers, "; "), f.allow())
	}
	i := f.at
	q := f.questions[i]
	switch {
	case c.cancelled:
		return f.end(d, "cancelled", refusal())
	case c.index == len(d.options)-1:
		return f.end(d, d.options[c.index].label, protocol.PermissionAnswer{Message: "The user wants to talk about the questions before answering them."})
	case !q.Multi && d.options[c.index].input:
		f.answers[i] = c.text
	case !q.Multi:
		f.answers[i] = d.options[c.index].label
	}
	if f.single() {
		return f.end(d, f.answers[i], f.allow())
	}
	return f.turn(1)
}

// review shows the answers and asks whether they are sent.
func (f *form) review() *dialog {
	d := &dialog{state: Question, kind: "review", numbers: true, rule: ruleGlyph, head: []string{f.tabs(), "", "Review your answers", ""}}
	for i, q := range f.questions {
		if f.answers[i] != "" {
			d.head = append(d.head, " ● "+q.Question, "   → "+f.answers[i])
		}
	}
	d.head = append(d.head, "")
	d.options = []option{{label: "Submit answers"}, {label: "Cancel"}}
	d.owner = f
	return d
}

func (f *form) end(d *dialog, word string, a protocol.PermissionAnswer) *dialog {
	f.prompter.answer(f.question, d, word, a)
	return nil
}

// allow returns the answer that lets the call run with the answers in its input.
func (f *form) allow() protocol.PermissionAnswer {
	answers := plainjson.Object{}
	for i, q := range f.questions {
		if value, err := json.Marshal(f.answers[i]); err == nil && f.answers[i] != "" {
			answers = answers.With(q.Question, value)
		}
	}
	raw, err := answers.MarshalJSON()
	in, parsed := plainjson.Parse(f.input)
	if err != nil || parsed != nil {
		return protocol.PermissionAnswer{Allow: true}
	}
	in = slices.DeleteFunc(in, func(m plainjson.Member) bool { return m.Key == "answers" }).With("answers", raw)
	updated, err := in.MarshalJSON()
	if err != nil {
		return protocol.PermissionAnswer{Allow: true}
	}
	return protocol.PermissionAnswer{Allow: true, UpdatedInput: updated}
}
