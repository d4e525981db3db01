package control

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// RefusalError is an error answer with a code of its own. Model is the one that
// stays in force; empty = not told.
type RefusalError struct{ Code, Text, Model string }

func (e *RefusalError) Error() string { return e.Text }

// answer is what a handler gives back: the payload of a success (nil = none)
// and what is shown right before and after it. A greeting also tells what waits
// for the host.
type answer struct {
	payload       any
	before, after []protocol.Event
	greeting      bool
	then          func() // called when the answer is out; nil = nothing
}

// handler serves one subtype. A quick one runs on the reader, so that it is
// answered before the next line is looked at; a slow one may wait for anything.
type handler struct {
	run  serveFunc
	slow bool
}

type serveFunc func(ctx context.Context, p *Peer, in request) (answer, error)

// inbound is every request that is served; those that are not are in
// unimplemented.go.
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
	}
	for _, silent := range accepted() {
		table[silent] = handler{run: func(context.Context, *Peer, request) (answer, error) { return answer{}, nil }}
	}
	h, ok := table[subtype]
	return h, ok
}

// serve answers one request of the host, at once or from a goroutine that ends
// with its handler.
func (p *Peer) serve(f incoming) {
	switch fields[subtype](f.Request).Subtype {
	case "interrupt":
		p.interrupt(f)
		return
	case "initialize":
		p.initialize(f)
		return
	}
	if p.deferred(f) {
		return
	}
	p.handle(f)
}

// deferred keeps a request that came while initialize is under way.
func (p *Peer) deferred(f incoming) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.greeting > 0 {
		p.later = append(p.later, f)
	}
	return p.greeting > 0
}

// greet ends the time in which requests wait: they are served in order.
func (p *Peer) greet() {
	for {
		p.mu.Lock()
		if len(p.later) == 0 || p.greeting > 1 {
			p.greeting--
			p.greeted = true
			for _, in := range p.queue.waiting {
				if in.unannounced {
					p.announce(in)
				}
			}
			p.mu.Unlock()
			p.stir()
			return
		}
		f := p.later[0]
		p.later = p.later[1:]
		p.mu.Unlock()
		p.handle(f)
	}
}

type subtype struct {
	Subtype string `json:"subtype"`
}

func (p *Peer) handle(f incoming) {
	in := readRequest(f)
	h, ok := inbound(in.subtype)
	switch {
	case !ok:
		p.respond(f.RequestID, answer{}, unsupported(in.subtype))
	case h.slow:
		p.work(f, h.run, func() {})
	default:
		p.mu.Lock()
		life := p.life
		p.mu.Unlock()
		a, err := h.run(life, p, in)
		p.respond(f.RequestID, a, err)
	}
}

// work runs a slow handler, answers and then goes on with then. A request that
// the host has cancelled gets no answer.
func (p *Peer) work(f incoming, run serveFunc, then func()) {
	id := string(f.RequestID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		return
	}
	ctx, cancel := context.WithCancel(p.life)
	p.working[id] = cancel
	p.handlers.Go(func() { // ends with its handler, which ctx ends
		defer cancel()
		a, err := run(ctx, p, readRequest(f))
		if ctx.Err() == nil {
			p.respond(f.RequestID, a, err)
		}
		then()
		p.mu.Lock()
		delete(p.working, id)
		p.stir()
		p.mu.Unlock()
	})
}

// abandon ends work on a request that the host no longer wants.
func (p *Peer) abandon(id json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.working[string(id)]; cancel != nil {
		cancel()
	}
}

type response struct {
	Type     string `json:"type"` // "control_response"
	Response any    `json:"response"`
}

type success struct {
	Subtype   string          `json:"subtype"` // "success"
	RequestID json.RawMessage `json:"request_id,omitempty"`
	Response  any             `json:"response,omitempty"`
	// What waits for the host, with the answer to initialize only.
	Permissions *[]json.RawMessage `json:"pending_permission_requests,omitempty"`
	Dialogs     *[]json.RawMessage `json:"pending_user_dialog_requests,omitempty"`
}

type failure struct {
	Subtype   string          `json:"subtype"` // "error"
	RequestID json.RawMessage `json:"request_id,omitempty"`
	Error     string          `json:"error"`
	Code      string          `json:"error_code,omitempty"`
	Model     string          `json:"model,omitempty"`
}

func (p *Peer) respond(id json.RawMessage, a answer, err error) {
	if a.then != nil {
		defer a.then()
	}
	if err != nil {
		f := failure{Subtype: "error", RequestID: id, Error: err.Error()}
		if mode, ok := errors.AsType[*permission.ModeError](err); ok {
			f.Code = mode.Code
		}
		if refusal, ok := errors.AsType[*RefusalError](err); ok {
			f.Code, f.Model = refusal.Code, refusal.Model
		}
		p.write(response{"control_response", f})
		return
	}
	for _, ev := range a.before {
		p.show(ev)
	}
	ok := success{Subtype: "success", RequestID: id, Response: a.payload}
	if a.greeting {
		ok.Permissions, ok.Dialogs = p.unanswered(), new([]json.RawMessage{})
	}
	p.write(response{"control_response", ok})
	for _, ev := range a.after {
		p.show(ev)
	}
}

