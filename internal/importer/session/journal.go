package session

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// journalReader reads the journal of claudeless.
type journalReader struct {
	set     *sessionSet
	mode    map[int]string // by process id
	cwd     map[int]string
	environ map[int][]string
	traffic *trafficReader
}

func (r *journalReader) line(at Place, raw []byte) error {
	for e, err := range journal.Read(bytes.NewReader(raw)) {
		if err != nil {
			return journal.ErrTorn
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
			r.traffic.exchange(at, date, e.Exchange)
		}
		r.set.requestsOnly = r.set.requestsOnly || e.Request != nil
		if e.SessionID == "" {
			continue
		}
		b := r.set.session(e.SessionID, "journal")
		b.id(e.SessionID)
		b.sourceFile(at.File)
		b.CWD, b.Mode, b.Environ = r.cwd[e.PID], r.mode[e.PID], r.environ[e.PID]
		if b.Date == "" && !e.When.IsZero() {
			b.Date = e.When.UTC().Format("2006-01-02")
		}
		b.entry(at, &e)
	}
	return nil
}

func (b *builder) entry(at Place, e *journal.Entry) {
	switch {
	case e.Prompt != nil:
		if e.Prompt.Injected {
			return
		}
		b.id(e.Prompt.UUID)
		p := &Prompt{At: at, Text: e.Prompt.Prompt}
		var blocks wireBlocks
		if e.Prompt.Blocks != nil && json.Unmarshal(e.Prompt.Blocks, &blocks) == nil {
			_, p.Other = blocks.plain()
		}
		p.Notice = strings.HasPrefix(p.Text, "<task-notification>")
		b.prompt(p)
	case e.Model != nil:
		b.model(at, e.Model)
	case e.Permission != nil:
		if e.Permission.Decision == "reject" {
			b.rawResults["denied "+e.Permission.ToolUseID] = json.RawMessage("true")
		}
	case e.MCPCall != nil:
		if e.MCPCall.Result != nil {
			b.rawResults[e.MCPCall.ToolUseID] = e.MCPCall.Result
		}
	case e.Tool != nil:
		t := e.Tool
		r := b.result(at, wireBlock{ToolUseID: t.ToolUseID, IsError: t.IsError})
		r.Text = t.Result
		r.Denied = b.rawResults["denied "+t.ToolUseID] != nil
		var blocks wireBlocks
		if t.Blocks != nil && json.Unmarshal(t.Blocks, &blocks) == nil {
			_, r.Other = blocks.plain()
		}
	case e.Result != nil:
		b.status(e.Result.APIStatus)
		b.finished = true
	}
}

func (b *builder) model(at Place, m *journal.Model) {
	var blocks wireBlocks
	if json.Unmarshal(m.Blocks, &blocks) != nil {
		return
	}
	if m.Model == "<synthetic>" {
		if text, _ := blocks.plain(); m.Error != "" && m.Agent == "" {
			b.addFailure(at, Failure{Kind: m.Error, Text: text})
		}
		return
	}
	wire := wireMessage{ID: m.MessageID, Content: blocks}
	if m.StopReason != "" {
		wire.StopReason = &m.StopReason
	}
	b.addBlocks(at, wire, m.Agent)
}
