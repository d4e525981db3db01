package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Message is one message of a conversation as a transcript keeps it.
type Message struct {
	UUID    string
	Role    string // "user" or "assistant"
	Content protocol.Content
	Turn    *protocol.TurnDurationLine // duration of the turn that ended with this message; nil means that the transcript has none
}

const hookDeferredToolType = "hook_deferred_tool"

// parsedTranscript contains what was read from a transcript file. Lines that are not JSON objects are ignored.
type parsedTranscript struct {
	entries                         []transcriptLine
	lastConversationLine            string // uuid of the last line that continues the conversation
	hasConversation                 bool   // at least one line is a message
	sessionID                       string // session id of the last line that has one
	title, aiTitle                  string
	planName                        string // name of the plan file; empty means none
	tools                           []string
	lastPromptText                  string // prompt of the last line of type last-prompt
	costs                           *protocol.CostStateLine
	endsInNewline                   bool              // the file ends in a newline, or is empty
	deferredCallID                  string            // id of the last deferred call
	promptCount, untypedPromptCount int               // number of prompts, and of those that no user has typed; see updateTurnCountFromLine
	environmentWritten              bool              // the model has received the description of its environment
	contextPending                  bool              // the attachments of the first request are not written yet
	readFiles                       map[string]string // content of the files that calls read or wrote, by path
	instructionFiles                []string          // instruction files that were added between calls
	hookTexts, unansweredHookTexts  []string          // outputs of SessionStart hooks since the last compaction; those without a reply
}

type transcriptLine struct {
	raw                []byte
	kind, uuid, parent string
	isSidechain        bool
	isPrompt           bool // a user line that is not a tool result, not injected, and not a summary

	isToolResult  bool
	isLastMessage bool   // the line is a message that ends its turn
	apiMessageID  string // the API's id of the message
}

func (e transcriptLine) isMessage() bool {
	return (e.kind == "user" || e.kind == "assistant") && e.uuid != "" && !e.isSidechain
}

func readTranscript(path string) (*parsedTranscript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := parseTranscript(data)
	if info, err := os.Stat(path); err == nil && info.Size() != int64(len(data)) {
		t.endsInNewline = true // another process is appending to the file and will complete the last line
	}
	return t, nil
}

func parseTranscript(data []byte) *parsedTranscript {
	t := &parsedTranscript{readFiles: map[string]string{}, endsInNewline: len(data) == 0 || data[len(data)-1] == '\n'}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		line = bytes.TrimSpace(line)
		var keys map[string]json.RawMessage
		if len(line) == 0 || json.Unmarshal(line, &keys) != nil || keys == nil {
			continue
		}
		t.addLine(line, keys)
	}
	return t
}

func (t *parsedTranscript) addLine(line []byte, keys map[string]json.RawMessage) {
	e := transcriptLine{raw: line}
	decodeKey(keys, "type", &e.kind)
	decodeKey(keys, "uuid", &e.uuid)
	decodeKey(keys, "parentUuid", &e.parent)
	decodeKey(keys, "isSidechain", &e.isSidechain)
	decodeKey(keys, "sessionId", &t.sessionID)
	decodeKey(keys, "slug", &t.planName)
	switch e.kind {
	case "user":
		t.updateFromUserLine(&e, keys)
	case "assistant":
		var message struct{ ID string }
		decodeKey(keys, "message", &message)
		e.apiMessageID = message.ID
		t.unansweredHookTexts = nil
	case "attachment":
		t.updateFromAttachment(keys)
	case "custom-title":
		decodeKey(keys, "customTitle", &t.title)
	case "ai-title":
		decodeKey(keys, "aiTitle", &t.aiTitle)
	case "last-prompt":
		decodeKey(keys, "lastPrompt", &t.lastPromptText)
	case "tools-used":
		decodeKey(keys, "tools", &t.tools)
	case "cost-state":
		var costs protocol.CostStateLine
		if json.Unmarshal(line, &costs) == nil {
			t.costs = &costs
		}
	}
	t.hasConversation = t.hasConversation || e.isMessage()
	if e.uuid != "" && !e.isSidechain && slices.Contains([]string{"user", "assistant", "attachment", "system"}, e.kind) {
		t.lastConversationLine = e.uuid
	}
	t.entries = append(t.entries, e)
}

