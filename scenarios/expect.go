package scenarios

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios/internal/toolname"
)

// Seen is what a run did, as its expectations look at it. The zero value is a run
// that did nothing. It is for one goroutine at a time.
type Seen struct {
	calls    []observedCall
	prompts  []string
	servers  []observedCall // calls of MCP servers; name is "server/tool"
	notified []NotificationSeen
	requests []RequestSeen
	oauth    []OAuthSeen
	fixtures bool // oauth is complete
	exits    []int
	rules    []RuleRef
}

type observedCall struct {
	name  string
	input any
}

// NotificationSeen is what an MCP server said while it worked.
type NotificationSeen struct {
	Server string // by its name in the configuration
	// Tool is the server's own name of the tool whose progress it is.
	Tool string
	// Level is that of a log message; empty = progress.
	Level string
	Text  string
}

// RequestSeen is a request to the model's API.
type RequestSeen struct {
	Model string
	// Retries is how often it was made again.
	Retries int
	// AfterMS is when it came, from the beginning of the run.
	AfterMS float64
}

// Call records a tool call, by its canonical name.
func (s *Seen) Call(name string, input json.RawMessage) {
	s.calls = append(s.calls, observedCall{name: name, input: numbers(input)})
}

// Prompt records a prompt.
func (s *Seen) Prompt(text string) { s.prompts = append(s.prompts, text) }

// ServerCall records what an MCP server was asked, by the server's name in the
// configuration and its own name of the tool.
func (s *Seen) ServerCall(server, tool string) {
	s.servers = append(s.servers, observedCall{name: server + "/" + tool})
}

// Notification records what an MCP server said while it worked.
func (s *Seen) Notification(n NotificationSeen) { s.notified = append(s.notified, n) }

// Request records a request to the model.
func (s *Seen) Request(r RequestSeen) { s.requests = append(s.requests, r) }

// GoOn records that the answer to the last request goes on after so many retries:
// steps that have nothing to run are one message of the API.
func (s *Seen) GoOn(retries int) {
	if n := len(s.requests); n > 0 {
		s.requests[n-1].Retries += retries
	}
}

// ReadFixtures says that what fixtures write was read too. Without it expectations
// of OAuth are not judged: a process by itself knows nothing of them.
func (s *Seen) ReadFixtures() { s.fixtures = true }

// OAuth records a request to an authorization server.
func (s *Seen) OAuth(r OAuthSeen) { s.oauth = append(s.oauth, r) }

// Exit records the exit code of a process.
func (s *Seen) Exit(code int) { s.exits = append(s.exits, code) }

// Rule records that a rule has answered.
func (s *Seen) Rule(r RuleRef) { s.rules = append(s.rules, r) }

// ExpectationResult is one expectation and what came of it.
type ExpectationResult struct {
	At   diag.Position // zero = unknown
	Text string        // what is expected: "expected a call to Bash"
	Met  bool
	Got  string // what happened instead; empty when it is met
}

// String is the line that reports an unmet expectation.
func (j ExpectationResult) String() string {
	text := j.Text
	if j.Got != "" {
		text += ", but " + j.Got
	}
	if at := j.At.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// Judge holds what a run did against the [[expect]] blocks, in file order.
func (s *Scenario) Judge(seen *Seen) []ExpectationResult {
	judged := make([]ExpectationResult, 0, len(s.Expect))
	for i := range s.Expect {
		x := &s.Expect[i]
		if x.OAuth != nil && !seen.fixtures {
			continue
		}
		j := ExpectationResult{At: x.at}
		if x.Unused != "" {
			judged = append(judged, s.unused(x, seen)...)
			continue
		}
		j.Text, j.Got = s.check(x, seen)
		j.Met = j.Got == ""
		judged = append(judged, j)
	}
	return judged
}

// check words one expectation and what is wrong with it; "" = nothing.
func (s *Scenario) check(x *Expectation, seen *Seen) (text, got string) {
	hits := x.hits(seen)
	low, high := 1, -1
	switch {
	case x.Never:
		low, high = 0, 0
	case x.Times != nil:
		low, high = x.Times.Min, x.Times.Max
	}
	text = "expected " + bounded(x.subject(), low, high)
	if len(hits) < low || (high >= 0 && len(hits) > high) {
		return text, found(len(hits)) + s.almost(x, seen, len(hits))
	}
	if got := x.Request.exceeded(hits, seen); got != "" {
		return text, got
	}
	if x.Order == nil || x.Tool == "" || len(hits) == 0 {
		return text, ""
	}
	for i := range s.Expect {
		other := &s.Expect[i]
		if other.Order == nil || *other.Order >= *x.Order || other.Tool == "" {
			continue
		}
		if earlier := other.hits(seen); len(earlier) > 0 && earlier[0] > hits[0] {
			return fmt.Sprintf("expected %s after %s", x.subject(), other.subject()), "it came before"
		}
	}
	return text, ""
}

// ExpectsTool tells whether an expectation speaks of a tool, by its canonical
// name.
func (s *Scenario) ExpectsTool(name string) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Tool != "" && x.names(name) })
}

