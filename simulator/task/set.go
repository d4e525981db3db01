package task

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Set].
type Options struct {
	NewID func() string    // uuid v4; required
	Now   func() time.Time // nil means always time.Time{}
	Dir   func() string    // returns the directory of output files; nil or an empty result means no output files
	// Ordered makes runs repeatable: background agents run between turns, one after another, and the events of an agent
	// are shown when it has finished.
	Ordered bool
	// IsTerminal is set for a session in a terminal: the model is told not to wait for commands, and a command that was moved
	// to the background has no time limit.
	IsTerminal bool
}

// ConversationPhase is the point of a conversation at which [Set.TakeEvents] is called.
type ConversationPhase int

// The phases: during a turn, after the results of its interrupted calls, and between turns.
const (
	ConversationPhaseInTurn ConversationPhase = iota
	ConversationPhaseAfterInterrupt
	ConversationPhaseBetweenTurns
)

// Killer identifies who stopped a task.
type Killer int

const notKilled Killer = 0

// A task is stopped by the model that started it, by the host, or by the end of the session.
const (
	KilledByParent Killer = iota + 1
	KilledByUserOrHost
	KilledBySystem
)

// Set contains the tasks of one session. Many goroutines may call its methods; only one goroutine may take events.
type Set struct {
	options           Options
	changeSignal      chan struct{} // receives a token after a change
	runningGoroutines sync.WaitGroup

	mu                 sync.Mutex
	tasks              []*Task // in start order
	queuedEvents       []queuedEvent
	takenEvents        []queuedEvent // currently being shown
	shownSignal        chan struct{} // closed when takenEvents have been shown
	notices            []Notification
	waitingAgentStarts []func() // agents that run between turns, if Options.Ordered is set
	agentRunning       bool     // an agent taken from waitingAgentStarts is running
	// isLaunching is true from the time when a call starts a background task until the model's reply to the call's
	// result is shown. In the meantime, events of background tasks are held back.
	isLaunching   bool
	scheduledJobs []Job
	closed        bool
	stats         protocol.SubagentCounts
}

type queuedEvent struct {
	event                     protocol.Event
	task                      *Task
	inBackground, isInterrupt bool
}

// New creates an empty set; it starts nothing.
func New(o Options) *Set {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.Dir == nil {
		o.Dir = func() string { return "" }
	}
	return &Set{options: o, changeSignal: make(chan struct{}, 1), shownSignal: make(chan struct{}), stats: protocol.SubagentCounts{ByType: map[string]int{}}}
}

// Reserve returns a task id and the path of an output file for work that may become a task.
// [Set.Start] uses both for a task with this id. The path is empty if the set has no output files.
func (s *Set) Reserve(kind ShellOrAgentKind) (taskID, outputFilePath string) {
	taskID = s.newID(kind)
	return taskID, s.outputFilePath(taskID)
}

func (s *Set) outputFilePath(id string) string {
	dir := s.options.Dir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, id+".output")
}

// Start registers a task and queues its start frames. A foreground command has no output file, because its call returns the output.
func (s *Set) Start(i Info) *Task {
	s.mu.Lock()
	again := s.find(i.ID) != nil
	s.mu.Unlock()
	if i.ID == "" {
		i.ID = s.newID(i.Kind)
	}
	id := strings.ReplaceAll(s.options.NewID(), "-", "")
	i.RunID = zeroPaddedLastDigits(strconv.FormatInt(max(0, s.options.Now().UnixMilli()), 36), 9) + "-" + id[len(id)-8:] // 0mwprw21s-2e066cd9
	i.IsTerminal = s.options.IsTerminal
	if i.Background || i.Kind == KindAgent {
		i.OutputFile = s.outputFilePath(i.ID)
	}
	t := &Task{Info: i, set: s, inBackground: i.Background, started: s.options.Now(), isUncounted: again || i.IsAmbient}
	s.mu.Lock()
	defer s.mu.Unlock()
	parentInBackground := false // the call that starts the task is part of a background task
	if parent := s.find(i.ParentID); parent != nil && parent.inBackground {
		parentInBackground, t.inBackground = true, true
	}
	s.tasks = append(s.tasks, t)
	if i.Kind == KindAgent && !t.isUncounted {
		countStartedAgent(&s.stats, t)
	}
	if i.Background {
		s.queueTaskEvents(t, parentInBackground, s.backgroundTasksFrame())
		if i.ParentID == "" {
			s.isLaunching = true
		}
	}
	s.queueTaskEvents(t, parentInBackground, t.startedFrame())
	return t
}

