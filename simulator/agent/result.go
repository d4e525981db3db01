package agent

import (
	"cmp"
	"context"
	_ "embed" // for notices.txt
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// maxTurnsSubtype is the result subtype at the turn limit. An agent does not fail then: it can continue (observed with 2.1.329).
const maxTurnsSubtype = "error_max_turns"

type runProgress struct {
	tools                   callCounts
	lastResult              *protocol.ResultEvent    // the agent's last result; nil means none yet
	unpostedUsage           *protocol.AgentUsage     // usage since the last reply with calls; nil means none
	lastError               *protocol.AssistantEvent // event that reports an API error instead of a reply; nil means no error
	lastText                string
	lastUsage               protocol.Usage
	lastMessageID           string
	firstStreamedPieceBytes int // bytes of the first streamed piece of the last message
	callsStarted            int // number of calls, including those that still wait to run
}

func (k *runProgress) recordReply(ev *protocol.AssistantEvent, stream scenarios.Stream) {
	if ev.IsAPIErrorMessage {
		k.lastError = ev
	}
	if block, isText := ev.Message.Content[0].(protocol.TextBlock); isText {
		k.lastText = block.Text
	}
	if ev.Final != nil && ev.Message.ID != k.lastMessageID {
		k.lastMessageID, k.lastUsage, k.firstStreamedPieceBytes = ev.Message.ID, ev.Final.Usage, firstStreamedPieceBytes(ev.Message.Content[0], stream)
	}
}

// recordResult records a result, and returns the API time in milliseconds since the previous result.
func (k *runProgress) recordResult(result *protocol.ResultEvent) (apiMSSincePreviousResult int) {
	apiMSSincePreviousResult = result.DurationAPIMS
	if k.lastResult != nil {
		apiMSSincePreviousResult -= k.lastResult.DurationAPIMS
	}
	k.lastResult = result
	return apiMSSincePreviousResult
}

// currentUsage returns the agent's usage so far. The tokens of the last message are the total, because the input of a
// request contains all earlier messages.
func (k *runProgress) currentUsage(t *task.Task) *task.Usage {
	return &task.Usage{TotalTokens: k.lastUsage.InputTokens + k.lastUsage.OutputTokens, ToolUses: k.tools.total, DurationMS: int(t.SinceStart() / time.Millisecond)}
}

// recordCallStart counts a call that the agent has just made, and returns the usage to report at this moment, when the message with the
// call is still incomplete. Only the first streamed piece of that message counts as output (observed with 2.1.330).
func (k *runProgress) recordCallStart(t *task.Task) task.Usage {
	u := *k.currentUsage(t)
	k.callsStarted++
	u.ToolUses = k.callsStarted
	u.TotalTokens = k.lastUsage.InputTokens
	if k.firstStreamedPieceBytes > 1 { // the first piece of an input without keys is at most one byte long
		u.TotalTokens += max(1, k.firstStreamedPieceBytes/4)
	}
	return u
}

// firstStreamedPieceBytes returns the length in bytes of the first streamed piece of a block. For a thinking block, it returns
// the length of the signature.
func firstStreamedPieceBytes(block protocol.Block, stream scenarios.Stream) int {
	switch b := block.(type) {
	case protocol.TextBlock:
		return len(stream.Split(b.Text)[0])
	case protocol.ThinkingBlock:
		return len(b.Signature)
	case protocol.ToolUse:
		return len(stream.SplitInput(string(b.Written))[1])
	default:
		return 0
	}
}

type callCounts struct {
	total     int
	usedTools []string
	stats     toolStats
}

type toolStats struct {
	ReadCount      int `json:"readCount"`
	SearchCount    int `json:"searchCount"`
	BashCount      int `json:"bashCount"`
	EditFileCount  int `json:"editFileCount"`
	LinesAdded     int `json:"linesAdded"`
	LinesRemoved   int `json:"linesRemoved"`
	OtherToolCount int `json:"otherToolCount"`
}

func (c *callCounts) countCall(ev *protocol.ToolExecuted) {
	c.total++
	if missing := ev.Result.IsError && strings.Contains(ev.Result.Content.Plain(), "Error: No such tool available") && !IsAgentOrTask(ev.Use.Name); !missing {
		c.usedTools = append(c.usedTools, ev.Use.Name)
	}
	if nested, ok := ev.Result.Output.(agentResult); ok {
		c.usedTools = append(c.usedTools, nested.ToolsUsed...)
	}
	slices.Sort(c.usedTools)
	c.usedTools = slices.Compact(c.usedTools)
	switch ev.Use.Name {
	case "Read":
		c.stats.ReadCount++
	case "Grep", "Glob":
		c.stats.SearchCount++
	case "Bash":
		c.stats.BashCount++
	case "Edit", "Write", "NotebookEdit":
		c.stats.EditFileCount++
		c.countLinesWrittenAndReplaced(ev.Use.Input)
	case "Agent": // calls of agents are not counted
	default:
		c.stats.OtherToolCount++
	}
}

// countLinesWrittenAndReplaced counts the lines that a call writes and replaces, whether or not it succeeds (observed with 2.1.330).
func (c *callCounts) countLinesWrittenAndReplaced(callInput json.RawMessage) {
	var in struct {
		Content *string `json:"content"`
		Old     *string `json:"old_string"`
		New     *string `json:"new_string"`
		Source  *string `json:"new_source"`
	}
	if json.Unmarshal(callInput, &in) != nil {
		return
	}
	for text, n := range map[*string]*int{in.Content: &c.stats.LinesAdded, in.New: &c.stats.LinesAdded, in.Source: &c.stats.LinesAdded, in.Old: &c.stats.LinesRemoved} {
		if text != nil {
			*n += strings.Count(*text, "\n") + 1
		}
	}
}

const maxActivityRunes = 50 // maximum length of a command in the description of an activity

func describeActivity(use protocol.ToolUse, cwd, fallback string) string {
	var in struct {
		Description string `json:"description"`
		Command     string `json:"command"`
		Path        string `json:"file_path"`
		Notebook    string `json:"notebook_path"`
		URL         string `json:"url"`
		Pattern     string `json:"pattern"`
	}
	path := ""
	if json.Unmarshal(use.Input, &in) == nil {
		path = cmp.Or(in.Path, in.Notebook)
	}
	if path+in.Command+in.URL+in.Pattern+in.Description == "" {
		return fallback
	}
	if short, ok := strings.CutPrefix(path, cwd+"/"); ok && cwd != "" {
		path = short
	}
	if command := []rune(in.Command); len(command) > maxActivityRunes {
		in.Command = string(command[:maxActivityRunes-1]) + "…"
	}
	return cmp.Or(map[string]string{
		"Bash": "Running " + cmp.Or(in.Description, in.Command), "Agent": in.Description, "Task": in.Description, "WebFetch": "Fetching " + in.URL,
		"Read": "Reading " + path, "Write": "Writing " + path, "Edit": "Editing " + path, "NotebookEdit": "Editing notebook " + path,
		"Glob": "Finding " + in.Pattern, "Grep": "Searching for " + in.Pattern,
	}[use.Name], fallback)
}

// agentResult is the tool_use_result of a finished agent; nil lists are omitted (spec: cli-shapes, Agent).
type agentResult struct {
	Status       string           `json:"status"`
	Prompt       string           `json:"prompt"`
	AgentID      string           `json:"agentId"`
	AgentType    string           `json:"agentType"`
	NoteCount    int              `json:"harnessNoteCount"`
	TailCount    int              `json:"harnessTailCount"`
	SectionHash  string           `json:"harnessSectionHash"`
	Content      []protocol.Block `json:"content"`
	Model        string           `json:"resolvedModel"`
	DurationMS   int              `json:"totalDurationMs"`
	Tokens       int              `json:"totalTokens"`
	ToolUseCount int              `json:"totalToolUseCount"`
	ToolsUsed    []string         `json:"toolsUsed,omitempty"`
	Usage        protocol.Usage   `json:"usage"`
	ToolStats    *toolStats       `json:"toolStats,omitempty"`
	keptWorktree
	CanContinue bool `json:"canContinueAgent"`
}

// keptWorktree is a worktree that is not removed, because the agent has changed files in it.
type keptWorktree struct {
	Path   string `json:"worktreePath,omitempty"`
	Branch string `json:"worktreeBranch,omitempty"`
}

func (k keptWorktree) resultLines() string {
	if k.Path == "" {
		return ""
	}
	return "\nworktreePath: " + k.Path + "\nworktreeBranch: " + k.Branch
}

func (w *agentRun) removeOrRecordWorktree(ctx context.Context) {
	if w.worktreeDir != "" {
		path, branch := w.agents.options.Session.RemoveAgentWorktreeIfUnchanged(context.WithoutCancel(ctx), w.task.ID)
		w.agents.mu.Lock()
		defer w.agents.mu.Unlock()
		w.worktree = keptWorktree{path, branch}
	}
}

const hashOfPromptWithoutExtraSections = "fba0f54338f777af"

func (w *agentRun) completedResult(ctx context.Context, end task.End) protocol.ToolResult {
	if end.Status == task.StatusFailed {
		return protocol.ErrorResult(end.Summary)
	}
	notes, text := w.progress.notesAndReport(w.definition.MaxTurns)
	if used := w.takeLineOfToolsNewToCaller(); used != "" && len(notes)+len(text) > 0 {
		notes = slices.Insert(notes, 0, used+"\n")
	}
	content, shown := []protocol.Block{}, ""
	for _, note := range notes {
		content, shown = append(content, protocol.Text(note)), shown+indentLines(note)+"\n"
	}
	if text != "" {
		content = append(content, protocol.Text(text))
	}
	if text != "" || w.progress.lastResult.Subtype != maxTurnsSubtype {
		shown += formatNoticeByName("report") + indentLines(cmp.Or(text, "(Subagent completed but returned no output.)")) + "\n"
	}
	out := agentResult{
		NoteCount: len(notes), Status: "completed", Prompt: w.input.Prompt, AgentID: w.task.ID, AgentType: w.task.AgentType, SectionHash: hashOfPromptWithoutExtraSections,
		Content: content, Model: w.model, DurationMS: end.Usage.DurationMS,
		Tokens: end.Usage.TotalTokens, ToolUseCount: w.progress.tools.total, ToolsUsed: w.progress.tools.usedTools, Usage: w.progress.lastUsage, CanContinue: w.sessionHasSendMessageTool(ctx),
	}
	if w.progress.tools.stats != (toolStats{}) {
		out.ToolStats = &w.progress.tools.stats
	}
	out.keptWorktree = w.worktree
	if !claudecode.AgentResultHasOnlyReport(w.task.AgentType) {
		shown += "agentId: " + w.task.ID
		if out.CanContinue {
			shown += " (use SendMessage with to: '" + w.task.ID + "', summary: '<5-10 word recap>' to continue this agent)"
		}
		shown += fmt.Sprintf("%s\n<usage>subagent_tokens: %d\ntool_uses: %d\nduration_ms: %d</usage>",
			w.worktree.resultLines(), end.Usage.TotalTokens, end.Usage.ToolUses, end.Usage.DurationMS)
	}
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(strings.TrimSuffix(shown, "\n"))}}, Output: out}
}

