package messages

import (
	"encoding/json"
	"strings"
)

// intent is one thing that a message of the user means.
type intent struct {
	kind    string // prompt, results, added, injected, notice, interrupt
	text    string
	pieces  []string // of a prompt: the blocks that it was joined from
	results []*result
	files   []string // types of images and documents beside a prompt
	sum     digest   // of what counts of it; of results it depends on the calls
}

// marker tells what a text block of Claude Code is by how it begins. The texts are
// those that were seen in requests of the versions named.
type marker struct {
	prefix string
	as     string // context, added, injected, notice, interrupt, summary
	since  string // version that was first seen with it
}

// markers are what Claude Code puts into a conversation beside what people type.
// The first that fits counts.
func markers() []marker {
	return []marker{
		{"<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]", "notice", "2.1.329"},
		{"<task-notification>", "notice", "2.1.197"},
		{"<system-reminder>", "context", "2.1.197"},
		{"<local-command-caveat>", "context", "2.1.197"},
		{"<command-name>", "context", "2.1.197"},
		{"<command-message>", "context", "2.1.197"},
		{"<local-command-stdout>", "context", "2.1.197"},
		{"<local-command-stderr>", "context", "2.1.197"},
		{"<bash-input>", "context", "2.1.197"},
		{"<bash-stdout>", "context", "2.1.197"},
		{"This session is being continued from a previous conversation", "summary", "2.1.197"},
		{"[Request interrupted by user", "interrupt", "2.1.197"},
		{addedPrefix, "added", "2.1.197"},
		{"Stop hook feedback:\n", "injected", "2.1.197"},
		{"[structured-output-enforce]", "injected", "2.1.329"},
		{"Output token limit hit.", "injected", "2.1.329"},
		{"Your response above was stopped by a safety classifier", "injected", "2.1.329"},
		{"Your response above was cut off mid-stream.", "injected", "2.1.329"},
		{"[Your previous response had no visible output.", "injected", "2.1.329"},
	}
}

// What stands around a message that was typed while Claude Code was working.
const (
	addedPrefix = "The user sent a new message while you were working:\n"
	addedSuffix = "\n\nThis is how Claude Code surfaces messages"
)

// markerOf tells what a text is; "" = none of Claude Code's own.
func markerOf(text string) string {
	text = strings.TrimLeft(text, "\n ")
	if text == "" || !strings.ContainsRune("<[TSOY", rune(text[0])) {
		return ""
	}
	for _, m := range markers() {
		if strings.HasPrefix(text, m.prefix) {
			return m.as
		}
	}
	return ""
}

// understand decides what a message of the user, or of the system, means.
func (c *content) understand() {
	var results []*result
	var prompt []string
	var files []string
	var others []intent
	interrupted := false
	for _, p := range c.parts {
		switch {
		case p.result != nil:
			results = append(results, p.result)
		case p.attachments:
			files = append(files, p.kind)
		case p.kind != "text":
		default:
			as := markerOf(p.text)
			switch as {
			case "added":
				others = append(others, intent{kind: as, text: addedText(p.text)})
			case "notice":
				others = append(others, intent{kind: as, text: noticeText(p.text)})
			case "injected", "summary":
				others = append(others, intent{kind: as, text: p.text})
			case "interrupt":
				interrupted = true
				others = append(others, intent{kind: as})
			case "context":
				c.context = append(c.context, contextText(p.text))
			default:
				prompt = append(prompt, p.text)
			}
		}
	}
	if c.role == "system" || len(results) > 0 && !interrupted {
		c.context = append(c.context, prompt...)
		prompt = nil
	}
	if len(results) > 0 {
		c.intents = append(c.intents, intent{kind: "results", results: results})
	}
	c.intents = append(c.intents, others...)
	if len(prompt) > 0 || len(files) > 0 && len(results) == 0 && len(others) == 0 && len(c.context) == 0 {
		c.intents = append(c.intents, intent{kind: "prompt", text: joinPieces(prompt), pieces: prompt, files: files})
	}
	for i := range c.intents {
		c.intents[i].sum = c.intents[i].own()
	}
}

// joinPieces makes one prompt of its blocks. Claude Code ends all but the last
// with a newline of their own when it joins prompts.
func joinPieces(pieces []string) string {
	trimmed := make([]string, len(pieces))
	for i, p := range pieces {
		if i < len(pieces)-1 {
			p = strings.TrimSuffix(p, "\n")
		}
		trimmed[i] = p
	}
	return strings.Join(trimmed, "\n")
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

// directory is where Claude Code says that it runs; "" = it does not say.
func (f *fold) directory(messages []*content) string {
	for _, m := range messages {
		for _, text := range m.context {
			if dir := directoryIn(text); dir != "" {
				return dir
			}
		}
	}
	return directoryIn(f.r.systemText())
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
// older models: reminders after a blank line, at the end.
func withoutReminders(text string) string {
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

// sideKind tells whether a request is one that a client makes beside the
// conversation, and of which kind; "" = it is the conversation.
func (r *request) sideKind(last *content) string {
	if last != nil && last.role == "user" && strings.HasPrefix(last.firstText(), "CRITICAL: Respond with TEXT ONLY") {
		return "compact"
	}
	if len(r.tools.names) > 0 || !r.claudeCode() {
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
	if r.outputConfig != nil && json.Unmarshal(r.outputConfig, &config) != nil {
		return ""
	}
	system := r.systemText()
	_, title := config.Format.Schema.Properties["title"]
	switch {
	case title && config.Format.Type == "json_schema",
		strings.Contains(system, "You are naming a coding session"), strings.Contains(system, "Generate a concise") && strings.Contains(system, "title"):
		return "title"
	case r.maxTokens == 1:
		return "probe"
	case config.Format.Type != "":
		return "other"
	}
	return ""
}

// firstText is the first text of a message.
func (c *content) firstText() string {
	for _, p := range c.parts {
		if p.kind == "text" {
			return p.text
		}
	}
	return ""
}

// sideText is the answer to a side request: the scenario's, or the least that the
// client can go on with.
func (s *Server) sideText(kind string, last *content) string {
	if text, ok := s.o.Scenario.API.SideText(kind); ok {
		return text
	}
	switch kind {
	case "title":
		title, err := json.Marshal(map[string]string{"title": titleOf(last.firstText())})
		if err == nil {
			return string(title)
		}
	case "compact":
		return "<summary>\nThe conversation so far went as the scenario has it.\n</summary>"
	}
	return "OK"
}

// titleOf are the first words of what a session is about.
func titleOf(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "<session>")
	text, _, _ = strings.Cut(text, "</session>")
	words := strings.Fields(text)
	if len(words) > 5 {
		words = words[:5]
	}
	if len(words) == 0 {
		return "Session"
	}
	return strings.Join(words, " ")
}
