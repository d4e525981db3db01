package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// sessionListLineBuilder writes the lines from which session lists are built: titles, the last prompt, the tools used.
type sessionListLineBuilder struct {
	conversation      *conversation
	title             string
	agentName         string // the title, unless only initialize has set it
	hasUserTitle      bool   // the title was set in this process, not read from the transcript
	tools             []string
	rawPrompt         protocol.Content // the prompt as the user wrote it
	lastPromptText    string           // text of the last prompt, as session lists show it
	lastPromptLeaf    string
	lastPromptWritten bool                    // a last-prompt line was written by this process
	lastPromptMode    protocol.PermissionMode // permission mode of the last prompt
	writtenMode       protocol.PermissionMode // mode of the last line of type permission-mode; empty means none
	hasReply          bool                    // this process has written a message of the model, not only commands
	openedByCommand   bool                    // the opening lines precede a command of a terminal, so they lack the atis-latch line
}

func (l *sessionListLineBuilder) transcriptOpeningLines() []any {
	var lines []any
	if !l.conversation.resumed {
		lines = l.worktreeLines()
	}
	if l.hasUserTitle || l.conversation.forked || l.conversation.wasCleared {
		lines = append(lines, l.titleLines()...)
	}
	if !l.conversation.resumed {
		lines = append(lines, l.agentSettingLines()...)
	}
	if l.conversation.forked || l.conversation.wasCleared || l.conversation.options.Machine.IsTerminal {
		lines = append(lines, l.takeModeAndPermissionModeLines()...)
	}
	if l.conversation.forked || l.conversation.isFirstConversationInTerminal() && !l.openedByCommand {
		lines = append(lines, l.conversation.atisLatchLine())
	}
	if l.conversation.resumed && len(l.tools) > 0 {
		lines = append(lines, l.toolsUsedLine())
	}
	return lines
}

// takeLinesMissingBeforePrompt returns the opening lines that a transcript lacks because it began with a command.
func (l *sessionListLineBuilder) takeLinesMissingBeforePrompt() []any {
	if !l.openedByCommand || !l.conversation.isFirstConversationInTerminal() {
		return nil
	}
	l.openedByCommand = false
	return []any{l.conversation.atisLatchLine()}
}

// takeTranscriptClosingLines returns the lines that describe the conversation so far, such as the last prompt and the title.
func (l *sessionListLineBuilder) takeTranscriptClosingLines() []any {
	l.lastPromptWritten, l.lastPromptLeaf = true, l.conversation.lastLineUUIDs[""]
	lastPrompt := newAttachment("last-prompt")
	if l.lastPromptText != "" {
		lastPrompt = lastPrompt.with("lastPrompt", l.lastPromptText)
	}
	lines := []any{lastPrompt.with("leafUuid", l.lastPromptLeaf, "sessionId", l.conversation.id)}
	if !l.hasReply && !l.conversation.forked && !l.conversation.options.Machine.IsTerminal {
		return lines
	}
	appended := l.conversation.resumed && !l.conversation.forked
	if !appended {
		lines = append(append(lines, l.titleLines()...), l.agentSettingLines()...)
	}
	if l.conversation.resumed || l.conversation.wasCleared || l.conversation.options.Machine.IsTerminal {
		lines = append(lines, l.takeModeAndPermissionModeLines()...)
	}
	if !appended {
		lines = append(lines, l.conversation.atisLatchLine())
	}
	return append(lines, l.worktreeLines()...)
}

func (l *sessionListLineBuilder) worktreeLines() []any {
	if l.conversation.options.Machine.Worktree == nil {
		return nil
	}
	w := *l.conversation.options.Machine.Worktree
	w.SessionID = l.conversation.id
	return []any{l.conversation.labelLine("worktree-state", "worktreeSession", w)}
}

func (l *sessionListLineBuilder) titleLines() []any {
	if l.title == "" {
		return nil
	}
	lines := []any{l.conversation.labelLine("custom-title", "customTitle", l.title)}
	if l.agentName != "" {
		lines = append(lines, l.conversation.labelLine("agent-name", "agentName", l.agentName))
	}
	return lines
}

func (l *sessionListLineBuilder) agentSettingLines() []any {
	if l.conversation.options.Agent == "" {
		return nil
	}
	return []any{l.conversation.labelLine("agent-setting", "agentSetting", l.conversation.options.Agent)}
}

func (l *sessionListLineBuilder) takeModeAndPermissionModeLines() []any {
	lines := []any{l.conversation.labelLine("mode", "mode", "normal")}
	if l.conversation.options.Machine.IsTerminal && !l.conversation.wasCleared {
		lines = append(lines, l.takePermissionModeLine())
	}
	return lines
}

