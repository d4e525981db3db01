package api

import (
	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// replayer replays the histories of requests through a scenario. It is safe for concurrent use.
type replayer struct {
	idSource

	scenario           *scenarios.Scenario
	initialEngine      *scenarios.Engine // engine at the beginning of a conversation; requests use a fork of it
	usesContext        bool
	hasSubagentScripts bool
}

func newReplayer(o Options, ids idSource) *replayer {
	return &replayer{
		idSource: ids, scenario: o.Scenario,
		initialEngine: scenarios.NewEngine(o.Scenario, scenarios.EngineOptions{Env: o.Environ, Args: o.Args, CWD: o.CWD, Failure: o.Failure}),
		usesContext:   o.Scenario.UsesVariable("context"), hasSubagentScripts: o.Scenario.ScriptsAgents(),
	}
}

// replay replays the history of one request. It must not be used by several goroutines.
type replay struct {
	replayer        *replayer
	memory          *namespaceMemory
	request         *history.Request
	vars            scenarios.Vars
	salt            history.Digest // digest of the values, other than the history, on which answers depend
	findings        []string
	unofferedTools  []string
	missingValues   []missingValue
	groups          []replayedGroup
	prefill         string // text of an assistant message that ends the history
	attempt         int
	stateBeforeLast *conversationState
	finalState      *conversationState
}

// replayedGroup is a group of the history with the digests of the history up to it.
type replayedGroup struct {
	*history.Group

	firstKey history.Digest // key of the history up to and including the first step of this group
	key      history.Digest // key of the history up to and including this group
}
