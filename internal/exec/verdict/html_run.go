package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// htmlPageRun is one process of claude, or one conversation with the Messages API. Its JSON form is read by page.js.
type htmlPageRun struct {
	ID      string       `json:"id"`
	Kind    string       `json:"kind"` // "claude" or "api"
	PID     int          `json:"pid"`
	Title   string       `json:"title"` // empty means that the page shows the command line instead
	Outcome string       `json:"outcome"`
	Failed  bool         `json:"failed"`
	Facts   []runFact    `json:"facts"`
	StartMS float64      `json:"start"` // times are milliseconds since the first entry
	EndMS   float64      `json:"end"`
	Events  []*pageEvent `json:"events"`
	Stdout  string       `json:"stdout"`
	Stderr  string       `json:"stderr"`

	startedAt time.Time
	calls     map[string]*pageEvent // tool calls by tool_use_id
	files     *sourceFiles
}

type runFact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type pageEvent struct {
	ID     string    `json:"id"`
	AtMS   float64   `json:"at"`
	MS     float64   `json:"ms"`
	Kind   string    `json:"kind"`
	Title  string    `json:"title"`
	Status string    `json:"status"` // "", "ok", "error", "denied" or "open"
	File   string    `json:"file"`
	Line   int       `json:"line"`
	Parts  []runFact `json:"parts"`
}

// maxBytesOfTextOnHTMLPage bounds a text in the page, in bytes. The journal has the complete text.
const maxBytesOfTextOnHTMLPage = 64 << 10

// buildRuns builds the runs of all processes and API conversations, in the order of their first entries.
func buildRuns(entries []journal.Entry, files *sourceFiles) []*htmlPageRun {
	if len(entries) == 0 {
		return nil
	}
	first := entries[0].When
	after := func(when time.Time) float64 { return float64(when.Sub(first).Microseconds()) / 1000 }
	var all []*htmlPageRun
	known := map[string]*htmlPageRun{}
	for i, number := range journal.RunNumberPerEntry(entries) {
		e := entries[i]
		if isWrittenByEarlierVerdict(e) {
			continue
		}
		key, kind := strconv.Itoa(number), "claude"
		if isMessagesAPITrafficEntry(e) {
			key, kind = "api "+apiConversationKeyOfEntry(e), "api"
		}
		r := known[key]
		if r == nil {
			r = &htmlPageRun{
				ID: "run-" + strconv.Itoa(len(all)+1), Kind: kind, PID: e.PID, StartMS: after(e.When), Facts: []runFact{}, Events: []*pageEvent{},
				startedAt: e.When, calls: map[string]*pageEvent{}, files: files,
			}
			known[key] = r
			all = append(all, r)
		}
		r.addEntry(e, after(e.When))
	}
	all = slices.DeleteFunc(all, func(r *htmlPageRun) bool { return len(r.Events) == 0 && r.Stdout == "" && r.Stderr == "" })
	for _, r := range all {
		r.setFailedOutcomeAndTrimOutput()
	}
	return all
}

