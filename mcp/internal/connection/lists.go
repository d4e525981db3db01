package connection

import (
	"sync"
	"sync/atomic"
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

type listChanges struct {
	signal        chan struct{} // holds a token after a change
	seen, current atomic.Int64  // number of changes that the server reported, and how many of them are in the fetched lists

	mu      sync.Mutex
	changed map[ListKind]bool // lists that changed and were not fetched yet
}

func (c *listChanges) add(list ListKind) {
	c.mu.Lock()
	if c.changed == nil {
		c.changed = map[ListKind]bool{}
	}
	c.changed[list] = true
	c.mu.Unlock()
	c.seen.Add(1)
	signalChange(c.signal)
}

// take returns the lists that changed since the last call, and the total number of changes.
func (c *listChanges) take() (changed map[ListKind]bool, seen int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, c.changed = c.changed, nil
	return changed, c.seen.Load()
}

func signalChange(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
