package api

import (
	"slices"
	"strconv"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// historyReplayer replays the histories of requests through a scenario. It is safe for concurrent use.
type historyReplayer struct {
	idSource

	scenario                        *scenarios.Scenario
	initialEngine                   *scenarios.Engine // engine of a new conversation; each request gets a fork of it
	usesContext, hasSubagentScripts bool
}

func newReplayer(o Options, ids idSource) *historyReplayer {
	return &historyReplayer{
		idSource: ids, scenario: o.Scenario,
		initialEngine: scenarios.NewEngine(o.Scenario, scenarios.EngineOptions{Env: o.Environ, Args: o.Args, CWD: o.CWD, Failure: o.Failure}),
		usesContext:   o.Scenario.UsesPerRequestVariable("context"), hasSubagentScripts: o.Scenario.ScriptsAgents(),
	}
}

// historyReplay replays the history of one request. Only one goroutine may use it.
type historyReplay struct {
	replayer                    *historyReplayer
	memory                      *requestNamespaceMemory
	request                     *history.Request
	vars                        scenarios.Vars
	answerSalt                  history.Digest // digest of everything that answers depend on, except the history
	findings                    []string
	unofferedTools              []string // tools that the answer calls and the request does not offer; nil for Claude Code
	missingValues               []missingTemplateValue
	groups                      []historyGroupWithKeys
	prefill                     string // text of an assistant message that ends the history
	attempt                     int    // how often this history was requested, from 1
	stateBeforeLast, finalState *conversationState
}

// historyGroupWithKeys is a group of the history with the digests of the history up to it.
type historyGroupWithKeys struct {
	*history.MessageGroup

	firstKey history.Digest // key of the history up to and including the first step of this group
	key      history.Digest // key of the history up to and including this group
}

// summary returns the summary with which a compacted history begins, or "".
func (g *historyGroupWithKeys) summary() string {
	if len(g.Steps) > 0 && g.Steps[0].Kind == history.KindSummaryReplacingHistory {
		return g.Steps[0].Text
	}
	return ""
}

// historyGroupSplitter divides the messages of a request into groups. A group's key identifies the history up to its end.
type historyGroupSplitter struct {
	memory          *requestNamespaceMemory
	conversation    conversationKey // the session and agent of the request
	client          *history.Client
	includesContext bool // texts that accompany prompts are part of the key
}

func (s historyGroupSplitter) splitIntoGroupsWithKeys(messages []*history.Message) []historyGroupWithKeys {
	var key history.Digest
	read := s.client.GroupAdjacentMessagesByRole(messages)
	groups := make([]historyGroupWithKeys, len(read))
	for i := range groups {
		g := &groups[i]
		g.MessageGroup = &read[i]
		if g.Assistant {
			key = key.ChainDigest(g.AnswerDigest)
			g.key = key
			continue
		}
		if summary := g.summary(); i == 0 && summary != "" { // the summaries of two compactions may be equal
			key = key.Chain("compactions", strconv.Itoa(s.memory.compactionsBefore(s.conversation, summary)))
		}
		key = s.setKeysAndSplitResentPrompt(g, key)
	}
	return groups
}

// setKeysAndSplitResentPrompt sets the keys of a group and returns the key of the history up to the end of the group. If a
// prompt has failed, the client sends its blocks again at the beginning of the next prompt. setKeysAndSplitResentPrompt then
// splits this prompt in two, so that the failed prompt keeps its key.
func (s historyGroupSplitter) setKeysAndSplitResentPrompt(g *historyGroupWithKeys, keyBeforeGroup history.Digest) (keyAfterGroup history.Digest) {
	for i := 0; i < len(g.Steps); i++ {
		in := &g.Steps[i]
		if n := s.countBlocksOfResentFailedPrompt(keyBeforeGroup, in); n > 0 {
			g.Steps = slices.Concat(g.Steps[:i], []history.Step{in.PromptFromFirstBlocks(n), in.PromptWithoutFirstBlocks(n)}, g.Steps[i+1:])
			in = &g.Steps[i]
		}
		keyBeforeGroup = keyBeforeGroup.ChainDigest(in.Digest(g.Uses))
		if i == 0 {
			g.firstKey = keyBeforeGroup
		}
	}
	if s.includesContext {
		keyBeforeGroup = keyBeforeGroup.Chain(append([]string{"context"}, g.Context...)...)
	}
	g.key = keyBeforeGroup
	return keyBeforeGroup
}

// countBlocksOfResentFailedPrompt returns how many blocks at the beginning of a prompt repeat an earlier, failed prompt.
func (s historyGroupSplitter) countBlocksOfResentFailedPrompt(keyBeforePrompt history.Digest, prompt *history.Step) int {
	if prompt.Kind != history.KindPrompt || len(prompt.Blocks) < 2 {
		return 0
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	for n := 1; n < len(prompt.Blocks); n++ {
		head := prompt.PromptFromFirstBlocks(n)
		if t, ok := s.memory.attempts.Get(s.conversation.attemptCounterKey(keyBeforePrompt.ChainDigest(head.Digest(nil)))); ok && t.lastAttemptFailed {
			return n
		}
	}
	return 0
}
