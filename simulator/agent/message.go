package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type messageTarget struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Ref  string `json:"ref"`
}

// sendMessageResult is the result of SendMessage. The model does not see Revived and Display.
type sendMessageResult struct {
	Success bool           `json:"success"`
	Message string         `json:"message"`
	Resumed string         `json:"resumedAgentId,omitempty"`
	Pin     *messageTarget `json:"pin,omitempty"`
	Revived string         `json:"revivedAgentId,omitempty"`
	Display string         `json:"display,omitempty"`
}

func (s sendMessageResult) nonErrorToolResult() protocol.ToolResult {
	shown := s
	shown.Revived, shown.Display = "", ""
	text, err := protocol.Marshal(shown)
	if err != nil {
		return protocol.ErrorResult(err.Error())
	}
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(string(text))}}, Output: s}
}

// sendMessage sends a message to an agent. A running agent reads it after its current reply; an agent that has finished
// continues in the background with the message.
func (a *Agents) sendMessage(ctx context.Context, call protocol.ToolUse) protocol.ToolResult {
	var in struct{ To, Message string }
	_ = json.Unmarshal(call.Input, &in) // the input was validated before
	if in.To == "main" && call.Agent == nil {
		return sendMessageResult{Message: `You are the main conversation — "main" addresses you. Send to a named agent instead.`}.nonErrorToolResult()
	}
	a.mu.Lock()
	w := a.findReachableAgentLocked(in.To)
	if w == nil {
		a.mu.Unlock()
		return sendMessageResult{
			Message: "No agent named '" + in.To + "' is reachable.\nUse ListAgents to see everyone you can message.",
			Display: "Not sent — no agent named '" + in.To + "' is reachable.",
		}.nonErrorToolResult()
	}
	p := &messageTarget{ID: w.task.ID, Name: w.nameOrTaskID(), Ref: w.digestOfTaskID()}
	if w.isRunning {
		w.undeliveredMessages = append(w.undeliveredMessages, in.Message)
		a.mu.Unlock()
		return sendMessageResult{Success: true, Pin: p, Message: "Message queued for delivery to " + p.Name + " at its next tool round. " +
			"If it finishes first, it is resumed with the message and notifies again, so wait for that notification before resending."}.nonErrorToolResult()
	}
	w.isRunning = true
	a.mu.Unlock()
	w.resumeFinishedAgent(ctx, call.ID, in.Message)
	name := p.Name
	if name == w.task.ID {
		name = name[:min(len(name), 7)]
	}
	return sendMessageResult{Success: true, Message: "Resuming agent " + name, Resumed: w.task.ID, Revived: w.task.ID, Pin: p}.nonErrorToolResult()
}

// findReachableAgentLocked returns the latest agent with this name or id that is running or can be resumed; a.mu must be
// held. It also accepts "name [ref]", the form used in lists.
func (a *Agents) findReachableAgentLocked(nameOrID string) *agentRun {
	name, ref, _ := strings.Cut(strings.TrimSuffix(nameOrID, "]"), " [")
	for i := len(a.runs) - 1; i >= 0; i-- {
		if w := a.runs[i]; (w.nameOrTaskID() == name || w.task.ID == name) && (ref == "" || ref == w.digestOfTaskID()) && (w.isRunning || w.simulator != nil) {
			return w
		}
	}
	return nil
}

func (a *Agents) listReachableAgents(withIntroForSubagent bool) protocol.ToolResult {
	type row struct {
		Name   string `json:"name"`
		Ref    string `json:"ref"`
		ID     string `json:"id"`
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	type section struct {
		Kind  string `json:"kind"`
		Total int    `json:"total"`
		Rows  []row  `json:"rows"`
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var text strings.Builder
	name := a.options.Session.SessionName()
	if withIntroForSubagent {
		text.WriteString("This process's main session is " + name + ` — the name OTHER sessions use to message it (it is not listed below; from inside this process, address the main conversation as "main").` + "\n\n")
	} else {
		text.WriteString("This session is " + name + " — the name other sessions use to message it (it is not listed below; a message to it would be a message to yourself).\n\n")
	}
	sections := []section{}
	reachable := slices.DeleteFunc(slices.Clone(a.runs), func(w *agentRun) bool { return w.input.Name == "" && !w.task.Background && !w.isRunning })
	if len(reachable) == 0 {
		text.WriteString("No reachable agents — no other Claude session is running on this machine right now " +
			"(peer messaging itself is available; a session appears here once it is started).")
	} else {
		s := section{Kind: "subagents", Total: len(reachable)}
		fmt.Fprintf(&text, "Subagents (%d):", s.Total)
		for _, w := range reachable {
			r := row{w.nameOrTaskID(), w.digestOfTaskID(), w.task.ID, w.task.AgentType, string(w.status)}
			if w.isRunning {
				r.Status = "running"
			}
			s.Rows = append(s.Rows, r)
			fmt.Fprintf(&text, "\n  %s [%s]  ·  %s  ·  %s  ·  started %ds ago", r.Name, r.Ref, r.Type, r.Status, int(a.now().Sub(w.started).Seconds()))
		}
		sections = append(sections, s)
	}
	return protocol.ToolResult{Content: protocol.Content{Text: text.String()}, Output: struct {
		Listing  string    `json:"listing"`
		Sections []section `json:"sections"`
		Notes    []string  `json:"notes"`
	}{text.String(), sections, []string{}}}
}
