package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// apiTrafficReader reads exchanges with a Messages API. Every request repeats the conversation; only what is new is used.
type apiTrafficReader struct {
	set           *sessionSet
	reader        *history.RequestReader
	conversations map[string]*apiTrafficConversation // conversations by session and agent
}

type apiTrafficConversation struct {
	groups  int      // number of message groups in the history that are already imported
	failure *Failure // failure of the last request; removed when the client repeats the request
	at      Place
}

func (r *apiTrafficReader) addExchange(at Place, date string, e *journal.Exchange) {
	request, err := r.reader.Read(e.Request, history.RequestSender{Session: e.Session, Agent: e.Agent, Path: e.Path, UserAgent: e.Client, Header: http.Header{}})
	if err != nil || len(request.Messages) == 0 {
		return // the request was refused because of its content
	}
	groups := request.GroupAndInterpretMessages(request.Messages)
	named := cmp.Or(e.Session, sessionIDFromMetadata(request.Metadata))
	id := named
	id = cmp.Or(id, "the conversation that begins with "+request.Messages[0].FirstText())
	b := r.set.getOrAddBuilder(id, "traffic")
	b.ID = named
	b.addSourceFile(at.File)
	b.Date = cmp.Or(b.Date, date)
	// Older versions of Claude Code send small requests, about commands and titles, that contain no tools and no working directory.
	if request.SideRequestKind() != "" || request.IsClaudeCode() && request.Agent == "" && len(request.Tools.Names) == 0 && request.WorkingDirectory() == "" {
		return // not part of the conversation
	}
	b.addIDs(named, e.Agent)
	if e.Agent == "" {
		b.fillFromRequest(e, request)
	}
	t := r.conversations[id+"\x00"+e.Agent]
	if t == nil {
		t = &apiTrafficConversation{}
		r.conversations[id+"\x00"+e.Agent] = t
	}
	w := apiTrafficImporter{sessionBuilder: b, at: at}
	if e.Agent != "" {
		w.agent = "agent:" + e.Agent
		b.getOrAddAgent(w.agent).ID = e.Agent
	}
	w.addNewGroups(t, groups)
	w.addAnswerOrKeepFailure(t, e)
}

