// Package promptcache computes how many tokens of a request the API's prompt
// cache would have read and written.
//
// A prefix is a hit if the same tools, system prompt and blocks came before a
// cache mark of an earlier request that has not expired. The position of the
// marks in the current request does not matter. The cache stores digests, not
// prompts.
package promptcache

import (
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/boundedmap"
	"github.com/claudeless/claudeless/internal/api/history"
)

// Memory is what is cached. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	until boundedmap.Map[history.Digest, time.Time]
}

// New makes a memory of the last n prefixes; 0 and less = of none.
func New(n int) *Memory {
	return &Memory{until: boundedmap.New[history.Digest, time.Time](n)}
}

// Share are the bytes of a request that came from the cache, those that it took for
// five minutes and for an hour, and those that it has nothing to do with.
type Share struct{ Read, Took5m, Took1h, Rest int }

const (
	minBytes = 4 * 1024 // of a prefix: the API caches from 1,024 tokens on
	lookBack = 20       // blocks before a mark that are looked up
)

// Ask looks a request up and takes what it marks.
func (m *Memory) Ask(r *history.Request, now time.Time) Share {
	prefixes := r.Prefixes()
	if len(prefixes) == 0 {
		return Share{}
	}
	s := Share{Rest: prefixes[len(prefixes)-1].Size}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := -1 // mark
	for i, p := range prefixes {
		if p.Mark == 0 || p.Size < minBytes {
			continue
		}
		last = i
		for k := i; k >= max(0, i-lookBack); k-- {
			if until, ok := m.until.Get(prefixes[k].Key); ok && now.Before(until) {
				s.Read = max(s.Read, prefixes[k].Size)
				break
			}
		}
	}
	if last < 0 {
		return s
	}
	from := s.Read
	for _, p := range prefixes[:last+1] {
		if p.Mark == 0 || p.Size < minBytes {
			continue
		}
		m.until.Put(p.Key, now.Add(p.Mark))
		if more := p.Size - from; more > 0 && p.Mark > 5*time.Minute {
			s.Took1h, from = s.Took1h+more, p.Size
		} else if more > 0 {
			s.Took5m, from = s.Took5m+more, p.Size
		}
	}
	s.Rest -= from
	return s
}
