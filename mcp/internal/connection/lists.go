package connection

import (
	"sync"
	"sync/atomic"
)

// List is something that servers list, by its name in the answer.
type List string

// The lists.
const (
	Tools     List = "tools"
	Prompts   List = "prompts"
	Resources List = "resources"
	Templates List = "resourceTemplates"
)

// changes of the server's lists.
type changes struct {
	kick          chan struct{} // has a token when one came
	seen, current atomic.Int64  // how many came, and the lists in use are good for

	mu      sync.Mutex
	changed map[List]bool // and not fetched yet
}

func (c *changes) add(list List) {
	c.mu.Lock()
	if c.changed == nil {
		c.changed = map[List]bool{}
	}
	c.changed[list] = true
	c.mu.Unlock()
	c.seen.Add(1)
	notify(c.kick)
}

// take returns the lists that changed since the last take, and how many changes
// there have been.
func (c *changes) take() (changed map[List]bool, seen int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, c.changed = c.changed, nil
	return changed, c.seen.Load()
}

// notify puts a token into a channel that holds one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
