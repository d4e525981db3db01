package history

import (
	"encoding/json"
	"slices"
	"strings"
)

// textMarker tells what a text block of Claude Code is by how it begins. The texts are
// those that were seen in requests of the versions named.
type textMarker struct {
	prefix string
	kind   Kind
	since  string // version that was first seen with it
}

// kindContext marks what is no step: it stands beside one.
const kindContext Kind = "context"

// textMarkers are what Claude Code puts into a conversation beside what people type.
// The first that fits counts.
func textMarkers() []textMarker {
	return []textMarker{
		{"<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]", Notice, "2.1.329"},
		{"<task-notification>", Notice, "2.1.197"},
		{"<system-reminder>", kindContext, "2.1.197"},
		{"<local-command-caveat>", kindContext, "2.1.197"},
		{"<command-name>", kindContext, "2.1.197"},
		{"<command-message>", kindContext, "2.1.197"},
		{"<local-command-stdout>", kindContext, "2.1.197"},
		{"<local-command-stderr>", kindContext, "2.1.197"},
		{"<bash-input>", kindContext, "2.1.197"},
		{"<bash-stdout>", kindContext, "2.1.197"},
		{"This session is being continued from a previous conversation", Summary, "2.1.197"},
		{"[Request interrupted by user", Interrupt, "2.1.197"},
		{addedPrefix, AddedPrompt, "2.1.197"},
		{"Stop hook feedback:\n", InjectedText, "2.1.197"},
		{"[structured-output-enforce]", InjectedText, "2.1.329"},
		{"Output token limit hit.", InjectedText, "2.1.329"},
		{"Your response above was stopped by a safety classifier", InjectedText, "2.1.329"},
		{"Your response above was cut off mid-stream.", InjectedText, "2.1.329"},
		{"[Your previous response had no visible output.", ResumeText, "2.1.329"},
		{"[Image: source: ", kindContext, "2.1.329"},
		{"[Image: original ", kindContext, "2.1.329"},
		{"Tool loaded.", kindContext, "2.1.329"},
		{"(Re-invocation of /", kindContext, "2.1.329"},
	}
}

// What stands around a message that was typed while Claude Code was working.
const (
	addedPrefix = "The user sent a new message while you were working:\n"
	addedSuffix = "\n\nThis is how Claude Code surfaces messages"
)

// kindOfText tells what a text is; "" = none of Claude Code's own.
func kindOfText(text string) Kind {
	text = strings.TrimLeft(text, "\n ")
	if text == "" || !strings.ContainsRune("<[(TSOY", rune(text[0])) {
		return ""
	}
	for _, m := range textMarkers() {
		if strings.HasPrefix(text, m.prefix) {
			return m.kind
		}
	}
	return ""
}

// messageReader is a message of the user, or of the system, on its way to what it means.
type messageReader struct {
	results       []*Result
	prompt, files []string
	before, after []Step // Claude Code's own, before the prompt and behind it
	context       []sideText
	interrupted   bool
}

// interpret decides what a message means, and what stands beside it.
func interpret(role string, parts []part) (steps []Step, context []sideText) {
	var r messageReader
	last := len(parts) - 1
	for last > 0 && parts[last].kind != "text" {
		last--
	}
	for i, p := range parts {
		switch {
		case p.result != nil:
			r.results = append(r.results, p.result)
		case p.attachments:
			r.files = append(r.files, p.kind)
		case p.kind == "text" && i < last: // Claude Code ends it with a newline when it joins another one
			r.addText(strings.TrimSuffix(p.text, "\n"))
		case p.kind == "text":
			r.addText(p.text)
		}
	}
	if role == "system" {
		for _, text := range r.prompt {
			r.context = append(r.context, splitContext(text)...)
		}
		r.prompt = nil
	}
	return r.steps(), r.context
}

// addText takes one text.
func (r *messageReader) addText(text string) {
	switch as := kindOfText(text); as {
	case AddedPrompt:
		r.before = append(r.before, newStep(as, addedText(text)))
	case Notice:
		r.before = append(r.before, newStep(as, noticeText(text)))
	case InjectedText, ResumeText, Summary:
		if len(r.prompt) > 0 { // of a reply between them nothing is left
			r.after = append(r.after, newStep(as, text))
			return
		}
		r.before = append(r.before, newStep(as, text))
	case Interrupt:
		if len(r.prompt) > 0 && len(r.results) == 0 { // nothing was said to it: the next prompt stands in the same message
			r.before = append(r.before, r.promptStep(Prompt))
			r.prompt, r.files = nil, nil
		}
		r.interrupted = true
		r.before = append(r.before, newStep(as, ""))
	case kindContext:
		r.context = append(r.context, splitContext(text)...)
	default:
		r.prompt = append(r.prompt, text)
	}
}

// steps are what the message means, in order.
func (r *messageReader) steps() []Step {
	var steps []Step
	kind := Prompt
	if len(r.results) > 0 {
		steps = append(steps, Step{Kind: Results, Results: r.results})
		if !r.interrupted {
			kind = kindTyped
		}
	}
	steps = append(steps, r.before...)
	if len(r.prompt) > 0 || len(r.files) > 0 && len(r.results) == 0 && len(r.before) == 0 && len(r.context) == 0 {
		steps = append(steps, r.promptStep(kind))
	}
	return append(steps, r.after...)
}

// promptStep is what the texts so far ask.
func (r *messageReader) promptStep(kind Kind) Step {
	s := Step{Kind: kind, Text: joinPieces(r.prompt), Pieces: r.prompt, Files: r.files}
	s.digest = s.ownDigest()
	return s
}