// ExpectsExit tells whether an expectation speaks of an exit code.
func (s *Scenario) ExpectsExit() bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Exit != nil })
}

// ExpectsExitCode tells whether an expectation names this exit code.
func (s *Scenario) ExpectsExitCode(code int) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Exit != nil && *x.Exit == code })
}

// ExpectsInput tells whether an expectation names a tool, by its canonical name, with an input like this one.
func (s *Scenario) ExpectsInput(tool string, input json.RawMessage) bool {
	var seen Seen
	seen.Call(tool, input)
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Tool != "" && x.Input != nil && !x.Never && len(x.hits(&seen)) > 0 })
}

// UnrecordedServers are the expectations about what MCP servers say that none of the recorded servers is named by.
func (s *Scenario) UnrecordedServers(recorded []string) []RuleRef {
	var all []RuleRef
	for i := range s.Expect {
		x := &s.Expect[i]
		if x.MCP == nil || !x.MCP.notification() {
			continue
		}
		if !slices.ContainsFunc(recorded, func(name string) bool { return oneOf(name, x.MCP.Server) }) {
			all = append(all, RuleRef{Name: x.MCP.Server, File: x.at.File, Line: x.at.Line})
		}
	}
	return all
}

// AcceptsMissingServer tells whether an expectation says that an MCP server is never asked.
func (s *Scenario) AcceptsMissingServer(name string) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool {
		none := x.Never || x.Times != nil && x.Times.Max == 0
		return none && x.MCP != nil && !x.MCP.notification() && oneOf(name, x.MCP.Server)
	})
}

// UnusedRules are the rules that answered no prompt. There are none in a scenario with `[[expect]] unused = …`, which
// judges them itself.
func (s *Scenario) UnusedRules(seen *Seen) []RuleRef {
	var unused []RuleRef
	if slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Unused != "" }) {
		return nil
	}
	for i := range s.Responses {
		if at, used := s.used(i, seen); !used {
			unused = append(unused, RuleRef{Name: ruleName(i), File: at.File, Line: at.Line})
		}
	}
	return unused
}

// used tells whether a rule answered a prompt, and where the rule is.
func (s *Scenario) used(i int, seen *Seen) (diag.Position, bool) {
	rule := &s.Responses[i]
	at := rule.source.Index.Pos(diag.Path{"responses", rule.index})
	return at, slices.ContainsFunc(seen.rules, func(r RuleRef) bool { return r.Line == at.Line && sameFile(r.File, at.File) })
}

// unused judges every rule of the scenario: each should have answered.
func (s *Scenario) unused(x *Expectation, seen *Seen) []ExpectationResult {
	var judged []ExpectationResult
	for i := range s.Responses {
		j := ExpectationResult{Text: fmt.Sprintf("expected the rule %s (%s) to answer a prompt", ruleName(i), s.Responses[i].Pattern.String())}
		j.At, j.Met = s.used(i, seen)
		switch {
		case j.Met:
		case x.Unused == "warn":
			j.Met, j.Got = true, "it answered none"
		default:
			j.Got = "it answered none"
		}
		judged = append(judged, j)
	}
	return judged
}

// sameFile compares names of files of which one may be relative.
func sameFile(a, b string) bool { return a == b || filepath.Base(a) == filepath.Base(b) }

// hits are the positions of what x speaks of among things of its kind.
func (x *Expectation) hits(seen *Seen) []int {
	switch {
	case x.Prompt != nil:
		return where(seen.prompts, func(p string) bool { _, ok := x.prompt.Match(p); return ok })
	case x.MCP != nil && x.MCP.notification():
		return where(seen.notified, x.MCP.describes)
	case x.MCP != nil:
		return where(seen.servers, x.MCP.names)
	case x.Request != nil:
		return where(seen.requests, func(r RequestSeen) bool { return x.Request.Model == "" || globMatches(x.Request.Model, r.Model) })
	case x.OAuth != nil:
		return where(seen.oauth, func(r OAuthSeen) bool { return x.OAuth.matches(r) })
	case x.Exit != nil:
		return where(seen.exits, func(code int) bool { return code == *x.Exit })
	case x.Rule != nil:
		return where(seen.rules, func(r RuleRef) bool { return r.Line == *x.Rule && sameFile(r.File, x.at.File) })
	}
	return where(seen.calls, func(c observedCall) bool {
		if !x.names(c.name) {
			return false
		}
		_, ok := match.Subset(x.input(), c.input)
		return ok || x.Input == nil
	})
}

func where[T any](list []T, is func(T) bool) []int {
	var hits []int
	for i, v := range list {
		if is(v) {
			hits = append(hits, i)
		}
	}
	return hits
}

// oneOf tells whether a glob matches a name as it is, or as it is part of the name
// of a tool.
func oneOf(name, glob string) bool {
	return globMatches(glob, name) || globMatches(toolname.Part(glob), name)
}