func (t *parsedTranscript) updateFromUserLine(e *transcriptLine, keys map[string]json.RawMessage) {
	_, result := keys["toolUseResult"]
	var meta, summary bool
	decodeKey(keys, "isMeta", &meta)
	decodeKey(keys, "isCompactSummary", &summary)
	var message struct{ Content protocol.Content }
	decodeKey(keys, "message", &message)
	e.isToolResult = hasToolResult(message.Content)
	decodeKey(keys, "toolEndsTurn", &e.isLastMessage)
	e.isPrompt = !result && !meta && !summary && !e.isSidechain && !e.isToolResult
	t.updateTurnCountFromLine(*e, keys)
	if summary {
		clear(t.readFiles)
		t.hookTexts, t.unansweredHookTexts = nil, nil
	}
	if !e.isSidechain {
		t.updateReadFilesFromToolResult(keys)
	}
}

func (t *parsedTranscript) updateReadFilesFromToolResult(lineKeys map[string]json.RawMessage) {
	var result struct {
		FilePath           string
		Content, OldString *string
		File               struct {
			FilePath, Content    string
			NumLines, TotalLines int
		}
	}
	switch decodeKey(lineKeys, "toolUseResult", &result); {
	case result.OldString != nil:
		delete(t.readFiles, result.FilePath)
	case result.Content != nil && result.FilePath != "":
		t.readFiles[result.FilePath] = *result.Content
	case result.File.FilePath != "" && result.File.NumLines == result.File.TotalLines:
		t.readFiles[result.File.FilePath] = result.File.Content
	}
}

func (t *parsedTranscript) updateFromAttachment(keys map[string]json.RawMessage) {
	var a struct {
		Type      string          `json:"type"`
		ToolUseID string          `json:"toolUseID"`
		Path      string          `json:"path"`
		HookEvent string          `json:"hookEvent"`
		Changes   json.RawMessage `json:"changes"`
		Content   json.RawMessage `json:"content"`
	}
	decodeKey(keys, "attachment", &a)
	if a.HookEvent == "SessionStart" {
		texts := stringsOfAttachmentContent(a.Content)
		t.hookTexts, t.unansweredHookTexts = append(t.hookTexts, texts...), append(t.unansweredHookTexts, texts...)
	}
	switch a.Type {
	case hookDeferredToolType:
		t.deferredCallID = a.ToolUseID
	case "environment":
		t.environmentWritten, t.contextPending = true, t.contextPending || a.Changes == nil
	case "session_context":
		t.contextPending = false
	case "nested_memory":
		t.instructionFiles = append(t.instructionFiles, a.Path)
	}
}

func stringsOfAttachmentContent(stringOrList json.RawMessage) []string {
	if text, ok := plainjson.StringValue(stringOrList); ok {
		return []string{text}
	}
	return plainjson.DecodeIgnoringErrors[[]string](stringOrList)
}

// updateTurnCountFromLine sets the number of prompts to the number in the line. If the line has no number but is a prompt, it adds one.
func (t *parsedTranscript) updateTurnCountFromLine(e transcriptLine, lineKeys map[string]json.RawMessage) {
	var at protocol.SessionTurnPosition
	switch decodeKey(lineKeys, "turnPosition", &at); {
	case at.TurnIndex > 0:
		t.promptCount, t.untypedPromptCount = at.TurnIndex, at.TurnIndex-at.PromptIndex
	case e.isPrompt && lineKeys["promptSource"] != nil && lineKeys["queueTranscriptOnly"] == nil:
		t.promptCount, t.untypedPromptCount = t.promptCount+1, t.untypedPromptCount+1
	}
}

func decodeKey[T any](keys map[string]json.RawMessage, key string, target *T) {
	var value T
	if raw, found := keys[key]; found && json.Unmarshal(raw, &value) == nil {
		*target = value
	}
}

func hasToolResult(c protocol.Content) bool {
	return slices.ContainsFunc(c.Blocks, func(b protocol.Block) bool {
		_, is := b.(protocol.ToolResultBlock)
		return is
	})
}

