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
)

// RunRecord records a run for [Scenario.CheckExpectations]. The zero value is empty. It is not safe for concurrent use.
type RunRecord struct {
	calls         []observedCall
	serverCalls   []observedCall // calls of MCP tools; name is "server/tool"
	requests      []ObservedModelRequest
	Prompts       []string
	Notifications []ObservedNotification
	OAuthRequests []ObservedOAuthRequest // complete only if the journal lines of fixtures were read
	FixturesRead  bool                   // the journal lines of fixtures were read; otherwise OAuth is not checked
	ExitCodes     []int
	Screens       []ObservedDialog // screens that were answered
	Telemetry     []string         // names that an OpenTelemetry collector accepted; a name accepted n times occurs n times
	IsRealCLI     bool             // a real claude ran, so neither screens nor telemetry were recorded
	Rules         []RuleLocation   // rules that answered a prompt
}

type observedCall struct {
	name  string
	input any
}

// ObservedNotification is a progress or log notification from an MCP server.
type ObservedNotification struct {
	Server string // name of the server in the configuration
	Tool   string // raw name of the tool that reports progress
	Level  string // level of a log message; empty means progress
	Text   string
}

// ObservedModelRequest is a request to the model's API.
type ObservedModelRequest struct {
	Model   string
	Retries int
	AfterMS float64 // time since the beginning of the run, in milliseconds
}

// AddCall records a tool call. name is the canonical name of the tool.
func (s *RunRecord) AddCall(name string, input json.RawMessage) {
	s.calls = append(s.calls, observedCall{name: name, input: decodeJSONWithExactNumbers(input)})
}

// AddServerCall records a call of an MCP tool, with the server's configured name and the tool's raw name.
func (s *RunRecord) AddServerCall(server, tool string) {
	s.serverCalls = append(s.serverCalls, observedCall{name: server + "/" + tool})
}

// AddRequest records a request to the model and returns its number, which AddRetries needs.
func (s *RunRecord) AddRequest(r ObservedModelRequest) (requestNumber int) {
	s.requests = append(s.requests, r)
	return len(s.requests) - 1
}

// AddRetries adds retries to a request; requestNumber is the result of AddRequest. Consecutive steps
// of a response without tool calls count as one request; retries between these steps are added to it.
func (s *RunRecord) AddRetries(requestNumber, addedRetries int) {
	s.requests[requestNumber].Retries += addedRetries
}

// ExpectationResult is the result of one expectation.
type ExpectationResult struct {
	At     diag.Position // zero means unknown
	Text   string        // the expectation, such as "expected a call to Bash"
	IsMet  bool
	Actual string // what happened instead; empty if met
}

// String returns the line that reports an unmet expectation.
func (result ExpectationResult) String() string {
	text := result.Text
	if result.Actual != "" {
		text += ", but " + result.Actual
	}
	if at := result.At.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// CheckExpectations compares a run with the [[expect]] blocks and returns one result for each block, in file order. A
// block with `unused` has one result for each rule instead. Blocks that cannot be checked in this run are omitted.
func (s *Scenario) CheckExpectations(seen *RunRecord) []ExpectationResult {
	results := make([]ExpectationResult, 0, len(s.Expect))
	for i := range s.Expect {
		x := &s.Expect[i]
		if x.OAuth != nil && !seen.FixturesRead || (x.Screen != "" || x.Otel != "") && seen.IsRealCLI {
			continue
		}
		result := ExpectationResult{At: x.at}
		if x.Unused != "" {
			results = append(results, s.checkEveryRuleIsUsed(x, seen)...)
			continue
		}
		result.Text, result.Actual = s.expectationTextAndMismatch(x, seen)
		result.IsMet = result.Actual == ""
		results = append(results, result)
	}
	return results
}

// expectationTextAndMismatch returns the text of an expectation, and why it is not met; an empty reason means that it is met.
func (s *Scenario) expectationTextAndMismatch(x *Expectation, seen *RunRecord) (text, got string) {
	hits, subject := x.findMatchingEvents(seen)
	low, high := 1, -1
	switch {
	case x.Never:
		low, high = 0, 0
	case x.Times != nil:
		low, high = x.Times.Min, x.Times.Max
	}
	text = "expected " + subjectWithExpectedTimes(subject, low, high)
	if len(hits) < low || (high >= 0 && len(hits) > high) {
		return text, thereWereCountText(len(hits)) + s.explainNearestMiss(x, seen, len(hits))
	}
	if got := x.Request.describeExceededLimit(hits, seen); got != "" {
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
		if earlier, before := other.findMatchingEvents(seen); len(earlier) > 0 && earlier[0] > hits[0] {
			return fmt.Sprintf("expected %s after %s", subject, before), "it came before"
		}
	}
	return text, ""
}

// HasExpectationAboutTool reports whether an expectation is about the tool with this canonical name.
func (s *Scenario) HasExpectationAboutTool(canonicalToolName string) (hasExpectationAboutTool bool) {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Tool != "" && x.matchesToolOfExpectation(canonicalToolName) })
}

