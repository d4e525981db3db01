package redact

import (
	"strconv"
	"sync"
)

// Hidden calls every secret "[redacted]": for records of one process among
// many, which cannot agree on numbers.
type Hidden struct{}

// For implements Label.
func (Hidden) For(string, string) string { return "[redacted]" }

// Numbered gives typed placeholders, REDACTED_GITHUB_PAT_1: the same value has
// the same name wherever it stands, so that what was equal stays equal. The
// zero value works; it may be used by many goroutines.
type Numbered struct {
	mu    sync.Mutex
	names map[string]string // by secret
	count map[string]int    // by kind
}

// For implements Label.
func (n *Numbered) For(kind, secret string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.names[secret]; ok {
		return name
	}
	if n.names == nil {
		n.names, n.count = map[string]string{}, map[string]int{}
	}
	n.count[kind]++
	name := "REDACTED_" + kind + "_" + strconv.Itoa(n.count[kind])
	n.names[secret] = name
	return name
}
