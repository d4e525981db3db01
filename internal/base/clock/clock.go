// Package clock provides the time, ids and randomness of a run, either real or
// reproducible from a seed and a start time.
//
// A reproducible source returns the same sequence in every run. Its time
// advances only when the run waits deliberately.
package clock

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Options says where time and chance come from. The zero value needs Now and
// NewID.
type Options struct {
	Seed  *int64     // nil = ids from NewID, no seeded chance
	Salt  string     // mixed into the seed: what makes a resumed run differ from its first part
	Start *time.Time // nil = Now; with a seed, time stands still from here on

	Now   func() time.Time
	NewID func() string
}

// Source is a run's time, ids and randomness. Safe for concurrent use.
type Source struct {
	o Options

	mu     sync.Mutex
	rand   *rand.Rand    // nil = not seeded
	offset time.Duration // how far a standing clock was moved; or Start minus the real start
}

// New makes a source.
func New(o Options) *Source {
	s := &Source{o: o}
	if o.Seed != nil {
		s.rand = rand.New(rand.NewChaCha8(key(*o.Seed, o.Salt)))
	}
	if o.Start != nil && !s.still() {
		s.offset = o.Start.Sub(o.Now())
	}
	return s
}

// Again begins the ids of a seeded source anew, as those of its n-th run: the
// first has those of the seed alone.
func (s *Source) Again(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Seed != nil {
		s.o.Salt = fmt.Sprintf("%s/%d", s.o.Salt, n)
		s.rand = rand.New(rand.NewChaCha8(key(*s.o.Seed, s.o.Salt)))
	}
}

func key(seed int64, salt string) [32]byte {
	var k [32]byte
	binary.LittleEndian.PutUint64(k[:8], uint64(seed))
	h := uint64(14695981039346656037)
	for _, b := range []byte(salt) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	binary.LittleEndian.PutUint64(k[8:16], h)
	return k
}

// Repeatable tells whether two runs see the same ids and times.
func (s *Source) Repeatable() bool { return s.still() }

func (s *Source) still() bool { return s.o.Seed != nil && s.o.Start != nil }

// Now is the run's time.
func (s *Source) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.still() {
		return s.o.Start.Add(s.offset)
	}
	return s.o.Now().Add(s.offset)
}

// Sleep really waits, and moves a standing clock by d. It returns early with
// the ctx's error.
func (s *Source) Sleep(ctx context.Context, d time.Duration) error {
	err := Sleep(ctx, d)
	if err == nil && d > 0 && s.still() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.offset += d
	}
	return err
}

// Sleep waits for d or until ctx ends, whose error it then returns.
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

// NewID is a version 4 UUID.
func (s *Source) NewID() string {
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

// Rand is a source of chance of its own: seeded when the run is, nil when not.
func (s *Source) Rand() *rand.Rand {
	if s.o.Seed == nil {
		return nil
	}
	return rand.New(rand.NewChaCha8(key(*s.o.Seed, s.o.Salt+"/chance")))
}
