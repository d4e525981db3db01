package task

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Set].
type Options struct {
	NewID func() string    // uuid v4; required
	Now   func() time.Time // nil = time.Time{} forever
	// Dir tells where output files go right now; nil, or an empty answer = there
	// are none.
	Dir func() string
	// Ordered makes runs repeatable: agents in the background run one at a time
	// between turns, and what the background has to show waits for that moment.
	Ordered bool
}

// Phase is when events are taken.
type Phase int

// The phases: while a turn runs, and between turns.
const (
	InTurn Phase = iota
	BetweenTurns
)

// Killer says who stopped a task.
type Killer int

const nobody Killer = 0

// Those who stop tasks: the model that started them, the host, the end of the
// session.
const (
	ByParent Killer = iota + 1
	ByUser
	BySystem
)

// Set is the tasks of one session. Its methods may be called from many
// goroutines; events are taken by one at a time.
type Set struct {
	o     Options
	ready chan struct{} // holds one token while there may be news
	jobs  sync.WaitGroup

	mu      sync.Mutex
	tasks   []*Task // in the order of their start
	queue   []queuedEvent
	taken   []queuedEvent // being shown
	seen    chan struct{} // closed when they have been
	notices []Notification
	waiting []func() // agents that run between turns (Ordered)
	lane    bool     // one of them runs
	// launching holds the ids of calls that have started a background task and
	// whose result is not shown yet.
	launching map[string]bool
	scheduled []Job
	closed    bool
	stats     protocol.SubagentStats
}

type queuedEvent struct {
	ev     protocol.Event
	task   *Task
	behind bool
}

// New makes an empty set. It starts nothing.
func New(o Options) *Set {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.Dir == nil {
		o.Dir = func() string { return "" }
	}
	return &Set{o: o, ready: make(chan struct{}, 1), seen: make(chan struct{}), launching: map[string]bool{}, stats: protocol.SubagentStats{ByType: map[string]int{}}}
}

// Reserve gives a command that may become a task its id and output file;
// [Set.Start] keeps them for a task with this id. No file = there are none.
func (s *Set) Reserve(k Kind) (id, output string) {
	id = s.newID(k)
	return id, s.outputFile(id)
}

func (s *Set) outputFile(id string) string {
	dir := s.o.Dir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, id+".output")
}

// Start registers a task and queues the frames of its start. A command in the
// foreground has no output file: its call tells what it wrote.
func (s *Set) Start(i Info) *Task {
	again := i.ID != ""
	if !again {
		i.ID = s.newID(i.Kind)
	}
	i.RunID = s.newRunID()
	if i.Background || i.Kind == Agent {
		i.OutputFile = s.outputFile(i.ID)
	}
	t := &Task{Info: i, set: s, behind: i.Background, started: s.o.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	starter := false // whoever makes the call is behind itself
	if parent := s.find(i.ParentID); parent != nil && parent.behind {
		starter, t.behind = true, true
	}
	s.tasks = append(s.tasks, t)
	if i.Kind == Agent && !again {
		s.spawned(t)
	}
	if i.Background {
		s.post(t, starter, s.changedFrame())
		if i.ParentID == "" {
			s.launching[i.ToolUseID] = true
		}
	}
	s.post(t, starter, t.startedFrame())
	return t
}

// Go runs the work of a background task. Its context lives until the work
// ends, the task is stopped or the set is closed; that of the caller only lends
// its values. What f returns ends the task.
func (s *Set) Go(ctx context.Context, t *Task, f func(context.Context) End) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	t.stop = cancel
	if s.closed {
		cancel()
	}
	s.jobs.Add(1)
	run := func() { // ends with its work, which ctx ends
		defer s.jobs.Done()
		defer cancel()
		end := f(ctx)
		t.End(end)
		s.done(t)
	}
	if s.o.Ordered && t.Kind == Agent && !s.closed {
		s.waiting = append(s.waiting, run)
		s.signal()
		return
	}
	go run()
}

func (s *Set) done(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Ordered && t.Kind == Agent {
		s.lane = false
	}
	s.signal()
}

// Stop ends a running task: its context is cancelled. Of a command that is its end;
// an agent says itself when it is gone. False = no such task runs.
func (s *Set) Stop(id string, by Killer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil || t.ended || t.stop == nil {
		return false
	}
	s.kill(t, by)
	if t.Kind != Agent {
		t.finish(End{Status: Killed, Summary: t.Description})
	}
	return true
}

func (s *Set) kill(t *Task, by Killer) {
	if t.killer == nobody {
		t.killer = by
	}
	t.stop()
}

// StopAll ends every background task.
func (s *Set) StopAll(by Killer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if !t.ended && t.stop != nil {
			s.kill(t, by)
		}
	}
}

// Interrupt ends the agents in the background, as an interrupt of the session
// does; commands go on. What they still do is not waited for, and not shown.
func (s *Set) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.Kind == Agent && !t.ended && t.stop != nil {
			s.kill(t, BySystem)
			t.finish(End{Status: Killed})
		}
	}
}

// Close stops all background tasks and waits until they are gone. It is
// idempotent; tasks started later are stopped at once. Waiting agents never
// run.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	for range s.waiting {
		s.jobs.Done()
	}
	s.waiting = nil
	s.mu.Unlock()
	s.StopAll(BySystem)
	s.jobs.Wait()
}

// Ready holds a token after something has changed; receiving takes it. It is
// for the one who takes events.
func (s *Set) Ready() <-chan struct{} { return s.ready }