func apiConversationKeyOfEntry(e journal.Entry) string {
	var parts []string
	switch {
	case e.Request != nil:
		parts = []string{e.Request.Namespace, e.Request.Session, e.Request.Agent}
	case e.SideRequest != nil:
		parts = []string{e.SideRequest.Namespace, e.SideRequest.Session}
	default:
		parts = []string{e.Exchange.Session, e.Exchange.Agent}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func (r *htmlPageRun) appendEvent(e *pageEvent) *pageEvent {
	e.ID = r.ID + "-" + strconv.Itoa(len(r.Events)+1)
	if e.Parts == nil {
		e.Parts = []runFact{}
	}
	r.Events = append(r.Events, e)
	return e
}

func (r *htmlPageRun) addEntry(e journal.Entry, atMS float64) {
	r.EndMS = max(r.EndMS, atMS)
	switch {
	case e.Start != nil:
		r.addFactsOfStart(e.Start)
	case e.Run != nil:
		r.addFactsOfSessionSetup(e.Run)
	case e.Output != nil:
		r.appendToStdoutOrStderr(e.Output)
	case e.Permission != nil, e.Breakpoint != nil, e.MCPCall != nil, e.Tool != nil:
		r.addToolCallEntry(e, atMS)
	case e.Model != nil:
		r.addEventsOfModelMessage(e.Model, atMS)
	case e.Exit != nil:
		r.addExit(e.Exit, atMS)
	case isMessagesAPITrafficEntry(e):
		r.addAPIRequest(e, atMS)
	default:
		r.addOtherEntry(e, atMS)
	}
}

func (r *htmlPageRun) addFactsOfStart(s *journal.Start) {
	r.addFactsUnlessEmptyOrKnown("command", shellQuotedCommandLine(s.Argv), "directory", s.CWD, "started by", s.Parent, "fault", s.Fault)
	r.addFactsUnlessEmptyOrKnown("unknown CLAUDELESS_ variables", strings.Join(s.UnknownVariables, ", "))
	r.addFactsUnlessEmptyOrKnown("inherited from another session", strings.Join(s.InheritedVariables, ", "))
	r.appendEvent(&pageEvent{Kind: "process", Title: "started", Status: "ok", AtMS: r.StartMS})
}

func (r *htmlPageRun) addFactsOfSessionSetup(sessionSetup *journal.Run) {
	r.addFactsUnlessEmptyOrKnown("command", shellQuotedCommandLine(sessionSetup.Argv), "scenario", cmp.Or(sessionSetup.ScenarioFile, sessionSetup.Scenario))
	r.addFactsUnlessEmptyOrKnown("model", sessionSetup.Model, "permission mode", sessionSetup.PermissionMode)
	r.addFactsUnlessEmptyOrKnown("MCP servers", strings.Join(sessionSetup.MCPServers, ", "), "settings", strings.Join(sessionSetup.Settings, ", "))
	if sessionSetup.SystemPrompt != nil {
		r.addFactsUnlessEmptyOrKnown("system prompt", *sessionSetup.SystemPrompt)
	}
	if sessionSetup.AppendPrompt != nil {
		r.addFactsUnlessEmptyOrKnown("appended system prompt", *sessionSetup.AppendPrompt)
	}
}

// addFactsUnlessEmptyOrKnown adds facts; each name is followed by its text.
func (r *htmlPageRun) addFactsUnlessEmptyOrKnown(namesAndTexts ...string) {
	for pair := range slices.Chunk(namesAndTexts, 2) {
		f := runFact{Name: pair[0], Text: truncateTextForHTMLPage(pair[1])}
		if pair[1] != "" && !slices.Contains(r.Facts, f) {
			r.Facts = append(r.Facts, f)
		}
	}
}

func (r *htmlPageRun) appendToStdoutOrStderr(o *journal.Output) {
	to := &r.Stdout
	if o.Stream == "stderr" {
		to = &r.Stderr
	}
	*to += o.Text
	if o.Truncated {
		*to += "\n… (later output was not recorded)\n"
	}
}

func (r *htmlPageRun) addExit(x *journal.Exit, atMS float64) {
	r.Outcome, r.Failed = exitText(&x.Code, x.Signal), x.Code != 0
	e := r.appendEvent(&pageEvent{Kind: "process", Title: r.Outcome, AtMS: atMS, Status: errorOrOKStatus(x.Code != 0)})
	e.addPartsUnlessEmpty("refused", x.Rejection, "duration", formatMilliseconds(x.MS))
}

// addEventsOfModelMessage adds an event for each block of a message. A tool call gets its result later.
func (r *htmlPageRun) addEventsOfModelMessage(message *journal.Model, atMS float64) {
	var blocks []struct {
		Type, Text, Thinking, ID, Name string
		Input                          json.RawMessage
	}
	if json.Unmarshal(message.Blocks, &blocks) != nil {
		blocks = nil
	}
	tokens := fmt.Sprintf("%d in, %d out", message.InputTokens, message.OutputTokens)
	for _, b := range blocks {
		if b.Type == "tool_use" {
			r.ensureCallEvent(b.ID, b.Name, atMS).addPartsUnlessEmpty("input", formatJSONOrText(b.Input))
			continue
		}
		text := cmp.Or(b.Text, b.Thinking)
		e := r.appendEvent(&pageEvent{Kind: "model", Title: cmp.Or(shortFirstLine(text), "(empty "+b.Type+")"), AtMS: atMS, Status: errorOrOKStatus(message.Error != "")})
		if b.Type == "thinking" {
			e.Title = "thinking: " + e.Title
		}
		e.addPartsUnlessEmpty("error", message.Error, "text", text, "model", message.Model, "tokens", tokens, "stop reason", message.StopReason)
		e.addPartsUnlessEmpty("sub-agent of call", message.Agent)
	}
}

func (r *htmlPageRun) ensureCallEvent(id, name string, atMS float64) *pageEvent {
	e := r.calls[id]
	if e == nil || id == "" {
		e = r.appendEvent(&pageEvent{Kind: "tool", Title: name, AtMS: atMS, Status: "open"})
		r.calls[id] = e
	}
	return e
}

func (r *htmlPageRun) addToolCallEntry(entry journal.Entry, atMS float64) {
	switch {
	case entry.Permission != nil:
		p := entry.Permission
		e := r.ensureCallEvent(p.ToolUseID, p.Tool, atMS)
		e.addPartsUnlessEmpty("permission", strings.TrimSuffix(p.Decision+"ed by "+p.Source+" ("+p.ReasonType+")", " ()"))
		if p.Decision == "reject" {
			e.Status = "denied"
		}
	case entry.Breakpoint != nil:
		b := entry.Breakpoint
		e := r.ensureCallEvent(b.ToolUseID, b.Tool, atMS)
		e.addPartsUnlessEmpty("breakpoint "+b.Phase+" the call", b.Action+" "+b.Breakpoint, "input from the breakpoint", formatJSONOrText(b.Input))
		e.addPartsUnlessEmpty("replaced by", b.Replacement)
	case entry.MCPCall != nil:
		c := entry.MCPCall
		e := r.ensureCallEvent(c.ToolUseID, c.Tool, atMS)
		e.addPartsUnlessEmpty("MCP request to "+c.Server+" ("+c.RawTool+")", formatJSONOrText(c.Input))
		e.addPartsUnlessEmpty("MCP response ("+formatMilliseconds(float64(c.DurationMS))+")", cmp.Or(c.Error, formatJSONOrText(c.Result)))
	case entry.Tool != nil:
		r.completeToolCallEvent(entry.Tool, atMS)
	}
}

func (r *htmlPageRun) completeToolCallEvent(executedTool *journal.Tool, atMS float64) {
	e := r.ensureCallEvent(executedTool.ToolUseID, executedTool.Tool, atMS)
	if len(e.Parts) == 0 || e.Parts[0].Name != "input" {
		e.Parts = slices.Insert(e.Parts, 0, runFact{"input", truncateTextForHTMLPage(formatJSONOrText(executedTool.Input))})
	}
	e.Title, e.MS = executedTool.Tool, executedTool.MS
	if e.Status != "denied" {
		e.Status = errorOrOKStatus(executedTool.IsError)
	}
	e.addPartsUnlessEmpty("server", executedTool.Server, "ran with", formatJSONOrText(executedTool.RanWith), "result", executedTool.Result)
	if !executedTool.Executed {
		e.addPartsUnlessEmpty("executed", "no")
	}
	if executedTool.Unknown {
		e.addPartsUnlessEmpty("unknown", "no tool of this name exists in this run")
	}
}

// addOtherEntry adds the event for a journal line that addEntry does not handle itself: a line about a turn, such as a prompt, or
// a rarer one, such as a warning.
func (r *htmlPageRun) addOtherEntry(entry journal.Entry, atMS float64) {
	switch {
	case entry.Prompt != nil:
		p := entry.Prompt
		kind := "prompt"
		if p.WrittenByCLI {
			kind = "context"
		}
		e := r.appendEvent(&pageEvent{Kind: kind, Title: shortFirstLine(p.Prompt), AtMS: atMS})
		e.addPartsUnlessEmpty("prompt", p.Prompt, "blocks", formatJSONOrText(p.Blocks))
	case entry.Match != nil:
		r.addMatch(entry.Match, atMS)
	case entry.Result != nil:
		r.addResult(entry.Result, atMS)
	case entry.Unplayed != nil:
		u := entry.Unplayed
		e := r.appendEvent(&pageEvent{Kind: "rule", Title: "not reached: " + u.Text, AtMS: atMS, Status: "error", File: u.File, Line: u.Line})
		e.addPartsUnlessEmpty("scenario", r.files.ruleSource(u.File, u.Line))
	case entry.Retry != nil:
		r.appendEvent(&pageEvent{Kind: "model", Title: fmt.Sprintf("attempt %d failed: %s", entry.Retry.Attempt, entry.Retry.Message), AtMS: atMS, Status: "error"})
	case entry.Warning != nil:
		r.appendEvent(&pageEvent{Kind: "process", Title: "warning: " + shortFirstLine(entry.Warning.Text), AtMS: atMS}).addPartsUnlessEmpty("text", entry.Warning.Text)
	case entry.Context != nil:
		r.appendEvent(&pageEvent{Kind: "context", Title: "context for the model", AtMS: atMS}).addPartsUnlessEmpty("text", strings.Join(entry.Context.Texts, "\n\n"))
	case entry.Finding != nil:
		r.appendEvent(&pageEvent{Kind: "process", Title: entry.Finding.ID + ": " + entry.Finding.Text, AtMS: atMS, Status: errorOrOKStatus(entry.Finding.Level == "error")})
	case entry.Host != nil:
		r.appendEvent(&pageEvent{Kind: "process", Title: strings.ReplaceAll(entry.Summary(), "_", " "), AtMS: atMS})
	case entry.Attachment != nil:
		r.addAttachmentOrHookResult(entry.Attachment, atMS)
	default:
		r.appendEvent(&pageEvent{Kind: "other", Title: entry.Type + ": " + entry.Summary(), AtMS: atMS})
	}
}

// addAttachmentOrHookResult adds an attachment. A hook's result becomes part of the tool call for which it ran, if there is one.
func (r *htmlPageRun) addAttachmentOrHookResult(attachment *journal.Attachment, atMS float64) {
	keys, _ := attachment.Attachment.(map[string]any)
	text := func(key string) string { s, _ := keys[key].(string); return s }
	title, hook := strings.ReplaceAll(text("type"), "_", " "), text("hookName")
	e := r.calls[text("toolUseID")]
	switch {
	case hook == "":
		e = r.appendEvent(&pageEvent{Kind: "context", Title: title, AtMS: atMS})
	case e == nil:
		e = r.appendEvent(&pageEvent{Kind: "hook", Title: hook, AtMS: atMS, Status: errorOrOKStatus(strings.HasSuffix(title, "error"))})
	}
	raw, _ := json.Marshal(keys) // cannot fail, because keys was read from JSON
	e.addPartsUnlessEmpty(strings.TrimSpace(hook+" "+title), formatJSONOrText(raw))
}

func (r *htmlPageRun) addMatch(m *journal.Match, atMS float64) {
	if m.Rule == "" {
		e := r.appendEvent(&pageEvent{Kind: "rule", Title: "no rule matches", AtMS: atMS, Status: "error"})
		e.addPartsUnlessEmpty("prompt", m.Prompt, "nearest rules", strings.Join(m.Nearest, "\n"))
		return
	}
	e := r.appendEvent(&pageEvent{Kind: "rule", Title: m.Rule, AtMS: atMS, Status: "ok", File: m.File, Line: m.Line})
	e.addPartsUnlessEmpty("scenario", r.files.ruleSource(m.File, m.Line))
}

func (r *htmlPageRun) addResult(x *journal.Result, atMS float64) {
	text := strings.Join(x.Errors, "\n")
	if x.Result != nil {
		text = cmp.Or(*x.Result, text)
	}
	e := r.appendEvent(&pageEvent{Kind: "result", Title: strings.TrimSuffix(x.Subtype+": "+shortFirstLine(text), ": "), AtMS: atMS, Status: errorOrOKStatus(x.IsError)})
	e.addPartsUnlessEmpty("result", text, "turns", strconv.Itoa(x.NumTurns), "cost", fmt.Sprintf("$%.6f", x.TotalCostUSD))
	for _, d := range x.PermissionDenials {
		e.addPartsUnlessEmpty("denied: "+d.ToolName, formatJSONOrText(d.ToolInput))
	}
}

func (r *htmlPageRun) addAPIRequest(entry journal.Entry, atMS float64) {
	r.Title = cmp.Or(r.Title, strings.TrimSpace("Messages API "+apiConversationKeyOfEntry(entry)))
	switch q := entry.Request; {
	case q != nil:
		e := r.appendEvent(&pageEvent{Kind: "api", Title: cmp.Or(shortFirstLine(q.Prompt), strings.Join(q.Messages, " "), q.Path), AtMS: atMS, MS: q.MS, Status: errorOrOKStatus(q.Status >= 400 || q.Error != ""), File: q.File, Line: q.Line})
		e.addPartsUnlessEmpty("rule", cmp.Or(q.Rule, "none"), "scenario", r.files.ruleSource(q.File, q.Line), "prompt", q.Prompt)
		e.addPartsUnlessEmpty("history", strings.Join(q.Messages, ", "))
		for _, c := range q.Calls {
			e.addPartsUnlessEmpty("call of "+c.Tool, formatJSONOrText(c.Input), "result of "+c.Tool, c.Result)
		}
		e.addPartsUnlessEmpty("status", strconv.Itoa(q.Status), "error", q.Error, "odd", strings.Join(q.Findings, "\n"))
	case entry.SideRequest != nil:
		s := entry.SideRequest
		r.appendEvent(&pageEvent{Kind: "api", Title: s.Kind + " " + s.Path, AtMS: atMS, MS: s.MS, Status: errorOrOKStatus(s.Status >= 400)}).addPartsUnlessEmpty("status", strconv.Itoa(s.Status))
	default:
		x := entry.Exchange
		e := r.appendEvent(&pageEvent{Kind: "api", Title: x.Path, AtMS: atMS, MS: x.MS, Status: errorOrOKStatus(x.Status >= 400)})
		e.addPartsUnlessEmpty("request", formatJSONOrText(x.Request), "response", formatJSONOrText(x.Response))
	}
}

func (r *htmlPageRun) setFailedOutcomeAndTrimOutput() {
	for _, e := range r.Events {
		r.Failed = r.Failed || e.Status == "error" && (e.Kind == "rule" || e.Kind == "api")
	}
	if r.Kind == "claude" && r.Outcome == "" {
		r.Outcome = exitText(nil, "")
	}
	r.Stdout, r.Stderr = strings.TrimRight(r.Stdout, "\n"), strings.TrimRight(r.Stderr, "\n")
}

// addPartsUnlessEmpty adds the parts that are not empty; each name is followed by its text.
func (e *pageEvent) addPartsUnlessEmpty(namesAndTexts ...string) {
	for pair := range slices.Chunk(namesAndTexts, 2) {
		if strings.TrimSpace(pair[1]) != "" {
			e.Parts = append(e.Parts, runFact{pair[0], truncateTextForHTMLPage(pair[1])})
		}
	}
}

func isMessagesAPITrafficEntry(e journal.Entry) bool {
	return e.Request != nil || e.SideRequest != nil || e.Exchange != nil
}