// takeLineOfToolsNewToCaller returns a line with those tools used by the agent that its caller's conversation did not know yet. It returns ""
// if there are none (observed with 2.1.330).
func (w *agentRun) takeLineOfToolsNewToCaller() string {
	var names []string
	for _, name := range w.progress.tools.usedTools {
		if w.agents.recordToolKnownToConversation(w.startingCall.CallerAgentID(), name, w.startingCall.Round, w.task.Background) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "<tools-used-before-summary>" + strings.Join(names, ", ") + "</tools-used-before-summary>"
}

// noticeTable has the texts of the CLI about agents, one a row, after their names and a tab. Most are as long as the real CLI's texts,
// because tokens are estimated from lengths.
//
//go:embed notices.txt
var noticeTable string

// formatNoticeByName formats a text of the CLI about an agent. "\\n" in the table stands for a newline.
func formatNoticeByName(name string, args ...any) string {
	_, text, _ := strings.Cut(noticeTable, name+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return fmt.Sprintf(strings.ReplaceAll(text, `\n`, "\n"), args...)
}

func indentLines(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

func (w *agentRun) sessionHasSendMessageTool(ctx context.Context) bool {
	isIt := func(t protocol.Tool) bool { return t.Name == "SendMessage" }
	tools, err := w.agents.options.Session.Options().Tools.Tools(ctx)
	return err == nil && slices.ContainsFunc(tools, isIt)
}

func (w *agentRun) launchedResult(ctx context.Context) protocol.ToolResult {
	canContinue, hint := w.sessionHasSendMessageTool(ctx), ""
	if canContinue {
		hint = " (to continue the agent, use SendMessage with to: '" + w.task.ID + "' and a summary of a few words)"
	}
	text := formatNoticeByName("launched", w.task.ID, hint)
	if w.task.OutputFile != "" {
		text += "\noutput_file: " + w.task.OutputFile + formatNoticeByName("output file")
	}
	return protocol.ToolResult{
		Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}},
		Output: struct {
			IsAsync     bool   `json:"isAsync"`
			Status      string `json:"status"`
			AgentID     string `json:"agentId"`
			Description string `json:"description"`
			Model       string `json:"resolvedModel"`
			Prompt      string `json:"prompt"`
			OutputFile  string `json:"outputFile"`
			CanRead     bool   `json:"canReadOutputFile"`
			CanContinue bool   `json:"canContinueAgent"`
		}{true, "async_launched", w.task.ID, w.task.Description, w.model, w.input.Prompt, w.task.OutputFile, true, canContinue},
	}
}

// forkedResult is the tool_use_result of a skill that ran in an agent.
type forkedResult struct {
	Success  bool   `json:"success"`
	Name     string `json:"commandName"`
	Status   string `json:"status"`
	AgentID  string `json:"agentId"`
	Result   string `json:"result"`
	UsedLine string `json:"toolsUsedLine,omitempty"`
}

func (w *agentRun) forkedSkillResult(name string) protocol.ToolResult {
	used, answer := w.takeLineOfToolsNewToCaller(), cmp.Or(w.progress.answerOrErrorText(), "Skill execution completed")
	text := `Skill "` + name + "\" completed (forked execution).\n\nResult:\n" + answer
	if used != "" {
		text = used + "\n" + text
	}
	return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: forkedResult{Success: true, Name: name, Status: "forked", AgentID: w.task.ID, Result: answer, UsedLine: used}}
}

