package transcript

import (
	"cmp"
	"path/filepath"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// conversation is one conversation as its file has it: whose it is, where it came
// from, and what its next line hangs on.
type conversation struct {
	opts    Options
	id      string
	path    string
	source  string // session that was resumed; another one than id after a fork
	resumed bool
	forked  bool // resumed under an id of its own
	cleared bool // begun by /clear

	leaf     map[string]string // last line by agent; "" = the main conversation
	promptID string            // of the prompt that the lines to come belong to
	writer   writer
}

// begun tells whether the main conversation has a line.
func (th *conversation) begun() bool { return th.leaf[""] != "" }

// dir holds what belongs to the session beside its transcript.
func (th *conversation) dir() string { return filepath.Join(filepath.Dir(th.path), th.id) }

// agentPath is the transcript of a sub-agent (spec: cli-contract 8.2).
func (th *conversation) agentPath(id string) string {
	return filepath.Join(th.dir(), "subagents", "agent-"+filepath.Base(id)+".jsonl")
}

// promptOf notes which prompt the lines to come belong to.
func (th *conversation) promptOf(ev *protocol.PromptAccepted) string {
	if !ev.Injected {
		th.promptID = ev.PromptID
	}
	return ev.PromptID
}

// envelope begins a line that follows the agent's last one and is what the
// next one follows.
func (th *conversation) envelope(agentID, uuid, timestamp string) protocol.Envelope {
	if uuid == "" {
		uuid = th.opts.Clock.NewID()
	}
	e := protocol.Envelope{
		LineHead: protocol.LineHead{IsSidechain: agentID != "", AgentID: agentID},
		LineID:   protocol.LineID{UUID: uuid, Timestamp: th.at(timestamp)},
		LineFoot: protocol.LineFoot{
			UserType: "external", Entrypoint: th.opts.Entrypoint, CWD: th.dirOf(agentID), SessionID: th.id,
			Version: th.opts.Version, GitBranch: th.opts.Machine.GitBranch,
		},
	}
	if leaf := th.leaf[agentID]; leaf != "" {
		e.ParentUUID = &leaf
	}
	if th.leaf == nil {
		th.leaf = map[string]string{}
	}
	th.leaf[agentID] = uuid
	return e
}

// dirOf is where the agent works when a line is written.
func (th *conversation) dirOf(agentID string) string {
	if agentID == "" && th.opts.Teller != nil {
		return cmp.Or(th.opts.Teller.Moved(), th.opts.CWD)
	}
	return th.opts.CWD
}

// at is the time of a line: that of its event, else now.
func (th *conversation) at(timestamp string) string {
	if timestamp != "" {
		return timestamp
	}
	return th.opts.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}

func (th *conversation) attachment(agentID, role string, value any) protocol.AttachmentLine {
	e := th.envelope(agentID, "", "")
	return protocol.AttachmentLine{LineHead: e.LineHead, Attachment: value, Type: "attachment", LineID: e.LineID, RenderedRole: role, LineFoot: e.LineFoot}
}

func (th *conversation) latch() protocol.LatchLine {
	return protocol.LatchLine{Type: "atis-latch", SessionID: th.id}
}
