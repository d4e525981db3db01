package terminal

import "sync"

// mailbox passes messages from other goroutines to the goroutine of the screen, in order. It never blocks a sender,
// because the screen may itself wait for the sender.
type mailbox struct {
	wake chan struct{} // buffered for one: there are messages

	mu       sync.Mutex
	messages []any
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(message any) {
	m.mu.Lock()
	m.messages = append(m.messages, message)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns all messages so far.
func (m *mailbox) take() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.messages
	m.messages = nil
	return messages
}
