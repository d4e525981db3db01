package terminal

import (
	"strings"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// promptQueue holds the prompts that wait for a turn. A running turn takes prompts from it between its tool rounds.
type promptQueue struct {
	wake  chan struct{} // cap 1: a prompt was added
	inbox *mailbox      // receives the prompts that a running turn has taken

	mu      sync.Mutex
	waiting []string
}

func newPromptQueue(inbox *mailbox) *promptQueue {
	return &promptQueue{wake: make(chan struct{}, 1), inbox: inbox}
}

func (q *promptQueue) push(text string) {
	q.mu.Lock()
	q.waiting = append(q.waiting, text)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop removes and returns the prompts of the next turn: the first one, and those that follow it up to a slash command.
// A slash command has a separate turn.
func (q *promptQueue) pop() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if texts := q.takeTexts(); len(texts) > 0 || len(q.waiting) == 0 {
		return texts
	}
	command := q.waiting[:1:1]
	q.waiting = q.waiting[1:]
	return command
}

// takeTexts removes and returns the prompts before the first slash command. The caller holds the mutex.
func (q *promptQueue) takeTexts() (texts []string) {
	for len(q.waiting) > 0 && !strings.HasPrefix(q.waiting[0], "/") {
		texts = append(texts, q.waiting[0])
		q.waiting = q.waiting[1:]
	}
	return texts
}

// removeAll removes all prompts and returns them.
func (q *promptQueue) removeAll() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	texts := q.waiting
	q.waiting = nil
	return texts
}

func (q *promptQueue) list() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string(nil), q.waiting...)
}

// Absorb removes and returns the prompts that become part of the running turn: those before the first slash command.
func (q *promptQueue) Absorb() []protocol.UserMessage {
	q.mu.Lock()
	texts := q.takeTexts()
	q.mu.Unlock()
	var messages []protocol.UserMessage
	for _, text := range texts {
		messages = append(messages, userMessage(text))
	}
	if len(texts) > 0 {
		q.inbox.put(promptsAbsorbed{texts})
	}
	return messages
}

// Waiting returns the number of prompts that wait for a turn.
func (q *promptQueue) Waiting() int { return len(q.list()) }

func userMessage(text string) protocol.UserMessage {
	return protocol.UserMessage{Content: protocol.Content{Text: text}}
}