// sessionIDFromMetadata returns the session id from the metadata of older versions of Claude Code.
func sessionIDFromMetadata(metadata json.RawMessage) string {
	var m struct {
		UserID string `json:"user_id"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return ""
	}
	var user struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(m.UserID), &user) == nil {
		return user.SessionID
	}
	_, id, _ := strings.Cut(m.UserID, "_session_")
	return id
}

func (b *sessionBuilder) fillFromRequest(e *journal.Exchange, request *history.Request) {
	if version, ok := strings.CutPrefix(e.Client, "claude-cli/"); ok {
		b.Version, _, _ = strings.Cut(version, " ")
	}
	b.CWD = cmp.Or(b.CWD, request.WorkingDirectory())
	for _, name := range request.Tools.Names {
		if !slices.Contains(b.Tools, name) {
			b.Tools = append(b.Tools, name)
		}
	}
}

type apiTrafficImporter struct {
	*sessionBuilder

	at    Place
	agent string // sub-agent of the conversation; empty means the main one
}

func (w *apiTrafficImporter) addNewGroups(t *apiTrafficConversation, groups []history.MessageGroup) {
	from := t.groups
	switch {
	case from >= len(groups) && t.failure != nil: // the request was repeated
		t.failure = nil
		return
	case from > len(groups): // the history was truncated
		w.Compacted = append(w.Compacted, w.at)
		from = len(groups) - 1
	}
	if t.failure != nil && from < len(groups) {
		w.recordFailure(t)
	}
	for _, g := range groups[min(from, len(groups)):] {
		if g.Assistant {
			w.addBlocks(w.at, assistantMessage(g), w.agent)
			continue
		}
		for i := range g.Steps {
			w.addSegment(&g.Steps[i])
		}
	}
	t.groups = len(groups)
}

// assistantMessage returns the model's message in a group of the history, in the form of a response of the API.
func assistantMessage(g history.MessageGroup) wireMessage {
	var m wireMessage
	if g.Text != "" {
		m.Content = append(m.Content, wireBlock{Type: "text", Text: g.Text})
	}
	for _, u := range g.Uses {
		m.Content = append(m.Content, wireBlock{Type: "tool_use", ID: u.ID, Name: u.Name, Input: u.Input})
	}
	return m
}

func (w *apiTrafficImporter) addSegment(segment *history.Segment) {
	switch segment.Kind {
	case history.KindResults, history.KindResultsOfEndedTurn:
		for _, r := range segment.Results {
			out := w.setResultOfCall(w.at, wireBlock{ToolUseID: r.ID, IsError: r.IsError})
			out.Text = r.Text
			out.OtherParts = countPartsOtherThanText(r.Content)
		}
	case history.KindPrompt, history.KindBackgroundWorkNotice:
		if w.agent != "" {
			if a := w.getOrAddAgent(w.agent); a.Prompt == "" {
				a.Prompt = segment.Text
			}
			return
		}
		w.addPrompt(&Prompt{At: w.at, Text: segment.Text, OtherParts: len(segment.Files), IsNotice: segment.Kind == history.KindBackgroundWorkNotice})
	// None of these messages starts a turn.
	case history.KindAddedPrompt, history.KindClaudeCodeTextNeedingReply, history.KindTextRequestingNewReply, history.KindTextRequestingRestOfReply, history.KindInterrupt, history.KindSummaryReplacingHistory:
	}
}

func (w *apiTrafficImporter) addAnswerOrKeepFailure(t *apiTrafficConversation, e *journal.Exchange) {
	var m wireMessage
	var failed struct {
		Error struct{ Type, Message string }
	}
	switch {
	case e.Status == http.StatusOK && json.Unmarshal(e.Response, &m) == nil && m.Role == "assistant":
		w.addBlocks(w.at, m, w.agent)
		t.groups++
		return
	case json.Unmarshal(e.Response, &failed) == nil && failed.Error.Type != "":
		t.failure = &Failure{Text: failed.Error.Message}
	default:
		t.failure = &Failure{}
	}
	if t.at = w.at; e.Status >= http.StatusBadRequest {
		t.failure.Status = e.Status
	}
}

// recordFailure records a failure that was not followed by a successful retry.
func (w *apiTrafficImporter) recordFailure(t *apiTrafficConversation) {
	if w.agent == "" {
		w.addFailure(t.at, *t.failure)
		t.groups++
	}
	t.failure = nil
}

func (r *apiTrafficReader) recordFailuresAndLinkAgents() {
	for key, t := range r.conversations {
		id, agent, _ := strings.Cut(key, "\x00")
		if t.failure != nil {
			(&apiTrafficImporter{sessionBuilder: r.set.getOrAddBuilder(id, "traffic"), agent: agent}).recordFailure(t)
		}
	}
	for _, key := range r.set.order {
		if b := r.set.byID[key]; b.source == "traffic" {
			b.assignAgentsToStartingCalls()
		}
	}
}

type journalReader struct {
	set     *sessionSet
	mode    map[int]string // permission mode by process id
	cwd     map[int]string
	environ map[int][]string
	traffic *apiTrafficReader
}

func (r *journalReader) parseLine(at Place, journalLine []byte) error {
	for e, err := range journal.Read(bytes.NewReader(journalLine)) {
		if err != nil {
			return journal.ErrNotAJournalLine
		}
		if e.Run != nil {
			r.mode[e.PID], r.cwd[e.PID] = e.Run.PermissionMode, e.Run.CWD
			for k, v := range e.Run.Env {
				r.environ[e.PID] = append(r.environ[e.PID], k+"="+v)
			}
		}
		if e.Exchange != nil {
			date := ""
			if !e.When.IsZero() {
				date = e.When.UTC().Format("2006-01-02")
			}
			r.traffic.addExchange(at, date, e.Exchange)
		}
		r.set.requestsOnly = r.set.requestsOnly || e.Request != nil
		if e.SessionID == "" {
			continue
		}
		b := r.set.getOrAddBuilder(e.SessionID, "journal")
		b.addIDs(e.SessionID)
		b.addSourceFile(at.File)
		b.CWD, b.Mode, b.Environ = r.cwd[e.PID], r.mode[e.PID], r.environ[e.PID]
		if b.Date == "" && !e.When.IsZero() {
			b.Date = e.When.UTC().Format("2006-01-02")
		}
		b.addJournalEntry(at, &e)
	}
	return nil
}

func (b *sessionBuilder) addJournalEntry(at Place, entry *journal.Entry) {
	switch {
	case entry.Prompt != nil:
		if entry.Prompt.WrittenByCLI {
			return
		}
		b.addIDs(entry.Prompt.UUID)
		p := &Prompt{At: at, Text: entry.Prompt.Prompt}
		p.OtherParts = countPartsOtherThanText(entry.Prompt.Blocks)
		p.IsNotice = strings.HasPrefix(p.Text, "<task-notification>")
		b.addPrompt(p)
	case entry.Model != nil:
		b.addModelMessage(at, entry.Model)
	case entry.Permission != nil:
		if entry.Permission.Decision == "reject" {
			b.rawResults["denied "+entry.Permission.ToolUseID] = json.RawMessage("true")
		}
	case entry.MCPCall != nil:
		if entry.MCPCall.Result != nil {
			b.rawResults[entry.MCPCall.ToolUseID] = entry.MCPCall.Result
		}
	case entry.Tool != nil:
		t := entry.Tool
		r := b.setResultOfCall(at, wireBlock{ToolUseID: t.ToolUseID, IsError: t.IsError})
		r.Text = t.Result
		r.Denied = b.rawResults["denied "+t.ToolUseID] != nil
		r.OtherParts = countPartsOtherThanText(t.Blocks)
	case entry.Result != nil:
		b.setHTTPStatusOfLastFailure(entry.Result.APIStatus)
		b.finished = true
	}
}

func (b *sessionBuilder) addModelMessage(at Place, m *journal.Model) {
	var blocks wireBlocks
	if json.Unmarshal(m.Blocks, &blocks) != nil {
		return
	}
	if m.Model == "<synthetic>" {
		if text, _ := blocks.plainText(); m.Error != "" && m.Agent == "" {
			b.addFailure(at, Failure{Text: text})
		}
		return
	}
	wire := wireMessage{ID: m.MessageID, Content: blocks}
	if m.StopReason != "" {
		wire.StopReason = &m.StopReason
	}
	b.addBlocks(at, wire, m.Agent)
}
