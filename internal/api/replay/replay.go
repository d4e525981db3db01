// Package replay answers a Messages API request by replaying its history: a
// fresh engine of the scenario receives the history in order and produces the
// next message.
//
// No state that influences an answer is kept between requests. A [Memory] is a
// cache: losing it only changes how often a failure occurs, where a session
// continues after its history was cut, and which script a sub-agent plays.
package replay

import (
	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// Options configures a [Replayer]. Scenario is required.
type Options struct {
	Scenario *scenarios.Scenario
	// Environ and Args are `env` and `args` in expressions, CWD is `cwd`.
	Environ, Args []string
	CWD           string
	IDs           IDs
	Failure       *scenarios.Failure // like that of [scenarios.EngineOptions]
}

// Replayer replays the histories of requests through a scenario. It is safe for concurrent use.
type Replayer struct {
	IDs

	scenario           *scenarios.Scenario
	initialEngine      *scenarios.Engine // at the beginning of a conversation; it is forked, never used
	usesContext        bool
	hasSubagentScripts bool // some call starts a scripted sub-agent
}

// New returns a Replayer for a scenario.
func New(o Options) *Replayer {
	return &Replayer{
		IDs: o.IDs, scenario: o.Scenario,
		initialEngine: scenarios.NewEngine(o.Scenario, scenarios.EngineOptions{Env: o.Environ, Args: o.Args, CWD: o.CWD, Failure: o.Failure}),
		usesContext:   o.Scenario.Mentions("context"), hasSubagentScripts: o.Scenario.ScriptsAgents(),
	}
}

// Replay replays the history of one request. It must not be used by several goroutines.
type Replay struct {
	replayer       *Replayer
	memory         *Memory
	request        *history.Request
	vars           scenarios.Vars
	salt           history.Digest // of everything except the history that answers depend on
	findings       []string
	unofferedTools []string // called by the answer but not offered
	missingValues  []MissingValue
	groups         []replayedGroup
	prefill        string // text of an assistant message at the end
	attempt        int
	beforeLast     *state // state before the last group
	final          *state
}

// replayedGroup is a group of the history with the digests of the history up to it.
type replayedGroup struct {
	*history.Group

	firstKey history.Digest // of the history up to the first step
	key      history.Digest // of the history up to here
}
