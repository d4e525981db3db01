package session

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// trafficReader reads requests to a Messages API and their answers. Every
// request brings the whole conversation along; what is new in it is taken.
type trafficReader struct {
	set    *set
	reader *history.Reader
	talks  map[string]*trafficConversation // by session and agent
}

// trafficConversation is one conversation.
type trafficConversation struct {
	groups int      // of the history that have been taken
	failed *Failure // of the last request: it counts unless that is made again
	at     Place
}

func (r *trafficReader) exchange(at Place, date string, e *journal.Exchange) {
	request, err := r.reader.Read(e.Request, history.Client{Session: e.Session, Agent: e.Agent, Path: e.Path, UserAgent: e.Client, Header: http.Header{}})
	if err != nil || len(request.Messages) == 0 {
		return // it was refused for what it is
	}
	groups := request.Groups(request.Messages)
	named := cmp.Or(e.Session, sessionIn(request.Metadata))
	id := named
	if id == "" {
		id = "the conversation that begins with " + request.Messages[0].FirstText()
	}
	b := r.set.session(id, "traffic")
	b.ID = named
	b.sourceFile(at.File)
	b.Date = cmp.Or(b.Date, date)
	if beside(request) {
		return
	}
	b.id(named, e.Agent)
	if e.Agent == "" {
		b.client(e, request)
	}
	t := r.talks[id+"\x00"+e.Agent]
	if t == nil {
		t = &trafficConversation{}
		r.talks[id+"\x00"+e.Agent] = t
	}
	w := trafficWriter{builder: b, at: at}
	if e.Agent != "" {
		w.who = "agent:" + e.Agent
		b.agent(w.who).ID = e.Agent
	}
	w.groups(t, groups)
	w.answer(t, e)
}

// beside says of a request that it is no part of the conversation. Older Claude
// Codes ask small questions about commands and titles without tools, and without
// saying where they run.
func beside(r *history.Request) bool {
	return r.SideRequestKind() != "" || r.IsClaudeCode() && r.Agent == "" && len(r.Tools.Names) == 0 && r.WorkingDirectory() == ""
}

// sessionIn is the session that older Claude Codes name in the metadata.
func sessionIn(metadata json.RawMessage) string {
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

// client notes what the request says about who asks.
func (b *builder) client(e *journal.Exchange, request *history.Request) {
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

// trafficWriter adds what a request shows to a session.
type trafficWriter struct {
	*builder

	at  Place
	who string // whose conversation it is; empty = the main one
}

// groups takes what is new in a history.
func (w *trafficWriter) groups(t *trafficConversation, groups []history.Group) {
	from := t.groups
	switch {
	case from >= len(groups) && t.failed != nil: // made again
		t.failed = nil
		return
	case from > len(groups): // the history was cut
		w.Compacted = append(w.Compacted, w.at)
		from = len(groups) - 1
	}
	if t.failed != nil && from < len(groups) {
		w.failure(t)
	}
	for _, g := range groups[min(from, len(groups)):] {
		if g.Assistant {
			w.said(w.at, assistantOf(g), w.who)
			continue
		}
		for i := range g.Steps {
			w.step(&g.Steps[i])
		}
	}
	t.groups = len(groups)
}

// assistantOf is an answer that only a later history shows.
func assistantOf(g history.Group) wireMessage {
	var m wireMessage
	if g.Text != "" {
		m.Content = append(m.Content, wireBlock{Type: "text", Text: g.Text})
	}
	for _, u := range g.Uses {
		m.Content = append(m.Content, wireBlock{Type: "tool_use", ID: u.ID, Name: u.Name, Input: u.Input})
	}
	return m
}

func (w *trafficWriter) step(s *history.Step) {
	switch s.Kind {
	case history.Results, history.ClosedResults:
		for _, r := range s.Results {
			out := w.result(w.at, wireBlock{ToolUseID: r.ID, IsError: r.IsError})
			out.Text = r.Text
			var blocks wireBlocks
			if json.Unmarshal(r.Content, &blocks) == nil {
				_, out.Other = blocks.plain()
			}
		}
	case history.Prompt, history.Notice:
		if w.who != "" {
			if a := w.agent(w.who); a.Prompt == "" {
				a.Prompt = s.Text
			}
			return
		}
		w.prompt(&Prompt{At: w.at, Text: s.Text, Other: len(s.Files), Notice: s.Kind == history.Notice})
	case history.AddedPrompt, history.InjectedText, history.ResumeText, history.Interrupt, history.Summary: // none of them begins a turn
	}
}

// answer takes what came back.
func (w *trafficWriter) answer(t *trafficConversation, e *journal.Exchange) {
	var m wireMessage
	var failed struct {
		Error struct{ Type, Message string }
	}
	switch {
	case e.Status == http.StatusOK && json.Unmarshal(e.Response, &m) == nil && m.Role == "assistant":
		w.said(w.at, m, w.who)
		t.groups++
		return
	case json.Unmarshal(e.Response, &failed) == nil && failed.Error.Type != "":
		t.failed = &Failure{Kind: failed.Error.Type, Text: failed.Error.Message}
	default:
		t.failed = &Failure{}
	}
	if t.at = w.at; e.Status >= http.StatusBadRequest {
		t.failed.Status = e.Status
	}
}

// failure notes one that no request made good.
func (w *trafficWriter) failure(t *trafficConversation) {
	if w.who == "" {
		w.failed(t.at, *t.failed)
		t.groups++
	}
	t.failed = nil
}

// finish notes the failures that conversations ended with.
func (r *trafficReader) finish() {
	for key, t := range r.talks {
		id, agent, _ := strings.Cut(key, "\x00")
		if t.failed != nil {
			w := trafficWriter{builder: r.set.session(id, "traffic"), who: agent}
			w.failure(t)
		}
	}
	for _, key := range r.set.order {
		if b := r.set.byID[key]; b.source == "traffic" {
			b.adopt()
		}
	}
}
