package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/claudeless/claudeless/internal/base/clock"
)

func seededSource(seed int64, salt string, start *time.Time) *clock.TimeAndIDSource {
	return clock.New(clock.Options{Seed: &seed, Salt: salt, Start: start, Now: time.Now, NewID: uuid.NewString})
}

func newIDs(s *clock.TimeAndIDSource) []string { return []string{s.NewID(), s.NewID(), s.NewID()} }

func TestIDsComeFromTheSeed(t *testing.T) {
	first := newIDs(seededSource(7, "", nil))
	if diff := cmp.Diff(first, newIDs(seededSource(7, "", nil))); diff != "" {
		t.Errorf("same seed, other ids (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, newIDs(seededSource(8, "", nil))) {
		t.Error("another seed gives the same ids")
	}
	if cmp.Equal(first, newIDs(seededSource(7, "again", nil))) {
		t.Error("another salt gives the same ids")
	}
	for _, id := range first {
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 {
			t.Errorf("%s is no version 4 uuid: %v", id, err)
		}
	}
}

func TestRepeatableTimeMovesByWaitsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		s := seededSource(1, "", &start)
		time.Sleep(time.Hour) // the machine is slow
		if !s.IsReproducible() || !s.Now().Equal(start) {
			t.Fatalf("now is %s, want %s", s.Now(), start)
		}
		began := time.Now()
		if err := s.Sleep(t.Context(), 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 300*time.Millisecond {
			t.Errorf("waited %s", waited)
		}
		if got := s.Now().Sub(start); got != 300*time.Millisecond {
			t.Errorf("time moved by %s", got)
		}
	})
}

func TestStartWithoutSeedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		s := clock.New(clock.Options{Start: &start, Now: time.Now, NewID: uuid.NewString})
		time.Sleep(time.Second)
		if got := s.Now().Sub(start); got != time.Second {
			t.Errorf("time moved by %s, want 1s", got)
		}
		if s.NewRandFromRunSeed() != nil {
			t.Error("chance without a seed")
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := clock.New(clock.Options{Now: time.Now, NewID: uuid.NewString})
		began := time.Now()
		if err := s.Sleep(ctx, time.Hour); err == nil {
			t.Error("no error")
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}
