package api

import (
	"strconv"

	"github.com/claudeless/claudeless/internal/api/history"
)

// stepRuleCounter reserves matches of rules for one step of a history. If the step is replayed, it gets the same
// numbers as the first time.
type stepRuleCounter struct {
	replay    *replay
	key       history.Digest // key of the history up to the step
	prompt    string
	isCurrent bool // the step answers this request, not an earlier one
}

// Next reserves the next match of a rule. A forked session begins with the steps of another session and has the same
// numbers for them.
func (c stepRuleCounter) Next(rule string, after int) (int, error) {
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
