package history

import (
	_ "embed" // for text_prefixes.txt
	"encoding/json"
	"slices"
	"strings"
)

// claudeCodeTextPrefixes has the prefixes of the texts that Claude Code adds to a conversation. A line is a step kind and a prefix
// (observed with 2.1.197 and 2.1.329). The first prefix that matches applies.
//
//go:embed text_prefixes.txt
var claudeCodeTextPrefixes string

// kindContextText is the kind of a text that accompanies a step and is not a step itself.
const kindContextText SegmentKind = "context"

const skillContentPrefix = "Base directory for this skill: "

// The text around a message that was typed while Claude Code was working.
const (
	addedPromptPrefix = "The user sent a new message while you were working:\n"
	addedPromptSuffix = "\n\nThis is how Claude Code surfaces messages"

	// hookReminderPrefix is the beginning of a reminder with the output of a hook (observed since 2.1.331).
	hookReminderPrefix = "<system-reminder>\nThe text below is the output of a hook"
)

// kindOfClaudeCodeText returns the kind of a text, or "" if Claude Code did not add it.
func kindOfClaudeCodeText(text string) SegmentKind {
	text = strings.TrimLeft(text, "\n ")
	if text == "" || !strings.ContainsRune("<[(TSOY", rune(text[0])) {
		return ""
	}
	for row := range strings.Lines(claudeCodeTextPrefixes) {
		kind, prefix, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		if strings.HasPrefix(text, strings.ReplaceAll(prefix, `\n`, "\n")) {
			return SegmentKind(kind)
		}
	}
	return ""
}

// messagePartCollector collects the parts of a user or system message until their meaning is known.
type messagePartCollector struct {
	results       []*ToolResult
	prompt, files []string
	before, after []Segment // Claude Code's own steps before and after the prompt
	shell         []string  // shell commands of the user
	context       []rankedContextText
	interrupted   bool
}

func interpretMessageParts(role string, parts []contentPart) (steps []Segment, context []rankedContextText) {
	var r messagePartCollector
	last := len(parts) - 1
	for last > 0 && parts[last].kind != "text" {
		last--
	}
	for i, p := range parts {
		switch {
		case p.result != nil:
			r.results = append(r.results, p.result)
		case p.hasAttachments:
			r.files = append(r.files, p.kind)
		case p.kind == "text" && i < last: // Claude Code adds a newline to a text if another one follows
			r.classifyAndAddTextBlock(strings.TrimSuffix(p.text, "\n"))
		case p.kind == "text":
			r.classifyAndAddTextBlock(p.text)
		}
	}
	if role == "system" {
		for _, text := range r.prompt {
			r.context = append(r.context, splitContext(text)...)
		}
		r.prompt = nil
	}
	if len(r.prompt) == 0 && role == "user" {
		r.prompt = r.shell // a command without a prompt requires a reply (observed with 2.1.330)
	}
	return r.stepsFromCollectedParts(), r.context
}

