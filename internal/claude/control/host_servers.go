package control

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// ServerHandshakeAnswers holds the answers that a host has already received from one of its own servers (the
// SDK's type SDKControlInitializeRequest).
type ServerHandshakeAnswers struct {
	InitializeResult json.RawMessage `json:"initializeResult"`
	ToolsResult      json.RawMessage `json:"toolsListResult"` // nil means that the server is asked
}

// hostMCPServers holds the state of the MCP servers inside the host: stored handshakes, and whether messages may be sent.
type hostMCPServers struct {
	mu               sync.Mutex
	storedHandshakes map[string]ServerHandshakeAnswers // stored handshakes by server name; each is used once
	// Until messagesReleased is closed, messages to servers that are not connected must wait; nil means that no message waits.
	messagesReleased chan struct{}
	isConnected      func(server string) bool
}

// StoreHandshakesForOneUse stores the answers that servers inside the host have already given, by server name. Each answer is
// used once, in place of a request to the server.
func (g *hostMCPServers) StoreHandshakesForOneUse(handshakesByServerName map[string]ServerHandshakeAnswers) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.storedHandshakes = handshakesByServerName
}

func (g *hostMCPServers) takeHandshakeAnswer(serverName string, message json.RawMessage) (storedAnswer json.RawMessage, isAnswered bool) {
	in := plainjson.DecodeIgnoringErrors[struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}](message)
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := g.storedHandshakes[serverName]
	if !ok {
		return nil, false
	}
	var result json.RawMessage
	switch in.Method {
	case "initialize":
		result = one.InitializeResult
	case "notifications/initialized":
		return nil, true
	case "tools/list":
		delete(g.storedHandshakes, serverName)
		result = one.ToolsResult
	}
	if result == nil {
		delete(g.storedHandshakes, serverName)
		return nil, false
	}
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{"2.0", in.ID, result})
	return answer, err == nil
}

// HoldMessagesToUnconnectedServers holds back messages to the MCP servers inside the host until release is called.
// Messages to a server for which isServerConnected returns true are not held back.
func (g *hostMCPServers) HoldMessagesToUnconnectedServers(isServerConnected func(server string) bool) (release func()) {
	quiet := make(chan struct{})
	g.mu.Lock()
	g.messagesReleased, g.isConnected = quiet, isServerConnected
	g.mu.Unlock()
	return sync.OnceFunc(func() { close(quiet) })
}

// waitUntilMessagesToServerAllowed waits until messages may be sent to a server. It does not wait for connected
// servers, because a turn may be using them.
func (g *hostMCPServers) waitUntilMessagesToServerAllowed(ctx context.Context, serverName string) error {
	g.mu.Lock()
	quiet, connected := g.messagesReleased, g.isConnected
	g.mu.Unlock()
	if quiet == nil || connected(serverName) {
		return ctx.Err()
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serverConnectPhaseOfInitialize is used while the servers of an initialize request are being connected. It reports when a
// message is sent to one of these servers, and holds back the servers' answers until the initialize request has been answered.
type serverConnectPhaseOfInitialize struct {
	mu                 sync.Mutex
	onMessageToServer  func() // called when a message is sent to one of the servers; nil except between beginPhase and stopReportingMessages
	initializeAnswered <-chan struct{}
}

// beginPhase begins the phase in which servers are connected; stopReportingMessages ends it. In between, each message to a server
// calls reportMessageToServer. The caller closes closedWhenInitializeAnswered after it has answered the initialize
// request: the servers' answers may be used only then.
func (i *serverConnectPhaseOfInitialize) beginPhase(reportMessageToServer func(), closedWhenInitializeAnswered <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.onMessageToServer, i.initializeAnswered = reportMessageToServer, closedWhenInitializeAnswered
}

func (i *serverConnectPhaseOfInitialize) stopReportingMessages() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.onMessageToServer = nil
}

// reportMessageToServer records a message to a server. The server's answer may be used when the channel is closed or nil.
func (i *serverConnectPhaseOfInitialize) reportMessageToServer() (answerUsableAfterClose <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.onMessageToServer == nil {
		return nil
	}
	i.onMessageToServer()
	return i.initializeAnswered
}
