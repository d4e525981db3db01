package journal

import (
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/scenarios"
)

// LineOrigin is the process that wrote a line, and the time.
type LineOrigin struct {
	Source  int     // numbers the journals that are read together, see Entry
	PID     int     // the process id
	AfterMS float64 // the time since the beginning of the run
}

// Summary collects the facts from which expectations and gates are judged. It gets them from journal lines, even if the
// lines are not written to a file. A session, the Messages API and the verdict about a run all use a Summary, so that
// they reach the same results. All methods may be called from many goroutines. The zero value is an empty run.
type Summary struct {
	mu       sync.Mutex
	run      scenarios.RunRecord
	messages map[processAgentKey]lastMessageAndRequest      // last message of each model
	retries  map[processKey]int                             // failed attempts of the current request
	requests map[apiConversationKey]lastConversationRequest // last request to the Messages API in each conversation
	gates    []GateState
}

// GateState says whether a step has reached a gate, and whether it still waits there.
type GateState struct {
	Name    string `json:"name"`
	Reached bool   `json:"reached"`
	Waiting bool   `json:"waiting"`
}

type processKey struct{ source, pid int }

// processAgentKey identifies the model of a process or of a sub-agent in it.
type processAgentKey struct {
	process processKey
	agent   string
}

type lastMessageAndRequest struct {
	messageID    string
	requestIndex int // number of the request that the message answers, see RunRecord.AddRequest
}

// apiConversationKey identifies an API conversation: by session and agent if the client names them, otherwise by the prompt.
type apiConversationKey struct{ session, agent, prompt string }

type lastConversationRequest struct {
	indexInRunRecord int // index of the request in the record of the run
	hasFailed        bool
}

// Summarize returns the summary of a run. The entries must be complete: they must include the lines of fixtures. They
// must be ordered by time.
func Summarize(entries []Entry) *Summary {
	var s Summary
	s.run.FixturesRead = true
	for i := range entries {
		if body := entries[i].Body(); body != nil {
			after := float64(entries[i].When.Sub(entries[0].When).Microseconds()) / 1000
			s.Add(LineOrigin{Source: entries[i].Source, PID: entries[i].PID, AfterMS: after}, body)
		}
	}
	return &s
}

// Add adds the content of a journal line.
func (s *Summary) Add(origin LineOrigin, b Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := processKey{origin.Source, origin.PID}
	switch b := b.(type) {
	case Prompt:
		s.run.Prompts = append(s.run.Prompts, b.Prompt)
	case Tool:
		s.run.AddCall(b.Tool, b.Input)
	case Start:
		if b.LogCache != "" {
			s.run.IsRealCLI = true
		}
	case Screen:
		s.run.Screens = append(s.run.Screens, scenarios.ObservedDialog{State: b.State, Kind: b.Kind, Answer: b.Answer})
	case OAuth:
		s.run.OAuthRequests = append(s.run.OAuthRequests, scenarios.ObservedOAuthRequest{Request: b.Request, Grant: b.Grant, Client: b.Client, Scopes: b.Granted, Result: b.Result})
	case MCPCall:
		s.run.AddServerCall(b.Server, b.RawTool)
	case MCPNotification:
		s.run.Notifications = append(s.run.Notifications, scenarios.ObservedNotification{Server: b.Server, Tool: b.RawTool, Level: b.Level, Text: b.Text})
	case Match:
		s.recordRuleUse(b.Rule, b.File, b.Line)
	case Exit:
		s.run.ExitCodes = append(s.run.ExitCodes, b.Code)
	case Telemetry:
		s.run.Telemetry = append(s.run.Telemetry, slices.Repeat([]string{b.Name}, b.Count)...)
	case Retry:
		setInLazyMap(&s.retries, by, b.Attempt)
	case Model:
		s.addModelMessage(processAgentKey{by, b.Agent}, b, origin.AfterMS)
	case Request:
		s.addRequestAndExecutedCalls(b, origin.AfterMS)
	case Gate:
		s.updateGateState(b)
	}
}

// CheckExpectations compares the run with the [[expect]] blocks of a scenario, in file order.
func (s *Summary) CheckExpectations(x *scenarios.Scenario) []scenarios.ExpectationResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.CheckExpectations(&s.run)
}

// UnusedRulesUnlessExpected returns the rules of a scenario that answered no prompt, see [scenarios.Scenario.UnusedRulesUnlessExpected].
func (s *Summary) UnusedRulesUnlessExpected(x *scenarios.Scenario) []scenarios.RuleLocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.UnusedRulesUnlessExpected(&s.run)
}

