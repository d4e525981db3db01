// Package session assembles a session from a plan: MCP servers, permissions,
// hooks, tools, records and background work, and the simulator that plays its
// turns.
//
// Each part owns its state and its lock and knows only the parts below it.
// Nothing runs before [Session.Start], and [Session.Close] ends everything that
// was started.
package session

import (
	"context"
	"iter"
	"path/filepath"
	"sync"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode/clientinfo"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/command"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Events are what a session shows, in their order; after an error there are no more.
type Events = iter.Seq2[protocol.Event, error]

// Session is one session. Its methods may be called from several goroutines, but turns are played one at a time.
type Session struct {
	plan    launch.Plan
	live    *simulator.SessionState
	records *recorder
	servers *servers
	policy  *policy
	hooks   *hooks
	library *library
	box     *toolbox
	work    *background
	said    *sessionContext
	talk    *conversation
}

// conversation is the simulator and what is noted between its turns.
type conversation struct {
	records *recorder
	ended   func() error // the cause of the end of Start's context; nil = it goes on

	mu     sync.Mutex // guards what follows
	sim    *simulator.Simulator
	cost   slash.Cost // when the last turn had ended
	titles []string   // given by the host and not yet in the transcript
}

// Open builds a session in the order in which its parts depend on each other. It starts nothing. A session that could be
// built in part only is closed. Host is nil where nobody is there.
func Open(plan launch.Plan, host Host) (*Session, error) {
	s := &Session{plan: plan, live: &simulator.SessionState{}, box: &toolbox{}}
	s.said = &sessionContext{plan: plan, live: s.live, box: s.box}
	var err error
	if s.records, err = openRecords(plan, s.said); err != nil {
		return nil, err
	}
	s.said.records = s.records
	s.talk = &conversation{records: s.records, ended: func() error { return nil }}
	s.live.Begin(s.records.ID(), s.records.transcript.Path())
	s.live.SetModel(s.plan.Model.Name)
	s.live.SetEffort(s.plan.Model.Effort)
	s.live.SetStyle(s.plan.Settings.Style())
	s.live.SetTitle(s.plan.Custom.Title)
	if err := s.furnish(host); err != nil {
		s.records.closeLogs()
		return nil, err
	}
	return s, nil
}

// furnish makes the parts.
func (s *Session) furnish(host Host) error {
	plan := s.plan
	s.servers = newServers(plan, s.live, host, s.records)
	var err error
	if s.policy, err = newPolicy(plan, s.box, s.servers); err != nil {
		return err
	}
	if err := s.servers.open(s.policy.Directories(), plan.Records.Capture != "" || s.records.engine.wantsServers()); err != nil {
		return err
	}
	s.hooks = newHooks(plan, s.live, s.box, s.policy)
	s.library = &library{catalog: plan.Catalog, policy: s.policy, hooks: s.hooks, shell: s.box}
	s.work = newBackground(plan, s.live, s.policy)
	parts := toolParts{host: host, live: s.live, hooks: s.hooks, library: s.library, work: s.work}
	if err := s.box.fill(plan, parts, s.servers, s.policy); err != nil {
		return err
	}
	if err := s.renew(plan.Prompt); err != nil {
		return err
	}
	s.talk.measure()
	return s.records.follow(plan)
}

// renew makes the simulator, for a system prompt and a schema.
func (s *Session) renew(prompt launch.Prompt) error {
	o, err := s.options(prompt)
	if err != nil {
		return err
	}
	sim, err := simulator.New(o)
	if err != nil {
		return err
	}
	s.work.options = o
	s.talk.play(sim)
	return nil
}

func (s *Session) options(prompt launch.Prompt) (simulator.Options, error) {
	plan, t := s.plan, s.records.transcript
	o := simulator.Options{
		Model: s.work.model.Own(), Tools: s.box, Hooks: s.hooks.Runner, Clock: plan.Clock, Rand: plan.Clock.Rand(),
		Live: s.live, Here: s.box, System: prompt.System + prompt.Append,
		Limits: simulator.Limits{
			Turns: plan.Limits.MaxTurns, BudgetUSD: plan.Limits.MaxBudgetUSD, Retries: plan.Limits.MaxRetries, RetryScale: plan.Limits.RetryScale,
			Fallback: plan.Model.Fallback, StopBlocks: plan.Limits.StopBlockCap, SchemaTries: prompt.SchemaTries,
			Window: plan.Limits.Window, NoCompact: plan.Limits.NoCompact, Gateway: plan.Limits.Gateway,
		},
		Show: simulator.DisplayOptions{
			Partial: plan.Output.Partial, Begun: clientinfo.NamesBegun(plan.Version), Replay: plan.Output.Replay, Hooks: plan.Output.HookEvents, Compat: plan.Compat, InOrder: plan.Clock.Repeatable(),
			Thinking: plan.Output.ThinkingDisplay, Stream: plan.Scenario.Stream, ResponseDelay: plan.Limits.ResponseDelay, CompactDelay: plan.Limits.CompactDelay,
		},
		Main: &simulator.MainOptions{
			Start: simulator.SessionStart{
				Resumed: t.Resumed(), Forked: plan.Transcript.Fork && t.Resumed(), Setup: plan.Custom.Setup, Agent: plan.Custom.Agent,
				Title: t.Title(), Reduced: plan.Custom.Reduced() || plan.Settings.DisableAllHooks, Heard: (*simulator.PreviousReply)(t.Heard()), Sought: plan.Transcript.Continue && t.Resumed() && !plan.Transcript.Fork, Instructions: instructions(plan.Custom.Memories),
			},
			Said: s.said, Transcript: t, Tasks: s.work.tasks, Commands: commandsOf(s), Mentions: mentions{s.box, plan.CWD, plan.Home}, Costs: t.Costs(),
		},
	}
	if host := s.servers.answers.host; host != nil {
		o.Main.Prompts = host
	}
	if use, message, ok := t.Deferred(); ok {
		o.Main.Deferred = &simulator.Deferred{Use: use, Message: message}
	}
	if prompt.Schema == "" {
		return o, nil
	}
	schema, err := outputschema.Compile(prompt.Schema)
	o.Main.Schema = schema
	return o, err
}

// commandsOf are the slash commands of a session.
func commandsOf(s *Session) *command.Set {
	o := command.Options{
		Live: s.live, Catalog: s.plan.Catalog, Rules: s.policy, Session: s.records, Models: s.plan.Model.Aliases, Shell: s.box, Off: s.plan.Custom.NoCommands,
	}
	if s.servers.manager != nil {
		o.Servers = s.servers.manager
	}
	if s.plan.Settings.Reads("project") {
		o.Memory = filepath.Join(s.plan.CWD, "CLAUDE.md")
	}
	return command.New(o)
}

// Start brings the servers up and makes the tools known to those who decide about calls. Where there is a host, they come up
// beside its first requests, and [Session.Ready] waits for them. When ctx ends, for whatever cause, no more events are shown.
func (s *Session) Start(ctx context.Context) error {
	s.talk.ended = func() error { return context.Cause(ctx) }
	if s.servers.answers.host != nil {
		return s.servers.launch(ctx)
	}
	if err := s.servers.start(ctx); err != nil {
		return err
	}
	return s.box.gates.register(ctx, s.box)
}

// play goes on with another simulator.
func (c *conversation) play(sim *simulator.Simulator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sim = sim
}

// locked is the simulator for questions between turns, while no other one is made; release gives it back.
func (c *conversation) locked() (sim *simulator.Simulator, release func()) {
	c.mu.Lock()
	return c.sim, c.mu.Unlock
}

// entitle keeps a title for the transcript, which gets it between turns.
func (c *conversation) entitle(title string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.titles = append(c.titles, title)
}

func (c *conversation) writeTitles() {
	c.mu.Lock()
	titles := c.titles
	c.titles = nil
	c.mu.Unlock()
	for _, title := range titles {
		c.records.Entitle(title)
	}
}

// measure notes what the session costs.
func (c *conversation) measure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost = c.sim.Cost()
}