// GoDetached runs f, the work of a background task; the result of f ends the task. The context of f has the values of ctx, but
// not its cancellation. It is cancelled when the task is stopped or the set is closed.
func (s *Set) GoDetached(ctx context.Context, t *Task, f func(context.Context) End) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	t.cancel = cancel
	if s.closed {
		cancel()
	}
	s.runningGoroutines.Add(1)
	run := func() { // the goroutine returns when the work is done; ctx stops it
		defer s.runningGoroutines.Done()
		defer cancel()
		t.End(f(ctx))
		s.freeAgentSlotOfEndedTask(t)
	}
	if s.options.Ordered && t.Kind == KindAgent && !s.closed {
		s.waitingAgentStarts = append(s.waitingAgentStarts, run)
		s.signalChange()
		return
	}
	go run()
}

func (s *Set) freeAgentSlotOfEndedTask(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Ordered && t.Kind == KindAgent {
		s.agentRunning = false
	}
	t.isDone = true
	s.signalChange()
}

// Stop cancels the context of a running task. A command then counts as ended immediately, but an agent only when it
// reports its own end. Stop returns the task, or nil if no such task is running.
func (s *Set) Stop(id string, by Killer) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil || t.ended || t.cancel == nil {
		return nil
	}
	s.stopAndEndIfCommand(t, by)
	return t
}

// StopCommandsEndingWithAgent stops the commands of an agent that end with the agent; see [Info.EndsWithAgent].
func (s *Set) StopCommandsEndingWithAgent(agentID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.EndsWithAgent && t.ParentID == agentID && !t.ended && t.cancel != nil {
			s.stopAndEndIfCommand(t, KilledBySystem)
		}
	}
}

func (t *Task) cancelFor(by Killer) {
	if t.killer == notKilled {
		t.killer = by
	}
	t.cancel()
}

// stopAndEndIfCommand stops a task. If it is a command, it counts as ended immediately.
func (s *Set) stopAndEndIfCommand(t *Task, by Killer) {
	t.cancelFor(by)
	if t.Kind != KindAgent {
		t.endLocked(End{Status: StatusKilled, Summary: t.Description})
	}
}

// StopAllWithoutWaiting stops every background task.
func (s *Set) StopAllWithoutWaiting(by Killer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if !t.ended && t.cancel != nil {
			t.cancelFor(by)
		}
	}
}

// Close stops all background tasks and waits for their end. It is idempotent; tasks started later are stopped
// immediately. Agents that have not started never run.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	for range s.waitingAgentStarts {
		s.runningGoroutines.Done()
	}
	s.waitingAgentStarts = nil
	s.mu.Unlock()
	s.StopAllWithoutWaiting(KilledBySystem)
	s.runningGoroutines.Wait()
}

// ChangeSignal returns a channel that receives a value after a change. Only the goroutine that takes events may read it.
func (s *Set) ChangeSignal() (changed <-chan struct{}) { return s.changeSignal }

// TakeEvents returns the events to show, in order, and removes them. The events have no session id, and frames have no uuid;
// the caller sets them. Between turns, an ordered set returns the events of an agent only after the agent has finished.
func (s *Set) TakeEvents(p ConversationPhase) []protocol.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == ConversationPhaseBetweenTurns && s.options.Ordered && s.agentRunning {
		return nil
	}
	var out []protocol.Event
	var rest []queuedEvent
	for _, e := range s.queuedEvents {
		if e.isInterrupt && p == ConversationPhaseInTurn || e.inBackground && p != ConversationPhaseBetweenTurns && (s.options.Ordered || s.isLaunching) {
			rest = append(rest, e)
			continue
		}
		out = append(out, e.event)
		s.takenEvents = append(s.takenEvents, e)
	}
	s.queuedEvents = rest
	return out
}

// MarkTakenEventsEmitted records that everything taken so far has been shown; see [Task.WaitUntilPostedEventsShown].
func (s *Set) MarkTakenEventsEmitted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.takenEvents {
		e.task.unshownEventCount--
	}
	s.takenEvents = nil
	close(s.shownSignal)
	s.shownSignal = make(chan struct{})
}

// ReleaseEventsOfLaunchedTasks releases the events of background tasks that calls have just started. It is called when the
// model has replied to the results of these calls, or when the session waits for that reply.
func (s *Set) ReleaseEventsOfLaunchedTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLaunching {
		s.isLaunching = false
		s.signalChange()
	}
}

// ShowsEventsLive reports whether events are shown as they happen, not only when a call ends.
func (s *Set) ShowsEventsLive() bool { return !s.options.Ordered }

// StartNextAgent starts the next waiting agent of an ordered set, if none is running.
func (s *Set) StartNextAgent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agentRunning || len(s.waitingAgentStarts) == 0 {
		return
	}
	run := s.waitingAgentStarts[0]
	s.waitingAgentStarts, s.agentRunning = s.waitingAgentStarts[1:], true
	go run() // the goroutine returns when the work is done; Close waits for it
}

