package simulator

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// SessionState contains the ids and settings of a session that may change while it runs. The zero value has no id and
// uses the default model. It is safe for concurrent use.
type SessionState struct {
	// For a sub-agent, parent is the session's state, which provides all values except the model. Otherwise it is nil.
	parent *SessionState

	mu       sync.Mutex
	snapshot SessionStateSnapshot
	skills   map[string]loadedSkill // texts of the skills that were loaded, by name
	asked    atomic.Int64           // nanoseconds of dialogs since the last turn
	// turnModel is the model until the end of the turn: the one that the typed command sets, or a fallback model. Empty means none.
	turnModel string
}

// AddTimeOfDialog adds the time that a dialog of a terminal waited for the user. The duration of the turn does not include it.
func (l *SessionState) AddTimeOfDialog(d time.Duration) { l.asked.Add(int64(d)) }

// SessionStateSnapshot is the session state at one moment. Zero fields are unknown.
type SessionStateSnapshot struct {
	SessionID, TranscriptPath string
	PromptID                  string // id of the running or the last prompt
	Model                     string // model as given at the start or set later; empty means the default model
	Effort                    string // effort level; the model's default if none is set
	OutputStyle, Title        string
	Thinking                  claudecode.Thinking
}

// SessionStateSnapshot returns the current values. An agent without an effort of its own has that of the session if it has the same model.
func (l *SessionState) SessionStateSnapshot() SessionStateSnapshot {
	l.mu.Lock()
	now := l.snapshot
	now.Model = cmp.Or(l.turnModel, now.Model)
	l.mu.Unlock()
	model := claudecode.ResolveModel(cmp.Or(now.Model, claudecode.DefaultModel))
	if l.parent != nil {
		own := now
		now = l.parent.SessionStateSnapshot()
		if claudecode.ResolveModel(now.Model) != model {
			now.Effort = ""
		}
		now.Model, now.Effort = own.Model, cmp.Or(own.Effort, now.Effort)
	}
	if own := claudecode.FactsOfModel(model).DefaultEffort; own == "" || now.Effort == "" {
		now.Effort = own // empty for models without effort levels
	}
	return now
}

// ForAgent returns the state of a sub-agent with agentModel. It shares all else with l, but may set its own effort.
func (l *SessionState) ForAgent(agentModel string) (agentState *SessionState) {
	return &SessionState{parent: l, snapshot: SessionStateSnapshot{Model: agentModel}}
}

// SessionID returns the id of the conversation. The command /clear changes it.
func (l *SessionState) SessionID() string { return l.SessionStateSnapshot().SessionID }

// BeginConversation sets the id and the transcript path of a new conversation.
func (l *SessionState) BeginConversation(id, transcriptPath string) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.SessionID, n.TranscriptPath, l.skills = id, transcriptPath, nil })
}

// RecordSkill records the text of a loaded skill. It returns the previous text, or "" if the skill was not loaded, and reports whether the
// skill was last loaded before a compaction.
func (l *SessionState) RecordSkill(name, text string) (previous string, wasCompacted bool) {
	l.updateSnapshot(func(*SessionStateSnapshot) {
		if l.skills == nil {
			l.skills = map[string]loadedSkill{}
		}
		was := l.skills[name]
		previous, wasCompacted, l.skills[name] = was.text, was.isCompacted, loadedSkill{text: text}
	})
	return previous, wasCompacted
}

type loadedSkill struct {
	text        string
	isCompacted bool // loaded before a compaction
}

// MarkSkillsCompactedReturnTexts is called after a compaction. It returns the texts of the loaded skills by name.
func (l *SessionState) MarkSkillsCompactedReturnTexts() map[string]string {
	texts := map[string]string{}
	l.updateSnapshot(func(*SessionStateSnapshot) {
		for name, skill := range l.skills {
			l.skills[name], texts[name] = loadedSkill{skill.text, true}, skill.text
		}
	})
	return texts
}

// NextRequestModel returns the model of the next request, as given at the start or set later, or else the default model.
func (l *SessionState) NextRequestModel() string {
	if name := l.SessionStateSnapshot().Model; name != "" {
		return name
	}
	return claudecode.DefaultModel
}

// SetModelAndClearTurnModel sets the model of the following requests; empty means the default model.
func (l *SessionState) SetModelAndClearTurnModel(name string) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.Model, l.turnModel = name, "" })
}

// SetTurnModel sets the model of the following requests of this turn or, between turns, of the next turn; empty means that of the session.
func (l *SessionState) SetTurnModel(name string) {
	l.updateSnapshot(func(*SessionStateSnapshot) { l.turnModel = name })
}

// SessionModel returns the full name of the session's model. The session's tools depend on it even if a turn has another model.
func (l *SessionState) SessionModel() (fullName string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return claudecode.ResolveModel(l.snapshot.Model)
}

// SetReportedEffort sets the effort that hooks and transcripts report; empty means the model's default.
func (l *SessionState) SetReportedEffort(level string) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.Effort = level })
}

// SetThinking sets how the models of the following requests may think.
func (l *SessionState) SetThinking(t claudecode.Thinking) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.Thinking = t })
}

// SetOutputStyle sets the output style.
func (l *SessionState) SetOutputStyle(name string) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.OutputStyle = name })
}

// SetTitle sets the title of the session.
func (l *SessionState) SetTitle(title string) {
	l.updateSnapshot(func(n *SessionStateSnapshot) { n.Title = title })
}

func (l *SessionState) updateSnapshot(change func(*SessionStateSnapshot)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.snapshot)
}

// HookEffort returns the effort for hook inputs; nil if the model has no effort levels.
func (n SessionStateSnapshot) HookEffort() *protocol.HookEffort {
	if n.Effort == "" {
		return nil
	}
	return &protocol.HookEffort{Level: n.Effort}
}