// exceeded says which limit the requests do not keep; "" = none.
func (r *ExpectRequest) exceeded(hits []int, seen *Seen) string {
	if r == nil {
		return ""
	}
	for n, i := range hits {
		q := seen.requests[i]
		if r.MaxRetries != nil && q.Retries > *r.MaxRetries {
			return fmt.Sprintf("one for %s was retried %s", q.Model, count(q.Retries))
		}
		if n == 0 && r.WithinMS > 0 && q.AfterMS > float64(r.WithinMS) {
			return fmt.Sprintf("the first came after %.0f ms", q.AfterMS)
		}
	}
	return ""
}

// almost tells how the input of a call to the right tool differs, or what there
// was instead.
func (s *Scenario) almost(x *Expectation, seen *Seen, hits int) string {
	if x.Never || hits > 0 {
		return ""
	}
	if x.MCP != nil && x.MCP.notification() {
		return x.MCP.others(seen.notified)
	}
	if x.OAuth != nil {
		return x.OAuth.almost(seen.oauth)
	}
	if x.Exit != nil && len(seen.exits) > 0 {
		return "; the exit codes were " + strings.Trim(fmt.Sprint(seen.exits), "[]")
	}
	if x.Prompt != nil {
		return s.nearestPrompt(x, seen.prompts)
	}
	if x.Tool == "" {
		return ""
	}
	return x.nearestCall(seen.calls)
}

// nearestPrompt tells how the prompt that comes nearest to the expected one differs.
func (s *Scenario) nearestPrompt(x *Expectation, prompts []string) string {
	want := x.Prompt.text()
	if len(prompts) == 0 {
		return "; there was no prompt"
	}
	best := slices.MinFunc(prompts, func(a, b string) int {
		return cmp.Compare(match.Distance(want, a), match.Distance(want, b))
	})
	return "; of the prompt " + s.excerpts.clip(best) + ": " + s.excerpts.stopped(x.prompt, best)
}

// nearestCall tells how the call of the right tool that comes nearest differs, or
// which tools were called instead.
func (x *Expectation) nearestCall(calls []observedCall) string {
	best, least, others := "", -1, []string{}
	for _, c := range calls {
		if !x.names(c.name) {
			if !slices.Contains(others, c.name) {
				others = append(others, c.name)
			}
			continue
		}
		text, err := json.Marshal(c.input)
		if err != nil || x.Input == nil {
			continue
		}
		if n := match.Distance(string(x.Input), string(text)); least < 0 || n < least {
			diff, _ := match.Subset(x.input(), c.input)
			best, least = "; in a call to "+c.name+" "+diff, n
		}
	}
	if least < 0 && len(others) > 0 {
		return "; called were " + strings.Join(others, ", ")
	}
	return best
}

// numbers decodes JSON with its numbers as they are written; nil = it is none.
func numbers(raw json.RawMessage) any {
	if v, err := plainjson.Decode(raw); err == nil {
		return v
	}
	return nil
}

func (x *Expectation) input() any { return numbers(x.Input) }

// names tells whether the expectation speaks of the tool.
func (x *Expectation) names(tool string) bool {
	for _, t := range x.tools {
		if _, ok := t.Match(tool); ok {
			return true
		}
	}
	return false
}

// CanonicalTool is the name that a tool has in a conversation when a scenario
// writes it as server/tool; other names stay.
func CanonicalTool(name string) string { return toolname.Canonical(name) }

func (x *Expectation) subject() string {
	switch {
	case x.Prompt != nil:
		return "a prompt that matches " + x.Prompt.String()
	case x.MCP != nil:
		return x.MCP.subject()
	case x.Request != nil && x.Request.Model == "":
		return "a request to the model"
	case x.Request != nil:
		return "a request to the model " + x.Request.Model
	case x.OAuth != nil:
		return x.OAuth.subject()
	case x.Exit != nil:
		return "a process that exits with " + strconv.Itoa(*x.Exit)
	case x.Rule != nil:
		return "a match of the rule in line " + strconv.Itoa(*x.Rule)
	}
	if x.Input != nil {
		return "a call to " + x.Tool + " with " + string(x.Input)
	}
	return "a call to " + x.Tool
}

// bounded adds how often the subject must occur; a negative high means without limit.
func bounded(subject string, low, high int) string {
	switch {
	case high == 0:
		return "no " + strings.TrimPrefix(subject, "a ")
	case high < 0 && low == 1:
		return subject
	case high < 0:
		return subject + " (at least " + count(low) + ")"
	case low == 0:
		return subject + " (at most " + count(high) + ")"
	case low == high:
		return subject + " (exactly " + count(low) + ")"
	}
	return fmt.Sprintf("%s (%d to %d times)", subject, low, high)
}

// found says how often something occurred.
func found(n int) string {
	switch n {
	case 0:
		return "there was none"
	case 1:
		return "there was one"
	}
	return "there were " + strconv.Itoa(n)
}

func count(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
