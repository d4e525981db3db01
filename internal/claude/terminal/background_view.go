package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

type backgroundTask struct {
	id, name, kind string // kind is the kind of an agent; empty means a command
	startedAt      time.Time
}

type backgroundView struct {
	tasks      []backgroundTask
	agentEnded bool
}

func (b *backgroundView) agents() []backgroundTask {
	return slices.DeleteFunc(slices.Clone(b.tasks), func(t backgroundTask) bool { return t.kind == "" })
}

func (b *backgroundView) footerTexts() (runningShellsText, endedAgentsHint, manageKeyHint string) {
	runningShellsText = strings.TrimSuffix(b.runningShellsText(), stillRunning)
	if b.agentEnded {
		endedAgentsHint = " · /tasks to see subagents"
	}
	if len(b.tasks) > 0 {
		manageKeyHint = " · ↓ to manage"
	}
	return runningShellsText, endedAgentsHint, manageKeyHint
}

func (b *backgroundView) agentRows(cols int, now time.Time) []string {
	agents := b.agents()
	if len(agents) == 0 {
		return nil
	}
	rows := []string{"", "  " + answerGlyph + " main"}
	for _, t := range agents {
		left, right := "  ◯ "+t.kind+"  "+t.name, now.Sub(t.startedAt).Truncate(time.Second).String()
		rows = append(rows, truncateRow(left+strings.Repeat(" ", max(1, cols-textWidth(left)-textWidth(right)-2))+right, cols))
	}
	return rows
}

const turnEndGlyph, stillRunning = "✻ ", " still running"

// runningShellsText returns the end of the line about a turn's end; empty if no command runs in the background.
func (b *backgroundView) runningShellsText() string {
	if n := len(b.tasks) - len(b.agents()); n > 0 {
		return " · " + countWithNoun(n, "shell") + stillRunning
	}
	return ""
}

// handleEvent updates the list of tasks for an event. It returns a text about the end of a task, otherwise "".
func (b *backgroundView) handleEvent(ev *protocol.System, now time.Time) (endText string) {
	switch ev.Subtype {
	case "task_started":
		if ev.FieldValue("is_backgrounded") == true && ev.Text("parent_task_id") == "" {
			t := backgroundTask{id: ev.Text("task_id"), name: ev.Text("description"), startedAt: now}
			if ev.FieldValue("task_type") == task.KindAgent {
				t.kind = ev.Text("subagent_type")
			}
			b.tasks = append(b.tasks, t)
		}
	case "task_notification":
		for i, t := range b.tasks {
			if t.id != ev.Text("task_id") {
				continue
			}
			b.tasks = append(b.tasks[:i:i], b.tasks[i+1:]...)
			if t.kind != "" {
				b.agentEnded = true
				return fmt.Sprintf("Agent %q finished · %s", t.name, now.Sub(t.startedAt).Truncate(time.Second))
			}
			return ev.Text("summary")
		}
	}
	return ""
}

// agentCall is a call of the tool Agent, as the transcript shows it.
type agentCall struct {
	replyID                 string // id of the reply with the call
	name, kind, description string // name is empty if the model gave none
	outcome                 agentOutcome
	toolUses, tokens        int    // as of its last reply with tool calls
	resultText              string // shown if the reply started no other agent
}

// agentTotals are the keys of a result of Agent that the transcript shows.
type agentTotals struct {
	Status     string `json:"status"`
	ToolUses   int    `json:"totalToolUseCount"`
	Tokens     int    `json:"totalTokens"`
	DurationMS int    `json:"totalDurationMs"`
}

func (a *agentCall) setOutcome(t agentTotals) {
	switch t.Status {
	case "async_launched":
		a.outcome, a.resultText = agentInBackground, "Backgrounded agent (↓ to manage · ctrl+o to expand)"
	case "completed":
		took := (time.Duration(t.DurationMS) * time.Millisecond).Truncate(time.Second)
		a.outcome, a.resultText = agentDone, fmt.Sprintf("Done (%s · %s · %s)", countWithNoun(t.ToolUses, "tool use"), countWithNoun(t.Tokens, "token"), took)
	}
}

type agentOutcome string

const (
	agentRuns         agentOutcome = ""
	agentInBackground agentOutcome = "in background"
	agentDone         agentOutcome = "Done"
	agentFailed       agentOutcome = "Failed"
)

func (a *agentCall) shownKind() string {
	return cmp.Or(strings.TrimPrefix(a.kind, "general-purpose"), "Agent")
}