// interrupt ends the current turn, or the next one if it has been sent already,
// and the agents in the background: requests to the host are withdrawn first, then the answer, then what the turn
// has left to show (spec: cli-contract 4.4).
func (p *Peer) interrupt(f incoming) {
	var in struct {
		CancelQueued bool `json:"cancel_queued"`
	}
	_ = json.Unmarshal(f.Request, &in) // else the zero value
	var payload struct {
		StillQueued []string `json:"still_queued"`
		Cancelled   []string `json:"cancelled,omitempty"`
	}
	var dropped []*prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.out.hold()()
	if s, ok := p.s.(Interrupted); ok {
		s.Interrupt()
	}
	if p.cut != nil {
		p.current.cancelled = true
		p.cut(nil)
	}
	p.withdrawEnded()
	switch {
	case p.current != nil && p.cut == nil:
		p.current.interrupted = true
	case p.current == nil && len(p.queue.waiting) > 0:
		p.queue.waiting[0].interrupted = true
	}
	if in.CancelQueued {
		dropped = p.queue.drop()
	}
	payload.StillQueued = uuids(p.queue.untouched())
	payload.Cancelled = uuids(dropped)
	for _, gone := range dropped {
		p.lifecycle(gone, "cancelled")
	}
	p.respond(f.RequestID, answer{payload: payload}, nil)
}

// malformed says what is wrong with the keys of initialize that have to have a
// certain form; those of other keys are passed over when they have not.
func malformed(sent request, in *Initialize) error {
	if servers := sent.keys["sdkMcpServers"]; given(servers) && json.Unmarshal(servers, &in.SDKMCPServers) != nil {
		return errors.New("initialize: sdkMcpServers and webSearchIsolationExemptMcpServers must be arrays of strings")
	}
	hooks := sent.keys["hooks"]
	if !given(hooks) {
		return nil
	}
	bad := errors.New("initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays and string matchers")
	var events map[string]*[]struct {
		Matcher *string   `json:"matcher"`
		IDs     *[]string `json:"hookCallbackIds"`
	}
	if json.Unmarshal(hooks, &events) != nil {
		return bad
	}
	for _, matchers := range events {
		if matchers == nil {
			return bad
		}
		for _, m := range *matchers {
			if m.IDs == nil {
				return bad
			}
		}
	}
	return nil
}

// connected tells whether a server is connected.
func (p *Peer) connected(name string) bool {
	st, err := p.server(name)
	return err == nil && st.Status == "connected"
}

// initialize holds requests other than interrupt back until it is answered, and
// turns until the host's own servers are connected. It is answered as soon as
// the first of them is spoken to: the host may want its answer before it serves.
func (p *Peer) initialize(f incoming) {
	answered := make(chan struct{})
	p.mu.Lock()
	p.greeting++
	p.holds++
	begun := p.turns > 0 || p.current != nil
	again := begun || p.greeted || p.greeting > 1
	p.mu.Unlock()
	p.work(f, func(ctx context.Context, p *Peer, sent request) (answer, error) {
		in := fields[Initialize](sent.raw)
		in.Begun = begun
		in.Title = strings.TrimSpace(in.Title)
		if fault := malformed(sent, &in); fault != nil {
			p.connect(ctx, in, fault, answered)
			return answer{}, fault
		}
		parked := p.manifests.park(sent, in.SDKMCPServers, p.connected)
		d, err := p.s.Initialize(ctx, in)
		p.connect(ctx, in, err, answered)
		d.ManifestsParked = parked
		a := answer{payload: p.complete(d), greeting: true}
		if in.Title != "" {
			a.before = []protocol.Event{titleChanged(in.Title)}
		}
		if again {
			a.after = []protocol.Event{&protocol.System{Subtype: "background_tasks_changed", Fields: []protocol.Field{{Key: "tasks", Value: []string{}}}}}
		}
		return a, err
	}, func() {
		close(answered)
		p.greet()
	})
}

// connect lets the session connect what initialize names; it returns when a
// server of the host is spoken to, or when there is nothing more to do.
func (p *Peer) connect(ctx context.Context, in Initialize, failed error, answered chan struct{}) {
	done := make(chan struct{})
	reached, spoken := context.WithCancel(ctx)
	p.mu.Lock()
	p.reached, p.answered = spoken, answered
	life := p.life
	p.mu.Unlock()
	p.handlers.Go(func() { // ends with the servers' time-outs, and with life
		defer close(done)
		if failed == nil {
			p.s.Connect(life, in)
		}
		p.mu.Lock()
		p.holds--
		p.reached = nil
		p.mu.Unlock()
		spoken()
		p.stir()
	})
	select {
	case <-reached.Done():
	case <-done:
	}
}

// complete fills in what the peer itself knows.
func (p *Peer) complete(d Description) Description {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.PermissionMode = string(p.s.Policy().Mode())
	d.OnFailureSupported, d.AskOutranksHost = true, true
	d.SessionState = "idle"
	if p.current != nil || p.first != nil {
		d.SessionState = "running"
	}
	for _, q := range p.pending {
		if q.kind == ofPermission {
			d.SessionState = "requires_action"
		}
	}
	return d
}

// unanswered are the permission questions that wait for the host, as they were
// sent.
func (p *Peer) unanswered() *[]json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	frames := []json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		if q := p.pending[id]; q.kind == ofPermission {
			frames = append(frames, q.frame)
		}
	}
	return &frames
}
