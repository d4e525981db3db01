package task

import "slices"

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
