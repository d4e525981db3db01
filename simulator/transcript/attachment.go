package transcript

import "github.com/claudeless/claudeless/simulator/protocol"

// recordSnapshot writes the prompt and the tools of the first request of the main conversation (agentID "") or of a
// sub-agent, unless they were already written.
func (r *recorder) recordSnapshot(agentID string) error {
	if agentID != "" && r.agents.meta[agentID] == nil {
		return nil
	}
	lines := r.requests.snapshotWithTools(agentID)
	if lines == nil {
		return nil
	}
	return r.writeTo(agentID, lines...)
}

// writeTo writes lines to the transcript of the main conversation (agentID "") or of a sub-agent.
func (r *recorder) writeTo(agentID string, lines ...any) error {
	if agentID == "" {
		return r.lines.write(lines...)
	}
	return r.conversation.writer.writeLines(r.conversation.agentPath(agentID), lines...)
}

// recordAttachment writes an attachment. Attachments of an unknown sub-agent are not recorded.
func (r *recorder) recordAttachment(ev *protocol.AttachmentAdded) error {
	if ev.AgentID != "" {
		if r.agents.meta[ev.AgentID] == nil {
			return nil
		}
		if ev.Role == "user" {
			if err := r.recordSnapshot(ev.AgentID); err != nil {
				return err
			}
		}
	}
	if ev.Tool != "" && r.labels.addTool(ev.Tool) {
		if err := r.lines.write(r.labels.toolsUsedLine()); err != nil {
			return err
		}
	}
	return r.writeTo(ev.AgentID, r.conversation.attachmentAdded(ev))
}
