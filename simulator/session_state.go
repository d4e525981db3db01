package simulator

import (
	"cmp"
	"sync"

	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// SessionState is what changes while a session runs, whoever changes it. The zero value
// is a session without an id on the default model. Safe for concurrent use.
type SessionState struct {
	session *SessionState // nil = this is the session's; else that of an agent, which has only its model for itself

	mu  sync.Mutex
	now Snapshot
}

// Snapshot is what is so at one moment; empty = unknown or none.
type Snapshot struct {
	SessionID  string
	Transcript string // path
	PromptID   string // of the running or the last prompt
	Model      string // as given or set; empty = the default model
	Effort     string // level, by default that of the model
	Style      string // of the output
	Title      string
}

// Now returns the whole state at this moment.
func (l *SessionState) Now() Snapshot {
	l.mu.Lock()
	now := l.now
	l.mu.Unlock()
	if l.session != nil {
		own := now.Model
		now = l.session.Now()
		now.Model = own
	}
	now.Effort = now.level()
	return now
}

// level is the effort that counts: models that know none have none.
func (n Snapshot) level() string {
	own := model.Of(model.Resolve(cmp.Or(n.Model, model.Default))).DefaultEffort
	if own == "" {
		return ""
	}
	return cmp.Or(n.Effort, own)
}

// Agent is the same session for one of its agents, which has a model of its own.
func (l *SessionState) Agent(model string) *SessionState {
	return &SessionState{session: l, now: Snapshot{Model: model}}
}

// SessionID is the id of the conversation, which /clear changes.
func (l *SessionState) SessionID() string { return l.Now().SessionID }

// Begin says that a conversation has begun: its id and where its transcript is.
func (l *SessionState) Begin(id, transcript string) {
	l.set(func(n *Snapshot) { n.SessionID, n.Transcript = id, transcript })
}

// Model is the model of the next request, as given or set.
func (l *SessionState) Model() string {
	if name := l.Now().Model; name != "" {
		return name
	}
	return model.Default
}

// SetModel changes the model of requests to come; empty = the default model.
func (l *SessionState) SetModel(name string) { l.set(func(n *Snapshot) { n.Model = name }) }

// SetEffort changes the level that hooks and transcripts are told; empty = that of
// the model.
func (l *SessionState) SetEffort(level string) { l.set(func(n *Snapshot) { n.Effort = level }) }

// SetStyle changes the output style.
func (l *SessionState) SetStyle(name string) { l.set(func(n *Snapshot) { n.Style = name }) }

// SetTitle names the session.
func (l *SessionState) SetTitle(title string) { l.set(func(n *Snapshot) { n.Title = title }) }

func (l *SessionState) set(change func(*Snapshot)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.now)
}

// HookEffort is the level as hooks are told it; nil = there is none.
func (n Snapshot) HookEffort() *protocol.HookEffort {
	if n.Effort == "" {
		return nil
	}
	return &protocol.HookEffort{Level: n.Effort}
}
