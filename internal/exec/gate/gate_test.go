package gate_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/exec/gate"
)

func TestGates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gates")
	if list, err := gate.List(dir); err != nil || list != nil {
		t.Errorf("before anything: %v, %v", list, err)
	}
	if err := gate.AwaitReached(t.Context(), dir, "a", time.Millisecond); !errors.Is(err, gate.ErrGateWaitTimedOut) {
		t.Errorf("nobody there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gate.AwaitReleased(ended, dir, "a", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	if err := errors.Join(gate.MarkGateReached(dir, "a"), gate.Release(dir, "b.c"), gate.Release(dir, "a")); err != nil {
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

// A claim belongs to one process forever, even if several processes compete for it. It is not listed as a gate.
func TestClaims(t *testing.T) {
	claims := gate.ExclusiveNameClaimsOfProcesses{Dir: filepath.Join(t.TempDir(), "gates")}
	var took atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			mine, err := claims.ClaimNameIfFree("s.toml:2: responses[0]")
			if err != nil {
				t.Error(err)
			}
			if mine {
				took.Add(1)
			}
		})
	}
	all.Wait()
	if n := took.Load(); n != 1 {
		t.Errorf("%d have taken it", n)
	}
	if mine, err := claims.ClaimNameIfFree("s.toml:2: responses[1]"); !mine || err != nil {
		t.Errorf("another name: %v, %v", mine, err)
	}
	if list, err := gate.List(claims.Dir); list != nil || err != nil {
		t.Errorf("gates: %v, %v", list, err)
	}
	if _, err := (gate.ExclusiveNameClaimsOfProcesses{Dir: filepath.Join(claims.Dir, "\x00")}).ClaimNameIfFree("x"); err == nil {
		t.Error("a directory that cannot be made is no error")
	}
}