// treeLabel returns the text of the agent among several; agents of one kind show only their names and descriptions.
func (a *agentCall) treeLabel(showsKind bool) string {
	text := a.description
	switch {
	case a.name != "":
		text = a.name + ": " + text
	case showsKind:
		text = a.shownKind() + " (" + text + ")"
	}
	if a.toolUses > 0 && a.outcome != agentInBackground {
		text += " · " + countWithNoun(a.toolUses, "tool use") + " · " + countWithNoun(a.tokens, "token")
	}
	return text
}

// agentTreeText returns the entry of several agents that one reply started.
func agentTreeText(agents []*agentCall) string {
	count := map[agentOutcome]int{}
	kind := agents[0].kind
	for _, a := range agents {
		count[a.outcome]++
		if a.kind != kind {
			kind = ""
		}
	}
	noun := strings.TrimSpace(strings.TrimPrefix(kind, "general-purpose") + " agents")
	var text strings.Builder
	switch all := len(agents); {
	case count[agentRuns] > 0:
		fmt.Fprintf(&text, "Running %d %s…", all, noun)
	case count[agentInBackground] == all:
		fmt.Fprintf(&text, "%d background agents launched (↓ to manage)", all)
	case count[agentFailed] > 0:
		fmt.Fprintf(&text, "%d of %d %s finished", all-count[agentFailed], all, noun)
	default:
		fmt.Fprintf(&text, "%d %s finished", all, noun)
	}
	for i, a := range agents {
		branch, stem := "├ ", "│ "
		if i == len(agents)-1 {
			branch, stem = "└ ", "  "
		}
		text.WriteString("\n " + branch + a.treeLabel(kind == ""))
		if a.outcome != agentInBackground {
			text.WriteString("\n " + stem + "⎿  " + cmp.Or(string(a.outcome), "Initializing…"))
		}
	}
	return text.String()
}

// beginAgentCall returns the entry of a new agent; nil means that the entry of other agents of the same reply shows it.
func (v *eventView) beginAgentCall(c *callView, entry transcriptEntry) []transcriptEntry {
	c.agent = &agentCall{replyID: v.replyID, name: c.input.Name, kind: cmp.Or(c.input.SubagentType, "general-purpose"), description: c.input.Description}
	entries := v.screen.entries
	at := slices.IndexFunc(entries, func(e transcriptEntry) bool { return e.agents != nil && e.agents[0].replyID == v.replyID })
	if at < 0 {
		entry.text, entry.agents = c.agent.shownKind()+"("+c.agent.description+")", []*agentCall{c.agent}
		return []transcriptEntry{entry}
	}
	if e := &entries[at]; len(e.agents) == 1 && e.callID == "" && at+1 < len(entries) && entries[at+1].glyph == resultPrefix {
		v.screen.entries = slices.Delete(entries, at+1, at+2) // the result of the first agent
	}
	e := &v.screen.entries[at]
	e.agents = append(e.agents, c.agent)
	e.text = agentTreeText(e.agents)
	return nil
}

// endAgentCall shows the end of an agent that several calls of one reply started; false means that the reply started only this one.
func (v *eventView) endAgentCall(c *callView, failed bool) bool {
	at := slices.IndexFunc(v.screen.entries, func(e transcriptEntry) bool { return slices.Contains(e.agents, c.agent) })
	if failed {
		c.agent.outcome = agentFailed
	} else if c.agent.outcome == agentRuns {
		c.agent.outcome = agentDone
	}
	if at < 0 || len(v.screen.entries[at].agents) == 1 {
		return false
	}
	v.screen.entries[at].text = agentTreeText(v.screen.entries[at].agents)
	return true
}

// countReplyOfAgent counts the tool calls and tokens of a reply in an agent that runs.
func (v *eventView) countReplyOfAgent(ev *protocol.Assistant) {
	at := slices.IndexFunc(v.runningCalls, func(c *callView) bool { return c.agent != nil && c.use.ID == *ev.ParentToolUseID })
	if at < 0 {
		return
	}
	for _, block := range ev.Message.Content {
		if _, ok := block.(protocol.ToolUse); ok {
			a, usage := v.runningCalls[at].agent, ev.Message.Usage
			a.toolUses++
			a.tokens = usage.InputTokens + usage.CacheCreationInputTokens + usage.CacheReadInputTokens + usage.OutputTokens
		}
	}
}
