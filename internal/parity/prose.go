package parity

import (
	_ "embed" // for the tables
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// cliProseLocations has the places in transcript lines where the real CLI writes prose, such as a prompt. claudeless writes its
// own words there, so only the form of the value can be compared. A row has the kinds of lines, the path in the value ("[]" after
// a key selects every element of a list), and the reason.
//
//go:embed prose.txt
var cliProseLocations string

// cliSentenceTable has rows of an expression and its replacement, which contains [prosePlaceholder].
//
//go:embed prose_sentences.txt
var cliSentenceTable string

const (
	prosePlaceholder = "<prose>"
	reminderStart    = "<system-reminder>\n"
)

// maskKnownCLISentences replaces the sentences that the real CLI writes around agents' reports and ids, in any JSON
// text, by a placeholder. It also replaces harnessSectionHash, because this hash is computed from such sentences.
func maskKnownCLISentences(jsonText string) string {
	for row := range strings.Lines(cliSentenceTable) {
		pattern, form, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		jsonText = regexp.MustCompile(pattern).ReplaceAllString(jsonText, form)
	}
	return jsonText
}

// ReplaceCLIProseByPlaceholders replaces the prose of the program by placeholders. In transcripts, a string becomes
// [prosePlaceholder], but the tag of a reminder stays. A list or an object that consists of prose is replaced
// completely. In lists of agents and skills, only the descriptions of the built-in ones are replaced.
func (r *Recording) ReplaceCLIProseByPlaceholders() {
	for i := range r.Runs {
		r.Runs[i].Stdout = maskKnownCLISentences(maskBuiltInDescriptions(r.Runs[i].Stdout))
	}
	for _, list := range append(slices.Collect(maps.Values(r.Transcripts)), r.Hooks, r.Requests) {
		for i, raw := range list {
			kind, _ := kindAndAlignKeyOfEvent(raw)
			list[i] = json.RawMessage(maskKnownCLISentences(string(maskProseInLine(kind, raw))))
		}
	}
}

// maskBuiltInDescriptions masks descriptions of built-in agents, commands, skills and models in answers to control requests, and in the
// event about changed commands.
func maskBuiltInDescriptions(stdout string) string {
	var b strings.Builder
	for text := range strings.Lines(stdout) {
		isEvent := strings.Contains(text, `"subtype":"commands_changed"`)
		if !isEvent && !strings.Contains(text, `"type":"control_response"`) || !strings.Contains(text, `"commands":[`) && !strings.Contains(text, `"skills":[`) {
			b.WriteString(text)
			continue
		}
		value, _ := plainjson.DecodeFirstValue([]byte(text))
		line, ok := value.(map[string]any)
		if !ok {
			b.WriteString(text)
			continue
		}
		response, _ := line["response"].(map[string]any)
		inner, _ := response["response"].(map[string]any)
		if isEvent {
			inner = line
		}
		for _, key := range []string{"agents", "commands", "models", "skills"} {
			list, _ := inner[key].([]any)
			for _, item := range list {
				if entry, ok := item.(map[string]any); ok && (key == "models" || entry["builtin"] == true || isBuiltInAgentOrCommand(key, stringOrEmpty(entry["name"]))) {
					entry["description"] = maskProse(entry["description"])
				}
			}
		}
		masked, _ := json.Marshal(line) // a decoded value can be encoded
		b.Write(append(masked, '\n'))
	}
	return b.String()
}

func isBuiltInAgentOrCommand(agentsOrCommands, name string) bool {
	if agentsOrCommands == "agents" {
		return slices.Contains([]string{"claude", "claude-code-guide", "Explore", "general-purpose", "Plan", "statusline-setup"}, name)
	}
	_, ok := claudecode.PrintModeCommandNamed(name)
	return ok
}

func maskProseInLine(lineKind string, rawLine json.RawMessage) json.RawMessage {
	var paths []string
	for row := range strings.Lines(cliProseLocations) {
		if columns := strings.Split(row, "\t"); slices.Contains(strings.Fields(columns[0]), lineKind) {
			paths = append(paths, strings.ReplaceAll(columns[1], "[]", ".[]"))
		}
	}
	lists := lineKind == "attachment/agent_listing_delta" || lineKind == "attachment/skill_listing"
	if len(paths) == 0 && !lists {
		return rawLine
	}
	value, _ := plainjson.DecodeFirstValue(rawLine)
	line, ok := value.(map[string]any)
	if !ok {
		return rawLine
	}
	for _, path := range paths {
		// Unlike a system message, other messages may contain words of the user.
		if message, _ := line["message"].(map[string]any); lineKind == "api-request-blob" && message["role"] != "system" {
			maskReminders(message)
			continue
		}
		maskValueAt(line, strings.Split(path, "."))
	}
	if attachment, ok := line["attachment"].(map[string]any); ok && lists {
		maskDescriptionsOfBuiltInAgents(attachment)
		maskBuiltInSkills(attachment)
	}
	masked, _ := json.Marshal(line) // a decoded value can be encoded
	return masked
}

// maskReminders masks the reminders in a message, not the words of the user.
func maskReminders(message map[string]any) {
	content, _ := message["content"].([]any)
	for _, item := range content {
		if block, ok := item.(map[string]any); ok && strings.HasPrefix(stringOrEmpty(block["text"]), reminderStart) {
			block["text"] = maskProse(block["text"])
		}
	}
}

// maskValueAt masks the prose at a path below a value, in place, and returns the masked value. The word "[]" in the path
// selects every element of a list.
func maskValueAt(value any, path []string) any {
	if len(path) == 0 {
		return maskProse(value)
	}
	switch v := value.(type) {
	case string: // a message has a text instead of a list of blocks
		if path[0] == "[]" {
			return maskProse(v)
		}
	case map[string]any:
		if inner, found := v[path[0]]; found {
			v[path[0]] = maskValueAt(inner, path[1:])
		}
	case []any:
		for i := range v {
			if path[0] == "[]" {
				v[i] = maskValueAt(v[i], path[1:])
			}
		}
	}
	return value
}

func maskProse(value any) any {
	switch v := value.(type) {
	case string:
		switch {
		case v == "":
			return v
		case strings.HasPrefix(v, reminderStart):
			return reminderStart + prosePlaceholder
		}
		return prosePlaceholder
	case []any:
		return []any{prosePlaceholder}
	case map[string]any:
		return map[string]any{}
	}
	return value
}

func maskDescriptionsOfBuiltInAgents(attachment map[string]any) {
	names, _ := attachment["addedTypes"].([]any)
	builtIn, _ := attachment["builtInTypes"].([]any)
	texts, _ := attachment["addedLines"].([]any)
	for i := range min(len(names), len(texts)) {
		if slices.Contains(builtIn, names[i]) {
			texts[i] = "- " + stringOrEmpty(names[i]) + ": " + prosePlaceholder
		}
	}
}

func maskBuiltInSkills(attachment map[string]any) {
	builtIn := map[string]bool{"schedule": true}
	for _, skill := range claudecode.BuiltInSkillsInContext() {
		builtIn[skill.Name] = true
	}
	content, ok := attachment["content"].(string)
	if !ok {
		return
	}
	var kept []string
	masked := false // the text after a masked entry is part of the entry
	for line := range strings.SplitSeq(content, "\n") {
		entry, starts := strings.CutPrefix(line, "- ")
		name, _, _ := strings.Cut(entry, ": ")
		if starts {
			masked = builtIn[name]
		}
		switch {
		case starts && masked:
			kept = append(kept, "- "+name+": "+prosePlaceholder)
		case !masked:
			kept = append(kept, line)
		}
	}
	attachment["content"] = strings.Join(kept, "\n")
}
