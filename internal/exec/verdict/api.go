package verdict

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// apiConduct is C14: wrong use of the Messages API. Only requests that the API itself refused count. The journal
// lines are those of the server, so the calling process is unknown.
func apiConduct(entries []journal.Entry) []Finding {
	var found []Finding
	told := map[string]bool{}
	for _, e := range entries {
		q := e.Request
		if q == nil || q.Status != 400 && q.Status != 404 || q.Prompt != "" { // a request with a prompt was refused by the scenario
			continue
		}
		advice := ""
		switch {
		case strings.Contains(q.Path, "/v1/v1"):
			advice = "the base URL must not end in /v1: clients add it"
		case strings.Contains(q.Error, "anthropic-version"):
			advice = "send the header anthropic-version"
		case strings.Contains(q.Error, "tool_use") || strings.Contains(q.Error, "tool_result"):
			advice = "answer every tool_use in the next user message, and nothing else"
		case strings.Contains(q.Error, "thinking"):
			advice = "send thinking blocks back as they came, signature and all"
		}
		if text := fmt.Sprintf("the API refused a request with %d: %s", q.Status, q.Error); advice != "" && !told[text] {
			told[text] = true
			found = append(found, Finding{ID: "C14", Level: levelError, Text: text, Advice: advice, Time: e.Time})
		}
	}
	return found
}

// requestTracker collects requests to the Messages API for expectations. A retry counts as the same request. The zero
// value is empty.
type requestTracker struct {
	requests []scenarios.ModelRequest
	last     map[conversation]lastRequest
}

// conversation identifies a conversation: by session and agent if the client names them, otherwise by the prompt.
type conversation struct{ session, agent, prompt string }

type lastRequest struct {
	index  int // in the list
	failed bool
}

// conversationOf returns the conversation of a request.
func conversationOf(q *journal.Request) conversation {
	if q.Session == "" {
		return conversation{prompt: q.Prompt}
	}
	return conversation{session: q.Session, agent: q.Agent}
}

// add adds a request and reports the facts that do not depend on the complete list.
func (a *requestTracker) add(s *scenarios.RunRecord, q *journal.Request, ms float64) {
	if a.last == nil {
		a.last = map[conversation]lastRequest{}
	}
	by := conversationOf(q)
	before, again := a.last[by]
	// A client without a session that starts over looks like one that retries, except for the messages it sends.
	again = again && q.Attempt > 1 && (q.Session != "" || before.failed)
	this := lastRequest{index: len(a.requests), failed: failed(q)}
	if again {
		this.index = before.index
		a.requests[this.index].Retries++
	} else {
		a.requests = append(a.requests, scenarios.ModelRequest{Model: q.Model, AfterMS: ms})
	}
	a.last[by] = this
	for _, c := range q.Calls {
		s.Call(c.Tool, c.Input)
		if server, tool, ok := serverTool(c); ok {
			s.ServerCall(server, tool)
		}
	}
	for _, prompt := range q.Added {
		s.Prompt(prompt)
	}
	if q.Prompt == "" || again {
		return
	}
	s.Prompt(q.Prompt)
	if q.Rule != "" {
		s.Rule(scenarios.RuleRef{Name: q.Rule, File: q.File, Line: q.Line})
	}
}

// report reports the requests once all are known.
func (a *requestTracker) report(s *scenarios.RunRecord) {
	for _, q := range a.requests {
		s.Request(q)
	}
}

// failed reports whether the client had to repeat the request.
func failed(q *journal.Request) bool { return q.Status != 200 || q.Error != "" || abandoned(q) }

// abandoned reports whether the client gave up the request.
func abandoned(q *journal.Request) bool {
	for _, f := range q.Findings {
		if strings.HasPrefix(f, "aborted: ") {
			return true
		}
	}
	return false
}

// serverTool returns the server and tool of a call that an MCP server received.
func serverTool(c journal.ExecutedCall) (server, tool string, ok bool) {
	name, ok := strings.CutPrefix(c.Tool, "mcp__")
	if !ok || noSuchToolResult(c) || deniedResult(c) {
		return "", "", false
	}
	return strings.Cut(name, "__")
}

// noSuchToolResult and deniedResult recognize by the texts of Claude Code why a call did not run: the tool does not
// exist, or the call was not allowed. Calls denied by a rule have another text.
func noSuchToolResult(c journal.ExecutedCall) bool {
	return c.IsError && strings.Contains(c.Result, "No such tool available: "+c.Tool)
}

func deniedResult(c journal.ExecutedCall) bool {
	if !c.IsError {
		return false
	}
	use := "Permission to use " + c.Tool + " has been denied because "
	return strings.HasPrefix(c.Result, "Claude requested permissions to ") ||
		strings.HasPrefix(c.Result, use+"Claude Code is running in don't ask mode") || strings.HasPrefix(c.Result, use+"this session shows no permission prompts")
}