// answerOrErrorText returns the answer or the error of the agent. After the last turn that it may take, its last text is the answer.
func (k *runProgress) answerOrErrorText() string {
	switch {
	case k.lastResult == nil:
		return ""
	case k.lastResult.Result != nil:
		return *k.lastResult.Result
	case k.lastResult.Subtype == maxTurnsSubtype:
		return k.lastText
	default:
		return strings.Join(k.lastResult.Errors, "\n")
	}
}

// notesAndReport returns the text of the agent as its caller sees it, and the notes of the CLI about it, each with its newline.
func (k *runProgress) notesAndReport(maxTurns int) (notes []string, report string) {
	if k.lastResult.Subtype == maxTurnsSubtype {
		name := map[bool]string{true: "turn limit", false: "partial report"}[k.lastText == ""]
		notes = []string{formatNoticeByName(name, maxTurns)}
	}
	report, found := claudecode.EscapeCLILookalikes(k.answerOrErrorText())
	if len(found) > 0 {
		notes = append(notes, formatNoticeByName("neutralized", strings.Join(found, ", ")))
	}
	return notes, report
}

func (k *runProgress) notesAndReportAsText(maxTurns int) string {
	notes, report := k.notesAndReport(maxTurns)
	if report != "" {
		notes = append(notes, report)
	}
	return strings.Join(notes, "\n")
}

