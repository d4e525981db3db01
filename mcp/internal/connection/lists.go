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

// TakeChanges returns the lists that the server reported as changed since the last call, and the number of all changes.
func (c *listChanges) TakeChanges() (changed map[ListKind]bool, seen int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, c.changed = c.changed, nil
	return changed, c.seen.Load()
}

// ListsChanged returns a channel that holds a token after the server reported a changed list.
func (c *listChanges) ListsChanged() <-chan struct{} { return c.signal }

// MarkFetched records that the lists were fetched. changes is the number of changes that they already contain, as
// TakeChanges returned it before.
func (c *listChanges) MarkFetched(changes int64) { c.current.Store(changes) }

// ForgetChanges treats the lists as up to date, although the server may have reported changes.
func (c *listChanges) ForgetChanges() {
	select {
	case <-c.signal:
	default:
	}
	_, seen := c.TakeChanges()
	c.MarkFetched(seen)
}

// HasUnfetchedChanges reports whether the server's lists changed since they were fetched.
func (c *listChanges) HasUnfetchedChanges() bool { return c.current.Load() < c.seen.Load() }

func signalChange(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
