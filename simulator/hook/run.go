package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Run runs all matching hooks of the event concurrently and merges their answers in
// configured order. When ctx ends, running hooks are ended and the outcome has no
// decision; the caller checks ctx.Err.
func (r *Runner) Run(ctx context.Context, in Input) Outcome {
	event, subject := protocol.HookEvent(in.Event)
	chosen := r.choose(event, subject, in)
	if len(chosen) == 0 {
		return Outcome{}
	}
	c := r.newCall(in, event, subject)
	r.forgetEnv(event)
	answers := make([]hookResult, len(chosen))
	var wg sync.WaitGroup
	for i, e := range chosen {
		id := ""
		if e.callback == "" {
			id = r.o.NewID()
		}
		wg.Go(func() { // ends with its hook, which its timeout and ctx end
			started := r.o.Now()
			answers[i] = r.runOne(ctx, c, e, i)
			answers[i].entry, answers[i].id = e, id
			answers[i].duration = r.o.Now().Sub(started)
		})
	}
	wg.Wait()
	r.report(c, answers)
	if ctx.Err() != nil {
		return Outcome{Trace: Trace{Frames: frames(c, answers)}}
	}
	return merge(c, answers)
}

func (r *Runner) newCall(in Input, event, subject string) *call {
	base := in.Base
	fill(&base.SessionID, r.o.SessionID)
	fill(&base.TranscriptPath, r.o.TranscriptPath)
	fill(&base.CWD, r.o.CWD)
	base.HookEventName = event
	cwd := base.CWD
	if r.o.ToldCWD != "" {
		base.CWD = r.o.ToldCWD
	}
	c := &call{
		event: event, name: event, toolUseID: in.ToolUseID, cwd: cwd,
		sessionID: base.SessionID, stdin: inputJSON(base, in.Event), unchecked: &r.unchecked,
	}
	if base.Effort != nil {
		c.effort = base.Effort.Level
	}
	if subject != "" && event != "UserPromptExpansion" && event != "SubagentStop" {
		c.name += ":" + subject
	}
	if c.toolUseID == "" {
		c.toolUseID = r.o.NewID()
		if event == "PostToolBatch" {
			c.toolUseID = "hook-" + c.toolUseID
		}
	}
	switch p := in.Event.(type) {
	case protocol.MessageDisplayHook:
		c.toolUseID = p.MessageID + "-" + strconv.Itoa(p.Index)
	case protocol.UserPromptSubmitHook:
		c.prompt = p.Prompt
	case protocol.UserPromptExpansionHook:
		c.prompt = p.Prompt
	}
	return c
}

func fill(field *string, value string) {
	*field = cmp.Or(*field, value)
}

// inputJSON returns one object: the common keys, then the event's own. For an event
// that cannot be encoded (invalid raw JSON) it contains only the common keys.
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

func (r *Runner) runOne(ctx context.Context, c *call, e *entry, place int) hookResult {
	switch {
	case e.callback != "":
		return r.ask(ctx, c, e)
	case e.config.Type == "command":
		return r.command(ctx, c, e, place)
	case e.config.Type == "http":
		return r.post(ctx, c, e)
	case e.config.Type == "mcp_tool":
		return r.mcpTool(ctx, c, e)
	}
	return hookResult{outcome: succeeded, fault: faultUnknown}
}

// ask runs a callback of the host.
func (r *Runner) ask(ctx context.Context, c *call, e *entry) hookResult {
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	raw, err := r.o.Callback(limited, e.callback, c.stdin, c.toolUseID)
	switch {
	case err != nil && limited.Err() != nil:
		return hookResult{outcome: cancelled, fault: faultSilent, timedOut: true}
	case errors.Is(err, ErrGone):
		return hookResult{outcome: cancelled, fault: faultGone}
	case err != nil:
		return hookResult{outcome: failed, fault: faultFailed}
	}
	out, err := parseOutput(c.event, raw)
	switch wrong, is := errors.AsType[*eventError](err); {
	case is:
		return hookResult{outcome: failed, fault: faultInvalid, stderr: wrong.Error()}
	case err != nil:
		return hookResult{outcome: failed, fault: faultFailed}
	}
	return hookResult{outcome: succeeded, output: out}
}

// mcpTool calls a tool of a connected server; its text is interpreted like a
// command's standard output.
func (r *Runner) mcpTool(ctx context.Context, c *call, e *entry) hookResult {
	if r.o.MCPTool == nil {
		return hookResult{outcome: failed, fault: faultFailed, stderr: "MCP tools are not available to hooks"}
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	text, err := r.o.MCPTool(limited, e.config.Server, e.config.Tool, expandInput(e.config.Input, c.stdin))
	if err != nil {
		return failure(ctx, limited, err)
	}
	a := hookResult{stdout: text, exit: new(0), outcome: succeeded}
	a.read(c.event)
	return a
}

// expandInput replaces ${a.b} in the strings of a tool's input by values of the
// hook's input.
func expandInput(input, hookInput json.RawMessage) json.RawMessage {
	var tree, values any
	if json.Unmarshal(input, &tree) != nil || json.Unmarshal(hookInput, &values) != nil {
		return json.RawMessage("{}")
	}
	out, err := protocol.Marshal(expand(tree, values))
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}
