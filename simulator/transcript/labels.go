package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// sessionLabels are the lines that lists of sessions read: titles, the last prompt, the tools used.
type sessionLabels struct {
	th     *conversation
	title  string // empty = none
	named  bool   // this process gave the title
	tools  []string
	typed  protocol.Content // the prompt as it came
	prompt string           // text of the last prompt, as lists of sessions show it
	told   string           // leaf that the last last-prompt line names
	listed bool             // a last-prompt line was written by this process
	talked bool             // this process has kept a message of the model, not commands alone
}

// opening returns the lines with which a process begins its part of a transcript.
func (l *sessionLabels) opening() []any {
	var lines []any
	if !l.th.resumed {
		lines = l.worktree()
	}
	if l.named || l.th.forked || l.th.cleared {
		lines = append(lines, l.titles()...)
	}
	if !l.th.resumed {
		lines = append(lines, l.agentSetting()...)
	}
	if l.th.forked || l.th.cleared {
		lines = append(lines, l.mode())
	}
	if l.th.forked {
		lines = append(lines, l.th.latchLine())
	}
	if l.th.resumed && len(l.tools) > 0 {
		lines = append(lines, l.toolsUsed())
	}
	return lines
}

// closing returns the lines that describe the conversation so far. They repeat the opening lines.
func (l *sessionLabels) closing() []any {
	l.listed, l.told = true, l.th.leaf[""]
	lines := []any{protocol.LastPromptLine{Type: "last-prompt", LastPrompt: l.prompt, LeafUUID: l.told, SessionID: l.th.id}}
	if !l.talked && !l.th.forked {
		return lines
	}
	appended := l.th.resumed && !l.th.forked
	if !appended {
		lines = append(append(lines, l.titles()...), l.agentSetting()...)
	}
	if l.th.resumed || l.th.cleared {
		lines = append(lines, l.mode())
	}
	if !appended {
		lines = append(lines, l.th.latchLine())
	}
	return append(lines, l.worktree()...)
}

func (l *sessionLabels) worktree() []any {
	if l.th.opts.Machine.Worktree == nil {
		return nil
	}
	w := *l.th.opts.Machine.Worktree
	w.SessionID = l.th.id
	return []any{protocol.WorktreeStateLine{Type: "worktree-state", Worktree: w, SessionID: l.th.id}}
}

func (l *sessionLabels) titles() []any {
	if l.title == "" {
		return nil
	}
	return []any{
		protocol.CustomTitleLine{Type: "custom-title", CustomTitle: l.title, SessionID: l.th.id},
		protocol.AgentNameLine{Type: "agent-name", AgentName: l.title, SessionID: l.th.id},
	}
}

func (l *sessionLabels) agentSetting() []any {
	if l.th.opts.Agent == "" {
		return nil
	}
	return []any{protocol.AgentSettingLine{Type: "agent-setting", AgentSetting: l.th.opts.Agent, SessionID: l.th.id}}
}

func (l *sessionLabels) mode() protocol.ModeLine {
	return protocol.ModeLine{Type: "mode", Mode: "normal", SessionID: l.th.id}
}

func (l *sessionLabels) toolsUsed() protocol.ToolsUsedLine {
	return protocol.ToolsUsedLine{Type: "tools-used", Tools: slices.Clone(l.tools), SessionID: l.th.id}
}

// lastPrompt records the prompt that lists of sessions show. A fork begins with the first prompt of
// its source.
func (l *sessionLabels) lastPrompt(ev *protocol.PromptAccepted) {
	typed := l.typed
	l.typed = protocol.Content{}
	if ev.Expansion != nil && !strings.Contains(ev.Content.Text, "<command-args>") {
		return
	}
	if _, call, ok := typed.SplitTyped(); ok && ev.Expansion != nil {
		typed = protocol.Content{Text: call}
	}
	text := cmp.Or(firstLine(typed), firstLine(ev.Content))
	inherited := l.th.forked && !l.listed && l.prompt != ""
	if text != "" && !inherited && ev.Source != "system" {
		l.prompt = text
	}
}

// newTools records the tools that a message calls, at its first block. Names of tools that the model was not offered do
// not count.
func (l *sessionLabels) newTools(ev *protocol.Assistant, offered RequestContext) bool {
	before := len(l.tools)
	var calls []string
	if ev.Final != nil {
		calls = ev.Final.Calls
	}
	for _, name := range calls {
		if !slices.Contains(l.tools, name) && offered.has(name) {
			l.tools = append(l.tools, name)
		}
	}
	return len(l.tools) > before
}
