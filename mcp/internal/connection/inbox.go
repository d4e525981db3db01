package connection

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// Log is a debug log.
type Log interface {
	// Message notes a message that goes out ("->") or came in ("<-"); id is
	// empty for notifications.
	Message(direction, what, id string)
	Printf(format string, args ...any)
}

// Handler hears what a server sends by itself.
type Handler interface {
	// Answer answers a request of the server, on a goroutine of its own; an
	// *Error is sent as it is, any other as an internal one.
	Answer(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Updated hears that a resource subscribed to has changed. It runs on the
	// goroutine that reads and must not wait.
	Updated(uri string)
}

// notificationHandler sorts what a server sends by itself.
type notificationHandler struct {
	handler Handler
	debug   Log
	lists   changes
	waiters pendingCalls
	// acknowledged has a token when the server confirmed a subscription.
	acknowledged chan struct{}
}

// notified runs on the transport's read loop and must not call the client.
func (i *notificationHandler) notified(method string, params map[string]any) {
	switch method {
	case string(wire.MethodNotificationToolsListChanged):
		i.lists.add(Tools)
	case string(wire.MethodNotificationPromptsListChanged):
		i.lists.add(Prompts)
	case string(wire.MethodNotificationResourcesListChanged):
		i.lists.add(Resources)
	case string(wire.MethodNotificationSubscriptionsAcknowledged):
		notify(i.acknowledged)
	case string(wire.MethodNotificationProgress):
		i.waiters.progress(params)
	case wire.MethodNotificationResourceUpdated:
		if uri, ok := params["uri"].(string); ok {
			i.handler.Updated(uri)
		}
	case "notifications/message":
		i.log(params)
	}
}

// log writes what a server logs to the debug log.
func (i *notificationHandler) log(params map[string]any) {
	const longest = 2000
	text, err := json.Marshal(params["data"])
	if err != nil {
		return
	}
	i.debug.Printf("log %v: %.*s", params["level"], longest, text)
}

// What servers ask for.
const (
	MethodElicit = "elicitation/create"
	MethodRoots  = "roots/list"
	MethodSample = "sampling/createMessage"
)

// Progress is one progress notification.
type Progress struct {
	Progress, Total float64 // Total 0 = unknown
	Message         string
}

// pendingCalls are the calls that wait, by the tokens of their progress.
type pendingCalls struct {
	mu      sync.Mutex
	byToken map[int64]*waiter
}

// waiter is one call that waits. The token of its progress is the id of its
// request, as in the real CLI; a request may be sent again, under another one.
type waiter struct {
	all   *pendingCalls
	meta  *wire.Meta // of the request, which takes the token
	limit time.Duration
	idle  *time.Timer   // fires when there was no sign of life for limit
	queue chan Progress // nil = only the sign of life is wanted

	tokens []int64 // of waiters.mu
}

// waiterKey is for the waiter in a request's context, which hears the id of the
// request before it is sent.
type waiterKey struct{}

func (w *waiter) numbered(id int64) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.meta.ProgressToken = id
	w.tokens = append(w.tokens, id)
	if w.all.byToken == nil {
		w.all.byToken = map[int64]*waiter{}
	}
	w.all.byToken[id] = w
}

// leave ends the waiting.
func (w *waiter) leave() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, token := range w.tokens {
		delete(w.all.byToken, token)
	}
}

// touch notes a sign of life.
func (w *waiter) touch() {
	if w.idle.Stop() { // a timer that fired stays fired
		w.idle.Reset(w.limit)
	}
}

// progress hands a notification to its call.
func (all *pendingCalls) progress(params map[string]any) {
	all.mu.Lock()
	w := all.byToken[progressToken(params["progressToken"])]
	all.mu.Unlock()
	if w == nil {
		return
	}
	w.touch()
	if w.queue == nil {
		return
	}
	p := Progress{}
	p.Progress, _ = params["progress"].(float64)
	p.Total, _ = params["total"].(float64)
	p.Message, _ = params["message"].(string)
	select {
	case w.queue <- p:
	default: // the listener is far behind; the next one will do
	}
}

// progressToken reads a token back; some servers make a string of it. 0 is
// none of a call.
func progressToken(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	default:
		return 0
	}
}
