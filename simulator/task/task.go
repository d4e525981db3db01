// Package task manages the background work of a session: sub-agents and commands that continue after their tool call.
// It queues their events and keeps the notifications that the model has not received.
//
// A task's events have a fixed order: started, its own events, updated, notification. No event follows its end.
package task

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ShellOrAgentKind is the kind of a task, as in the task_type key.
type ShellOrAgentKind string

// The kinds of tasks.
const (
	KindAgent ShellOrAgentKind = "local_agent"
	KindBash  ShellOrAgentKind = "local_bash"
)

// Info describes a task at its start.
type Info struct {
	Kind                   ShellOrAgentKind
	ToolUseID, Description string
	AgentType              string // agents only
	Prompt                 string // agents only
	Command                string // commands only
	Depth                  int    // agents only; 1 means started by the main conversation
	ParentID               string // task that started this one; empty means the main conversation
	Background             bool   // the tool call does not wait for the task
	EndsWithAgent          bool   // commands only; the command stops when the agent that started it has answered, and only the agent learns its end
	IsAmbient              bool   // the task is shown only at its start and end, and is not counted (used for agents of skills)

	// ID is the id of the task. A task that is continued after it had ended keeps its id. Empty means that Start
	// generates an id: "a" and 16 characters for an agent, or "b" and 8 for a command.
	ID         string
	RunID      string // set by Start
	IsTerminal bool   // see [Options.IsTerminal]; set by Start
	OutputFile string // file that receives the output of the task; set by Start, empty means none
}

// FinalStatus is the status of a task that has ended, as in task_updated.
type FinalStatus string

// The final statuses of a task.
const (
	StatusCompleted FinalStatus = "completed"
	StatusFailed    FinalStatus = "failed"
	StatusKilled    FinalStatus = "killed"
)

// End describes the end of a task.
type End struct {
	Status       FinalStatus
	Summary      string
	Notice       string               // the summary for the model; empty means Summary
	Report       string               // the report of a background agent; empty means none
	ToolsUsed    string               // text for the model about the tools that a background agent used; empty if the model knows them all
	Usage        *Usage               // agents only
	Error        string               // error message that hosts see; empty means none
	KnownToModel bool                 // the model was already notified
	Interrupted  bool                 // the call that waited for the task was interrupted; the end is shown after the call's result
	Event        string               // the last event, reported with the end; empty means none
	LastUsage    *protocol.AgentUsage // agent's usage that is reported together with the end; nil means none
}

// Usage is the usage of an agent so far.
type Usage struct {
	TotalTokens int `json:"total_tokens"`
	ToolUses    int `json:"tool_uses"`
	DurationMS  int `json:"duration_ms"`
}

// Task is one running or ended task.
type Task struct {
	Info
	set          *Set
	inBackground bool // the task or its parent runs in the background
	started      time.Time
	isUncounted  bool // the statistics omit the task: it continues an agent, or is ambient

	// Guarded by set.mu.
	unshownEventCount int // events that have not been shown yet
	scriptedWaitCount int // number of scripted waits in progress
	ended             bool
	cancel            context.CancelFunc // nil until [Set.GoDetached] is called
	killer            Killer
	interrupted       bool // the call that waited for the task was interrupted
	isAbandoned       bool // the turn that waited for the task has ended
	// showsEventsAfterEnd is true for a stopped agent whose later events are shown; isDone, when no more events can follow.
	showsEventsAfterEnd, isDone bool
	outputFile                  *os.File
	outputErr                   error
}

// Post queues events of the task. After the end of the task they are dropped.
func (t *Task) Post(events ...protocol.Event) {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	if !t.ended || t.showsEventsAfterEnd {
		t.set.queueTaskEvents(t, t.inBackground, events...)
	}
}

// ShowsEventsAfterEnd reports whether the task was stopped in such a way that its later events are shown.
func (t *Task) ShowsEventsAfterEnd() bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	return t.showsEventsAfterEnd
}