// HasExpectationAboutExit reports whether an expectation is about exit codes.
func (s *Scenario) HasExpectationAboutExit() bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Exit != nil })
}

// HasExpectationAboutExitCode reports whether an expectation is about this exit code.
func (s *Scenario) HasExpectationAboutExitCode(code int) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Exit != nil && *x.Exit == code })
}

// HasExpectationForCall reports whether an expectation requires a call of the tool with this canonical name and with this input.
func (s *Scenario) HasExpectationForCall(canonicalToolName string, input json.RawMessage) (isSuchCallExpected bool) {
	var seen RunRecord
	seen.AddCall(canonicalToolName, input)
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool {
		hits, _ := x.findMatchingEvents(&seen)
		return x.Tool != "" && x.Input != nil && !x.Never && len(hits) > 0
	})
}

// ExpectationsOfUnrecordedServers returns the expectations about notifications whose server name or glob matches no recorded name. The Name of each
// result is the name or glob of the server in the expectation.
func (s *Scenario) ExpectationsOfUnrecordedServers(recordedServerNames []string) (notificationExpectations []RuleLocation) {
	var all []RuleLocation
	for i := range s.Expect {
		x := &s.Expect[i]
		if x.MCP == nil || !x.MCP.expectsNotification() {
			continue
		}
		if !slices.ContainsFunc(recordedServerNames, func(name string) bool { return matchesRawOrCanonicalName(name, x.MCP.Server) }) {
			all = append(all, RuleLocation{Name: x.MCP.Server, File: x.at.File, Line: x.at.Line})
		}
	}
	return all
}

// AcceptsMissingServer reports whether an MCP server may be missing because an expectation forbids calls to it.
func (s *Scenario) AcceptsMissingServer(name string) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool {
		none := x.Never || x.Times != nil && x.Times.Max == 0
		return none && x.MCP != nil && !x.MCP.expectsNotification() && matchesRawOrCanonicalName(name, x.MCP.Server)
	})
}

// UnusedRulesUnlessExpected returns the rules that answered no prompt. It returns nil if an expectation has `unused`, because that
// expectation reports these rules.
func (s *Scenario) UnusedRulesUnlessExpected(seen *RunRecord) []RuleLocation {
	var unused []RuleLocation
	if slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Unused != "" }) {
		return nil
	}
	for i := range s.Responses {
		if at := s.rulePosition(i); !isRuleUsed(at, seen) {
			unused = append(unused, RuleLocation{Name: zeroBasedRuleName(i), File: at.File, Line: at.Line})
		}
	}
	return unused
}

// RuleAtLine returns the rule that contains a line of a file: the last rule that begins at or before
// the line. It returns the zero value if no rule begins there.
func (s *Scenario) RuleAtLine(file string, line int) (found RuleLocation) {
	for i := range s.Responses {
		if at := s.rulePosition(i); at.Line <= line && at.Line > found.Line && haveSameBaseName(at.File, file) {
			found = RuleLocation{Name: zeroBasedRuleName(i), File: at.File, Line: at.Line}
		}
	}
	return found
}

func (s *Scenario) rulePosition(i int) diag.Position {
	return s.Responses[i].source.Index.Pos(diag.Path{"responses", s.Responses[i].index})
}

func isRuleUsed(at diag.Position, seen *RunRecord) bool {
	return slices.ContainsFunc(seen.Rules, func(r RuleLocation) bool { return r.Line == at.Line && haveSameBaseName(r.File, at.File) })
}

// checkEveryRuleIsUsed returns one result for each rule. The result is met if the rule answered a prompt. If
// x.Unused is "warn", the result is always met, and its Actual mentions that the rule answered no prompt.
func (s *Scenario) checkEveryRuleIsUsed(x *Expectation, seen *RunRecord) (resultPerRule []ExpectationResult) {
	var results []ExpectationResult
	for i := range s.Responses {
		result := ExpectationResult{Text: fmt.Sprintf("expected the rule %s (%s) to answer a prompt", zeroBasedRuleName(i), s.Responses[i].Pattern.String())}
		result.At = s.rulePosition(i)
		result.IsMet = isRuleUsed(result.At, seen)
		switch {
		case result.IsMet:
		case x.Unused == "warn":
			result.IsMet, result.Actual = true, "it answered none"
		default:
			result.Actual = "it answered none"
		}
		results = append(results, result)
	}
	return results
}