func (l *sessionListLineBuilder) takePermissionModeLine() attachment {
	l.writtenMode = l.lastPromptMode
	if source := l.conversation.options.Context; source != nil {
		l.writtenMode = cmp.Or(source.SessionContext("").ShellMode, l.lastPromptMode)
	}
	return l.conversation.labelLine("permission-mode", "permissionMode", l.writtenMode)
}

func (l *sessionListLineBuilder) toolsUsedLine() attachment {
	return l.conversation.labelLine("tools-used", "tools", slices.Clone(l.tools))
}

func (l *sessionListLineBuilder) recordPrompt(ev *protocol.PromptAccepted) {
	typed := l.rawPrompt
	l.lastPromptMode = ev.PermissionMode
	l.rawPrompt = protocol.Content{}
	if ev.Expansion != nil && !strings.Contains(ev.Content.Text, "<command-args>") {
		return
	}
	if _, tags, ok := strings.Cut(ev.Content.Text, "<command-name>"); ok && ev.Expansion != nil {
		name, args, _ := strings.Cut(tags, "</command-name>\n<command-args>")
		typed = protocol.Content{Text: name + " " + strings.TrimSuffix(args, "</command-args>")}
	}
	if ev.Queued != nil {
		typed = protocol.Content{Text: ev.Queued[0]}
	}
	text := cmp.Or(textForSessionList(typed), textForSessionList(ev.Content))
	if inherited := l.conversation.forked && !l.lastPromptWritten && l.lastPromptText != ""; text != "" && !inherited && ev.Source != "system" && ev.Source != protocol.PromptSourceWakeup {
		l.lastPromptText = text
	}
}

func (l *sessionListLineBuilder) recordUsedTools(reply *protocol.AssistantEvent, offered RequestContext) (added bool) {
	if reply.Final == nil {
		return false
	}
	for _, b := range reply.Message.Content {
		if call, is := b.(protocol.ServerToolCall); is { // the API has the tool, so requests do not describe it
			added = l.addUsedTool(call.Name) || added
		}
	}
	for _, name := range reply.Final.Calls {
		mayExist := offered.Tools == nil || slices.Contains(offered.Deferred, name) || // without Tools, the tools are unknown
			slices.ContainsFunc(offered.Tools, func(t protocol.Tool) bool { return t.Name == name })
		added = mayExist && l.addUsedTool(name) || added
	}
	return added
}

func (l *sessionListLineBuilder) addUsedTool(toolName string) (isNew bool) {
	if slices.Contains(l.tools, toolName) {
		return false
	}
	l.tools = append(l.tools, toolName)
	return true
}

type lineWriter struct {
	conversation      *conversation
	sessionListLines  *sessionListLineBuilder
	opened            bool  // the opening lines are written
	endsInPartialLine bool  // the transcript ends in the middle of a line
	waitingLines      []any // lines that are written together with the next ones
	// forkLines returns the lines that a fork copies from its source before its first own line. promptID is the id of the
	// fork's first prompt. Nil means that there is nothing to copy.
	forkLines func(promptID string) []byte
}

// writeAfterPendingLines appends lines. The first call also writes the opening lines and, in a fork, the lines copied from the source.
func (p *lineWriter) writeAfterPendingLines(lines ...any) error {
	if err := p.writeOpeningLinesOnce(); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	if copied := p.forkLines; copied != nil {
		p.forkLines = nil
		if err := p.conversation.writer.writeCopiedLines(p.conversation.path, copied(cmp.Or(p.conversation.promptID, p.conversation.options.Clock.NewID()))); err != nil {
			return err
		}
	}
	return p.conversation.writer.writeLines(p.conversation.path, lines...)
}

// writeUsedToolIfNew writes a new tools-used line, unless name is empty or the tool is in an earlier line.
func (p *lineWriter) writeUsedToolIfNew(name string) error {
	if name == "" || !p.sessionListLines.addUsedTool(name) {
		return nil
	}
	return p.writeAfterPendingLines(p.sessionListLines.toolsUsedLine())
}

func (p *lineWriter) flush() error {
	held := p.waitingLines
	p.waitingLines = nil
	return p.conversation.writer.writeLines(p.conversation.path, held...)
}

func (p *lineWriter) writeOpeningLinesOnce() error {
	if p.opened {
		return nil
	}
	p.opened = true
	if p.endsInPartialLine {
		if err := p.conversation.writer.writeBytes(p.conversation.path, []byte("\n")); err != nil {
			return err
		}
	}
	return p.conversation.writer.writeLines(p.conversation.path, p.sessionListLines.transcriptOpeningLines()...)
}
