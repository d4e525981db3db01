package replay

import (
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
)

// splitter cuts the messages of a request into groups and names each by what
// came before it.
type splitter struct {
	memory  *Memory
	talk    conversationKey // who asks
	client  *history.Client
	context bool // what stands beside the prompts counts
}

// split makes groups of the messages.
func (s splitter) split(messages []*history.Message) []replayedGroup {
	var key history.Digest
	read := s.client.Groups(messages)
	groups := make([]replayedGroup, len(read))
	for i := range groups {
		g := &groups[i]
		g.Group = &read[i]
		if g.Assistant {
			key = key.Mix(g.Said)
			g.key = key
			continue
		}
		key = s.keys(g, key)
	}
	return groups
}

// keys gives the group its digests. A prompt whose first blocks failed when they
// came alone is two prompts: clients send them again with the next one.
func (s splitter) keys(g *replayedGroup, key history.Digest) history.Digest {
	for i := 0; i < len(g.Steps); i++ {
		in := &g.Steps[i]
		if n := s.failedPieces(key, in); n > 0 {
			g.Steps = slices.Concat(g.Steps[:i], []history.Step{in.Head(n), in.Tail(n)}, g.Steps[i+1:])
			in = &g.Steps[i]
		}
		key = key.Mix(in.Digest(g.Uses))
		if i == 0 {
			g.first = key
		}
	}
	if s.context {
		key = key.Chain(append([]string{"context"}, g.Context...)...)
	}
	g.key = key
	return key
}

// failedPieces is how many of a prompt's blocks were a prompt of their own, which
// failed.
func (s splitter) failedPieces(key history.Digest, in *history.Step) int {
	if in.Kind != history.Prompt || len(in.Pieces) < 2 {
		return 0
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	for n := 1; n < len(in.Pieces); n++ {
		head := in.Head(n)
		if t, ok := s.memory.attempts.Get(s.talk.tries(key.Mix(head.Digest(nil)))); ok && t.failed {
			return n
		}
	}
	return 0
}