// haveSameBaseName reports whether two names may denote the same file. It compares base names, because one name may be a relative path.
func haveSameBaseName(a, b string) bool { return a == b || filepath.Base(a) == filepath.Base(b) }

// findMatchingEvents returns the indexes of the events in seen that the expectation is about, and a text that describes one.
func (x *Expectation) findMatchingEvents(seen *RunRecord) (eventIndexes []int, eventDescription string) {
	switch {
	case x.Prompt != nil:
		eventIndexes = indexesWhere(seen.Prompts, func(p string) bool { _, ok := x.prompt.Match(p); return ok })
		return eventIndexes, "a prompt that matches the pattern (" + x.Prompt.String() + ")"
	case x.MCP != nil && x.MCP.expectsNotification():
		return indexesWhere(seen.Notifications, x.MCP.matchesNotification), x.MCP.expectedEventText()
	case x.MCP != nil:
		return indexesWhere(seen.serverCalls, x.MCP.matchesCall), x.MCP.expectedEventText()
	case x.Request != nil:
		eventIndexes = indexesWhere(seen.requests, func(r ObservedModelRequest) bool {
			return x.Request.Model == "" || globMatchesWholeText(x.Request.Model, r.Model)
		})
		if eventDescription = "a request to the model"; x.Request.Model != "" {
			eventDescription += " " + x.Request.Model
		}
		return eventIndexes, eventDescription
	case x.OAuth != nil:
		return indexesWhere(seen.OAuthRequests, func(r ObservedOAuthRequest) bool { return x.OAuth.matches(r) }), x.OAuth.expectedEventText()
	case x.Otel != "":
		return indexesWhere(seen.Telemetry, func(name string) bool { return globMatchesWholeText(x.Otel, name) }), "telemetry with the name " + x.Otel
	case x.Exit != nil:
		return indexesWhere(seen.ExitCodes, func(code int) bool { return code == *x.Exit }), "a process that exits with " + strconv.Itoa(*x.Exit)
	case x.Screen != "":
		eventDescription = "the screen " + x.Screen
		if x.Answered != "" {
			eventDescription += " to be answered with " + x.Answered
		}
		return indexesWhere(seen.Screens, func(s ObservedDialog) bool {
			return (x.Screen == s.State || x.Screen == s.State+"/"+s.Kind) && (x.Answered == "" || x.Answered == s.Answer)
		}), eventDescription
	case x.Rule != nil:
		eventIndexes = indexesWhere(seen.Rules, func(r RuleLocation) bool { return r.Line == *x.Rule && haveSameBaseName(r.File, x.at.File) })
		return eventIndexes, "a match of the rule in line " + strconv.Itoa(*x.Rule)
	}
	eventDescription = "a call to " + x.Tool
	if x.Input != nil {
		eventDescription += " with " + string(x.Input)
	}
	return indexesWhere(seen.calls, func(c observedCall) bool {
		if !x.matchesToolOfExpectation(c.name) {
			return false
		}
		_, ok := match.Subset(x.expectedInput(), c.input)
		return ok || x.Input == nil
	}), eventDescription
}

func indexesWhere[T any](list []T, condition func(T) bool) []int {
	var hits []int
	for i, v := range list {
		if condition(v) {
			hits = append(hits, i)
		}
	}
	return hits
}

// matchesRawOrCanonicalName reports whether a glob matches the name of a tool or a server. The glob may contain
// characters that are replaced in canonical names: the glob "my.server" matches the name my_server.
func matchesRawOrCanonicalName(name, glob string) bool {
	return globMatchesWholeText(glob, name) || globMatchesWholeText(canonicalToolPart(glob, punctuationKeptInToolNameGlobs), name)
}

// describeExceededLimit describes the first limit that the matching requests exceed. It returns "" if they exceed no limit.
func (r *ExpectRequest) describeExceededLimit(matchingRequestIndexes []int, seen *RunRecord) string {
	if r == nil {
		return ""
	}
	for n, i := range matchingRequestIndexes {
		q := seen.requests[i]
		if r.MaxRetries != nil && q.Retries > *r.MaxRetries {
			return fmt.Sprintf("a request for %s was retried %s", q.Model, frequencyText(q.Retries))
		}
		if n == 0 && r.WithinMS > 0 && q.AfterMS > float64(r.WithinMS) {
			return fmt.Sprintf("the first request came after %.0f ms", q.AfterMS)
		}
	}
	return ""
}