// branchLines returns the lines of the conversation that ends with leaf, in file order: its chain of parents, the
// results of parallel calls, and the records of file copies. The chain ends at a missing or repeated parent.
func (t *parsedTranscript) branchLines(leaf string) []transcriptLine {
	byID := make(map[string]transcriptLine, len(t.entries))
	for _, e := range t.entries {
		if e.uuid != "" {
			byID[e.uuid] = e
		}
	}
	met := map[string]bool{}
	answered := map[string]bool{} // API ids of messages whose calls have a result
	for at := leaf; at != ""; {
		e, found := byID[at]
		if !found || met[at] {
			break
		}
		met[at] = true
		if e.isToolResult {
			answered[byID[e.parent].apiMessageID] = true
		}
		at = e.parent
	}
	branch := slices.DeleteFunc(slices.Clone(t.entries), func(e transcriptLine) bool {
		beside := e.isToolResult && met[e.parent] && answered[byID[e.parent].apiMessageID]
		return !met[e.uuid] && !beside && !strings.HasPrefix(e.kind, "file-history-")
	})
	at := slices.IndexFunc(branch, func(e transcriptLine) bool { return bytes.Contains(e.raw, []byte(`"preservedMessages":{`)) })
	var boundary protocol.CompactBoundaryLine
	if at < 0 || json.Unmarshal(branch[at].raw, &boundary) != nil || boundary.Metadata.Messages == nil {
		return branch
	}
	after := 1 + slices.IndexFunc(branch, func(e transcriptLine) bool { return e.uuid == boundary.Metadata.Messages.Anchor })
	for _, uuid := range slices.Backward(boundary.Metadata.Messages.UUIDs) { // the messages that the compaction kept follow the summary
		branch = slices.Insert(branch, after, byID[uuid])
	}
	return branch
}

func (t *parsedTranscript) branchMessagesOnePerLine(leaf string) []Message {
	var out []Message
	for _, e := range t.branchLines(leaf) {
		var turn protocol.TurnDurationLine
		if n := len(out); n > 0 && e.kind == "system" && json.Unmarshal(e.raw, &turn) == nil && turn.Subtype == "turn_duration" {
			out[n-1].Turn = &turn
		}
		if !e.isMessage() {
			continue
		}
		if content, ok := e.decodeContent(); ok {
			out = append(out, Message{UUID: e.uuid, Role: e.kind, Content: content})
		}
	}
	return out
}

func (e transcriptLine) decodeContent() (protocol.Content, bool) {
	var line struct {
		Message struct{ Content protocol.Content } `json:"message"`
	}
	err := json.Unmarshal(e.raw, &line)
	return line.Message.Content, err == nil
}

func (t *parsedTranscript) previousReply(leaf string) *protocol.LastReplyBeforeResume {
	var last *protocol.LastReplyBeforeResume
	ids := map[string]bool{}
	for _, e := range slices.Backward(t.branchLines(leaf)) {
		var line struct {
			Timestamp time.Time
			Message   struct {
				Model string
				Usage protocol.Usage
			}
		}
		if !e.isMessage() || e.kind != "assistant" || json.Unmarshal(e.raw, &line) != nil || line.Message.Model == protocol.SyntheticModel {
			continue
		}
		ids[e.apiMessageID] = true
		if u := line.Message.Usage; last == nil {
			last = &protocol.LastReplyBeforeResume{
				At: line.Timestamp, Model: line.Message.Model,
				Tokens:    u.InputTokens + u.OutputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
				LongCache: u.CacheCreation.Ephemeral1h > 0, UUID: e.uuid,
			}
		}
		if last.Replies = len(ids); last.Replies == 1 {
			last.Lines = append([]string{e.uuid}, last.Lines...)
		}
	}
	return last
}

// endsWithUnansweredUserMessage reports whether the last message of a branch is a prompt or a tool result to which the model has
// not replied, although its turn had not ended. Attachments after the message do not count.
func (t *parsedTranscript) endsWithUnansweredUserMessage(leafUUID string) bool {
	for _, e := range slices.Backward(t.branchLines(leafUUID)) {
		switch content, _ := e.decodeContent(); {
		case e.kind != "attachment":
			return e.kind == "user" && !e.isLastMessage && !strings.HasPrefix(content.Plain(), "<local-command-stdout>") // the output of /compact needs no reply
		case bytes.Contains(e.raw, []byte(`"type":"max_turns_reached"`)): // the turn has ended
			return false
		}
	}
	return false
}

func (t *parsedTranscript) firstPromptTextOfBranch(leafUUID string) string {
	for _, e := range t.branchLines(leafUUID) {
		if !e.isPrompt {
			continue
		}
		content, _ := e.decodeContent()
		if text := textForSessionList(content); text != "" && text[0] != '<' {
			return text
		}
	}
	return ""
}

