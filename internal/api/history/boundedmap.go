package history

// BoundedMap keeps at least the n most recently used entries and never more than
// 2n. It is not safe for concurrent use; the zero value stores nothing.
type BoundedMap[K comparable, V any] struct {
	capacity     int
	newer, older map[K]V
}

// NewBoundedMap creates a map that keeps at least the last n entries; with n <= 0 it stores nothing.
func NewBoundedMap[K comparable, V any](n int) BoundedMap[K, V] {
	return BoundedMap[K, V]{capacity: max(0, n), newer: map[K]V{}}
}

// Get returns the entry of a key, which counts as a use.
func (m *BoundedMap[K, V]) Get(k K) (V, bool) {
	v, ok := m.newer[k]
	if ok {
		return v, true
	}
	if v, ok = m.older[k]; ok {
		m.Put(k, v)
	}
	return v, ok
}

// Put sets an entry.
func (m *BoundedMap[K, V]) Put(k K, v V) {
	if m.capacity == 0 {
		return
	}
	if _, known := m.newer[k]; !known && len(m.newer) >= m.capacity {
		m.older, m.newer = m.newer, make(map[K]V, m.capacity)
	}
	m.newer[k] = v
}
