package verdict

import (
	"time"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// process is a run together with its journal lines.
type process struct {
	Run
	entries    []journal.Entry
	start      *journal.Start
	setup      *journal.Run // nil = it had no session
	exit       *journal.Exit
	began      time.Time
	ended      time.Time // time of its last line
	results    []*journal.Result
	host       []*journal.Host
	streamed   bool // driven over the control protocol
	firstTurn  int  // index of the first prompt in the journal; -1 = none
	lastResult int  // index of the last result; -1 = none
}

// splitByProcess groups the lines of a journal by process. A process id may be reused by a later process.
func splitByProcess(entries []journal.Entry) []*process {
	var all []*process
	current := map[processKey]*process{}
	for i, e := range entries {
		p := current[keyOf(e)]
		switch {
		case e.Expectation != nil || e.Finding != nil || e.Request != nil || e.SideRequest != nil || e.Exchange != nil || e.OAuth != nil:
			continue
		case (e.Gate != nil || e.MCPNotification != nil) && p == nil: // written by the API server, or by exec
			continue
		case p == nil || e.Start != nil && len(p.entries) > 0:
			p = &process{Run: Run{PID: e.PID, Argv: []string{}, Prompts: []string{}, Tools: []string{}}, began: e.When, firstTurn: -1, lastResult: -1}
			current[keyOf(e)] = p
			all = append(all, p)
		}
		p.add(i, e)
	}
	return all
}

// add adds the information of a journal line to the process.
func (p *process) add(i int, e journal.Entry) {
	p.entries, p.ended = append(p.entries, e), e.When
	if e.SessionID != "" {
		p.SessionID = e.SessionID
	}
	switch {
	case e.Start != nil:
		p.start, p.Argv, p.CWD, p.Parent = e.Start, e.Start.Argv, e.Start.CWD, e.Start.Parent
	case e.Run != nil:
		p.setup, p.Argv, p.CWD, p.streamed = e.Run, e.Run.Argv, e.Run.CWD, e.Run.InputFormat == "stream-json"
	case e.Prompt != nil:
		p.Prompts = append(p.Prompts, e.Prompt.Prompt)
		if p.firstTurn < 0 {
			p.firstTurn = i
		}
	case e.Tool != nil:
		p.Tools = append(p.Tools, e.Tool.Tool)
	case e.Result != nil:
		p.results, p.lastResult = append(p.results, e.Result), i
	case e.Host != nil:
		p.host = append(p.host, e.Host)
	case e.Exit != nil:
		p.exit, p.Code, p.Signal, p.MS = e.Exit, &e.Exit.Code, e.Exit.Signal, e.Exit.MS
	}
}

// findings collects the problems of the processes of a journal.
type findings struct {
	in        Input
	list      []Finding
	unmatched []Unmatched
}

// add adds a finding about a process.
func (l *findings) add(p *process, id, level, text, advice string) {
	l.list = append(l.list, p.attribute(Finding{ID: id, Level: level, Text: text, Advice: advice}))
}

// attribute returns the finding with the id of this process.
func (p *process) attribute(f Finding) Finding {
	if f.PID = p.PID; !p.ended.IsZero() {
		f.Time = p.ended.UTC().Format(time.RFC3339Nano)
	}
	return f
}

// hostAction returns the journal line for an action of the host; nil = it did not happen.
func (p *process) hostAction(what string) *journal.Host {
	for _, h := range p.host {
		if h.What == what {
			return h
		}
	}
	return nil
}