// WhileWaiting runs wait, during which the task counts as waiting.
func (t *Task) WhileWaiting(wait func() error) error {
	t.changeOwnScriptedWaitCount(1)
	defer t.changeOwnScriptedWaitCount(-1)
	return wait()
}

func (t *Task) changeOwnScriptedWaitCount(delta int) {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	t.scriptedWaitCount += delta
	t.set.signalChange()
}

// WaitUntilPostedEventsShown waits until all posted events have been shown, so that later events follow them, or until ctx is
// cancelled. For a stopped task, it also waits for the end. It returns immediately if the set shows events only when the work is done.
func (t *Task) WaitUntilPostedEventsShown(ctx context.Context) {
	for t.set.ShowsEventsLive() {
		t.set.mu.Lock()
		unseen, seen := t.unshownEventCount > 0 || t.isAbandoned || t.killer != notKilled && !t.ended, t.set.shownSignal
		t.set.mu.Unlock()
		if !unseen {
			return
		}
		select {
		case <-seen:
		case <-ctx.Done():
			return
		}
	}
}

// PostProgress queues a task_progress frame; tool is the tool that is about to run.
func (t *Task) PostProgress(description, tool string, u Usage) {
	if t.IsAmbient {
		return
	}
	fields := []protocol.Field{{Key: "task_id", Value: t.ID}, {Key: "run_id", Value: t.RunID}}
	fields = append(fields, optionalField("tool_use_id", t.ToolUseID)...)
	fields = append(fields, protocol.Field{Key: "description", Value: description})
	fields = append(fields, optionalField("subagent_type", t.AgentType)...)
	t.Post(&protocol.SystemEvent{Subtype: "task_progress", Fields: append(fields, protocol.Field{Key: "usage", Value: u}, protocol.Field{Key: "last_tool_name", Value: tool})})
}

// MoveToBackground moves a task to the background: its call no longer waits for it.
func (t *Task) MoveToBackground() {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Background, t.OutputFile = true, s.outputFilePath(t.ID)
	s.queueTaskEvents(t, t.inBackground, s.backgroundTasksFrame(), t.taskUpdatedFrame(struct {
		Backgrounded bool `json:"is_backgrounded"`
	}{true}))
	t.inBackground = true
	if t.ParentID == "" {
		s.isLaunching = true
	}
}

// SinceStart returns the time since the task started.
func (t *Task) SinceStart() time.Duration { return t.set.options.Now().Sub(t.started) }

// InBackground reports whether the conversation continues while the task runs: the task or its parent is in the background.
func (t *Task) InBackground() bool { return t.inBackground }

