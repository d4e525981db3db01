package gate_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/gate"
)

func TestGates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gates")
	if list, err := gate.List(dir); err != nil || list != nil {
		t.Errorf("before anything: %v, %v", list, err)
	}
	if err := gate.AwaitReached(t.Context(), dir, "a", time.Millisecond); !errors.Is(err, gate.ErrTimeout) {
		t.Errorf("nobody there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gate.AwaitReleased(ended, dir, "a", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	if err := errors.Join(gate.Reach(dir, "a"), gate.Release(dir, "b.c"), gate.Release(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gate.AwaitReached(t.Context(), dir, "a", 0), gate.AwaitReleased(t.Context(), dir, "b.c", 0)); err != nil {
		t.Errorf("what was released stays so: %v", err)
	}
	list, err := gate.List(dir)
	if diff := cmp.Diff([]gate.State{{Name: "a", Reached: true, Released: true}, {Name: "b.c", Released: true}}, list); diff != "" || err != nil {
		t.Errorf("gates (-want +got): %v\n%s", err, diff)
	}
	for _, name := range []string{"", "../x", "a/b", ".a"} {
		if gate.Release(dir, name) == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}
