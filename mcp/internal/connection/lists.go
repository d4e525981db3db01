package connection

import (
	"sync"
	"sync/atomic"

	wire "github.com/mark3labs/mcp-go/mcp"
)

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
