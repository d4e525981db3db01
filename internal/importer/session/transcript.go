package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// transcriptLine is any line of a transcript, with the members that are used.
type transcriptLine struct {
	lineMeta
	lineBody
}

// lineMeta is the part of a line that is used while the line is read.
type lineMeta struct {
	Subtype           string `json:"subtype"`
	ParentUUID        string `json:"parentUuid"`
	LogicalParentUUID string `json:"logicalParentUuid"`
	PromptID          string `json:"promptId"`
	RequestID         string `json:"requestId"`
	CWD               string `json:"cwd"`
	Version           string `json:"version"`
	Timestamp         string `json:"timestamp"`
	Mode              string `json:"permissionMode"`
}

// lineBody is the part of a line that is kept until the branch is known.
type lineBody struct {
	Type           string          `json:"type"`
	UUID           string          `json:"uuid"`
	IsSidechain    bool            `json:"isSidechain"`
	IsMeta         bool            `json:"isMeta"`
	IsSummary      bool            `json:"isCompactSummary"`
	IsAPIError     bool            `json:"isApiErrorMessage"`
	APIErrorStatus int             `json:"apiErrorStatus"`
	AgentID        string          `json:"agentId"`
	SessionID      string          `json:"sessionId"`
	DenialKind     string          `json:"toolDenialKind"`
	Origin         json.RawMessage `json:"origin"`
	Message        *wireMessage    `json:"message"`
	ToolUseResult  *toolUseResult  `json:"toolUseResult"`
	Attachment     *hookAttachment `json:"attachment"`
	Prevented      bool            `json:"preventedContinuation"` // a Stop hook prevented the end of the turn
}

// toolUseResult is the result of a call in the CLI's own form. Only an object is useful; a text or a list is not.
type toolUseResult struct {
	File struct {
		FilePath   string `json:"filePath"`
		Content    string `json:"content"`
		NumLines   int    `json:"numLines"`
		StartLine  int    `json:"startLine"`
		TotalLines int    `json:"totalLines"`
	} `json:"file"`
	AgentID string `json:"agentId"`
	IsAsync bool   `json:"isAsync"`
}

// UnmarshalJSON decodes only objects with one of the keys above. Other values may be long, so it skips them.
func (t *toolUseResult) UnmarshalJSON(raw []byte) error {
	type plain toolUseResult
	ours := bytes.Contains(raw, []byte(`"file"`)) || bytes.Contains(raw, []byte(`"agentId"`)) || bytes.Contains(raw, []byte(`"isAsync"`))
	if ours && raw[0] == '{' {
		var p plain
		if json.Unmarshal(raw, &p) == nil {
			*t = toolUseResult(p)
		}
	}
	return nil
}

type hookAttachment struct {
	Type      string `json:"type"`
	HookName  string `json:"hookName"`
	HookEvent string `json:"hookEvent"`
	Decision  string `json:"decision"`
}

// hookOutcome returns how a hook run ended, such as "blocked"; empty means success. isHookAttachment is false if the
// attachment is not about a hook.
func (a *hookAttachment) hookOutcome() (outcomeUnlessSuccess string, isHookAttachment bool) {
	outcomeUnlessSuccess, isHookAttachment = map[string]string{
		"hook_success": "", "hook_blocking_error": "blocked", "hook_non_blocking_error": "failed", "hook_cancelled": "cancelled",
		"hook_stopped_continuation": "stopped the session", "hook_permission_decision": "said " + a.Decision,
	}[a.Type]
	return outcomeUnlessSuccess, isHookAttachment
}

// UnmarshalJSON skips values that are not objects, because some kinds of attachments are not.
func (a *hookAttachment) UnmarshalJSON(raw []byte) error {
	type plain hookAttachment
	var p plain
	if json.Unmarshal(raw, &p) == nil {
		*a = hookAttachment(p)
	}
	return nil
}

// hookLineType is the type under which lines about hooks are stored. In the file these lines have several types.
const hookLineType = "hook"

func (l *transcriptLine) isAboutHook() bool {
	if l.Type == "attachment" && l.Attachment != nil {
		_, ran := l.Attachment.hookOutcome()
		return ran
	}
	return l.Type == "system" && l.Subtype == "stop_hook_summary"
}

