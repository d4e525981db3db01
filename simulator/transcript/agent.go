package transcript

import (
	"strings"

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

// attribution is on whose behalf the model writes in the main conversation: after the
// text of a skill, and after the last call of an MCP server in its last round.
type attribution struct {
	protocol.Attribution
	asked bool // the model has written since the last result
}

// follow notes whose text the turn goes on with. What stands before a colon in the
// name is taken for a plugin, though it may be a directory.
func (c *attribution) follow(name string) {
	c.Skill, c.Plugin = name, ""
	if plugin, _, ok := strings.Cut(name, ":"); ok {
		c.Plugin = plugin
	}
}

// of is what a line of the model says.
func (c *attribution) of(agentID string, ev *protocol.Assistant) protocol.Attribution {
	if agentID != "" {
		return protocol.Attribution{Agent: ev.SubagentType}
	}
	c.asked = true
	return c.Attribution
}

// answered notes the result of a call; nil = no server gave it.
func (c *attribution) answered(call *protocol.MCPCall) {
	if c.asked {
		c.asked, c.MCPServer, c.MCPTool = false, "", ""
	}
	if call != nil {
		c.MCPServer, c.MCPTool = call.Server, call.Tool
	}
}

// agents keeps what sub-agents say, each in a file of its own.
type agents struct {
	th      *conversation
	listing *listing
	meta    map[string]*agent
}

// agentOf names the sub-agent that an event belongs to; empty = none.
func agentOf(parent *string, id string) string {
	switch {
	case parent == nil:
		return ""
	case id != "":
		return id
	}
	return *parent
}

func newAgent(kind, description, toolUseID string) agent {
	a := agent{AgentType: kind, Description: description, ToolUseID: toolUseID, SpawnDepth: 1}
	switch kind {
	case "claude", "Explore", "general-purpose", "Plan", "statusline-setup":
		a.IsBuiltIn = true
	}
	return a
}

// write appends a line to a sub-agent's transcript, and makes its
// .meta.json with the first one.
func (a *agents) write(id string, meta agent, line any) error {
	if a.meta[id] == nil {
		if a.meta == nil {
			a.meta = map[string]*agent{}
		}
		a.meta[id] = &meta
		if err := a.writeMeta(id); err != nil {
			return err
		}
	}
	return a.th.writer.lines(a.th.agentPath(id), line)
}

// said keeps a user line of a sub-agent. The first one is its prompt, a
// string, after which it is told its surroundings.
func (a *agents) said(id string, ev *protocol.User, line protocol.UserLine) error {
	first := line.ParentUUID == nil
	if blocks := line.Message.Content.Blocks; first && len(blocks) == 1 {
		if text, is := blocks[0].(protocol.TextBlock); is {
			line.Message = userText(text.Text)
		}
	}
	if err := a.write(id, newAgent(ev.SubagentType, ev.TaskDescription, *ev.ParentToolUseID), line); err != nil || !first {
		return err
	}
	return a.th.writer.lines(a.th.agentPath(id), a.listing.ofAgent(id)...)
}

// writeMeta writes the .meta.json. A mirror sees it as a line of the
// transcript (spec: cli-contract 8.5).
func (a *agents) writeMeta(id string) error {
	meta := a.meta[id]
	data, err := protocol.Marshal(meta)
	if err != nil {
		return err
	}
	path := a.th.agentPath(id)
	if err := a.th.writer.replace(path[:len(path)-len(".jsonl")]+".meta.json", data, 0o644); err != nil {
		return err
	}
	if a.th.writer.onLine == nil || a.th.writer.off {
		return nil
	}
	entry, err := protocol.Marshal(struct {
		Type string `json:"type"`
		agent
	}{"agent_metadata", *meta})
	if err != nil {
		return err
	}
	a.th.writer.onLine(path, entry)
	return nil
}

// started makes the .meta.json of a sub-agent.
func (a *agents) started(ev *protocol.System) error {
	depth, isAgent := field(ev.Fields, "spawn_depth").(int)
	if !isAgent {
		return nil // another kind of task
	}
	id := text(ev.Fields, "task_id")
	meta := newAgent(text(ev.Fields, "subagent_type"), text(ev.Fields, "description"), text(ev.Fields, "tool_use_id"))
	meta.SpawnDepth, meta.Parent = depth, text(ev.Fields, "parent_task_id")
	if a.meta == nil {
		a.meta = map[string]*agent{}
	}
	a.meta[id] = &meta
	return a.writeMeta(id)
}

// ended notes that a sub-agent is done.
func (a *agents) ended(ev *protocol.System) error {
	id := text(ev.Fields, "task_id")
	meta := a.meta[id]
	if meta == nil || meta.Finished {
		return nil
	}
	meta.Finished = true
	return a.writeMeta(id)
}

func userText(text string) protocol.UserContent {
	return protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}
}

func field(fields []protocol.Field, key string) any {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

func text(fields []protocol.Field, key string) string {
	value, _ := field(fields, key).(string)
	return value
}
