package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// conversation contains the state of one transcript file: its session, its origin, and the parents of the next lines.
type conversation struct {
	options            Options
	id, path           string
	resumedSessionID   string // id of the session that was resumed; after a fork it differs from id
	resumed            bool
	forked             bool   // resumed as a copy with a new id
	wasCleared         bool   // started by /clear
	idBeforeFirstClear string // id before the first /clear; empty if /clear was not used

	lastLineUUIDs map[string]string // uuid of the last line by agent id; "" is the main conversation
	promptID      string            // id of the prompt to which the next lines belong
	writer        transcriptWriter
	lineCount     int                    // number of lines with an id in the main conversation
	planName      atomic.Pointer[string] // name of the plan file; nil means that it has none yet
	inQuery       bool                   // the next lines belong to a query of a session in a terminal, not to its prompt
}

func (th *conversation) isFirstConversationInTerminal() bool {
	return th.options.Machine.IsTerminal && !th.resumed && !th.wasCleared
}

func (th *conversation) recordFilesBeforePrompt(promptUUID string) {
	if files, ok := th.options.Context.(fileCheckpointer); ok && th.options.Machine.IsTerminal && promptUUID != "" {
		files.RecordFilesBeforePrompt(promptUUID)
	}
}

func (th *conversation) hasStarted() bool        { return th.lastLineUUIDs[""] != "" }
func (th *conversation) sessionFilesDir() string { return filepath.Join(filepath.Dir(th.path), th.id) }

// agentTranscriptPath returns the path of a sub-agent's transcript (spec: cli-contract 8.2).
func (th *conversation) agentTranscriptPath(id string) string {
	return filepath.Join(th.sessionFilesDir(), "subagents", "agent-"+filepath.Base(id)+".jsonl")
}

// setPromptIDUnlessWrittenByCLI returns the prompt id of an event. The following lines get the same id, unless the event is injected text.
func (th *conversation) setPromptIDUnlessWrittenByCLI(ev *protocol.PromptAccepted) string {
	if !ev.WrittenByCLI {
		th.promptID = ev.PromptID
	}
	return ev.PromptID
}

func (th *conversation) takeNextCLILineOfPrompt(prompt *protocol.PromptAccepted, content protocol.UserContent) protocol.UserLine {
	e := th.takeNextLineEnvelope("", "", prompt.Timestamp)
	e.PromptID = th.setPromptIDUnlessWrittenByCLI(prompt)
	return protocol.UserLine{LineHead: e.LineHead, LineID: e.LineID, LineTrailer: e.LineTrailer, Type: "user", Message: content, IsMeta: true, Companion: true}
}

type hostAssistantLine struct {
	protocol.LineHead
	Message plainjson.Object `json:"message"`
	Type    string           `json:"type"` // "assistant"
	protocol.LineID
	MadeBy string `json:"madeBy"` // "input"
	protocol.LineTrailer
}

func (th *conversation) takeNextHostAssistantLine(host protocol.HostAssistantMessage) hostAssistantLine {
	e := th.takeNextLineEnvelope("", host.UUID, "")
	message := host.Message
	if message.Get("id") == nil {
		message = message.Set("id", json.RawMessage(plainjson.MarshalString(th.options.Clock.NewID())))
	}
	if text, isString := plainjson.StringValue(message.Get("content")); isString {
		message = message.Set("content", slices.Concat([]byte("["), rawTextBlock(text), []byte("]")))
	}
	return hostAssistantLine{LineHead: e.LineHead, Message: message, Type: "assistant", LineID: e.LineID, MadeBy: "input", LineTrailer: e.LineTrailer}
}

// takeNextLineEnvelope returns the common keys of the next line of an agent's conversation. The line becomes the parent of the line
// after it, so lines must be written in the order of the calls.
func (th *conversation) takeNextLineEnvelope(agentID, uuid, timestamp string) protocol.LineEnvelope {
	if uuid == "" {
		uuid = th.options.Clock.NewID()
	}
	e := protocol.LineEnvelope{
		LineHead:    protocol.LineHead{IsSidechain: agentID != "", AgentID: agentID},
		LineID:      protocol.LineID{UUID: uuid, Timestamp: th.timestampOrNow(timestamp)},
		LineTrailer: protocol.LineTrailer{UserType: "external", Entrypoint: th.options.Entrypoint, CWD: th.workingDirOf(agentID), SessionID: th.id, Version: th.options.Version, GitBranch: th.options.Machine.GitBranch},
	}
	e.PlanName = th.currentPlanName()
	if agentID == "" {
		th.lineCount++
		if th.inQuery {
			e.QuerySession = cmp.Or(th.idBeforeFirstClear, th.id)
		}
	}
	if leaf := th.lastLineUUIDs[agentID]; leaf != "" {
		e.ParentUUID = &leaf
	}
	th.lastLineUUIDs[agentID] = uuid
	return e
}

func (th *conversation) workingDirOf(agentID string) string {
	if th.options.Context == nil {
		return th.options.CWD
	}
	return cmp.Or(th.options.Context.AgentWorktreeOrChangedDir(agentID), th.options.Context.AgentWorktreeOrChangedDir(""), th.options.CWD)
}

func (th *conversation) timestampOrNow(timestamp string) string {
	if timestamp != "" {
		return timestamp
	}
	return th.options.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}

func (th *conversation) takeNextAttachmentLine(agentID, role string, value any) protocol.AttachmentLine {
	return attachmentLineOf(th.takeNextLineEnvelope(agentID, "", ""), role, value)
}

