package terminal

import (
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

// updateTasksForEvent updates the list of tasks for an event. It returns a text about the end of a task, otherwise "".
func (b *backgroundView) updateTasksForEvent(ev *protocol.SystemEvent, now time.Time) (endText string) {
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
