package control

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/claudeless/claudeless/internal/base/jsvalue"
)

// Handshake is what a host and one of its own servers have said to each other
// already (the SDK's type SDKControlInitializeRequest).
type Handshake struct {
	InitializeResult json.RawMessage `json:"initializeResult"`
	ToolsResult      json.RawMessage `json:"toolsListResult"` // nil = the server is asked
}

// hostServers are the servers inside the host, as far as the wire knows of them.
type hostServers struct {
	mu     sync.Mutex
	parked map[string]Handshake // by server: what is asked in them is answered from here, once
	// hold keeps servers from being spoken to until it is closed, but for those
	// that are connected; nil = they may be.
	hold      chan struct{}
	connected func(server string) bool
}

// parkHandshakes keeps handshakes in the place of those that are kept.
func (g *hostServers) parkHandshakes(handshakes map[string]Handshake) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked = handshakes
}

// answerParked gives the answer to a message of a handshake; false = the server is to
// be asked.
func (g *hostServers) answerParked(server string, message json.RawMessage) (json.RawMessage, bool) {
	in := jsvalue.Read[struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}](message)
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := g.parked[server]
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
		delete(g.parked, server)
		result = one.ToolsResult
	}
	if result == nil {
		delete(g.parked, server)
		return nil, false
	}
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{"2.0", in.ID, result})
	return answer, err == nil
}

// holdMessages keeps servers that are not connected from being spoken to until
// release is called.
func (g *hostServers) holdMessages(connected func(server string) bool) (release func()) {
	quiet := make(chan struct{})
	g.mu.Lock()
	g.hold, g.connected = quiet, connected
	g.mu.Unlock()
	return sync.OnceFunc(func() { close(quiet) })
}

// waitReleased waits until a server may be spoken to. Those that are connected
// already may be at any time: a turn goes on meanwhile.
func (g *hostServers) waitReleased(ctx context.Context, server string) error {
	g.mu.Lock()
	quiet, connected := g.hold, g.connected
	g.mu.Unlock()
	if quiet == nil || connected(server) {
		return ctx.Err()
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// initialConnect is the connecting of servers of the host that an initialize
// request names.
type initialConnect struct {
	mu       sync.Mutex
	reached  func() // called when one of them is spoken to; nil = nobody waits for that
	answered <-chan struct{}
}

// begin has reached called when a server is spoken to. Answered is closed when
// the request has its answer: what servers say is heard after it.
func (i *initialConnect) begin(reached func(), answered <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reached, i.answered = reached, answered
}

func (i *initialConnect) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reached = nil
}

// noteContact takes note that a server was spoken to, and tells what the host is to
// be told before it is heard; nil = nothing.
func (i *initialConnect) noteContact() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.reached == nil {
		return nil
	}
	i.reached()
	return i.answered
}