type resumePointError string

func (e resumePointError) Error() string { return string(e) }

// dropLinesAfterMessage drops the lines after the message whose uuid is messageUUID, which must be in the branch of
// leaf. If expectedPromptUUID is not nil, dropLinesAfterMessage fails unless it is the uuid of the first prompt to
// drop, or "" if there is no such prompt. The recorded costs are kept.
func (t *parsedTranscript) dropLinesAfterMessage(leaf, messageUUID string, expectedPromptUUID *string) error {
	last := slices.IndexFunc(t.entries, func(e transcriptLine) bool { return e.uuid == messageUUID && e.isMessage() })
	if last < 0 || !slices.ContainsFunc(t.branchLines(leaf), func(e transcriptLine) bool { return e.uuid == messageUUID }) {
		return resumePointError("No message found with message.uuid of: " + messageUUID)
	}
	if expectedPromptUUID != nil {
		next := ""
		if i := slices.IndexFunc(t.entries[last+1:], func(e transcriptLine) bool { return e.isPrompt }); i >= 0 {
			next = t.entries[last+1+i].uuid
		}
		if next != *expectedPromptUUID {
			return resumePointError("Resume rejected by --resume-drops-turn: the prompt after " + messageUUID + " is " + cmp.Or(next, "none") + ", not " + cmp.Or(*expectedPromptUUID, "none") + ".")
		}
	}
	kept := &parsedTranscript{readFiles: map[string]string{}}
	for _, e := range t.entries[:last+1] {
		keys := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](e.raw) // the line has been decoded before
		kept.addLine(e.raw, keys)
	}
	kept.costs, kept.endsInNewline, kept.planName, kept.title, kept.aiTitle, kept.tools, kept.lastPromptText = t.costs, t.endsInNewline, t.planName, t.title, t.aiTitle, t.tools, t.lastPromptText
	*t = *kept
	return nil
}

// promptsAfterLastReply returns the texts of the prompts at the end of a branch that the model has not answered, oldest first.
func (t *parsedTranscript) promptsAfterLastReply(leaf string) (texts []string) {
	for _, e := range t.branchLines(leaf) {
		if content, ok := e.decodeContent(); e.kind == "assistant" {
			texts = nil
		} else if ok && e.isPrompt {
			texts = append(texts, content.Plain())
		}
	}
	return texts
}

func (t *parsedTranscript) linesForFork(id, leaf, promptID string) []byte {
	var out bytes.Buffer
	for _, e := range t.branchLines(leaf) {
		line, err := plainjson.Parse(e.raw)
		if err != nil {
			continue
		}
		source := line.Get("sessionId")
		if source != nil {
			line = line.Set("sessionId", json.RawMessage(plainjson.MarshalString(id)))
		}
		if line.Get("promptId") != nil {
			line = line.Set("promptId", json.RawMessage(plainjson.MarshalString(promptID)))
		}
		if e.kind == "assistant" && source != nil && line.Get("requestId") != nil {
			line = line.Set("requestSessionId", source)
		}
		if raw, err := protocol.Marshal(line.Delete("slug").Delete("turnAttributionKey")); err == nil { // a fork begins without the name of a plan file, and without the ids of hosts
			out.Write(append(raw, '\n'))
		}
	}
	return out.Bytes()
}

func textForSessionList(c protocol.Content) string {
	const most = 200
	text := c.Text
	for _, b := range c.Blocks {
		if first, is := b.(protocol.TextBlock); is {
			text = first.Text
			break
		}
	}
	line := []rune(strings.TrimSpace(strings.ReplaceAll(protocol.WithoutPasteTags(text), "\n", " ")))
	if len(line) > most {
		return strings.TrimSpace(string(line[:most])) + "…"
	}
	return string(line)
}

type unansweredCall struct{ toolUseID, messageUUID string }

func unansweredCalls(history []Message) (calls []unansweredCall) {
	for _, m := range history {
		for _, b := range m.Content.Blocks {
			switch b := b.(type) {
			case protocol.ToolUse:
				calls = append(calls, unansweredCall{b.ID, m.UUID})
			case protocol.ToolResultBlock:
				calls = slices.DeleteFunc(calls, func(c unansweredCall) bool { return c.toolUseID == b.ToolUseID })
			}
		}
	}
	return calls
}
