package api

import (
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// namespace is the state that requests with one namespace name share.
type namespace struct {
	name   string
	memory *namespaceMemory
	gates  gates

	mu                sync.Mutex
	unknownKeys       map[string]bool // unknown keys of requests that were already reported
	journalLines      []journalLine   // the latest lines
	droppedLines      int
	requests          int             // number of conversation requests
	sideAnswers       int             // counter for the ids of side answers and refusals
	summary           journal.Summary // facts about the conversations, for expectations and gates
	unmetExpectations []scenarios.ExpectationResult
}

func newNamespace(name string, memory int, g gates) *namespace {
	return &namespace{name: name, unknownKeys: map[string]bool{}, memory: newNamespaceMemory(memory), gates: g}
}

type journalLine struct {
	at   time.Time
	body journal.Body
}

// maxJournalLines is the number of journal lines that a namespace keeps for the control routes.
const maxJournalLines = 2000

func (ns *namespace) keepJournalLine(l journalLine) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if len(ns.journalLines) >= maxJournalLines {
		cut := maxJournalLines / 4
		ns.journalLines, ns.droppedLines = append([]journalLine(nil), ns.journalLines[cut:]...), ns.droppedLines+cut
	}
	ns.journalLines = append(ns.journalLines, l)
}
