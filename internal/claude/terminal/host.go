package terminal

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// host connects the session to the terminal: it answers permission questions and holds the queued prompts. It
// implements [session.Host].
type host struct {
	*promptQueue
	inbox *mailbox
}

// pendingQuestion is a question of the session that waits for the user.
type pendingQuestion struct {
	request   protocol.PermissionRequest
	answers   chan protocol.PermissionAnswer // cap 1
	delayOver bool                           // the dialog may be shown
}

// Ask implements [session.Host]: it shows a dialog and waits for the user's answer.
func (h host) Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	q := &pendingQuestion{request: r, answers: make(chan protocol.PermissionAnswer, 1)}
	h.inbox.put(q)
	select {
	case answer := <-q.answers:
		return answer, nil
	case <-ctx.Done():
		h.inbox.put(questionWithdrawn{q})
		return protocol.PermissionAnswer{}, ctx.Err()
	}
}

// errNoHost is the answer to requests that only the program around an SDK can serve.
var errNoHost = errors.New("an interactive session has no SDK host")

// Callback implements [session.Host].
func (h host) Callback(context.Context, string, json.RawMessage, string) (json.RawMessage, error) {
	return nil, errNoHost
}

// Message implements [session.Host].
func (h host) Message(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNoHost
}

// Elicit implements [session.Host]. Forms of MCP servers are not simulated: the question is cancelled.
func (h host) Elicit(context.Context, mcp.ElicitRequest) mcp.ElicitAnswer {
	return mcp.ElicitAnswer{}
}
