package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type hookStartedCallbackKey struct{}

// WithHookStartedCallback returns a context for [Runner.Run]. When all hooks of the event have started,
// onAllHooksStarted is called with their hook_started events. The [Outcome] then does not contain these events.
func WithHookStartedCallback(ctx context.Context, onAllHooksStarted func([]protocol.Event)) context.Context {
	return context.WithValue(ctx, hookStartedCallbackKey{}, onAllHooksStarted)
}

// Run runs all matching hooks of the event concurrently and merges their answers in configured order. When ctx is
// cancelled, running hooks are killed and the outcome has no decision. The caller must check ctx.Err.
func (r *Runner) Run(ctx context.Context, in EventInput) Outcome {
	event, subject := protocol.HookEvent(in.Event)
	chosen := r.claimMatchingHooks(event, subject, in)
	if len(chosen) == 0 {
		return Outcome{}
	}
	c := r.newEventRun(in, event, subject)
	if c.isSessionOrSubagentStart() || claudecode.HookEventNamed(event).PrecedesPrompt {
		for range chosen {
			c.attachmentIDs = append(c.attachmentIDs, r.options.NewID())
		}
	}
	r.removeEnvFilesOfRepeatableEvent(event)
	showStart, _ := ctx.Value(hookStartedCallbackKey{}).(func([]protocol.Event))
	c.startShown = showStart != nil
	answers := make([]hookResult, len(chosen))
	for i, e := range chosen {
		answers[i].entry = e
		if e.callbackID == "" {
			answers[i].id = r.options.NewID()
		}
	}
	startEvents := hookStartedEvents(c, answers)
	var running sync.WaitGroup
	for i, answer := range answers {
		sent := make(chan struct{})
		requestSent := sync.OnceFunc(func() { close(sent) })
		running.Go(func() { // the goroutine returns when the hook has finished; the hook's timeout and ctx limit that time
			defer requestSent() // a callback may fail before the host has received the request
			started := r.options.Now()
			result := r.runHook(protocol.WithRequestSentCallback(ctx, requestSent), c, answer.entry, i)
			result.entry, result.id, result.duration = answer.entry, answer.id, r.options.Now().Sub(started)
			answers[i] = result
		})
		if answer.entry.callbackID != "" {
			<-sent // the host receives the requests in configured order
		}
	}
	if showStart != nil {
		showStart(startEvents)
	}
	running.Wait()
	for _, a := range answers {
		if a.detached != nil {
			r.watchAsyncHookInGoroutine(context.WithoutCancel(ctx), c, a)
		}
	}
	r.addEventStatsIfEnabled(c, answers)
	if ctx.Err() != nil {
		return Outcome{EventsAndAttachments: EventsAndAttachments{Frames: startedProgressAndResponseEvents(c, answers)}}
	}
	return mergeResults(c, answers)
}

func (r *Runner) newEventRun(in EventInput, event, subject string) *eventRun {
	base := in.Base
	setIfUnset(&base.SessionID, r.options.SessionID)
	setIfUnset(&base.TranscriptPath, r.options.TranscriptPath)
	setIfUnset(&base.CWD, r.options.CWD)
	base.HookEventName = event
	base.AgentType = cmp.Or(base.AgentType, r.options.AgentType)
	cwd := base.CWD
	base.CWD = cmp.Or(r.options.DisplayCWD, base.CWD)
	c := &eventRun{event: event, hookName: event, toolUseID: in.ToolUseID, cwd: cwd, sessionID: base.SessionID, stdin: inputJSON(base, in.Event), inAgent: base.AgentID != ""}
	if base.Effort != nil {
		c.effort = base.Effort.Level
	}
	if subject != "" && event != "UserPromptExpansion" && event != "SubagentStop" {
		c.hookName += ":" + subject
	}
	if c.toolUseID == "" {
		c.toolUseID = r.options.NewID()
		if event == "PostToolBatch" {
			c.toolUseID = "hook-" + c.toolUseID
		}
	}
	switch p := in.Event.(type) {
	case protocol.PreToolUseHookInput:
		c.hasBareDenials = p.InputChanged || claudecode.ToolNamed(p.ToolName).BareDenial
	case protocol.MessageDisplayHookInput:
		c.toolUseID = p.MessageID + "-" + strconv.Itoa(p.Index)
	case protocol.UserPromptSubmitHookInput:
		c.promptText = p.Prompt
	case protocol.UserPromptExpansionHookInput:
		c.promptText = p.Prompt
	}
	return c
}

// inputJSON returns one object that contains the common keys and then the keys of the event. If the event contains
// invalid raw JSON, the object has only the common keys.
func inputJSON(base protocol.HookBase, event protocol.HookInput) []byte {
	head, err := protocol.Marshal(base)
	if err != nil {
		return []byte("{}")
	}
	own, err := protocol.Marshal(event)
	if err != nil || len(own) <= len("{}") {
		return head
	}
	return append(append(head[:len(head)-1], ','), own[1:]...)
}