func (w *agentRun) transcriptPath() (path string) {
	path, kept := strings.CutSuffix(w.agents.options.Session.Options().State.SessionStateSnapshot().TranscriptPath, ".jsonl")
	if !kept {
		return ""
	}
	return path + "/subagents/agent-" + w.task.ID + ".jsonl"
}

// heldCall is a call whose events are held back until the start of its hook has been shown.
type heldCall struct {
	block *protocol.AssistantEvent
	use   protocol.ToolUse
	usage task.Usage
}

// showsHookStartBeforeCall reports whether the start of a call's hook is shown before the call. This happens if a
// single hook runs, and starts before the content_block_stop of the call (observed with 2.1.330).
func (w *agentRun) showsHookStartBeforeCall(ctx context.Context, use protocol.ToolUse) bool {
	o := w.agents.options.Session.Options()
	return o.Display.HookEvents && o.Hooks != nil && o.Hooks.HasSingleUnconditionalHook("PreToolUse", use.Name) &&
		o.Tools.FirstVisibleEffectOfCall(ctx, use) == simulator.CallStartOrRefusal{Point: simulator.StreamPointBeforeBlockStop, Starts: true}
}

// showHeldCalls emits the events of the first n calls that were held back. The frames follow the task_progress event of the first call.
func (w *agentRun) showHeldCalls(n int, frames ...protocol.Event) {
	for _, c := range w.heldCalls[:n] {
		if w.task.InBackground() {
			w.postMessageHiddenIfNested(c.block)
		}
		w.task.PostProgress(describeActivity(c.use, w.agents.options.CWD, w.task.Description), c.use.Name, c.usage)
		w.task.Post(frames...)
		frames = nil
		if !w.task.InBackground() {
			w.postMessageHiddenIfNested(c.block)
		}
	}
	w.heldCalls = w.heldCalls[n:]
}