// Write appends to the task's output file, if it has one. Write errors are ignored.
func (t *Task) Write(p []byte) (int, error) {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	if t.OutputFile != "" && t.outputFile == nil && t.outputErr == nil {
		_ = os.MkdirAll(filepath.Dir(t.OutputFile), 0o700) // without the directory, OpenFile fails
		t.outputFile, t.outputErr = os.OpenFile(t.OutputFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if t.outputFile != nil && t.outputErr == nil {
		_, t.outputErr = t.outputFile.Write(p)
	}
	return len(p), nil
}

// End ends the task and queues its final frames. For a background task it also queues a [Notification], unless the
// task was stopped. Further calls have no effect.
func (t *Task) End(e End) {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	t.endLocked(e)
	if t.outputFile != nil { // Write may have been called after the end of the task
		t.outputFile.Close()
		t.outputFile = nil
	}
}

// endLocked is like [Task.End], but set.mu must be locked.
func (t *Task) endLocked(e End) {
	s := t.set
	if t.ended {
		return
	}
	if t.killer != notKilled {
		e.Status = StatusKilled
	}
	if t.killer == KilledByUserOrHost || t.killer == KilledBySystem || t.IsAmbient { // in these cases, hosts do not learn the reason for the end
		e.Summary, e.Usage = t.Description, nil
	}
	s.countEndInStats(t, e.Status)
	t.interrupted = e.Interrupted
	if t.Background || t.Kind == KindAgent && !t.IsAmbient {
		s.queueTaskEvents(t, t.inBackground, t.taskUpdatedFrame(struct {
			Status  FinalStatus `json:"status"`
			EndTime int64       `json:"end_time"`
			Error   string      `json:"error,omitempty"`
		}{e.Status, s.options.Now().UnixMilli(), e.Error}))
	}
	s.queueTaskEvents(t, t.inBackground, t.notificationFrame(e))
	if e.LastUsage != nil {
		s.queueTaskEvents(t, t.inBackground, e.LastUsage)
	}
	t.ended = true
	if t.outputFile != nil {
		t.outputFile.Close()
		t.outputFile = nil
	}
	if !t.Background {
		return
	}
	s.queueTaskEvents(t, t.inBackground, s.backgroundTasksFrame())
	if t.killer == notKilled && !e.KnownToModel && !t.EndsWithAgent {
		s.notices = append(s.notices, t.endNotification(e))
	}
}

// NotifyModelOfAgentStopByUser notifies the model that the user has stopped an agent.
func (t *Task) NotifyModelOfAgentStopByUser() {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	if t.Kind == KindAgent {
		t.set.notices = append(t.set.notices, t.endNotification(End{Status: StatusKilled, Summary: `Agent "` + t.Description + `" was stopped by user`}))
		t.set.signalChange()
	}
}

// NotifyModelOfEvent reports an event to the model while the task continues.
func (t *Task) NotifyModelOfEvent(text string) {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return
	}
	s.notices = append(s.notices, Notification{Text: t.eventNotificationForModel(text), Origin: taskNotificationOrigin("")})
	s.signalChange()
}

// SendToMain sends a message of the agent to the main conversation. sender is the agent's address, and name its name or type.
func (t *Task) SendToMain(sender, name, message string) {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	origin, _ := protocol.Marshal(struct { // strings cannot fail
		Kind   string `json:"kind"`
		From   string `json:"from"`
		TaskID string `json:"senderTaskId"`
		Name   string `json:"name"`
		Body   string `json:"body"`
	}{"peer", sender, t.ID, name, message})
	s.notices = append(s.notices, Notification{Text: "<agent-message from=\"" + sender + "\">\n" + message + "\n</agent-message>", Origin: origin})
	s.signalChange()
}

func (t *Task) eventNotificationForModel(eventText string) string {
	return "<task-notification>\n<task-id>" + t.ID + "</task-id>\n<summary>Monitor event: \"" + t.Description +
		"\"</summary>\n<event>" + eventText + "</event>\n</task-notification>"
}

func (t *Task) startedFrame() *protocol.SystemEvent {
	fields := []protocol.Field{{Key: "task_id", Value: t.ID}, {Key: "run_id", Value: t.RunID}}
	fields = append(fields, optionalField("tool_use_id", t.ToolUseID)...)
	fields = append(fields, protocol.Field{Key: "description", Value: t.Description})
	fields = append(fields, optionalField("subagent_type", t.AgentType)...)
	fields = append(fields, protocol.Field{Key: "is_backgrounded", Value: t.Background})
	if t.Kind == KindAgent {
		fields = append(fields, protocol.Field{Key: "spawn_depth", Value: t.Depth})
	}
	fields = append(fields, optionalField("parent_task_id", t.ParentID)...)
	if t.Kind == KindBash && t.ParentID != "" {
		fields = append(fields, protocol.Field{Key: "owned_by_subagent", Value: true})
	}
	fields = append(fields, protocol.Field{Key: "task_type", Value: t.Kind})
	fields = append(append(fields, optionalField("prompt", t.Prompt)...), t.frameFieldsIfAmbient()...)
	return &protocol.SystemEvent{Subtype: "task_started", Fields: fields}
}

func (t *Task) taskUpdatedFrame(patch any) *protocol.SystemEvent {
	return &protocol.SystemEvent{Subtype: "task_updated", Fields: []protocol.Field{{Key: "task_id", Value: t.ID}, {Key: "run_id", Value: t.RunID}, {Key: "patch", Value: patch}}}
}

func (t *Task) notificationFrame(e End) *protocol.SystemEvent {
	fields := []protocol.Field{{Key: "task_id", Value: t.ID}, {Key: "run_id", Value: t.RunID}}
	fields = append(fields, optionalField("tool_use_id", t.ToolUseID)...)
	status := cmp.Or(map[FinalStatus]string{StatusKilled: "stopped"}[e.Status], string(e.Status)) // (spec: cli-contract 3.4)
	fields = append(fields, protocol.Field{Key: "status", Value: status}, protocol.Field{Key: "output_file", Value: t.OutputFile})
	fields = append(fields, protocol.Field{Key: "summary", Value: cmp.Or(e.Report, e.Summary)})
	if e.Report != "" && !strings.HasSuffix(e.Report, "\n") { // notes of the CLI without a report end with a newline
		fields = append(fields, protocol.Field{Key: "summary_is_report", Value: true})
	}
	if e.Usage != nil {
		fields = append(fields, protocol.Field{Key: "usage", Value: *e.Usage})
	}
	return &protocol.SystemEvent{Subtype: "task_notification", Fields: append(fields, t.frameFieldsIfAmbient()...)}
}

func (t *Task) frameFieldsIfAmbient() []protocol.Field {
	if !t.IsAmbient {
		return nil
	}
	return []protocol.Field{{Key: "skip_transcript", Value: true}, {Key: "ambient", Value: true}}
}

// Notification is a message about a task for the model, usually about its end, or a message of an agent.
type Notification struct {
	Text      string          // text for the model
	ToolsUsed string          // see [End.ToolsUsed]
	Origin    json.RawMessage // the "origin" of the prompt that delivers the notification, and of its result
}

// agentNotificationTimingNote explains to the model when an agent notifies it. It has the length of the real CLI's text.
const agentNotificationTimingNote = "You get this notification each time the agent stops and none of its own background agents is running. After a message from the user, the " +
	"agent may go on and send another one with the same task id."

var textEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (t *Task) endNotification(e End) Notification {
	var b strings.Builder
	if e.Event != "" {
		b.WriteString(t.eventNotificationForModel(e.Event) + "\n")
	}
	b.WriteString("<task-notification>\n<task-id>" + t.ID + "</task-id>\n")
	if t.ToolUseID != "" {
		b.WriteString("<tool-use-id>" + t.ToolUseID + "</tool-use-id>\n")
	}
	if t.OutputFile != "" {
		b.WriteString("<output-file>" + t.OutputFile + "</output-file>\n")
	}
	b.WriteString("<status>" + string(e.Status) + "</status>\n<summary>" + textEscaper.Replace(cmp.Or(e.Notice, e.Summary)) + "</summary>\n")
	if t.Kind == KindAgent {
		b.WriteString("<note>" + agentNotificationTimingNote + "</note>\n")
	}
	if e.Report != "" {
		b.WriteString("<result>" + textEscaper.Replace(e.Report) + "</result>\n")
	}
	if e.Usage != nil {
		fmt.Fprintf(&b, "<usage><subagent_tokens>%d</subagent_tokens><tool_uses>%d</tool_uses><duration_ms>%d</duration_ms></usage>\n", e.Usage.TotalTokens, e.Usage.ToolUses, e.Usage.DurationMS)
	}
	b.WriteString("</task-notification>")
	return Notification{b.String(), e.ToolsUsed, taskNotificationOrigin(t.RunID)}
}

// taskNotificationOrigin returns the origin of a turn that begins with a notification about a task. For a running task, runID is "".
func taskNotificationOrigin(runID string) json.RawMessage {
	raw, _ := protocol.Marshal(struct { // strings cannot fail
		Kind     string `json:"kind"`
		Producer string `json:"producer"`
		RunID    string `json:"runId,omitempty"`
	}{"task-notification", "session-task", runID})
	return raw
}

func optionalField(key, value string) []protocol.Field {
	if value == "" {
		return nil
	}
	return []protocol.Field{{Key: key, Value: value}}
}

func (s *Set) newID(k ShellOrAgentKind) string { return NewTaskID(k, s.options.NewID()) }

// NewTaskID derives an id from a uuid as the real CLI does: a1a34411e849f1b0c (an agent) or bgxo6nxdd (a command).
func NewTaskID(k ShellOrAgentKind, uuid string) string {
	hex := strings.ReplaceAll(uuid, "-", "")
	if k == KindAgent {
		return "a" + hex[:min(8, len(hex))] + zeroPaddedLastDigits(hex, 8)
	}
	n, err := strconv.ParseUint(zeroPaddedLastDigits(hex, 12), 16, 64)
	if err != nil {
		return "b" + zeroPaddedLastDigits(hex, 8)
	}
	return "b" + zeroPaddedLastDigits(strconv.FormatUint(n, 36), 8)
}

func zeroPaddedLastDigits(digits string, n int) string {
	if len(digits) >= n {
		return digits[len(digits)-n:]
	}
	return strings.Repeat("0", n-len(digits)) + digits
}

// HasRunningOrUnshownBackgroundAgent reports whether a background agent is running or has events that are not shown yet.
func (s *Set) HasRunningOrUnshownBackgroundAgent() bool {
	return hasBackgroundAgentWhere(s, func(t *Task) bool { return !t.ended || t.unshownEventCount > 0 })
}

// HasNonWaitingBackgroundAgent reports whether a background agent is running and is not waiting.
func (s *Set) HasNonWaitingBackgroundAgent() bool {
	return hasBackgroundAgentWhere(s, func(t *Task) bool { return !t.ended && t.scriptedWaitCount == 0 })
}

func hasBackgroundAgentWhere(s *Set, is func(*Task) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tasks, func(t *Task) bool { return t.Background && t.Kind == KindAgent && is(t) })
}

