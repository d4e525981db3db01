// Package clock provides the time, ids and randomness of a run, either real or reproducible from a seed and a start time.
//
// A reproducible source returns the same sequence in every run. Its time advances only when the run waits deliberately.
package clock

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Options select the sources of time and randomness. Now and NewID must be set.
type Options struct {
	Seed  *int64     // nil means that ids come from NewID and randomness has no seed
	Salt  string     // mixed into the seed, so that a resumed run differs from its first part
	Start *time.Time // start of the run's time; nil means the real time. If the run has a seed, the clock advances only in Sleep

	Now   func() time.Time
	NewID func() string
}

// TimeAndIDSource provides the time, ids and randomness of a run. It is safe for concurrent use.
type TimeAndIDSource struct {
	o Options

	mu   sync.Mutex
	rand *rand.Rand // nil means not seeded
	// In a frozen clock, the time is Start plus offset, and Sleep increases offset. In any other clock, the time is the
	// real time plus offset; if Start is set, offset makes the time begin at Start.
	offset time.Duration
}

// New returns a source with these options.
func New(o Options) *TimeAndIDSource {
	s := &TimeAndIDSource{o: o}
	if o.Seed != nil {
		s.rand = newRand(*o.Seed, o.Salt)
	}
	if o.Start != nil && !s.IsReproducible() {
		s.offset = o.Start.Sub(o.Now())
	}
	return s
}

// ReseedForNthRunOfSession makes a seeded source continue as the runNumber-th run of a session, so
// that its ids differ from those of the earlier runs. Without a seed, it does nothing.
func (s *TimeAndIDSource) ReseedForNthRunOfSession(runNumber int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Seed != nil {
		s.o.Salt = fmt.Sprintf("%s/%d", s.o.Salt, runNumber)
		s.rand = newRand(*s.o.Seed, s.o.Salt)
	}
}

func newRand(seed int64, salt string) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:8], uint64(seed))
	h := fnv.New64a()
	_, _ = h.Write([]byte(salt)) // writing to a hash never fails
	binary.LittleEndian.PutUint64(key[8:16], h.Sum64())
	return rand.New(rand.NewChaCha8(key))
}

// IsReproducible reports whether each run with the same options has the same ids and times. The clock is then frozen.
func (s *TimeAndIDSource) IsReproducible() bool { return s.o.Seed != nil && s.o.Start != nil }

// Now returns the current time of the run's clock.
func (s *TimeAndIDSource) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsReproducible() {
		return s.o.Start.Add(s.offset)
	}
	return s.o.Now().Add(s.offset)
}

// Sleep waits in real time and advances a frozen clock by d. If ctx ends first, it returns the error of ctx.
func (s *TimeAndIDSource) Sleep(ctx context.Context, d time.Duration) error {
	err := Sleep(ctx, d)
	if err == nil && d > 0 && s.IsReproducible() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.offset += d
	}
	return err
}

// WaitOrJumpTo waits until t. A frozen clock jumps to t without waiting.
func (s *TimeAndIDSource) WaitOrJumpTo(ctx context.Context, t time.Time) error {
	d := t.Sub(s.Now())
	if !s.IsReproducible() {
		return Sleep(ctx, d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += max(d, 0)
	return ctx.Err()
}

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// NewID returns a version 4 UUID.
func (s *TimeAndIDSource) NewID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rand == nil {
		return s.o.NewID()
	}
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], s.rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], s.rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// NewRandFromRunSeed returns a new random source, seeded like the run; nil means the run has no seed.
func (s *TimeAndIDSource) NewRandFromRunSeed() (newRandOrNilIfUnseeded *rand.Rand) {
	if s.o.Seed == nil {
		return nil
	}
	return newRand(*s.o.Seed, s.o.Salt+"/chance")
}