// spent is what the session had cost when the last turn had ended.
func (c *conversation) spent() slash.Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cost
}

// Deferred is the prompt that goes on with a call that an earlier process put off; false = there is none.
func (s *Session) Deferred() (protocol.UserMessage, bool) { return s.talk.sim.Deferred() }

// Turn plays one prompt. When ctx ends, the turn still ends with its result.
func (s *Session) Turn(ctx context.Context, in protocol.UserMessage) Events {
	return func(yield func(protocol.Event, error) bool) {
		s.talk.writeTitles()
		defer s.talk.measure()
		defer s.talk.writeTitles()
		s.watch(s.talk.sim.Turn(ctx, in))(yield)
	}
}

// Play plays prompts, tells how far those are that have an id, and shows everything that follows from their background work.
func (s *Session) Play(ctx context.Context, prompts []protocol.UserMessage) Events {
	var all []Events
	for _, in := range prompts {
		all = append(all, s.records.lifecycle(in, "started"), s.talk.sim.Turn(ctx, in), s.records.lifecycle(in, "completed"))
	}
	all = append(all, s.talk.sim.Settle(ctx, s.plan.Limits.BackgroundCeiling))
	return s.watch(holdResults(s, func(yield func(protocol.Event, error) bool) {
		for _, events := range all {
			for ev, err := range events {
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}))
}

// holdResults keeps results back while agents work in the background, as the real CLI does for a prompt of its command line:
// they come together at the end, with what the session has used by then.
func holdResults(s *Session, events Events) Events {
	return func(yield func(protocol.Event, error) bool) {
		var held []*protocol.Result
		flush := func() bool {
			s.talk.sim.Recount(held)
			for _, result := range held {
				if !yield(result, nil) {
					return false
				}
			}
			held = nil
			return true
		}
		for ev, err := range events {
			if result, ok := ev.(*protocol.Result); ok && err == nil {
				held = append(held, result)
				if !s.work.tasks.Agents() && !flush() {
					return
				}
				continue
			}
			if err != nil && !flush() || !yield(ev, err) {
				return
			}
		}
		flush()
	}
}

// watch lets everything that only looks on see the events on their way out: the journal, the scenario's state and
// expectations, warnings for stderr. It cuts the stream when the run has ended.
func (s *Session) watch(events Events) Events {
	return func(yield func(protocol.Event, error) bool) {
		for ev, err := range events {
			if cause := s.talk.ended(); cause != nil {
				yield(nil, cause)
				return
			}
			if err == nil {
				s.records.see(s.servers.life, ev)
			}
			for _, frame := range s.records.mirror.take() {
				if !yield(frame, nil) {
					return
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// Close ends what Start began and tells about what could not be written.
func (s *Session) Close(ctx context.Context) {
	s.talk.writeTitles()
	s.work.close()
	s.box.builtin.Close()
	s.talk.sim.Close(ctx, "")
	s.servers.close(ctx)
	s.records.close()
	s.box.gates.close(s.records)
	s.records.closeLogs()
}

// Rest is what the end of the transcript adds to the stream (--session-mirror).
func (s *Session) Rest() Events {
	return func(yield func(protocol.Event, error) bool) {
		for _, frame := range s.records.mirror.take() {
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// Last is the last result shown; nil = there was none.
func (s *Session) Last() *protocol.Result { return s.records.last.Load() }

// Judge holds what the process did against the scenario's expectations, at its end: those that were missed, one line each; none
// where others judge the whole run. It is called once.
func (s *Session) Judge(code int) []string {
	if s.plan.Output.Defer {
		return nil
	}
	return s.records.judge(code)
}