func (b *sessionBuilder) addHookOfTranscriptLine(hookLine *lineBody) {
	if hookLine.Attachment != nil {
		came, _ := hookLine.Attachment.hookOutcome()
		b.addHookRun(HookRun{cmp.Or(hookLine.Attachment.HookName, hookLine.Attachment.HookEvent), came})
		return
	}
	if len(b.Prompts) == 0 {
		return
	}
	// The summary repeats hooks that also have their own lines.
	p := b.Prompts[len(b.Prompts)-1]
	if !slices.ContainsFunc(p.Hooks, func(h HookRun) bool { return h.Name == "Stop" }) {
		came := ""
		if hookLine.Prevented {
			came = "blocked"
		}
		b.addHookRun(HookRun{"Stop", came})
	}
}

type conversationLine struct {
	at   Place
	line *lineBody
}

// transcriptReader stores all lines of a file, because the branch to import is known only at the end.
type transcriptReader struct {
	set           *sessionSet
	file          string
	agent         string // id of the sub-agent of the file; empty means the main conversation
	nodes         []conversationLine
	texts, parent map[string]string
	last          string // newest line of the main conversation
	// hasDamage is set if a line could not be read. Other lines may then refer to a parent that is missing.
	hasDamage bool
}

// ignoredLineTypes are the types of lines that contain nothing useful for a scenario.
var ignoredLineTypes = [...]string{
	"queue-operation", "last-prompt", "attachment", "summary", "file-history-snapshot", "cost-state", "tools-used", "custom-title",
	"ai-title", "agent-name", "tag", "mode", "permission-mode", "progress", "atis-latch", "api-request", "api-request-shape",
	"api-request-blob", "session-meta", "worktree-state", "bridge-session", "marble-origami-commit", "content-replacement", "agent-color",
	"agent-setting", "pr-link", "speculation-accept", "task-summary", "attribution-snapshot", "hook-run", "file-history-delta",
}

func (t *transcriptReader) parseLine(at Place, raw []byte) error {
	var l transcriptLine
	if err := decodeLineLeniently(raw, &l); err != nil {
		return err
	}
	if l.UUID != "" {
		t.parent[l.UUID] = l.ParentUUID
		if l.ParentUUID == "" {
			t.parent[l.UUID] = l.LogicalParentUUID
		}
		if _, known := t.parent[t.parent[l.UUID]]; t.hasDamage && !known && t.parent[l.UUID] != "" && !l.IsSidechain {
			t.parent[l.UUID] = t.last
		}
		if !l.IsSidechain {
			t.last = l.UUID
		}
	}
	if l.SessionID == "" {
		return nil
	}
	b := t.set.getOrAddBuilder(l.SessionID, "transcript")
	b.addSessionFactsOfLine(at, &l, t.agent)
	switch {
	case (l.Type == "user" || l.Type == "assistant") && l.Message != nil, l.Type == "system" && l.Subtype == "compact_boundary":
		t.storeLine(at, l.lineBody)
	case l.isAboutHook():
		l.Type = hookLineType
		t.storeLine(at, l.lineBody)
	case l.Type == "system" || l.Type == "user" || l.Type == "assistant" || slices.Contains(ignoredLineTypes[:], l.Type):
	default:
		b.UnknownLines[l.Type]++
	}
	return nil
}

// storeLine stores a line until the branch is known.
func (t *transcriptReader) storeLine(at Place, l lineBody) {
	if l.ToolUseResult == nil {
		l.ToolUseResult = &toolUseResultOfLinesWithoutOne
	} else if !t.set.keepContents {
		l.ToolUseResult.File.Content = ""
	}
	l.Type, l.SessionID = t.intern(l.Type), t.intern(l.SessionID)
	t.nodes = append(t.nodes, conversationLine{at, &l})
}

var toolUseResultOfLinesWithoutOne toolUseResult

// intern returns the stored copy of a string, because many lines repeat the same strings.
func (t *transcriptReader) intern(text string) string {
	if first, ok := t.texts[text]; ok {
		return first
	}
	t.texts[text] = text
	return text
}

// decodeLineLeniently parses a line; members of an unexpected type are skipped.
func decodeLineLeniently(raw []byte, target any) error {
	err := json.Unmarshal(raw, target)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errors.New("not valid JSON: " + syntax.Error())
	}
	if raw[0] != '{' {
		return errors.New("the line is not a JSON object")
	}
	return nil
}