// StopBackgroundAgents stops background agents, not commands, when the session is interrupted. Their later events are dropped.
func (s *Set) StopBackgroundAgents() { stopAgents(s, false) }

// StopBackgroundAgentsKeepingEvents stops background agents, and reports whether any was running. The events that they still emit are
// shown after their end.
func (s *Set) StopBackgroundAgentsKeepingEvents() (stopped bool) { return stopAgents(s, true) }

func stopAgents(s *Set, showsLaterEvents bool) (stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.Kind == KindAgent && !t.ended && t.cancel != nil {
			t.cancelFor(KilledBySystem)
			t.endLocked(End{Status: StatusKilled})
			t.showsEventsAfterEnd, stopped = showsLaterEvents, true
		}
	}
	return stopped
}

// AbandonForeground ends the tasks for which a turn waits, because the turn has ended. Their events are dropped.
func (s *Set) AbandonForeground() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.isAbandoned = t.isAbandoned || !t.ended && !t.inBackground
		t.ended = t.ended || t.isAbandoned
	}
	s.queuedEvents = slices.DeleteFunc(s.queuedEvents, func(e queuedEvent) bool { return e.task.isAbandoned })
}

// EndAllAndDiscardEvents ends all tasks for a new conversation. It discards their events and notifications.
func (s *Set) EndAllAndDiscardEvents() {
	s.StopAllWithoutWaiting(KilledByUserOrHost)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.ended = true
	}
	for range s.waitingAgentStarts {
		s.runningGoroutines.Done()
	}
	for _, e := range s.queuedEvents {
		e.task.unshownEventCount--
	}
	s.queuedEvents, s.notices, s.waitingAgentStarts = nil, nil, nil
}
