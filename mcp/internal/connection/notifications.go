package connection

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// DebugLog receives debug messages about one server.
type DebugLog interface {
	// LogMessage logs a message that was sent ("->") or received ("<-"); id is empty for notifications.
	LogMessage(direction, what, id string)
	Printf(format string, args ...any)
	Redact(text string) string // makes secrets unreadable
}

// Handler handles the requests and notifications that a server sends.
type Handler interface {
	// HandleRequest handles a server request on its own goroutine. Errors except *Error are sent as internal errors.
	HandleRequest(ctx context.Context, method string, params json.RawMessage) (any, error)
	// HandleResourceUpdate is called when a subscribed resource changes, on the reading goroutine; it must not block.
	HandleResourceUpdate(uri string)
	// HandleLogOrProgressNotification is called with every log message, and with the progress of every call that still runs. It
	// runs on the reading goroutine, so it handles a notification before the call returns a result that arrived later.
	HandleLogOrProgressNotification(n ProgressOrLogNotification)
}

// ProgressOrLogNotification is a progress or log notification of a server.
type ProgressOrLogNotification struct {
	Method string         // "notifications/progress" or "notifications/message"
	Params map[string]any // as the server sent them
	// Tool and UseID identify the call that reported progress. They are empty for log messages.
	Tool, UseID string
}

type notificationDispatcher struct {
	handler                  Handler
	debug                    DebugLog
	lists                    listChanges
	callsByProgressToken     sync.Map      // *pendingCall by progress token, an int64
	subscriptionAcknowledged chan struct{} // holds a token when the server confirmed a subscription
}

// dispatchNotification handles a notification on the goroutine that reads all messages. It must not send
// requests, because it would wait for a response that is not read.
func (i *notificationDispatcher) dispatchNotification(n wire.JSONRPCNotification) {
	i.debug.LogMessage("<-", n.Method, "")
	switch method, params := n.Method, n.Params.AdditionalFields; method {
	case string(wire.MethodNotificationToolsListChanged):
		i.lists.addChange(ListTools)
	case string(wire.MethodNotificationPromptsListChanged):
		i.lists.addChange(ListPrompts)
	case string(wire.MethodNotificationResourcesListChanged):
		i.lists.addChange(ListResources)
	case string(wire.MethodNotificationSubscriptionsAcknowledged):
		signalWithoutBlocking(i.subscriptionAcknowledged)
	case string(wire.MethodNotificationProgress):
		if w := i.forwardProgressResetIdleTimer(params); w != nil {
			i.handler.HandleLogOrProgressNotification(ProgressOrLogNotification{Method: method, Params: params, Tool: w.tool, UseID: w.useID})
		}
	case wire.MethodNotificationResourceUpdated:
		if uri, ok := params["uri"].(string); ok {
			i.handler.HandleResourceUpdate(uri)
		}
	case methodLog:
		const longest = 2000
		if text, err := json.Marshal(params["data"]); err == nil {
			i.debug.Printf("log %v: %.*s", params["level"], longest, text)
		}
		i.handler.HandleLogOrProgressNotification(ProgressOrLogNotification{Method: method, Params: params})
	}
}

const methodLog = "notifications/message"

// Methods of requests that servers send.
const (
	MethodElicit = "elicitation/create"
	MethodRoots  = "roots/list"
	MethodSample = "sampling/createMessage"
)

// Progress is one progress notification.
type Progress struct {
	Progress, Total float64 // a Total of 0 means unknown
	Message         string
}

// pendingCall is one call that waits for its result. As in the real CLI, the id of its request is also its progress
// token. If the request is sent again, it has another id, so a call may have several tokens.
type pendingCall struct {
	callsByProgressToken *sync.Map // see notificationDispatcher.callsByProgressToken
	idleLimit            time.Duration
	idleTimer            *time.Timer   // fires when the server has sent nothing about the call for as long as limit
	progressQueue        chan Progress // nil means the caller does not want progress

	tool, useID string

	tokens []int64 // changed only by the goroutine that sends the requests of the call
}

type pendingCallContextKey struct{}

// forwardProgressResetIdleTimer passes a notification to its call and returns the call; nil means none.
func (i *notificationDispatcher) forwardProgressResetIdleTimer(params map[string]any) *pendingCall {
	found, _ := i.callsByProgressToken.Load(progressToken(params["progressToken"]))
	w, _ := found.(*pendingCall)
	if w == nil {
		return nil
	}
	if w.idleTimer.Stop() { // a timer that has fired is not restarted
		w.idleTimer.Reset(w.idleLimit)
	}
	if w.progressQueue == nil {
		return w
	}
	p := Progress{}
	p.Progress, _ = params["progress"].(float64)
	p.Total, _ = params["total"].(float64)
	p.Message, _ = params["message"].(string)
	select {
	case w.progressQueue <- p:
	default: // the listener is too slow, so this notification is dropped
	}
	return w
}

// progressToken parses a token, which may be a string. Invalid ones become 0, which no call has.
func progressToken(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// ListKind is a kind of list that a server offers; its value is the member name in the response.
type ListKind string

// The lists.
const (
	ListTools     ListKind = "tools"
	ListPrompts   ListKind = "prompts"
	ListResources ListKind = "resources"
	ListTemplates ListKind = "resourceTemplates"
)

func (k ListKind) method() wire.MCPMethod {
	if k == ListTemplates {
		return wire.MethodResourcesTemplatesList
	}
	return wire.MCPMethod(k + "/list")
}

type listChanges struct {
	signal            chan struct{} // holds a token after a change
	reported, fetched atomic.Int64  // number of changes that the server reported, and how many of them are in the fetched lists

	mu      sync.Mutex
	changed map[ListKind]bool // lists that changed and were not fetched yet
}

func (c *listChanges) addChange(list ListKind) {
	c.mu.Lock()
	if c.changed == nil {
		c.changed = map[ListKind]bool{}
	}
	c.changed[list] = true
	c.mu.Unlock()
	c.reported.Add(1)
	signalWithoutBlocking(c.signal)
}

func signalWithoutBlocking(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