func (t *transcriptReader) importLinesOfBranch(lineIDOnBranch string) error {
	on, err := t.newestBranchLineIDs(lineIDOnBranch)
	if err != nil {
		return err
	}
	messages := map[string]bool{} // ids of messages with a line on the branch; all their lines belong to it
	for i := range t.nodes {
		if l := t.nodes[i].line; l.Message != nil && on[l.UUID] && l.Type == "assistant" {
			messages[l.Message.ID] = true
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		l := n.line
		b := t.set.getOrAddBuilder(l.SessionID, "transcript")
		if t.agent != "" || l.IsSidechain {
			b.addSubAgentLine(n, t.agent, t.idOfCallThatStartedAgent)
			continue
		}
		isResult := l.Type == "user" && l.Message != nil && hasToolResult(l.Message.Content)
		if on[l.UUID] || l.UUID == "" || isResult || l.Message != nil && l.Type == "assistant" && l.Message.ID != "" && messages[l.Message.ID] {
			b.addMainConversationLine(n)
		}
	}
	for _, key := range t.set.order {
		t.set.byID[key].assignAgentsToStartingCalls()
	}
	t.nodes = nil
	return nil
}

// newestBranchLineIDs returns the ids of the lines on the newest branch. If lineID is set, the branch contains it.
func (t *transcriptReader) newestBranchLineIDs(lineID string) (map[string]bool, error) {
	leaf := t.last
	if _, ours := t.parent[lineID]; lineID != "" && ours {
		leaf = lineID
		below := map[string]bool{lineID: true}
		for i := range t.nodes { // children come after their parents
			if u := t.nodes[i].line.UUID; u != "" && below[t.parent[u]] {
				below[u], leaf = true, u
			}
		}
	} else if lineID != "" && t.agent == "" {
		return nil, &Error{Place{File: t.file}, "has no line with the id " + lineID + " that --branch names"}
	}
	on := map[string]bool{}
	for leaf != "" && !on[leaf] {
		on[leaf] = true
		leaf = t.parent[leaf]
	}
	return on, nil
}

func agentIDFromFileName(file string) string {
	name, ok := strings.CutPrefix(filepath.Base(file), "agent-")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, ".jsonl")
}

// addSessionFactsOfLine records the facts about the session that every line contains.
func (b *sessionBuilder) addSessionFactsOfLine(at Place, line *transcriptLine, agentID string) {
	b.addIDs(line.SessionID, line.UUID, line.RequestID, line.PromptID, line.AgentID)
	b.addSourceFile(at.File)
	if agentID != "" {
		return
	}
	b.CWD = cmp.Or(b.CWD, line.CWD)
	b.Version = cmp.Or(line.Version, b.Version)
	b.Mode = cmp.Or(b.Mode, line.Mode)
	if b.Date == "" && len(line.Timestamp) >= 10 {
		b.Date = line.Timestamp[:10]
	}
}

func (b *sessionBuilder) addMainConversationLine(mainLine *conversationLine) {
	l := mainLine.line
	switch {
	case l.Type == "assistant" && l.Message != nil:
		b.addAssistantLine(mainLine, "")
	case l.Type == "user" && l.Message != nil:
		b.addUserLine(mainLine)
	case l.Type == hookLineType:
		b.addHookOfTranscriptLine(l)
	case l.Type == "system":
		b.Compacted = append(b.Compacted, mainLine.at)
	}
}

func (b *sessionBuilder) addAssistantLine(n *conversationLine, agentKey string) {
	l := n.line
	b.addModelMessageOrFailure(n.at, l.Message, agentKey, l.IsAPIError, l.APIErrorStatus)
}

// addModelMessageOrFailure adds a message of the model. If hasRequestFailed is true, the CLI wrote the message because
// a request failed with httpStatus. All other messages of the CLI are ignored.
func (b *sessionBuilder) addModelMessageOrFailure(at Place, message *wireMessage, agentKey string, hasRequestFailed bool, httpStatus int) {
	if message.Model != "<synthetic>" {
		b.addBlocks(at, *message, agentKey)
	} else if hasRequestFailed && agentKey == "" {
		text, _ := message.Content.plainText()
		b.addFailure(at, Failure{Status: httpStatus, Text: text})
	}
}