func (r *messagePartCollector) classifyAndAddTextBlock(blockText string) {
	if strings.HasPrefix(blockText, hookReminderPrefix) {
		_, blockText, _ = strings.Cut(strings.TrimSuffix(blockText[len(hookReminderPrefix):], "\n</system-reminder>"), "\n")
	} else if note, ok := strings.CutPrefix(blockText, "<system-reminder>\n"); ok && slices.Contains([]SegmentKind{KindTextRequestingNewReply, KindTextRequestingRestOfReply}, kindOfClaudeCodeText(note)) {
		blockText = strings.TrimSuffix(note, "\n</system-reminder>") // observed since 2.1.331
	}
	switch as := kindOfClaudeCodeText(blockText); as {
	case KindAddedPrompt:
		for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimLeft(blockText, "\n "), addedPromptPrefix), "\n\n"+addedPromptPrefix) {
			prompt, _, _ := strings.Cut(part, addedPromptSuffix)
			r.before = append(r.before, newSegment(as, prompt))
		}
	case KindBackgroundWorkNotice:
		notice := extractTaskNotificationElement(blockText)
		if last := len(r.before) - 1; last >= 0 && r.before[last].Kind == as { // the model answers queued notices together
			notice, r.before = r.before[last].Text+"\n"+notice, r.before[:last]
		}
		r.before = append(r.before, newSegment(as, notice))
	case KindClaudeCodeTextNeedingReply, KindTextRequestingNewReply, KindTextRequestingRestOfReply, KindSummaryReplacingHistory:
		if len(r.prompt) > 0 { // the reply between the two prompts was removed
			r.after = append(r.after, newSegment(as, blockText))
			return
		}
		r.before = append(r.before, newSegment(as, blockText))
	case KindInterrupt:
		if len(r.prompt) > 0 && len(r.results) == 0 { // the prompt was not answered: the next one is in the same message
			r.before = append(r.before, r.stepFromCollectedPrompt(KindPrompt))
			r.prompt, r.files = nil, nil
		}
		r.interrupted = true
		r.before = append(r.before, newSegment(as, ""))
	case kindContextText:
		if command, ok := strings.CutPrefix(blockText, "<bash-input>"); ok {
			r.shell = append(r.shell, "!"+strings.TrimSuffix(command, "</bash-input>"))
		}
		if last := len(r.prompt) - 1; last >= 0 && strings.HasPrefix(r.prompt[last], "/") && strings.HasPrefix(blockText, "<local-command-stdout>") {
			r.prompt = r.prompt[:last] // a slash command that was not available (observed with 2.1.330)
		}
		r.context = append(r.context, splitContext(blockText)...)
	default:
		if len(r.prompt) > 0 && strings.HasPrefix(blockText, skillContentPrefix) { // a skill that a sub-agent preloads
			r.context = append(r.context, splitContext(blockText)...)
			return
		}
		r.prompt = append(r.prompt, blockText)
	}
}

func (r *messagePartCollector) stepsFromCollectedParts() []Segment {
	var steps []Segment
	kind := KindPrompt
	if len(r.results) > 0 {
		steps = append(steps, Segment{Kind: KindResults, Results: r.results})
		if !r.interrupted {
			kind = kindTextNextToResults
		}
	}
	steps = append(steps, r.before...)
	if len(r.prompt) > 0 || len(r.files) > 0 && len(r.results) == 0 && len(r.before) == 0 {
		steps = append(steps, r.stepFromCollectedPrompt(kind))
	}
	return append(steps, r.after...)
}

func (r *messagePartCollector) stepFromCollectedPrompt(kind SegmentKind) Segment {
	s := Segment{Kind: kind, Text: joinBlocksWithNewlines(r.prompt), Blocks: r.prompt, Files: r.files}
	s.digest = s.digestWithoutUses()
	return s
}

// extractTaskNotificationElement returns the <task-notification> element in a text, because scenarios match this element.
// Without such an element, it returns the text without the tags around it.
func extractTaskNotificationElement(text string) (elementOrTextWithoutTags string) {
	const begin, end = "<task-notification>", "</task-notification>"
	if from, to := strings.Index(text, begin), strings.LastIndex(text, end); from >= 0 && to > from {
		return text[from : to+len(end)]
	}
	return trimSystemReminderTags(text)
}

func trimSystemReminderTags(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "<system-reminder>"); ok {
		inner, _ = strings.CutSuffix(inner, "</system-reminder>")
		return strings.TrimSpace(inner)
	}
	return text
}

// rankedContextText is a text that accompanies a prompt or results. Scenarios can rely on the order of these texts: those from
// the user's own hooks and files come first, and those about Claude Code last.
type rankedContextText struct {
	text     string
	sortRank contextTextSortRank
}

type contextTextSortRank int

const (
	sortRankOfHookContextText contextTextSortRank = iota
	sortRankOfMentionedFileContextText
	sortRankOfOtherContextText
	sortRankOfContextTextAboutClaudeCode // texts about Claude Code, the machine or the available tools
)

