package transcript

import (
	"path/filepath"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// agent is the .meta.json of a sub-agent's transcript.
type agent struct {
	AgentType   string `json:"agentType"`
	IsBuiltIn   bool   `json:"isBuiltIn"`
	Description string `json:"description"`
	ToolUseID   string `json:"toolUseId"`
	SpawnDepth  int    `json:"spawnDepth"`
	Finished    bool   `json:"finished"`
	Parent      string `json:"parentAgentId,omitempty"`
}

// agentOf names the sub-agent that an event belongs to; empty = none.
func (s *Transcript) agentOf(parent *string, id string) string {
	switch {
	case parent == nil:
		return ""
	case id != "":
		return id
	}
	return *parent
}

func agentOfAssistant(ev *protocol.Assistant) agent {
	return newAgent(ev.SubagentType, ev.TaskDescription, *ev.ParentToolUseID)
}

func agentOfUser(ev *protocol.User) agent {
	return newAgent(ev.SubagentType, ev.TaskDescription, *ev.ParentToolUseID)
}

func newAgent(kind, description, toolUseID string) agent {
	a := agent{AgentType: kind, Description: description, ToolUseID: toolUseID, SpawnDepth: 1}
	switch kind {
	case "claude", "Explore", "general-purpose", "Plan", "statusline-setup":
		a.IsBuiltIn = true
	}
	return a
}

// agentPath is the transcript of a sub-agent (spec: cli-contract 8.2).
func (s *Transcript) agentPath(id string) string {
	return filepath.Join(s.dir(), "subagents", "agent-"+filepath.Base(id)+".jsonl")
}

// writeAgent appends a line to a sub-agent's transcript, and makes its
// .meta.json with the first one.
func (s *Transcript) writeAgent(id string, meta agent, line any) error {
	if s.rec.agents[id] == nil {
		if s.rec.agents == nil {
			s.rec.agents = map[string]*agent{}
		}
		s.rec.agents[id] = &meta
		if err := s.writeMeta(id); err != nil {
			return err
		}
	}
	return s.writer.lines(s.agentPath(id), line)
}

// agentSaid keeps a user line of a sub-agent. The first one is its prompt, a
// string, after which it is told its surroundings.
func (s *Transcript) agentSaid(id string, ev *protocol.User, line protocol.UserLine) error {
	first := line.ParentUUID == nil
	if blocks := line.Message.Content.Blocks; first && len(blocks) == 1 {
		if text, is := blocks[0].(protocol.TextBlock); is {
			line.Message = userText(text.Text)
		}
	}
	if err := s.writeAgent(id, agentOfUser(ev), line); err != nil || !first {
		return err
	}
	return s.writer.lines(s.agentPath(id), s.surroundingsOfAgent(id)...)
}

// writeMeta writes the .meta.json. A mirror sees it as a line of the
// transcript (spec: cli-contract 8.5).
func (s *Transcript) writeMeta(id string) error {
	meta := s.rec.agents[id]
	data, err := protocol.Marshal(meta)
	if err != nil {
		return err
	}
	path := s.agentPath(id)
	if err := s.writer.replace(path[:len(path)-len(".jsonl")]+".meta.json", data, 0o644); err != nil {
		return err
	}
	if s.writer.onLine == nil || s.writer.off {
		return nil
	}
	entry, err := protocol.Marshal(struct {
		Type string `json:"type"`
		agent
	}{"agent_metadata", *meta})
	if err != nil {
		return err
	}
	s.writer.onLine(path, entry)
	return nil
}

// agentStarted makes the .meta.json of a sub-agent.
func (s *Transcript) agentStarted(ev *protocol.System) error {
	depth, isAgent := field(ev.Fields, "spawn_depth").(int)
	if !isAgent {
		return nil // another kind of task
	}
	id := text(ev.Fields, "task_id")
	meta := newAgent(text(ev.Fields, "subagent_type"), text(ev.Fields, "description"), text(ev.Fields, "tool_use_id"))
	meta.SpawnDepth, meta.Parent = depth, text(ev.Fields, "parent_task_id")
	if s.rec.agents == nil {
		s.rec.agents = map[string]*agent{}
	}
	s.rec.agents[id] = &meta
	return s.writeMeta(id)
}

// agentEnded notes that a sub-agent is done.
func (s *Transcript) agentEnded(ev *protocol.System) error {
	id := text(ev.Fields, "task_id")
	meta := s.rec.agents[id]
	if meta == nil || meta.Finished {
		return nil
	}
	meta.Finished = true
	return s.writeMeta(id)
}
