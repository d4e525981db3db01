package history

import "testing"

func TestBoundedMap(t *testing.T) {
	m := NewLRUCache[int, string](2)
	for i, v := range []string{"a", "b", "c", "d", "e"} {
		m.Put(i, v)
		if i > 0 { // entry 1 is read after each Put, so it stays
			if v, ok := m.Get(1); i > 0 && (!ok || v != "b") {
				t.Fatalf("after %d: %q, %t", i, v, ok)
			}
		}
	}
	if v, ok := m.Get(4); !ok || v != "e" {
		t.Errorf("the last: %q, %t", v, ok)
	}
	if _, ok := m.Get(0); ok {
		t.Error("what nobody used for long is still there")
	}
	for _, none := range []LRUCache[int, string]{NewLRUCache[int, string](0), NewLRUCache[int, string](-1), {}} {
		none.Put(1, "x")
		if _, ok := none.Get(1); ok {
			t.Error("a map for nothing keeps something")
		}
	}
}

// The last n entries are found, and never more than 2n. Setting an existing entry again does not remove another one.
func TestBoundedMapSize(t *testing.T) {
	const n = 3
	m := NewLRUCache[int, int](n)
	for i := range 20 {
		m.Put(i, i)
		for range 2 * n {
			m.Put(i, i)
		}
		if got := len(m.newer) + len(m.older); got > 2*n {
			t.Fatalf("%d entries", got)
		}
	}
	for i := 20 - n; i < 20; i++ {
		if v, ok := m.Get(i); !ok || v != i {
			t.Errorf("%d: %d, %t", i, v, ok)
		}
	}
}