func (r *Runner) runHook(ctx context.Context, c *eventRun, e *hookEntry, hookIndex int) hookResult {
	switch {
	case e.callbackID != "":
		return r.runHostCallback(ctx, c, e)
	case e.config.Type == "command":
		return r.runCommandHook(ctx, c, e, hookIndex)
	case e.config.Type == "http":
		return r.runHTTPHook(ctx, c, e)
	case e.config.Type == "mcp_tool":
		return r.runMCPToolHook(ctx, c, e)
	case e.config.Type == "prompt":
		return resultFromPromptAnswer(c, e, cmp.Or(r.options.PromptAnswer, "OK"))
	}
	return hookResult{outcome: outcomeSuccess, missingVerdictReason: noVerdictBecauseTypeNotSimulated}
}

// resultFromPromptAnswer derives the result of a hook of type prompt from the model's answer (observed with 2.1.330).
func resultFromPromptAnswer(c *eventRun, e *hookEntry, answer string) hookResult {
	if c.isSessionOrSubagentStart() {
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseInvalidOutput, exitCode: new(1), stderr: "Failed to run: prompt-type hooks are not supported for " +
			c.event + " events (no conversation context is available). Use a command-type hook instead."}
	}
	var verdict struct {
		OK     *bool  `json:"ok"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal([]byte(answer), &verdict) != nil || verdict.OK == nil {
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseInvalidOutput, exitCode: new(1), stdout: answer, stderr: "JSON validation failed"}
	}
	a := hookResult{outcome: outcomeSuccess}
	if *verdict.OK {
		return a
	}
	if c.event == "PreToolUse" || claudecode.HookEventNamed(c.event).PrecedesEnd {
		a.hasRefused, a.rawReason, a.refusalReasonForUser = true, verdict.Reason, "["+e.messageLabel()+"]: "+verdict.Reason
	}
	if !claudecode.HookEventNamed(c.event).PrecedesEnd {
		a.output.Continue, a.output.StopReason = new(false), verdict.Reason
	}
	return a
}

func (r *Runner) runHostCallback(ctx context.Context, c *eventRun, e *hookEntry) hookResult {
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	raw, err := r.options.Callback(limited, e.callbackID, c.stdin, c.toolUseID)
	switch {
	case err != nil && limited.Err() != nil:
		return hookResult{outcome: outcomeCancelled, missingVerdictReason: noVerdictBecauseTimedOut, timedOut: true}
	case errors.Is(err, ErrHostGone):
		return hookResult{outcome: outcomeCancelled, missingVerdictReason: noVerdictBecauseHostGone}
	case err != nil:
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseFailed, stderr: "Error in hook callback " + e.callbackID + ": error: " + err.Error() + "\n"}
	}
	out, err := parseOutput(c.event, raw)
	switch wrong, is := errors.AsType[*wrongHookEventNameError](err); {
	case is:
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseInvalidOutput, stderr: wrong.Error()}
	case err != nil || len(raw) == 0: // a callback that returned undefined gives no answer
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseFailed}
	}
	return hookResult{outcome: outcomeSuccess, output: out}
}

// runMCPToolHook calls a tool of a connected server; its text is interpreted like a command's standard output.
func (r *Runner) runMCPToolHook(ctx context.Context, c *eventRun, e *hookEntry) hookResult {
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	text, err := r.options.MCPTool(limited, e.config.Server, e.config.Tool, expandToolInputPlaceholders(e.config.Input, c.stdin))
	if err != nil {
		return timeoutOrErrorResult(ctx, limited, err)
	}
	a := hookResult{stdout: text, exitCode: new(0), outcome: outcomeSuccess}
	a.interpretSuccessfulOutput(c.event)
	return a
}

// expandToolInputPlaceholders replaces ${a.b} in the strings of an MCP tool's input by the value at the path a.b in the hook's input.
func expandToolInputPlaceholders(input, hookInput json.RawMessage) json.RawMessage {
	var tree, values any
	if json.Unmarshal(input, &tree) != nil || json.Unmarshal(hookInput, &values) != nil {
		return json.RawMessage("{}")
	}
	out, err := protocol.Marshal(expandPlaceholders(tree, values))
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// isSkippedForHostCallbacks reports whether the host's callbacks are not called for an event, because the host has not joined
// the session yet or has already left it (spec: cli-contract 5.1). Hosts do see the events of a conversation that is
// cleared or compacted (observed with 2.1.329).
func isSkippedForHostCallbacks(in protocol.HookInput) bool {
	switch in := in.(type) {
	case protocol.SessionStartHookInput:
		return in.Source != "clear" && in.Source != "compact"
	case protocol.SessionEndHookInput:
		return in.Reason != "clear"
	case protocol.SetupHookInput:
		return true
	case protocol.InstructionsLoadedHookInput:
		return in.LoadReason == "session_start"
	}
	return false
}

// addEventStatsIfEnabled adds a report about the hooks that ran, if Options.Reports is set.
func (r *Runner) addEventStatsIfEnabled(c *eventRun, answers []hookResult) {
	if !r.options.Reports {
		return
	}
	out := protocol.HookEventStats{Event: c.event, Name: c.hookName, Hooks: len(answers)}
	for i := range answers {
		a := &answers[i]
		switch _, _, refused := a.refusalReason(c); {
		case refused:
			out.Blocked++
		case a.outcome == outcomeError:
			out.Failed++
		case a.outcome == outcomeCancelled:
			out.Cancelled++
		}
		out.Duration = max(out.Duration, a.duration)
		out.OutputBytes += len(a.stdout)
		if own := a.output.Specific; own != nil {
			out.ContextBytes += len(own.AdditionalContext)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, out)
}
