package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Initialize answers the initialize request.
func (r *requestServer) Initialize(ctx context.Context, g *control.InitializeRequest) (control.ResponseWithEvents, error) {
	sent := decodeRequestKeys(g.HostRequest)
	in := plainjson.DecodeIgnoringErrors[InitializeOptions](g.Body)
	in.RepeatedOrLate = g.RepeatedOrLate
	if text, is := plainjson.StringValue(sent.keys["systemPrompt"]); is {
		in.SystemPrompt = []string{text}
	}
	in.Title = strings.TrimSpace(in.Title)
	if err := validateInitialize(sent, &in); err != nil {
		return control.ResponseWithEvents{}, err
	}
	became, parked := readServerHandshakes(sent, in.SDKMCPServers, r.isConnected)
	if became != nil {
		r.conn.StoreHandshakesForOneUse(parked)
	}
	d, err := r.initializer.Initialize(ctx, in)
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	for _, ev := range d.startFrames {
		r.conn.WriteEventOutsideTurn(ev)
	}
	g.FirstPrompt = d.firstPrompt
	g.ConnectUntilHostServerMessage(func(life context.Context) { r.initializer.ConnectMCPServers(life, in) })
	d.ManifestsParked = became
	d.PermissionMode, d.SessionState = string(r.session.Policy().Mode()), r.conn.CurrentSessionState()
	d.OnFailureSupported, d.AskOutranksHost = true, true
	a := control.ResponseWithEvents{Payload: d}
	if in.Title != "" {
		a.EventsBefore = append(a.EventsBefore, titleChangedEvent(in.Title))
	}
	return a, nil
}

// StopBackgroundAgents stops the background agents.
func (r *requestServer) StopBackgroundAgents() { r.initializer.StopBackgroundAgents() }

