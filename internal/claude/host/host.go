// Package host implements the requests of an SDK host: playing prompts,
// describing the session, and changing it while it runs.
//
// It uses the public methods of the session and keeps no session state except
// the settings that came from the host. Package control implements the wire
// format.
package host

import (
	"context"
	"errors"
	"io"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/output"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrInterrupted ends a run whose turn was interrupted by SIGINT.
var ErrInterrupted = errors.New("interrupted")

// Host is a session that an SDK host drives over stdin and stdout.
type Host struct {
	s    *session.Session
	peer *control.Conn
	d    driver
}

// Open builds the session of a plan for the host that is behind the streams of sys. It starts nothing.
func Open(plan launch.Plan, sys *process.System, signals *process.Signals) (*Host, error) {
	marks := &stamps{plan: plan}
	peer := control.New(options(plan, sys, marks))
	s, err := session.Open(plan, peer)
	if err != nil {
		return nil, err
	}
	marks.s = s
	h := &hostedSession{Session: s}
	p := player{s, peer, signals}
	return &Host{s: s, peer: peer, d: driver{PromptPlayer: p, BackgroundWorker: p, requests: &requests{
		peer: peer, stamps: marks, session: s, named: s, greeter: h, settings: h, files: h, tasks: h, facts: h,
	}}}, nil
}

func options(plan launch.Plan, sys *process.System, marks control.Stamps) control.Options {
	o := control.Options{
		In: sys.Stdin, Out: sys.Stdout, Stamps: marks,
		AwaitInitialize: plan.Host.AwaitInitialize, Ceiling: plan.Limits.BackgroundCeiling, Replay: plan.Output.Replay, OneByOne: plan.Host.OneByOne,
	}
	switch {
	case plan.Host.States:
		o.States = control.StatesOn
	case plan.Host.StatesToHost:
		o.States = control.StatesHostOnly
	}
	return o
}

// stamps are those of a session's frames.
type stamps struct {
	plan launch.Plan
	s    *session.Session // nil = it is not there yet, and nothing is written
}

func (m *stamps) NewID() string     { return m.plan.Clock.NewID() }
func (m *stamps) SessionID() string { return m.s.ID() }
func (m *stamps) Timestamp() string {
	return m.plan.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}

// Session is the session that is driven. Whoever has opened the host closes it.
func (h *Host) Session() *session.Session { return h.s }

// Events is where what follows the last turn is written; see [control.Conn.Events].
func (h *Host) Events() io.Writer { return h.peer.Events() }

// Serve plays the host's prompts until there are none, and answers its requests. The session is started and not closed.
func (h *Host) Serve(ctx context.Context) error {
	if err := h.s.Start(ctx); err != nil {
		return err
	}
	err := h.peer.Serve(ctx, h.d)
	h.s.Started()
	if bad, ok := errors.AsType[*control.InputError](err); ok {
		return process.Verbatimf("%s", bad.Text)
	}
	return err
}

// driver is a session as the wire sees it.
type driver struct {
	control.PromptPlayer
	control.BackgroundWorker
	*requests
}

var _ control.Session = driver{}

// Slow tells whether requests of a subtype may wait for anything.
func (d driver) Slow(subtype string) bool {
	h, _ := inbound(subtype)
	return h.slow
}

// Serve answers a request.
func (d driver) Serve(ctx context.Context, r control.Request) (control.Answer, error) {
	h, ok := inbound(r.Subtype)
	if !ok {
		return control.Answer{}, unsupported(r.Subtype)
	}
	return h.run(ctx, d.requests, readRequest(r))
}

// handler serves one subtype. A slow one may wait for anything; see [control.Server].
type handler struct {
	run  serveFunc
	slow bool
}

// inbound is every request that is served; those that are not are [refused].
func inbound(subtype string) (handler, bool) {
	table := map[string]handler{
		"set_permission_mode":     {run: setPermissionMode},
		"set_model":               {run: setModel},
		"set_max_thinking_tokens": {run: setThinking},
		"apply_flag_settings":     {run: applySettings},
		"update_settings":         {run: updateSettings},
		"side_question":           {run: sideQuestion, slow: true},
		"register_repo_root":      {run: registerRoot},
		"claim_session":           {run: claim},
		"submit_feedback":         {run: feedback},
		"get_hooks_listing":       {run: tell},

		"set_mcp_permission_mode_override": {run: overrideMode},

		"cancel_async_message":   {run: cancelMessage},
		"stop_task":              {run: stopTask},
		"end_session":            {run: endSession},
		"rename_session":         {run: rename},
		"rewind_files":           {run: rewind},
		"read_file":              {run: readFile},
		"get_context_usage":      {run: checked(knownDetail, tell)},
		"get_settings":           {run: tell},
		"get_usage":              {run: checked(skipBehaviors, tell)},
		"list_permission_rules":  {run: tell},
		"list_models":            {run: tell},
		"reload_skills":          {run: tell},
		"reload_plugins":         {run: tell},
		"reload_output_styles":   {run: tell},
		"get_task_output":        {run: taskOutput},
		"background_tasks":       {run: background},
		"generate_session_title": {run: noTitle},
		"set_has_subscribers":    {run: subscribers},
		"get_binary_version":     {run: binaryVersion},
		"get_session_cost":       {run: tell},
		"mcp_status":             {run: mcpStatus},
		"mcp_message":            {run: mcpMessage},
		"mcp_reconnect":          {run: mcpReconnect, slow: true},
		"mcp_toggle":             {run: mcpToggle, slow: true},
		"mcp_set_servers":        {run: mcpSetServers, slow: true},
		"mcp_call":               {run: mcpCall, slow: true},
		"mcp_read_resource":      {run: mcpReadResource, slow: true},
		"seed_read_state":        {run: nothing}, // only NotebookEdit needs an earlier Read, and a Read of this session
	}
	h, ok := table[subtype]
	return h, ok
}

// player plays the prompts of a host with a session, and shows its work between turns.
type player struct {
	*session.Session
	peer    *control.Conn
	signals *process.Signals
}

// First is the prompt that goes on with a call that an earlier process put off.
func (p player) First() *protocol.UserMessage {
	if in, ok := p.Deferred(); ok {
		return &in
	}
	return nil
}

// Turn plays one prompt. SIGINT ends it with its result and the run after it.
func (p player) Turn(_, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
	ctx, cancel := context.WithCancelCause(interrupt)
	defer cancel(nil)
	p.signals.Interrupts(func() { cancel(simulator.ErrSignalled) })
	err = output.StreamJSON(p.peer.Events(), p.Session.Turn(ctx, in))
	if p.signals.Interrupted() && err == nil {
		return false, ErrInterrupted
	}
	last := p.Last()
	return last != nil && simulator.Completed(last), err
}

// Idle writes what the work shows.
func (p player) Idle(_, until context.Context) error {
	return output.StreamJSON(p.peer.Events(), p.Session.Idle(until))
}