func addedText(text string) string {
	text = strings.TrimPrefix(strings.TrimLeft(text, "\n "), addedPrefix)
	text, _, _ = strings.Cut(text, addedSuffix)
	return text
}

// noticeText is the notification itself, as scenarios know it.
func noticeText(text string) string {
	const begin, end = "<task-notification>", "</task-notification>"
	if from := strings.Index(text, begin); from >= 0 {
		if to := strings.LastIndex(text, end); to > from {
			return text[from : to+len(end)]
		}
	}
	return contextText(text)
}

// contextText is a text beside a prompt without the tags around it.
func contextText(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "<system-reminder>"); ok {
		inner, _ = strings.CutSuffix(inner, "</system-reminder>")
		return strings.TrimSpace(inner)
	}
	return text
}

// sideText is a text beside a prompt or results. Those that the user's own hooks and files
// tell come first, those that Claude Code tells of itself last: that is the order
// in which scenarios can rely on them.
type sideText struct {
	text string
	rank sideTextOrder
}

type sideTextOrder int

const (
	fromHook      sideTextOrder = iota // by a hook
	mentionedFile                      // a file that the prompt mentions
	otherContext
	aboutClaudeCode // what Claude Code says of itself, of the machine, of what there is
)

// contextOpenings are how texts of Claude Code's own begin that stand beside prompts, often
// several of them in one block.
func contextOpenings() []string {
	return []string{
		"# Environment\n", "You are powered by the model", "The following deferred tools are", "Available agent types for", "When you launch multiple agents",
		"The following skills are available", "Today's date is", "<total_tokens>", "Codebase and user instructions are shown", "Attribution for git commits",
		"Called the ",
	}
}

// sideTexts are the texts in a block of context, or of the system.
func splitContext(text string) []sideText {
	text = contextText(text)
	var out []sideText
	for rest := text; rest != ""; {
		text, rest = cutFirstContext(rest)
		out = append(out, classifyContext(text))
	}
	return out
}

// cutFirstContext cuts a text where another one of the known ones begins. What a file
// holds is never cut.
func cutFirstContext(text string) (first, rest string) {
	if strings.HasPrefix(text, mentionedFilePrefix) {
		return text, ""
	}
	for at := 0; ; {
		n := strings.Index(text[at:], "\n\n")
		if n < 0 {
			return text, ""
		}
		at += n + 2
		if classifyContext(text[at:]).rank != otherContext {
			return text[:at-2], text[at:]
		}
	}
}

// mentionedFilePrefix stands before what a file holds that the prompt mentions.
const mentionedFilePrefix = "Result of calling the Read tool:\n"

// classifyContext tells what a text is by how it begins.
func classifyContext(text string) sideText {
	if file, ok := strings.CutPrefix(text, mentionedFilePrefix); ok {
		return sideText{file, mentionedFile}
	}
	for _, mark := range []string{" hook success: ", " hook additional context: "} {
		if hook, said, ok := strings.Cut(text, mark); ok && !strings.ContainsAny(hook, " \n") {
			return sideText{said, fromHook}
		}
	}
	if slices.ContainsFunc(contextOpenings(), func(opening string) bool { return strings.HasPrefix(text, opening) }) {
		return sideText{text, aboutClaudeCode}
	}
	return sideText{text, otherContext}
}

// WorkingDirectory is where Claude Code says that it runs; "" = it does not say.
func (r *Request) WorkingDirectory() string {
	for _, m := range r.Messages {
		for _, a := range m.context {
			if dir := directoryIn(a.text); dir != "" {
				return dir
			}
		}
	}
	return directoryIn(r.SystemText())
}

// directoryIn finds the line that names the working directory.
func directoryIn(text string) string {
	for _, label := range []string{"Primary working directory: ", "Working directory: "} {
		if _, rest, ok := strings.Cut(text, label); ok {
			dir, _, _ := strings.Cut(rest, "\n")
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// withoutReminders takes out of a tool's result what Claude Code adds to it for
// older models, reminders after a blank line, and to the failure of a tool whose schema
// the model has not seen: both at the end.
func withoutReminders(text string) string {
	if at := strings.LastIndex(text, "\n\nThis tool's input schema was not in your prompt when you called it."); at >= 0 {
		text = text[:at]
	}
	for {
		trimmed := strings.TrimRight(text, "\n ")
		if !strings.HasSuffix(trimmed, "</system-reminder>") {
			return text
		}
		at := strings.LastIndex(trimmed, "\n\n<system-reminder>")
		if at < 0 {
			return text
		}
		text = text[:at]
	}
}

// SideRequestKind tells whether a request is one that a client makes beside the
// conversation, and of which kind; "" = it is the
// conversation. There is a message.
func (r *Request) SideRequestKind() string {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "user" && last.endsWithPrefix("CRITICAL: Respond with TEXT ONLY") {
		return "compact"
	}
	if len(r.Tools.Names) > 0 || !r.IsClaudeCode() {
		return ""
	}
	var config struct {
		Format struct {
			Type   string `json:"type"`
			Schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schema"`
		} `json:"format"`
	}
	if r.OutputConfig != nil && json.Unmarshal(r.OutputConfig, &config) != nil {
		return ""
	}
	system := r.SystemText()
	_, title := config.Format.Schema.Properties["title"]
	switch {
	case title && config.Format.Type == "json_schema",
		strings.Contains(system, "You are naming a coding session"), strings.Contains(system, "Generate a concise") && strings.Contains(system, "title"):
		return "title"
	case r.MaxTokens == 1:
		return "probe"
	case config.Format.Type != "":
		return "other"
	}
	return ""
}
