package api

import (
	"strconv"

	"github.com/claudeless/claudeless/internal/api/history"
)

// stepCounter claims the matches of rules for one step of a history. When the step is replayed, it
// gets the numbers that it got the first time.
type stepCounter struct {
	replay    *replay
	key       history.Digest // of the history up to the step
	prompt    string
	isCurrent bool // the step answers this request, not an earlier one
}

// Next claims the next match of a rule. A session that was forked begins with steps of another one,
// and has the numbers of that.
func (c stepCounter) Next(rule string, after int) (int, error) {
	m, r := c.replay.memory, c.replay.request
	m.mu.Lock()
	defer m.mu.Unlock()
	anyone := history.Digest{}.Chain("claim", c.prompt, rule, strconv.Itoa(after))
	own := anyone.Chain(r.Session, r.Agent)
	if r.Session == "" {
		own = anyone.ChainDigest(c.key)
	}
	if n, ok := m.claimedSteps[own]; ok {
		return n, nil
	}
	n, known := m.claimedSteps[anyone]
	if !known || c.isCurrent {
		var err error
		if n, err = m.ruleClaims.Next(rule, after); err != nil {
			return 0, err
		}
	}
	m.claimedSteps[own], m.claimedSteps[anyone] = n, n
	return n, nil
}