// Gates returns the gates that steps have reached, in the order in which they were first reached.
func (s *Summary) Gates() []GateState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gates)
}

func (s *Summary) recordRuleUse(name, file string, line int) {
	if name != "" {
		s.run.Rules = append(s.run.Rules, scenarios.RuleLocation{Name: name, File: file, Line: line})
	}
}

// addModelMessage records a message of the model. It is the response to a new request, unless it continues another message.
func (s *Summary) addModelMessage(source processAgentKey, message Model, msAfterStart float64) {
	last, known := s.messages[source]
	if last.messageID == message.MessageID {
		return
	}
	retries := s.retries[source.process]
	delete(s.retries, source.process)
	last.messageID = message.MessageID
	if message.Continued && known {
		s.run.AddRetries(last.requestIndex, retries)
	} else {
		last.requestIndex = s.run.AddRequest(scenarios.ObservedModelRequest{Model: message.Model, Retries: retries, AfterMS: msAfterStart})
	}
	setInLazyMap(&s.messages, source, last)
}

// addRequestAndExecutedCalls adds a request to the Messages API. A retry counts as the same request.
func (s *Summary) addRequestAndExecutedCalls(q Request, afterMS float64) {
	by := apiConversationKey{session: q.Session, agent: q.Agent}
	if q.Session == "" {
		by = apiConversationKey{prompt: q.Prompt}
	}
	before, again := s.requests[by]
	// Without a session, a second request with the same prompt is a retry only if the first one failed.
	again = again && q.Attempt > 1 && (q.Session != "" || before.hasFailed)
	this := lastConversationRequest{indexInRunRecord: before.indexInRunRecord, hasFailed: q.Failed()}
	if again {
		s.run.AddRetries(this.indexInRunRecord, 1)
	} else {
		this.indexInRunRecord = s.run.AddRequest(scenarios.ObservedModelRequest{Model: q.Model, AfterMS: afterMS})
	}
	setInLazyMap(&s.requests, by, this)
	for _, c := range q.Calls {
		s.run.AddCall(c.Tool, c.Input)
		if server, tool, ok := c.reachedServerTool(); ok {
			s.run.AddServerCall(server, tool)
		}
	}
	s.run.Prompts = append(s.run.Prompts, q.Added...)
	if q.Prompt == "" || again {
		return
	}
	s.run.Prompts = append(s.run.Prompts, q.Prompt)
	s.recordRuleUse(q.Rule, q.File, q.Line)
}

func (s *Summary) updateGateState(gateEvent Gate) {
	i := slices.IndexFunc(s.gates, func(state GateState) bool { return state.Name == gateEvent.Name })
	if i < 0 {
		s.gates, i = append(s.gates, GateState{Name: gateEvent.Name}), len(s.gates)
	}
	s.gates[i].Reached = s.gates[i].Reached || gateEvent.Event == "reached"
	s.gates[i].Waiting = gateEvent.Event == "reached"
}

func setInLazyMap[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// Failed reports whether the request failed, or the client aborted it.
func (q Request) Failed() bool {
	return q.Status != 200 || q.Error != "" || slices.ContainsFunc(q.Findings, func(f string) bool { return strings.HasPrefix(f, "aborted: ") })
}

// reachedServerTool returns the server and the tool of a call to an MCP server. ok is false for other calls, and for calls that
// did not reach the server.
func (c *ExecutedCall) reachedServerTool() (server, tool string, ok bool) {
	name, ok := strings.CutPrefix(c.Tool, "mcp__")
	if !ok || c.HasUnknownTool() || c.WasDeniedForLackOfAllowRule() {
		return "", "", false
	}
	return strings.Cut(name, "__")
}

// HasUnknownTool reports whether the tool of the call does not exist. It recognizes the error message that Claude Code gives for such a call.
func (c *ExecutedCall) HasUnknownTool() bool {
	return c.IsError && strings.Contains(c.Result, "No such tool available: "+c.Tool)
}

// WasDeniedForLackOfAllowRule reports whether Claude Code denied the call because nothing allowed it. It does not recognize
// calls that a permission rule denied.
func (c *ExecutedCall) WasDeniedForLackOfAllowRule() bool {
	if !c.IsError {
		return false
	}
	use := "Permission to use " + c.Tool + " has been denied because "
	return strings.HasPrefix(c.Result, "Claude requested permissions to ") ||
		strings.HasPrefix(c.Result, use+"Claude Code is running in don't ask mode") || strings.HasPrefix(c.Result, use+"this session shows no permission prompts")
}