func (w *agentRun) stoppedEnd() task.End {
	if !w.task.Background {
		return task.End{Status: task.StatusKilled, Summary: w.task.Description, Interrupted: true}
	}
	return task.End{Status: task.StatusKilled, Summary: w.agentEndNoticeText("was stopped"), Usage: w.progress.currentUsage(w.task)}
}

func (w *agentRun) failureEnd(reason string) task.End {
	return task.End{Status: task.StatusFailed, Summary: w.agentEndNoticeText("failed: " + reason), Usage: w.progress.currentUsage(w.task)}
}

func (w *agentRun) modelFailureEnd() task.End {
	ev := w.progress.lastError
	if ev == nil {
		return w.failureEnd(w.progress.answerOrErrorText())
	}
	why := "Agent terminated early due to an API error: " + w.progress.answerOrErrorText() + " (error type " + ev.Error
	if ev.APIStatus != 0 {
		why += fmt.Sprintf(", HTTP %d, request id %s", ev.APIStatus, ev.RequestID)
	}
	why += ", model sent to the API: " + claudecode.WireModel(w.model) + ")"
	return task.End{Status: task.StatusFailed, Summary: why, Notice: w.agentEndNoticeText("failed: " + why), Error: why}
}

// agentEndNoticeText returns the text of the notification about the end of the agent. stopOrFailure describes a stop or a failure. If
// it is empty, the agent has finished: for a background agent, the text reports the end; for a foreground agent, it is the answer.
func (w *agentRun) agentEndNoticeText(stopOrFailure string) string {
	switch {
	case stopOrFailure != "":
		return `Agent "` + w.task.Description + `" ` + stopOrFailure
	case w.task.Background && w.progress.lastResult.Subtype == maxTurnsSubtype:
		return fmt.Sprintf("Agent \"%s\" stopped at its %d-turn limit (partial result; SendMessage to task-id to continue)", w.task.Description, w.definition.MaxTurns)
	case w.task.Background:
		return `Agent "` + w.task.Description + `" finished`
	default:
		return cmp.Or(w.progress.notesAndReportAsText(w.definition.MaxTurns), w.task.Description)
	}
}