// TakeNextNotice removes and returns the oldest notification that the model has not received. Between turns, it returns false while
// events are queued: a turn about the end of a task follows the events that report this end.
func (s *Set) TakeNextNotice(p ConversationPhase) (Notification, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notices) == 0 || s.agentRunning || p == ConversationPhaseBetweenTurns && len(s.queuedEvents) > 0 {
		return Notification{}, false
	}
	n := s.notices[0]
	s.notices = s.notices[1:]
	return n, true
}

// HasPendingNotice reports whether a notification waits for the model. In an ordered set, it is false while an agent runs.
func (s *Set) HasPendingNotice() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.notices) > 0 && !s.agentRunning
}

// HasRunningBackgroundTask reports whether a background task is running. In an ordered set, an agent counts as running until
// [Set.TakeEvents] can return all its events.
func (s *Set) HasRunningBackgroundTask() bool {
	if len(s.RunningInBackground()) > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agentRunning || slices.ContainsFunc(s.tasks, func(t *Task) bool { return t.showsEventsAfterEnd && (!t.isDone || t.unshownEventCount > 0) })
}

// RunningInBackground lists the background tasks that are running, in start order.
func (s *Set) RunningInBackground() (out []Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.Background && !t.ended {
			out = append(out, t.Info)
		}
	}
	return out
}

// Find returns a task that is running or has ended.
func (s *Set) Find(id string) (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.find(id); t != nil {
		return t.Info, true
	}
	return Info{}, false
}

// Output returns the output of a task so far; no output is not an error.
func (s *Set) Output(id string) ([]byte, error) {
	i, ok := s.Find(id)
	if !ok {
		return nil, errors.New("no task found with ID: " + id)
	}
	if i.OutputFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(i.OutputFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Stats counts the session's sub-agents.
func (s *Set) Stats() protocol.SubagentCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.ByType = maps.Clone(s.stats.ByType)
	return stats
}

// CountAgentRequest counts a request for an agent. runInBackground is the run_in_background of the call; nil means not set.
func (s *Set) CountAgentRequest(runInBackground *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case runInBackground == nil:
		s.stats.Requested.Unset++
	case *runInBackground:
		s.stats.Requested.Background++
	default:
		s.stats.Requested.Foreground++
	}
}

// The callers of the following functions have locked mu.

func (s *Set) queueTaskEvents(t *Task, areFromBackground bool, events ...protocol.Event) {
	for _, ev := range events {
		s.queuedEvents = append(s.queuedEvents, queuedEvent{ev, t, areFromBackground, t.interrupted})
	}
	t.unshownEventCount += len(events)
	s.signalChange()
}

func (s *Set) signalChange() {
	select {
	case s.changeSignal <- struct{}{}:
	default:
	}
}

func (s *Set) find(id string) *Task {
	for _, t := range slices.Backward(s.tasks) { // the last task with this id is the latest run of a continued task
		if t.ID == id && id != "" {
			return t
		}
	}
	return nil
}

func (s *Set) backgroundTasksFrame() *protocol.SystemEvent {
	type line struct {
		TaskID      string           `json:"task_id"`
		RunID       string           `json:"run_id"`
		TaskType    ShellOrAgentKind `json:"task_type"`
		AgentType   string           `json:"subagent_type,omitempty"`
		Description string           `json:"description"`
		ParentID    string           `json:"parent_task_id,omitempty"`
	}
	lines := []line{}
	for _, t := range s.tasks {
		if t.Background && !t.ended {
			lines = append(lines, line{t.ID, t.RunID, t.Kind, t.AgentType, t.Description, t.ParentID})
		}
	}
	return &protocol.SystemEvent{Subtype: "background_tasks_changed", Fields: []protocol.Field{{Key: "tasks", Value: lines}}}
}

func countStartedAgent(stats *protocol.SubagentCounts, t *Task) {
	stats.Spawned++
	stats.ByType[t.AgentType]++
	stats.MaxDepth = max(stats.MaxDepth, t.Depth)
	if t.Background {
		stats.StartedInBackground++
	}
	if t.ParentID != "" {
		stats.SpawnedBySubagents++
	}
}

func (s *Set) countEndInStats(t *Task, status FinalStatus) {
	if t.Kind != KindAgent || t.isUncounted {
		return
	}
	switch {
	case status == StatusCompleted:
		s.stats.Completed++
	case status == StatusFailed:
		s.stats.Failed++
	case t.killer == KilledByParent:
		s.stats.Killed.Parent++
	case t.killer == KilledBySystem:
		s.stats.Killed.System++
	default:
		s.stats.Killed.User++
	}
}