// Take returns what is to be shown, in order, and forgets it. Events have no
// session, and frames no uuid; whoever shows them sets these. Between turns an
// ordered set shows nothing of an agent before its end.
func (s *Set) Take(p Phase) []protocol.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == BetweenTurns && s.o.Ordered && s.lane {
		return nil
	}
	var out []protocol.Event
	var rest []queuedEvent
	for _, e := range s.queue {
		if e.behind && p == InTurn && (s.o.Ordered || len(s.launching) > 0) {
			rest = append(rest, e)
			continue
		}
		out = append(out, e.ev)
		s.taken = append(s.taken, e)
	}
	s.queue = rest
	return out
}

// Shown says that everything taken so far has been shown; see [Task.Settle].
func (s *Set) Shown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.taken {
		e.task.unseen--
	}
	s.taken = nil
	close(s.seen)
	s.seen = make(chan struct{})
}

// Launched says that the result of a call is shown: what the task that it has
// started shows comes after it.
func (s *Set) Launched(toolUseID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launching[toolUseID] {
		delete(s.launching, toolUseID)
		s.signal()
	}
}

// Live tells whether events are shown as they come, not only when a call ends.
func (s *Set) Live() bool { return !s.o.Ordered }

// Advance starts the next waiting agent of an ordered set, if none runs.
func (s *Set) Advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane || len(s.waiting) == 0 {
		return
	}
	run := s.waiting[0]
	s.waiting, s.lane = s.waiting[1:], true
	go run() // ends with its work; Close waits for it
}

// NextNotice takes the oldest end that the model has not been told.
func (s *Set) NextNotice() (Notification, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notices) == 0 || s.lane {
		return Notification{}, false
	}
	n := s.notices[0]
	s.notices = s.notices[1:]
	return n, true
}

// Pending tells whether there is an end that the model has not been told. In an
// ordered set nobody hears of it before all that the agent shows can be taken.
func (s *Set) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.notices) > 0 && !s.lane
}

// Busy tells whether a background task runs; an agent of an ordered set does
// until all that it shows can be taken.
func (s *Set) Busy() bool {
	if len(s.Running()) > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lane
}

// Agents tells whether an agent works in the background.
func (s *Set) Agents() bool {
	return slices.ContainsFunc(s.Running(), func(i Info) bool { return i.Kind == Agent })
}

// Running lists the background tasks that run, in the order of their start.
func (s *Set) Running() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Info
	for _, t := range s.tasks {
		if t.Background && !t.ended {
			out = append(out, t.Info)
		}
	}
	return out
}

// Find returns a task, running or ended.
func (s *Set) Find(id string) (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.find(id); t != nil {
		return t.Info, true
	}
	return Info{}, false
}

// Output returns what a task has written so far; nothing yet is no error.
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

// Clear ends all tasks without another word, as a new conversation does.
func (s *Set) Clear() {
	s.StopAll(ByUser)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.ended = true
	}
	for range s.waiting {
		s.jobs.Done()
	}
	for _, e := range s.queue {
		e.task.unseen--
	}
	s.queue, s.notices, s.waiting = nil, nil, nil
}

// Stats counts the session's sub-agents.
func (s *Set) Stats() protocol.SubagentStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.ByType = maps.Clone(s.stats.ByType)
	return stats
}

// Request counts how an agent was asked for: run_in_background of the call, nil
// = it did not say.
func (s *Set) Request(background *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case background == nil:
		s.stats.Requested.Unset++
	case *background:
		s.stats.Requested.Background++
	default:
		s.stats.Requested.Foreground++
	}
}

// Refuse counts an agent that was not started because it would be too deep.
func (s *Set) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Refused.DepthLimit++
}

// The rest is called with mu held.

func (s *Set) post(t *Task, behind bool, events ...protocol.Event) {
	for _, ev := range events {
		s.queue = append(s.queue, queuedEvent{ev, t, behind})
	}
	t.unseen += len(events)
	s.signal()
}

func (s *Set) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Set) find(id string) *Task {
	for _, t := range slices.Backward(s.tasks) { // the last run of a task that goes on
		if t.ID == id && id != "" {
			return t
		}
	}
	return nil
}

func (s *Set) spawned(t *Task) {
	s.stats.Spawned++
	s.stats.ByType[t.AgentType]++
	s.stats.MaxDepth = max(s.stats.MaxDepth, t.Depth)
	if t.Background {
		s.stats.StartedInBackground++
	}
	if t.ParentID != "" {
		s.stats.SpawnedBySubagents++
	}
}

func (s *Set) count(t *Task, status Status) {
	if t.Kind != Agent {
		return
	}
	switch {
	case status == Completed:
		s.stats.Completed++
	case status == Failed:
		s.stats.Failed++
	case t.killer == ByParent:
		s.stats.Killed.Parent++
	case t.killer == BySystem:
		s.stats.Killed.System++
	default:
		s.stats.Killed.User++
	}
}

func (s *Set) changedFrame() *protocol.System {
	type line struct {
		TaskID      string `json:"task_id"`
		RunID       string `json:"run_id"`
		TaskType    Kind   `json:"task_type"`
		AgentType   string `json:"subagent_type,omitempty"`
		Description string `json:"description"`
		ParentID    string `json:"parent_task_id,omitempty"`
	}
	lines := []line{}
	for _, t := range s.tasks {
		if t.Background && !t.ended {
			lines = append(lines, line{t.ID, t.RunID, t.Kind, t.AgentType, t.Description, t.ParentID})
		}
	}
	return &protocol.System{Subtype: "background_tasks_changed", Fields: []protocol.Field{{Key: "tasks", Value: lines}}}
}
