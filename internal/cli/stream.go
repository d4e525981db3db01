package cli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/checkpoint"
	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// errInterrupted ends a run whose turn was interrupted by SIGINT.
var errInterrupted = errors.New("interrupted")

// runStream is the claude face for SDK hosts: prompts and requests come as
// frames on stdin until it ends.
func runStream(ctx context.Context, s *process.System, f *flags.Flags) error {
	ctx, signals := s.Watch(ctx)
	defer signals.Stop()
	r, err := assemble(s, f)
	if err != nil {
		return r.refuse(err)
	}
	defer func() { r.close(context.WithoutCancel(ctx)) }()
	h := &host{run: r, signals: signals, started: make(chan struct{})}
	h.measure()
	if err := h.launch(ctx); err != nil {
		return err
	}
	err = r.peer.Serve(ctx, h.session())
	<-h.started
	h.writeTitles()
	if bad, ok := errors.AsType[*control.InputError](err); ok {
		return process.Verbatimf("%s", bad.Text)
	}
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return r.outcome(ctx, ctx, err)
}

// openPeer prepares the connection to the host; nothing is read yet.
func (r *run) openPeer() error {
	if !r.Host.Present {
		return nil
	}
	o := control.Options{
		In: r.sys.Stdin, Out: r.sys.Stdout, NewID: r.Clock.NewID, SessionID: r.sessionID,
		Timestamp:       func() string { return r.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z") },
		AwaitInitialize: r.Host.AwaitInitialize, Replay: r.Output.Replay,
		OneByOne: r.Host.OneByOne,
	}
	switch {
	case r.Host.States:
		o.States = control.StatesOn
	case r.Host.StatesToHost:
		o.States = control.StatesHostOnly
	}
	r.firstID = r.session.ID()
	r.peer = control.New(o)
	if r.Host.Checkpoints {
		r.openCheckpoints()
	}
	return nil
}

// openCheckpoints goes on with the copies of files of a resumed session.
func (r *run) openCheckpoints() {
	r.checkpoints = checkpoint.New(checkpoint.Options{
		CWD: r.CWD, Dir: r.session.HistoryDir, Now: r.Clock.Now,
		Write: func(line json.RawMessage) error { return r.session.Record(&protocol.Custom{Line: line}) },
	})
	r.checkpoints.Load(r.session.FileHistory())
}

// sessionID is the id of the session as the host knows it.
func (r *run) sessionID() string {
	if shown := r.shown.Load(); shown != nil {
		return shown.SessionID
	}
	return r.firstID
}

// asker is who answers permission questions: the host, a tool of an MCP
// server, or, when nil, nobody.
func (r *run) asker() permission.Asker {
	switch name := r.Permission.PromptTool; {
	case name == "":
		return nil
	case name != "stdio":
		return promptTool{run: r, name: name}
	case r.peer == nil:
		return nil
	default:
		return r.peer
	}
}

// promptTool asks a tool of an MCP server (--permission-prompt-tool; spec:
// cli-contract 6.3).
type promptTool struct {
	run  *run
	name string
}

func (p promptTool) Ask(ctx context.Context, q protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	input, err := protocol.Marshal(struct {
		ToolName  string          `json:"tool_name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
	}{q.Use.Name, q.Use.Input, q.Use.ID})
	if err != nil {
		return protocol.PermissionAnswer{}, err
	}
	result, err := p.run.manager.Call(ctx, mcp.CallRequest{Tool: p.name, Input: input})
	switch {
	case ctx.Err() != nil:
		return protocol.PermissionAnswer{}, ctx.Err()
	case err != nil: // there is no such tool
		return protocol.PermissionAnswer{Undecided: true}, nil
	case result.IsError:
		return protocol.PermissionAnswer{Failure: "Tool permission request failed: Error: " + result.Content.Plain()}, nil
	}
	return control.ReadAnswer(json.RawMessage(result.Content.Plain())), nil
}

// host is a run that is driven over the control protocol.
type host struct {
	*run
	signals *process.Signals
	started chan struct{} // closed when the servers have been started
	failure error         // of starting; to be read after started
	joining atomic.Bool   // servers of the host may still be connecting

	mu         sync.Mutex         // held while initialize replaces sim; guards what follows
	introduced bool               // the host's own servers are connected
	plugged    []mcp.ServerConfig // servers of plugins that initialize named
	cost       slash.Cost         // when the last turn had ended
	titles     []string           // given by the host and not yet in the transcript
	live       live
}

// launch starts the servers beside the reading of stdin; the first turn waits
// for them.
func (h *host) launch(ctx context.Context) error {
	if err := h.manager.Start(begun(ctx)); err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		return err
	}
	go func() { // ends when the servers have settled, or with ctx
		defer close(h.started)
		if h.failure = h.manager.Settle(ctx); h.failure == nil {
			h.failure = h.strict()
		}
	}()
	return nil
}

// begun is a context for what is only to be begun: who gets it waits for nothing.
func begun(ctx context.Context) context.Context {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended
}

// ready waits for the servers; those of a host that has sent no initialize are
// connected now.
func (h *host) ready(ctx context.Context) error {
	select {
	case <-h.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if h.failure != nil {
		return h.failure
	}
	h.mu.Lock()
	introduced := h.introduced
	h.mu.Unlock()
	if !introduced {
		return h.introduce(ctx, nil)
	}
	if h.joining.Swap(false) {
		return h.manager.Settle(ctx)
	}
	return nil
}

// introduce connects the servers that live inside the host: those of
// --mcp-config and those it names.
func (h *host) introduce(ctx context.Context, names []string) error {
	h.mu.Lock()
	h.introduced = true
	h.mu.Unlock()
	servers := slices.Clone(h.Servers.Hosted)
	for _, name := range names {
		servers = append(servers, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	if len(servers) == 0 {
		return nil
	}
	_, err := h.manager.SetServers(ctx, "sdk", unique(servers))
	return err
}

// unique keeps the first server of each name.
func unique(servers []mcp.ServerConfig) []mcp.ServerConfig {
	var list []mcp.ServerConfig
	seen := map[string]bool{}
	for _, s := range servers {
		if !seen[s.Name] {
			seen[s.Name] = true
			list = append(list, s)
		}
	}
	return list
}

// turn plays one prompt. SIGINT ends it with its result and the run after it.
func (h *host) turn(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
	turnCtx, cancel := context.WithCancel(interrupt)
	defer cancel()
	h.signals.Interrupts(cancel)
	h.writeTitles()
	err = output.StreamJSON(h.peer.Events(), h.watch(ctx, h.sim.Turn(turnCtx, in)))
	h.writeTitles()
	h.measure()
	if h.signals.Interrupted() && err == nil {
		return false, errInterrupted
	}
	last := h.last.Load()
	return last != nil && simulator.Completed(last), err
}

func (h *host) background() *control.Background {
	return &control.Background{
		Busy: func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.sim.Busy()
		},
		Idle: func(ctx, until context.Context) error {
			return output.StreamJSON(h.peer.Events(), h.watch(ctx, h.sim.Idle(until)))
		},
		Notice:  func() (protocol.UserMessage, bool) { return h.sim.Notice() },
		Ceiling: h.Limits.BackgroundCeiling,
	}
}

// initialize takes the host's settings. Those that turns are built with are
// heeded only before the first turn.
func (h *host) initialize(_ context.Context, in control.Initialize, begun bool) (control.Description, error) {
	if !begun {
		if err := h.configure(in); err != nil {
			return control.Description{}, err
		}
	}
	if given(in.Agents) {
		if err := h.Catalog.DefineAgents(in.Agents, "flagSettings"); err != nil {
			h.hint(err.Error()) // one that is none leaves out all
		}
	}
	if in.ForwardSubagent {
		h.forwardAgents.Store(true)
	}
	if in.Hooks != nil {
		h.hooks.Callbacks(in.Hooks)
	}
	if in.Title != "" {
		if err := h.rename(in.Title); err != nil {
			return control.Description{}, err
		}
	}
	if in.Skills != nil {
		h.allowedSkills.Store(&in.Skills)
	}
	var plugins *bool
	if len(in.Plugins) > 0 {
		applied := h.addPlugins(in.Plugins, begun)
		plugins = &applied
	}
	d := h.describe()
	d.HooksApplied = in.Hooks != nil
	if given(in.MCPServers) {
		applied := h.Host.AwaitInitialize
		d.MCPServersApplied = &applied
	}
	d.PluginsApplied = plugins
	return d, nil
}

// given tells whether a key of a request holds something.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// connect connects the servers that came with initialize. One that fails shows
// so in its status.
func (h *host) connect(ctx context.Context, in control.Initialize) {
	err := h.introduce(ctx, in.SDKMCPServers)
	if err == nil {
		err = h.connectPlugins(ctx)
	}
	if err == nil && h.Host.AwaitInitialize && given(in.MCPServers) {
		_, err = h.setServers(ctx, in.MCPServers)
	}
	if err != nil && ctx.Err() == nil {
		h.warn("connecting the host's servers: " + err.Error())
	}
}

// configure applies what is otherwise given by flags and makes the simulator
// anew.
func (h *host) configure(in control.Initialize) error {
	if in.SystemPrompt == nil && in.AppendSystemPrompt == "" && in.JSONSchema == nil && in.ToolAliases == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.SystemPrompt != nil {
		h.Prompt.System = strings.Join(in.SystemPrompt, "\n")
	}
	if in.AppendSystemPrompt != "" {
		h.Prompt.Append = in.AppendSystemPrompt
	}
	if _, err := outputschema.Compile(string(in.JSONSchema)); err == nil { // else it is as if there were none
		h.Prompt.Schema = string(in.JSONSchema)
	}
	h.aliases = in.ToolAliases
	return h.makeSimulator()
}

// setServers replaces the servers that came from the host; those of --mcp-config
// stay.
func (h *host) setServers(ctx context.Context, object json.RawMessage) (mcp.Change, error) {
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": object})
	if err != nil {
		return mcp.Change{}, err
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: h.CWD, Environ: h.Environ, ValuesOnly: true})
	if err != nil {
		return mcp.Change{}, err
	}
	bySource := map[string][]mcp.ServerConfig{}
	for _, server := range config.Servers {
		bySource[server.Source] = append(bySource[server.Source], server)
	}
	all := mcp.Change{Errors: map[string]string{}}
	for _, source := range []string{"dynamic", "sdk"} {
		limit := ctx
		if source == "sdk" { // they are reached when the host has its answer
			limit = begun(ctx)
			h.joining.Store(true)
		}
		change, err := h.manager.SetServers(limit, source, bySource[source])
		if err != nil && limit.Err() == nil {
			return all, err
		}
		all.Added, all.Removed = append(all.Added, change.Added...), append(all.Removed, change.Removed...)
		maps.Copy(all.Errors, change.Errors)
	}
	for _, bad := range config.Errors {
		all.Errors[bad.Name] = bad.Message
	}
	return all, nil
}

// measure notes what the session has cost; between turns only.
func (h *host) measure() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cost = h.sim.Cost()
}

// rename titles the session. The transcript gets the title between turns.
func (h *host) rename(title string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.titles = append(h.titles, title)
	return nil
}

func (h *host) writeTitles() {
	h.mu.Lock()
	titles := h.titles
	h.titles = nil
	h.mu.Unlock()
	for _, title := range titles {
		if err := h.run.session.Entitle(title); err != nil {
			h.warn("the title is not saved: " + err.Error())
		}
	}
}

// stopTask ends a task in the background.
func (h *host) stopTask(id string) { h.tasks.Stop(id, task.ByUser) }

func (h *host) model() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return model.Resolve(h.current.Model())
}

func (h *host) setModel(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.SetModel(h.Model.Aliases.Name(name))
}

// rewind is nil unless the host asked for checkpoints.
func (h *host) rewind() func(string, bool) (control.Rewind, error) {
	if h.checkpoints == nil {
		return nil
	}
	return func(uuid string, dryRun bool) (control.Rewind, error) {
		do := h.checkpoints.Rewind
		if dryRun {
			do = h.checkpoints.Preview
		}
		c, err := do(uuid)
		return control.Rewind{FilesChanged: c.Files, Insertions: c.Insertions, Deletions: c.Deletions, SkippedLinks: c.Skipped}, err
	}
}
