package process

import "testing"

// A bigger scenario file gets a bigger heap before the first collection, up to a limit.
func TestCollectionPercent(t *testing.T) {
	for size, want := range map[int64]int{0: 400, 1000: 400, 1 << 20: 800, 3 << 20: 1600, 1 << 30: 1600} {
		if got := gcPercentGrowingWithFileSize(size); got != want {
			t.Errorf("%d bytes: %d %%, want %d", size, got, want)
		}
	}
}