func (b *sessionBuilder) addUserLine(n *conversationLine) {
	l := n.line
	for _, block := range l.Message.Content {
		if block.Type == "tool_result" {
			b.addToolResult(n, block)
		}
	}
	text, other := l.Message.Content.plainText()
	if l.IsMeta || l.IsSummary || hasToolResult(l.Message.Content) || isTextWrittenByCLI(text) {
		return
	}
	var origin struct{ Kind string }
	notice := json.Unmarshal(l.Origin, &origin) == nil && origin.Kind == "task-notification" || strings.HasPrefix(text, "<task-notification>")
	b.addPrompt(&Prompt{At: n.at, Text: text, OtherParts: other, IsNotice: notice})
}

func hasToolResult(blocks wireBlocks) bool {
	return slices.ContainsFunc(blocks, func(b wireBlock) bool { return b.Type == "tool_result" })
}

// isTextWrittenByCLI reports whether the CLI wrote the text of a user message itself.
func isTextWrittenByCLI(text string) bool {
	return strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "[Request interrupted by user") ||
		strings.HasPrefix(text, "<bash-stdout>") || strings.HasPrefix(text, "<system-reminder>")
}

func (b *sessionBuilder) addToolResult(n *conversationLine, block wireBlock) {
	l := n.line
	r := b.setResultOfCall(n.at, block)
	r.Denied = l.DenialKind != ""
	b.addResultDetails(r, block.ToolUseID, l.ToolUseResult)
}

func (b *sessionBuilder) addResultDetails(r *Result, callID string, u *toolUseResult) {
	if f := u.File; f.FilePath != "" && b.keepContents {
		r.File = &PrintedFilePart{Path: f.FilePath, Content: f.Content, IsComplete: f.StartLine <= 1 && f.NumLines == f.TotalLines}
	}
	if u.AgentID != "" {
		a := b.getOrAddAgent(callID)
		a.ID, a.Background = u.AgentID, u.IsAsync
	}
}

// addSubAgentLine adds a line of a sub-agent. idOfStartingCall returns the id of the call that started it, or "".
func (b *sessionBuilder) addSubAgentLine(agentLine *conversationLine, agentID string, idOfStartingCall func(agentID string) string) {
	l := agentLine.line
	agentID = cmp.Or(agentID, l.AgentID)
	key := "agent:" + agentID
	if id := idOfStartingCall(agentID); id != "" {
		key = id
	}
	a := b.getOrAddAgent(key)
	a.ID = agentID
	switch {
	case l.Type == "assistant" && l.Message != nil:
		b.addAssistantLine(agentLine, key)
	case l.Type == "user" && l.Message != nil && hasToolResult(l.Message.Content):
		for _, block := range l.Message.Content {
			b.addToolResult(agentLine, block)
		}
	case l.Type == "user" && l.Message != nil && !l.IsMeta && a.Prompt == "":
		a.Prompt, _ = l.Message.Content.plainText()
	}
}

// idOfCallThatStartedAgent returns the call that started a sub-agent, as recorded in the file next to the sub-agent's transcript.
func (t *transcriptReader) idOfCallThatStartedAgent(agentID string) string {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(t.file), "agent-"+agentID+".meta.json"))
	if err != nil {
		return ""
	}
	return plainjson.DecodeIgnoringErrors[struct{ ToolUseID string }](raw).ToolUseID
}

// assignAgentsToStartingCalls finds the call that started each agent: the result of the call contains the agent's id, or
// its input contains the agent's prompt.
func (b *sessionBuilder) assignAgentsToStartingCalls() {
	calls := slices.SortedFunc(maps.Keys(b.calls), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.calls[x].At.Line, b.calls[y].At.Line), cmp.Compare(x, y))
	})
	for _, key := range slices.Sorted(maps.Keys(b.agents)) {
		a := b.agents[key]
		if !strings.HasPrefix(key, "agent:") {
			continue
		}
		at := slices.IndexFunc(calls, func(id string) bool { return b.agents[id] != nil && b.agents[id].ID == a.ID })
		if at >= 0 {
			a.Background = b.agents[calls[at]].Background
		} else if a.Prompt != "" {
			at = slices.IndexFunc(calls, func(id string) bool {
				return b.agents[id] == nil && plainjson.DecodeIgnoringErrors[struct{ Prompt string }](b.calls[id].Input).Prompt == a.Prompt
			})
		}
		if at >= 0 {
			b.agents[calls[at]] = a
			delete(b.agents, key)
		}
	}
}