// claudeCodeContextPartPrefixes returns prefixes of texts that Claude Code adds to prompts. One block may contain several such texts.
func claudeCodeContextPartPrefixes() []string {
	return []string{
		"# Environment\n", "You are powered by the model", "The following deferred tools are", "Available agent types for", "When you launch multiple agents",
		"The following skills are available", "Today's date is", "<total_tokens>", "Codebase and user instructions are shown", "Attribution for git commits",
		"Called the ",
	}
}

func splitContext(text string) []rankedContextText {
	text = trimSystemReminderTags(text)
	var out []rankedContextText
	for rest := text; rest != ""; {
		text, rest = cutBeforeNextContextPart(rest)
		out = append(out, newRankedContextText(text))
	}
	return out
}

// cutBeforeNextContextPart splits a text before the next part that is from a hook, from a mentioned file or about
// Claude Code. If none follows, rest is empty. A text that begins with the contents of a file is never split.
func cutBeforeNextContextPart(contextText string) (first, rest string) {
	if strings.HasPrefix(contextText, mentionedFilePrefix) {
		return contextText, ""
	}
	for at := 0; ; {
		n := strings.Index(contextText[at:], "\n\n")
		if n < 0 {
			return contextText, ""
		}
		at += n + 2
		if newRankedContextText(contextText[at:]).sortRank != sortRankOfOtherContextText {
			return contextText[:at-2], contextText[at:]
		}
	}
}

const mentionedFilePrefix = "Result of calling the Read tool:\n"

func newRankedContextText(text string) rankedContextText {
	if file, ok := strings.CutPrefix(text, mentionedFilePrefix); ok {
		return rankedContextText{file, sortRankOfMentionedFileContextText}
	}
	for _, mark := range []string{" hook success: ", " hook additional context: "} {
		if hook, said, ok := strings.Cut(text, mark); ok && !strings.ContainsAny(hook, " \n") {
			return rankedContextText{said, sortRankOfHookContextText}
		}
	}
	if slices.ContainsFunc(claudeCodeContextPartPrefixes(), func(opening string) bool { return strings.HasPrefix(text, opening) }) {
		return rankedContextText{text, sortRankOfContextTextAboutClaudeCode}
	}
	return rankedContextText{text, sortRankOfOtherContextText}
}

// WorkingDirectory returns the working directory that Claude Code reports, or "".
func (r *Request) WorkingDirectory() string {
	for _, m := range r.Messages {
		for _, a := range m.context {
			if dir := findWorkingDirectory(a.text); dir != "" {
				return dir
			}
		}
	}
	return findWorkingDirectory(r.SystemText())
}

func findWorkingDirectory(text string) string {
	for _, label := range []string{"Primary working directory: ", "Working directory: "} {
		if _, rest, ok := strings.Cut(text, label); ok {
			dir, _, _ := strings.Cut(rest, "\n")
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// trimAppendedReminders removes the texts that Claude Code appends to a tool result: reminders, which it adds for older
// models, and a note that the schema of a failed tool was not sent to the model.
func trimAppendedReminders(text string) string {
	if at := strings.LastIndex(text, "\n\nThis tool's input schema was not in your prompt when you called it."); at >= 0 {
		text = text[:at]
	}
	if at := strings.LastIndex(text, "\n\nThis tool's schema was not sent to the API "); at >= 0 && strings.HasSuffix(text, "</tool_use_error>") {
		text = text[:at] + "</tool_use_error>"
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

// SideRequestKind returns the kind of a request outside the conversation, such as a title, or ""
// for a request of the conversation. The request must have a message.
func (r *Request) SideRequestKind() string {
	last := len(r.Messages) - 1
	for last > 0 && r.Messages[last].Role == "system" { // reminders follow the request
		last--
	}
	if r.Messages[last].Role == "user" && r.Messages[last].lastTextHasPrefix("CRITICAL: Respond with TEXT ONLY") {
		return "compact"
	}
	if len(r.Tools.Names) > 0 || !r.IsClaudeCode() {
		return ""
	}
	var config struct {
		Format struct {
			Type   string                                          `json:"type"`
			Schema struct{ Properties map[string]json.RawMessage } `json:"schema"`
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
