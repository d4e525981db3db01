package hook

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// call is one run of one event.
type call struct {
	event     string
	name      string // event, or event:subject
	toolUseID string
	cwd       string
	sessionID string
	stdin     []byte
	prompt    string // of the events of a prompt
	effort    string // empty = the event has none
}

// answer is what one hook did.
type answer struct {
	entry  *entry
	id     string // of its frames
	output protocol.HookOutput
	// plain is text on standard output that is no JSON object.
	plain string
	// block is the reason of exit status 2 as users see it; bare is the same
	// without the command.
	block, bare    string
	blocked        bool
	stdout, stderr string
	progress       []soFar // what it had printed meanwhile
	exit           *int    // nil = it did not end by itself
	outcome        outcome
	fault          fault
	timedOut       bool
	killed         bool // by a signal
	detached       bool // still running; says nothing
	took           time.Duration
}

// soFar is what a command has printed at some time.
type soFar struct{ stdout, stderr string }

type outcome string

const (
	succeeded outcome = "success"
	failed    outcome = "error"
	cancelled outcome = "cancelled"
)

// fault says why a hook gave no verdict.
type fault int

const (
	noFault      fault = iota
	faultFailed        // it ran and failed
	faultMissing       // there is no such command
	faultSilent        // no answer in time
	faultInvalid       // an answer that breaks the contract; text in stderr
	faultGone          // the host is gone
	faultUnknown       // a kind of hook that is not simulated
)

// Run runs all hooks that match the event at once and merges their answers in
// configured order. When ctx ends, running hooks are ended and the outcome
// holds no decision: the caller sees it by ctx.Err.
func (r *Runner) Run(ctx context.Context, in Input) Outcome {
	event, subject := in.Event.HookEvent()
	chosen := r.choose(event, subject, in)
	if len(chosen) == 0 {
		return Outcome{}
	}
	c := r.newCall(in, event, subject)
	r.forgetEnv(event)
	answers := make([]answer, len(chosen))
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
			answers[i].took = r.o.Now().Sub(started)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return Outcome{Frames: frames(c, answers)}
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
		sessionID: base.SessionID, stdin: inputJSON(base, in.Event),
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
	if *field == "" {
		*field = value
	}
}

// inputJSON is one object: the common keys, then the event's own. An event
// that cannot be written (invalid raw JSON in it) leaves the common keys.
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

func (r *Runner) runOne(ctx context.Context, c *call, e *entry, place int) answer {
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
	return answer{outcome: succeeded, fault: faultUnknown}
}

// ask runs a callback of the host.
func (r *Runner) ask(ctx context.Context, c *call, e *entry) answer {
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	raw, err := r.o.Callback(limited, e.callback, c.stdin, c.toolUseID)
	switch {
	case err != nil && limited.Err() != nil:
		return answer{outcome: cancelled, fault: faultSilent, timedOut: true}
	case errors.Is(err, ErrGone):
		return answer{outcome: cancelled, fault: faultGone}
	case err != nil:
		return answer{outcome: failed, fault: faultFailed}
	}
	out, err := parseOutput(c.event, raw)
	switch wrong, is := errors.AsType[*eventError](err); {
	case is:
		return answer{outcome: failed, fault: faultInvalid, stderr: wrong.Error()}
	case err != nil:
		return answer{outcome: failed, fault: faultFailed}
	}
	return answer{outcome: succeeded, output: out}
}

// read takes what a configured hook printed when it succeeded: an object is
// its output, anything else plain text.
func (a *answer) read(event string) {
	object, ok := asObject(a.stdout)
	if !ok {
		a.plain = a.stdout
		return
	}
	out, err := parseOutput(event, object)
	if err != nil {
		a.outcome, a.fault = failed, faultInvalid
		a.stderr = invalidOutput(object, err)
		if _, read := errors.AsType[*choiceError](err); !read { // as if it had not run at all
			a.stdout, a.exit = "", new(1)
		}
		return
	}
	a.output = out
}

// failure is the answer of a configured hook that ended without a verdict.
func failure(ctx, limited context.Context, err error) answer {
	if limited.Err() != nil && ctx.Err() == nil {
		return answer{outcome: cancelled, fault: faultSilent, timedOut: true}
	}
	return answer{outcome: failed, fault: faultFailed, stderr: err.Error()}
}

// mcpTool calls a tool of a connected server; its text counts like a command's
// standard output.
func (r *Runner) mcpTool(ctx context.Context, c *call, e *entry) answer {
	if r.o.MCPTool == nil {
		return answer{outcome: failed, fault: faultFailed, stderr: "MCP tools are not available to hooks"}
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	text, err := r.o.MCPTool(limited, e.config.Server, e.config.Tool, expandInput(e.config.Input, c.stdin))
	if err != nil {
		return failure(ctx, limited, err)
	}
	zero := 0
	a := answer{stdout: text, exit: &zero, outcome: succeeded}
	a.read(c.event)
	return a
}

// expandInput replaces ${a.b} in the strings of a tool's input by values of
// the hook's input.
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