func attachmentLineOf(e protocol.LineEnvelope, role string, value any) protocol.AttachmentLine {
	return protocol.AttachmentLine{LineHead: e.LineHead, Attachment: value, Type: "attachment", LineID: e.LineID, RenderedRole: role, LineTrailer: e.LineTrailer}
}

func (th *conversation) takeNextLineOfAddedAttachment(ev *protocol.AttachmentAdded) protocol.AttachmentLine {
	line := attachmentLineOf(th.takeNextLineEnvelope(ev.AgentID, ev.UUID, ""), ev.Role, ev.Attachment)
	if ev.Role != "system" && ev.Tool == "Read" { // a file that the prompt mentions
		line.QuerySession = ""
	}
	for _, text := range ev.Rendered {
		line.Rendered = append(line.Rendered, protocol.AttachmentText{Content: protocol.InReminderTags(text)})
	}
	return line
}

func (th *conversation) takeNextReminderLine(agentID string, value any, text string) protocol.AttachmentLine {
	line := th.takeNextAttachmentLine(agentID, "system", value)
	line.Rendered = []protocol.AttachmentText{{Content: protocol.InReminderTags(text)}}
	return line
}

// newPlanName returns the name of a plan file: the first four words of the prompt for the plan, an adjective and a noun, such as
// "fix-the-tests-calm-otter". Without such words, it is "calm-counting-otter".
func newPlanName(session, prompt string) string {
	const maxWords, maxLength = 4, 40
	words := strings.Fields(regexp.MustCompile(`\[Pasted text #\d+(?: \+\d+ lines)?\]`).ReplaceAllString(prompt, " "))
	begin := strings.ToLower(strings.Join(words[:min(len(words), maxWords)], " "))
	begin = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(begin, "-")
	begin = strings.Trim(begin[:min(len(begin), maxLength)], "-")
	lists := [][]string{
		{"amber", "brisk", "calm", "dusty", "eager", "fresh", "gentle", "honest", "keen", "lively", "mellow", "noble", "quiet", "rapid", "sunny", "tidy"},
		{"baking", "counting", "drawing", "finding", "giving", "hiking", "jumping", "knitting", "mending", "painting", "reading", "sailing", "singing", "sorting", "walking", "weaving"},
		{"acorn", "badger", "cedar", "dolphin", "ember", "falcon", "grove", "heron", "island", "lantern", "maple", "otter", "pebble", "river", "sparrow", "willow"},
	}
	sum := sha256.Sum256([]byte(session))
	for i, list := range lists {
		lists[i] = list[int(sum[i])%len(list):]
	}
	if begin != "" {
		return begin + "-" + lists[0][0] + "-" + lists[2][0]
	}
	return lists[0][0] + "-" + lists[1][0] + "-" + lists[2][0]
}

func (th *conversation) currentPlanName() string {
	if name := th.planName.Load(); name != nil {
		return *name
	}
	return ""
}

func (th *conversation) ensurePlanName(prompt string) string {
	th.planName.CompareAndSwap(nil, new(newPlanName(th.id, prompt)))
	return th.currentPlanName()
}

// attachment is a value of the key "attachment", or a line that describes the session, whose keys keep their order.
type attachment []protocol.Field

// newAttachment returns an attachment. After its type, each key is followed by its value.
func newAttachment(kind string, keysAndValues ...any) attachment {
	return attachment{{Key: "type", Value: kind}}.with(keysAndValues...)
}

func (a attachment) with(keysAndValues ...any) attachment {
	for pair := range slices.Chunk(keysAndValues, 2) {
		a = append(a, protocol.Field{Key: pair[0].(string), Value: pair[1]})
	}
	return a
}

// MarshalJSON writes the attachment as one object.
func (a attachment) MarshalJSON() ([]byte, error) { return protocol.MarshalFields(a) }

// atisLatchLine returns the line that follows the first lines of a session and each line last-prompt. Its purpose is unknown; its
// value was always empty.
func (th *conversation) atisLatchLine() attachment { return th.labelLine("atis-latch", "atis", "") }

// labelLine returns a line that describes the session with one value, such as its title.
func (th *conversation) labelLine(kind, key string, value any) attachment {
	return newAttachment(kind, key, value, "sessionId", th.id)
}

// appendReminderToToolResult adds a reminder to the text of a result, in place of its trailing white space; false means that the block has
// no text.
func appendReminderToToolResult(toolResultBlock *json.RawMessage, reminder string) (isAppended bool) {
	var result protocol.ToolResultBlock
	if json.Unmarshal(*toolResultBlock, &result) != nil || result.Content.Blocks != nil {
		return false
	}
	result.Content.Text = strings.TrimRightFunc(result.Content.Text, unicode.IsSpace) + "\n\n" + reminder
	raw, err := protocol.Marshal(result)
	if err == nil {
		*toolResultBlock = raw
	}
	return err == nil
}

// cwdOfPrefixedBashCall returns the value of wireIngestContext for a Bash call whose command begins with the prefix for cwd; nil for other blocks.
func cwdOfPrefixedBashCall(blocks []protocol.Block, cwd string) map[string]map[string]string {
	var in struct{ Command string }
	use, isCall := blocks[0].(protocol.ToolUse)
	if !isCall || use.Name != "Bash" || json.Unmarshal(use.Written, &in) != nil || !strings.HasPrefix(in.Command, protocol.ChangeDirectoryPrefix(cwd)) {
		return nil
	}
	return map[string]map[string]string{use.ID: {"cwd": cwd}}
}