// explainNearestMiss returns a suffix for the message of an unmet expectation: what happened instead.
func (s *Scenario) explainNearestMiss(x *Expectation, seen *RunRecord, hits int) string {
	if x.Never || hits > 0 {
		return ""
	}
	if x.MCP != nil && x.MCP.expectsNotification() {
		return x.MCP.describeOtherNotifications(seen.Notifications)
	}
	if x.OAuth != nil {
		return x.OAuth.listObservedRequests(seen.OAuthRequests)
	}
	if x.Exit != nil && len(seen.ExitCodes) > 0 {
		return "; the exit codes were " + strings.Trim(fmt.Sprint(seen.ExitCodes), "[]")
	}
	if x.Prompt != nil {
		return s.describeMissOfNearestPrompt(x, seen.Prompts)
	}
	if x.Tool == "" {
		return ""
	}
	return x.explainNearestCall(seen.calls)
}

func (s *Scenario) describeMissOfNearestPrompt(promptExpectation *Expectation, prompts []string) (messageSuffix string) {
	want := promptExpectation.Prompt.textForSimilarity()
	if len(prompts) == 0 {
		return "; claude received no prompt"
	}
	best := slices.MinFunc(prompts, func(a, b string) int {
		return cmp.Compare(match.EditDistanceOfBeginnings(want, a), match.EditDistanceOfBeginnings(want, b))
	})
	return "; the prompt " + s.excerpts.redactAndQuoteShortened(best) + " does not match: " + s.excerpts.explainMiss(promptExpectation.prompt, best)
}

// explainNearestCall explains how the most similar call of the expected tool differs. Without one, it lists the called tools.
func (x *Expectation) explainNearestCall(calls []observedCall) string {
	best, least, others := "", -1, []string{}
	for _, c := range calls {
		if !x.matchesToolOfExpectation(c.name) {
			if !slices.Contains(others, c.name) {
				others = append(others, c.name)
			}
			continue
		}
		text, err := json.Marshal(c.input)
		if err != nil || x.Input == nil {
			continue
		}
		if n := match.EditDistanceOfBeginnings(string(x.Input), string(text)); least < 0 || n < least {
			diff, _ := match.Subset(x.expectedInput(), c.input)
			best, least = "; a call to "+c.name+" differs: "+diff, n
		}
	}
	if least < 0 && len(others) > 0 {
		return "; called instead: " + strings.Join(others, ", ")
	}
	return best
}

// decodeJSONWithExactNumbers decodes JSON and keeps numbers as text. It returns nil for invalid JSON.
func decodeJSONWithExactNumbers(raw json.RawMessage) (decodedOrNil any) {
	v, _ := plainjson.DecodeFirstValue(raw)
	return v
}

func (x *Expectation) expectedInput() any { return decodeJSONWithExactNumbers(x.Input) }

func (x *Expectation) matchesToolOfExpectation(tool string) bool {
	return slices.ContainsFunc(x.tools, func(t match.Pattern) bool { _, ok := t.Match(tool); return ok })
}

// subjectWithExpectedTimes adds to a subject how often it must occur: "(2 to 3 times)". A negative maximum means no limit.
func subjectWithExpectedTimes(subject string, minTimes, maxTimesOrNegative int) string {
	switch {
	case maxTimesOrNegative == 0:
		return "no " + strings.TrimPrefix(subject, "a ")
	case maxTimesOrNegative < 0 && minTimes == 1:
		return subject
	case maxTimesOrNegative < 0:
		return subject + " (at least " + frequencyText(minTimes) + ")"
	case minTimes == 0:
		return subject + " (at most " + frequencyText(maxTimesOrNegative) + ")"
	case minTimes == maxTimesOrNegative:
		return subject + " (exactly " + frequencyText(minTimes) + ")"
	}
	return fmt.Sprintf("%s (%d to %d times)", subject, minTimes, maxTimesOrNegative)
}

func thereWereCountText(n int) string {
	switch n {
	case 0:
		return "there was none"
	case 1:
		return "there was one"
	}
	return "there were " + strconv.Itoa(n)
}

func frequencyText(n int) string {
	if n < 3 {
		return []string{"never", "once", "twice"}[n]
	}
	return fmt.Sprintf("%d times", n)
}