// validateInitialize checks the keys of initialize that the real CLI validates. Other keys of a wrong type are ignored.
func validateInitialize(sent controlRequest, decoded *InitializeOptions) error {
	if servers := sent.keys["sdkMcpServers"]; plainjson.IsSet(servers) && json.Unmarshal(servers, &decoded.SDKMCPServers) != nil {
		return errors.New("initialize: sdkMcpServers and webSearchIsolationExemptMcpServers must be arrays of strings")
	}
	if skills := sent.keys["skills"]; plainjson.IsSet(skills) && json.Unmarshal(skills, &decoded.Skills) != nil {
		return errors.New("initialize: skills must be an array of strings")
	}
	hooks := sent.keys["hooks"]
	if !plainjson.IsSet(hooks) {
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

// readServerHandshakes reads the handshakes that a request contains for the servers in serverNames. usableByServer has the usable
// handshakes. outcomeByServer has the outcome for each handshake, such as "parked" or "already_connected"; it is nil if the
// request contains no handshakes or serverNames is empty.
func readServerHandshakes(in controlRequest, serverNames []string, isConnected func(name string) bool) (outcomeByServer map[string]string, usableByServer map[string]control.ServerHandshakeAnswers) {
	raw := in.keys["sdkMcpServerManifests"]
	if !plainjson.IsSet(raw) || len(serverNames) == 0 {
		return nil, nil
	}
	var entries map[string]json.RawMessage
	whole := json.Unmarshal(raw, &entries) == nil
	outcomeByServer, usableByServer = map[string]string{}, map[string]control.ServerHandshakeAnswers{}
	for _, name := range serverNames {
		entry, sent := entries[name]
		if whole && !sent {
			continue
		}
		one := plainjson.DecodeIgnoringErrors[control.ServerHandshakeAnswers](entry)
		hello := plainjson.DecodeIgnoringErrors[struct {
			Version *string `json:"protocolVersion"`
		}](one.InitializeResult)
		switch {
		case !plainjson.IsObjectOfObjects(entry) || hello.Version == nil:
			outcomeByServer[name] = "malformed"
		case isConnected(name):
			outcomeByServer[name] = "already_connected"
		case *hello.Version != mcp.ProtocolVersion:
			outcomeByServer[name] = "protocol_version_mismatch"
		default:
			outcomeByServer[name] = "parked"
			usableByServer[name] = one
		}
	}
	return outcomeByServer, usableByServer
}

// StopBackgroundAgents stops the background agents.
func (h *hostedSession) StopBackgroundAgents() { h.session.Tasks().StopBackgroundAgents() }

// Initialize applies the host's settings. A repeated or late request changes only hooks, title and servers, and can make the texts of
// agents visible.
func (h *hostedSession) Initialize(ctx context.Context, in InitializeOptions) (InitializeAnswer, error) {
	var frames []protocol.Event
	if in.RepeatedOrLate {
		in.Skills = nil
	} else if err := h.setOptionsOfFirstInitialize(in); err != nil {
		return InitializeAnswer{}, err
	}
	h.session.ApplyHostOptions(session.ChangeableHostOptions{AgentTexts: in.ForwardSubagent, Skills: in.Skills})
	if !in.RepeatedOrLate {
		frames = session.RunSessionStartHooks(ctx, h.session)
	}
	if in.Hooks != nil {
		h.session.Hooks().ReplaceCallbacks(in.Hooks)
	}
	if in.Title != "" {
		session.SetTitleOfHost(h.session, in.Title)
	}
	var plugins *bool
	if len(in.Plugins) > 0 {
		plugins = new(h.addPluginsIfAwaitingInitialize(in))
	}
	d := h.initializeAnswer()
	d.startFrames, d.PluginsApplied = frames, plugins
	if plan := h.session.Plan(); !in.RepeatedOrLate {
		mainAgent, _ := plan.Catalog.Agent(plan.Customization.Agent)
		d.firstPrompt = mainAgent.First
	}
	d.HooksApplied = in.Hooks != nil
	if plainjson.IsSet(in.MCPServers) {
		d.MCPServersApplied = new(h.session.Plan().Host.AwaitInitialize)
	}
	return d, nil
}

// setOptionsOfFirstInitialize applies the options that are otherwise set by flags.
func (h *hostedSession) setOptionsOfFirstInitialize(in InitializeOptions) error {
	if plainjson.IsSet(in.Agents) {
		if err := session.DefineAgentsBeforeFirstTurn(h.session, in.Agents); err != nil {
			h.session.JournalAndWarningWriter().WarnUnlessRunAsClaude(err.Error())
		}
	}
	if in.SystemPrompt == nil && in.AppendSystemPrompt == "" && in.JSONSchema == nil && in.ToolAliases == nil {
		return nil
	}
	c := session.HostFlagOverrides{AppendPrompt: in.AppendSystemPrompt, Schema: string(in.JSONSchema), ToolAliases: in.ToolAliases}
	if in.SystemPrompt != nil {
		c.SystemPrompt = new(strings.Join(in.SystemPrompt, "\n"))
	}
	return h.session.ConfigureBeforeFirstTurn(c)
}

// addPluginsIfAwaitingInitialize loads the plugins listed in initialize, if the process waits for initialize and no turn has started. It
// reports whether all of them are loaded.
func (h *hostedSession) addPluginsIfAwaitingInitialize(in InitializeOptions) (areApplied bool) {
	var dirs []string
	withServers := map[string]bool{}
	for _, raw := range in.Plugins {
		var p struct {
			Path    string `json:"path"`
			SkipMCP bool   `json:"skipMcpDiscovery"`
		}
		if json.Unmarshal(raw, &p) != nil || p.Path == "" {
			continue
		}
		abs := h.session.Plan().AbsFromStartDir(p.Path)
		dirs = append(dirs, abs)
		withServers[abs] = !p.SkipMCP
	}
	if h.session.Plan().Host.AwaitInitialize && !in.RepeatedOrLate {
		h.session.AddPlugins(dirs, withServers)
	}
	return h.session.Plan().Catalog.HasPluginInEach(dirs...)
}

// ConnectMCPServers connects the servers listed in initialize. A server that fails has the status failed.
func (h *hostedSession) ConnectMCPServers(ctx context.Context, in InitializeOptions) {
	err := h.session.ConnectHostAndPluginServers(ctx, in.SDKMCPServers)
	if err == nil && h.session.Plan().Host.AwaitInitialize && plainjson.IsSet(in.MCPServers) {
		_, err = h.session.ReplaceHostServers(ctx, in.MCPServers)
	}
	if err != nil && ctx.Err() == nil {
		h.session.JournalAndWarningWriter().WarnOnStderr("connecting the host's servers: " + err.Error())
	}
}
