package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// ClockWithIDs provides the time and ids of a run.
type ClockWithIDs interface {
	Now() time.Time
	// Sleep waits; if ctx ends first, it returns the error of ctx.
	Sleep(ctx context.Context, d time.Duration) error
	// NewID returns a new UUID. It is called once, if the scenario has no seed.
	NewID() string
}

// Options configure a Server. Scenario and Clock are required.
type Options struct {
	Scenario *scenarios.Scenario
	Clock    ClockWithIDs
	Capture  io.Writer // receives the journal, one line per write; nil means no journal
	// Token is required for the control routes. If it is "", these routes need no token, but accept only requests from
	// this machine. For all other routes, the listener controls access.
	Token string
	// Environ and Args are `env` and `args` in expressions, CWD is `cwd`. Secret values of Environ are redacted in the journal.
	Environ, Args []string
	CWD           string
	PID           int // process id in journal lines
	// Gates is the directory of gates that are shared with other processes. If it is "", the directory is State or,
	// without State, the one that Environ names (see [gate.Dir]). Without any directory, each namespace has its own
	// gates, and only the control routes can release them.
	Gates   string
	State   string             // a directory in which several servers share gates and the counts of request attempts; "" means not shared
	Memory  int                // the number of entries of each cache of a namespace: 0 means 4096, negative means none
	Strict  bool               // refuses prompts that no rule matches, like `unmatched = "error"`
	Failure *scenarios.Failure // applies to every answer without its own failure; nil means none
	// IsPartOfRun means that all requests without a namespace belong to one run. In these requests, rules with a limit
	// count their matches over the whole run. The processes of the run share the directory Gates, which must be set.
	IsPartOfRun bool
}

// Server handles the Messages API. It is safe for concurrent use.
type Server struct {
	Options

	startedAt time.Time
	replayer  *historyReplayer
	reader    *history.RequestReader
	journal   *journal.Journal // nil means no journal

	mu         sync.Mutex
	namespaces map[string]*requestNamespace
}

// New creates a server; it starts nothing and needs no Close.
func New(o Options) (*Server, error) {
	if o.Scenario == nil || o.Clock == nil {
		return nil, errors.New("api: Scenario and Clock must be set")
	}
	o.Memory = cmp.Or(o.Memory, 4096)
	o.Scenario.HideSecrets(journal.NewSecretFinder(o.Environ))
	var ids idSource
	if o.Scenario.Seed != nil {
		ids.Seed = history.Digest{}.Chain("seed", strconv.FormatInt(*o.Scenario.Seed, 10))
	} else {
		ids.Seed, ids.bySession = history.Digest{}.Chain("id", o.Clock.NewID()), true
	}
	s := &Server{Options: o, startedAt: o.Clock.Now(), namespaces: map[string]*requestNamespace{}, reader: history.NewRequestReader(4 * o.Memory), replayer: newReplayer(o, ids)}
	if o.Capture != nil {
		s.journal = s.newJournal(o.Capture, o.Clock.Now)
	}
	return s, nil
}

func (s *Server) newJournal(w io.Writer, now func() time.Time) *journal.Journal {
	return journal.New(journal.Options{W: w, Now: now, PID: s.PID, Environ: s.Environ})
}

func (s *Server) getOrCreateNamespace(name string) *requestNamespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	ns, ok := s.namespaces[name]
	if !ok {
		ns = &requestNamespace{name: name, unknownKeys: map[string]bool{}, memory: newRequestNamespaceMemory(s.Memory), stepGates: &localGates{}}
		if dir := cmp.Or(s.Gates, s.State, gate.Dir(s.Environ)); dir != "" {
			ns.stepGates = gatesInSharedDirectory(dir)
		}
		if s.State != "" {
			ns.memory.counter = s.attemptClaimsSharedByServers(name)
		}
		if name == "" && s.IsPartOfRun {
			ns.memory.ruleClaims = gate.ExclusiveNameClaimsOfProcesses{Dir: s.Gates}
		}
		s.namespaces[name] = ns
	}
	return ns
}

func (s *Server) attemptClaimsSharedByServers(namespace string) *gate.ExclusiveNameClaimsOfProcesses {
	return &gate.ExclusiveNameClaimsOfProcesses{Dir: filepath.Join(s.State, "attempts", fmt.Sprintf("%.16x", sha256.Sum256([]byte(namespace))))}
}

func (s *Server) resetNamespace(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.namespaces, name)
	if s.State == "" {
		return nil
	}
	return os.RemoveAll(s.attemptClaimsSharedByServers(name).Dir)
}

// recordJournalLine writes a journal line and adds it to the summary of the namespace. If the scenario has no
// expectations, it adds only lines about gates, so that the memory of a long-running server does not grow.
func (s *Server) recordJournalLine(ns *requestNamespace, b journal.Body) {
	now := s.Clock.Now()
	if _, isGate := b.(journal.Gate); isGate || len(s.Scenario.Expect) > 0 {
		ns.summary.Add(journal.LineOrigin{PID: s.PID, AfterMS: float64(now.Sub(s.startedAt)) / float64(time.Millisecond)}, b)
	}
	ns.keepJournalLine(retainedJournalLine{now, b})
	if s.journal != nil {
		s.journal.Write(b)
	}
}

// idSource derives ids in the form of the API from a seed and a history. On all servers with the same seed, the same
// answer to the same history has the same ids.
type idSource struct {
	Seed      history.Digest
	bySession bool // ids also depend on the session and the agent, as in the API
}

// ID returns an id with a prefix such as "msg_".
func (s idSource) ID(prefix string, key history.Digest, parts ...string) string {
	sum := s.Seed.Chain(append([]string{prefix, string(key[:])}, parts...)...)
	return prefix + "_01" + strings.ToLower(idEncoding.EncodeToString(sum[:]))[:22]
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

func (s *Server) answerTextForSideRequest(kind string, lastMessage *history.Message) string {
	if text, ok := s.Scenario.API.SideRequestAnswer(kind); ok {
		return text
	}
	switch kind {
	case "title":
		title, err := json.Marshal(map[string]string{"title": titleFromPrompt(lastMessage.FirstText())})
		if err == nil {
			return string(title)
		}
	case "compact":
		return "<summary>\nThe conversation so far followed the scenario.\n</summary>"
	}
	return "OK"
}

func titleFromPrompt(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "<session>")
	text, _, _ = strings.Cut(text, "</session>")
	words := strings.Fields(text)
	if len(words) > 5 {
		words = words[:5]
	}
	if len(words) == 0 {
		return "Session"
	}
	return strings.Join(words, " ")
}

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
	vars                        scenarios.ExpressionVars
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
	client          *history.RequestSender
	includesContext bool // texts that accompany prompts are part of the key
}

func (s historyGroupSplitter) splitIntoGroupsWithKeys(messages []*history.Message) []historyGroupWithKeys {
	var key history.Digest
	read := s.client.GroupAndInterpretMessages(messages)
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
			g.Steps = slices.Concat(g.Steps[:i], []history.Segment{in.PromptFromFirstBlocks(n), in.PromptWithoutFirstBlocks(n)}, g.Steps[i+1:])
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
func (s historyGroupSplitter) countBlocksOfResentFailedPrompt(keyBeforePrompt history.Digest, prompt *history.Segment) int {
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
