package api

import (
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
)

// promptCache computes how many tokens of a request the API's prompt cache would have read and written. It stores
// digests, not prompts, and is safe for concurrent use.
//
// A prefix is a hit if an earlier request had a cache mark after the same tools, system prompt and blocks, and the
// entry of that mark has not expired. ComputeUsage looks up the prefix at each mark of a request, and the prefixes at
// the maxLookBackBlocks blocks before the mark.
type promptCache struct {
	mu      sync.Mutex
	expires history.BoundedMap[history.Digest, time.Time]
}

// newPromptCache creates a cache of the last n prefixes; with n <= 0 it stores nothing.
func newPromptCache(n int) *promptCache {
	return &promptCache{expires: history.NewBoundedMap[history.Digest, time.Time](n)}
}

// cacheUsage holds numbers of bytes of a request: read from the cache, written to it for five minutes, written to it
// for an hour, and not cached.
type cacheUsage struct{ Read, Created5m, Created1h, Uncached int }

const (
	minCachedPrefixBytes = 4 * 1024 // the API caches prefixes of at least 1,024 tokens
	maxLookBackBlocks    = 20       // maximum number of blocks before a mark at which the cache is looked up
)

// ComputeUsage computes the usage of a request and stores its marked prefixes.
func (m *promptCache) ComputeUsage(r *history.Request, now time.Time) cacheUsage {
	prefixes := r.Prefixes()
	if len(prefixes) == 0 {
		return cacheUsage{}
	}
	s := cacheUsage{Uncached: prefixes[len(prefixes)-1].Size}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := -1 // index of the last prefix with a cache mark
	for i, p := range prefixes {
		if p.CacheTTL == 0 || p.Size < minCachedPrefixBytes {
			continue
		}
		last = i
		for k := i; k >= max(0, i-maxLookBackBlocks); k-- {
			if until, ok := m.expires.Get(prefixes[k].Key); ok && now.Before(until) {
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
		if p.CacheTTL == 0 || p.Size < minCachedPrefixBytes {
			continue
		}
		m.expires.Put(p.Key, now.Add(p.CacheTTL))
		if more := p.Size - from; more > 0 && p.CacheTTL > 5*time.Minute {
			s.Created1h, from = s.Created1h+more, p.Size
		} else if more > 0 {
			s.Created5m, from = s.Created5m+more, p.Size
		}
	}
	s.Uncached -= from
	return s
}
