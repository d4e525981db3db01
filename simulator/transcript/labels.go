package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// sessionLabels are the lines that lists of sessions read: titles, the last prompt, the tools used.
type sessionLabels struct {
	conversation      *conversation
	title             string // empty = none
	titleGiven        bool   // this process gave the title
	tools             []string
	rawPrompt         protocol.Content // the prompt as the user wrote it
	prompt            string           // text of the last prompt, as lists of sessions show it
	lastPromptLeaf    string           // uuid in the last line of type last-prompt
	lastPromptWritten bool             // a last-prompt line was written by this process
	hasReply          bool             // this process has written a message of the model, not only commands
}

// opening returns the lines with which a process begins its part of a transcript.
func (l *sessionLabels) opening() []any {
	var lines []any
	if !l.conversation.resumed {
		lines = l.worktree()
	}
	if l.titleGiven || l.conversation.forked || l.conversation.cleared {
		lines = append(lines, l.titles()...)
	}
	if !l.conversation.resumed {
		lines = append(lines, l.agentSetting()...)
	}
	if l.conversation.forked || l.conversation.cleared {
		lines = append(lines, l.mode())
	}
	if l.conversation.forked {
		lines = append(lines, l.conversation.latchLine())
	}
	if l.conversation.resumed && len(l.tools) > 0 {
		lines = append(lines, l.toolsUsed())
	}
	return lines
}

// closing returns the lines that describe the conversation so far. They repeat the opening lines.
func (l *sessionLabels) closing() []any {
	l.lastPromptWritten, l.lastPromptLeaf = true, l.conversation.leaf[""]
	lines := []any{protocol.LastPromptLine{Type: "last-prompt", LastPrompt: l.prompt, LeafUUID: l.lastPromptLeaf, SessionID: l.conversation.id}}
	if !l.hasReply && !l.conversation.forked {
		return lines
	}
	appended := l.conversation.resumed && !l.conversation.forked
	if !appended {
		lines = append(append(lines, l.titles()...), l.agentSetting()...)
	}
	if l.conversation.resumed || l.conversation.cleared {
		lines = append(lines, l.mode())
	}
	if !appended {
		lines = append(lines, l.conversation.latchLine())
	}
	return append(lines, l.worktree()...)
}

func (l *sessionLabels) worktree() []any {
	if l.conversation.opts.Machine.Worktree == nil {
		return nil
	}
	w := *l.conversation.opts.Machine.Worktree
	w.SessionID = l.conversation.id
	return []any{protocol.WorktreeStateLine{Type: "worktree-state", Worktree: w, SessionID: l.conversation.id}}
}

func (l *sessionLabels) titles() []any {
	if l.title == "" {
		return nil
	}
	return []any{
		protocol.CustomTitleLine{Type: "custom-title", CustomTitle: l.title, SessionID: l.conversation.id},
		protocol.AgentNameLine{Type: "agent-name", AgentName: l.title, SessionID: l.conversation.id},
	}
}

func (l *sessionLabels) agentSetting() []any {
	if l.conversation.opts.Agent == "" {
		return nil
	}
	return []any{protocol.AgentSettingLine{Type: "agent-setting", AgentSetting: l.conversation.opts.Agent, SessionID: l.conversation.id}}
}

func (l *sessionLabels) mode() protocol.ModeLine {
	return protocol.ModeLine{Type: "mode", Mode: "normal", SessionID: l.conversation.id}
}

func (l *sessionLabels) toolsUsed() protocol.ToolsUsedLine {
	return protocol.ToolsUsedLine{Type: "tools-used", Tools: slices.Clone(l.tools), SessionID: l.conversation.id}
}

// lastPrompt records the prompt that lists of sessions show. A fork begins with the first prompt of
// its source.
func (l *sessionLabels) lastPrompt(ev *protocol.PromptAccepted) {
	typed := l.rawPrompt
	l.rawPrompt = protocol.Content{}
	if ev.Expansion != nil && !strings.Contains(ev.Content.Text, "<command-args>") {
		return
	}
	if _, call, ok := typed.SplitTyped(); ok && ev.Expansion != nil {
		typed = protocol.Content{Text: call}
	}
	text := cmp.Or(firstLine(typed), firstLine(ev.Content))
	inherited := l.conversation.forked && !l.lastPromptWritten && l.prompt != ""
	if text != "" && !inherited && ev.Source != "system" {
		l.prompt = text
	}
}

// newTools records the tools that a message calls, at its first block. Names of tools that the model was not offered do
// not count.
func (l *sessionLabels) newTools(ev *protocol.Assistant, offered RequestContext) bool {
	if ev.Final == nil {
		return false
	}
	added := false
	for _, name := range ev.Final.Calls {
		added = offered.has(name) && l.addTool(name) || added
	}
	return added
}

// addTool records the use of a tool and reports whether it is the first.
func (l *sessionLabels) addTool(name string) bool {
	if slices.Contains(l.tools, name) {
		return false
	}
	l.tools = append(l.tools, name)
	return true
}
