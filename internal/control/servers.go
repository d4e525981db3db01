package control

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/mcp"
)

// serverStatus is one server as mcp_status shows it (spec: cli-contract 4.3).
type serverStatus struct {
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	ServerInfo *mcp.ServerInfo `json:"serverInfo,omitempty"`
	Error      string          `json:"error,omitempty"`
	Config     *serverConfig   `json:"config,omitempty"` // nil = inside the host
	Transport  string          `json:"transport"`
	Scope      string          `json:"scope"`
	Source     string          `json:"source"`
	Tools      []serverTool    `json:"tools,omitzero"`
}

// serverConfig leaves out environment variables and headers: they hold secrets.
type serverConfig struct {
	Type    string   `json:"type"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitzero"` // of a process always, be it empty
	URL     string   `json:"url,omitempty"`
}

type serverTool struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Annotations annotations `json:"annotations"`
}

type annotations struct {
	ReadOnly    bool `json:"readOnly,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
}

func mcpStatus(_ context.Context, p *Peer, _ request) (answer, error) {
	list := []serverStatus{}
	if p.s.Servers() != nil {
		introducing := p.introducing()
		for _, st := range p.s.Servers().Servers() {
			if introducing && st.Config.Type == "sdk" && st.Status == "pending" {
				continue // not one of the session's before it is connected
			}
			list = append(list, describeServer(st))
		}
	}
	return answer{payload: serverList{list}}, nil
}

// introducing tells whether servers that initialize names are being connected.
func (p *Peer) introducing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holds > 0
}

func describeServer(st mcp.ServerStatus) serverStatus {
	kind := st.Config.Type
	if kind == "" {
		kind = "stdio"
	}
	out := serverStatus{Name: st.Name, Status: st.Status, Transport: kind, Scope: st.Source, Source: st.Source}
	switch {
	case kind != "sdk":
		out.Config = &serverConfig{Type: kind, Command: st.Config.Command, Args: st.Config.Args, URL: st.Config.URL}
		if kind == "stdio" && out.Config.Args == nil {
			out.Config.Args = []string{}
		}
	case st.Status == "failed":
		out.Scope = "user"
	default:
		out.Scope = "dynamic"
	}
	if st.Status != "connected" {
		if kind != "sdk" {
			out.Error = st.WireError
		}
		return out
	}
	info := st.Info
	out.ServerInfo, out.Tools = &info, []serverTool{}
	for _, t := range st.Tools {
		tool := serverTool{Name: t.RawName}
		if kind != "sdk" { // the host knows its own
			tool.Description = t.Description
		}
		hints := fields[struct {
			ReadOnly    bool `json:"readOnlyHint"`
			Destructive bool `json:"destructiveHint"`
			OpenWorld   bool `json:"openWorldHint"`
		}](t.Annotations)
		tool.Annotations = annotations(hints)
		out.Tools = append(out.Tools, tool)
	}
	return out
}

// server finds the server that a request is about.
func (p *Peer) server(name string) (mcp.ServerStatus, error) {
	if p.s.Servers() != nil {
		for _, st := range p.s.Servers().Servers() {
			if st.Name == name {
				return st, nil
			}
		}
	}
	return mcp.ServerStatus{}, &HostError{Text: "Server not found: " + name}
}

func mcpReconnect(ctx context.Context, p *Peer, in request) (answer, error) {
	name, err := in.text("serverName")
	if err != nil {
		return answer{}, err
	}
	st, err := p.server(name)
	switch {
	case err != nil:
		return answer{}, err
	case st.Status == "disabled":
		return answer{}, &HostError{Text: "MCP server " + name + " is disabled — enable it (mcp_toggle) before reconnecting"}
	case st.Config.Type == "sdk":
		return answer{}, &HostError{Text: "SDK servers should be handled in print.ts"}
	}
	return answer{}, p.s.Servers().Reconnect(ctx, name)
}

func mcpToggle(ctx context.Context, p *Peer, in request) (answer, error) {
	name, err := in.text("serverName")
	if err != nil {
		return answer{}, err
	}
	enabled, err := in.flag("enabled")
	if err != nil {
		return answer{}, err
	}
	st, err := p.server(name)
	switch {
	case err != nil:
		return answer{}, err
	case !enabled:
		return answer{}, p.s.Servers().Disable(ctx, name)
	}
	if err = p.s.Servers().Enable(ctx, name); err != nil && st.Config.Type == "sdk" && ctx.Err() == nil {
		err = &HostError{Text: "Connection failed"}
	}
	return answer{}, err
}

// mcpSetServers replaces the servers that the host may change. Those inside the
// host are spoken to after the answer.
func mcpSetServers(ctx context.Context, p *Peer, in request) (answer, error) {
	servers := in.keys["servers"]
	if !objects(servers) {
		return answer{}, in.wrong("servers", "an object of config objects")
	}
	release := p.silence()
	context.AfterFunc(ctx, release) // without an answer nobody is kept waiting
	change, err := p.s.SetServers(ctx, servers)
	if err != nil {
		return answer{then: release}, err
	}
	out := struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}{append([]string{}, change.Added...), append([]string{}, change.Removed...), change.Errors}
	if out.Errors == nil {
		out.Errors = map[string]string{}
	}
	return answer{payload: out, then: release}, nil
}

// objects tells whether a value is an object whose values are objects.
func objects(raw json.RawMessage) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || values == nil {
		return false
	}
	for _, value := range values {
		if ordered.TypeOf(value) != "object" {
			return false
		}
	}
	return true
}

// silence keeps servers inside the host from being connected until release is
// called.
func (p *Peer) silence() (release func()) {
	quiet := make(chan struct{})
	p.mu.Lock()
	p.quiet = quiet
	p.mu.Unlock()
	return sync.OnceFunc(func() { close(quiet) })
}

// mcpMessage passes on what a server inside the host sent by itself. It is
// acknowledged whatever becomes of it.
func mcpMessage(_ context.Context, p *Peer, in request) (answer, error) {
	server, _ := textIn(in.keys["server_name"])
	message := in.keys["message"]
	p.mu.Lock()
	life := p.life
	p.mu.Unlock()
	if _, err := p.server(server); err == nil {
		p.handlers.Go(func() { // ends with the message's answer, and with life
			_ = p.s.Servers().Deliver(life, server, message) // the host is not told
		})
	}
	return answer{}, nil
}

func mcpCall(ctx context.Context, p *Peer, in request) (answer, error) {
	tool, err := in.text("tool")
	if err != nil {
		return answer{}, err
	}
	server, _, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	if !ok || !strings.HasPrefix(tool, "mcp__") {
		return answer{}, &HostError{Text: "Not a fully-qualified MCP tool name: " + tool}
	}
	st, found := p.canonical(server)
	switch {
	case found && st.Config.Type == "sdk":
		return answer{}, &HostError{Text: "mcp_call does not support SDK MCP servers. SDK servers are caller-provided — invoke " + st.Name + " directly."}
	case !found || st.Status != "connected":
		return answer{}, &HostError{Text: "MCP server not connected: " + server}
	}
	result, err := p.s.Servers().CallRaw(ctx, mcp.CallRequest{Tool: tool, Input: in.keys["arguments"]})
	if err != nil {
		return answer{}, err
	}
	return answer{payload: result}, nil
}

// canonical finds a server by its name in the names of tools.
func (p *Peer) canonical(name string) (mcp.ServerStatus, bool) {
	if p.s.Servers() != nil {
		for _, st := range p.s.Servers().Servers() {
			if mcp.CanonicalName(st.Name, "") == mcp.CanonicalName(name, "") {
				return st, true
			}
		}
	}
	return mcp.ServerStatus{}, false
}

func mcpReadResource(ctx context.Context, p *Peer, in request) (answer, error) {
	name, err := in.text("serverName")
	if err != nil {
		return answer{}, err
	}
	uri, err := in.text("uri")
	if err != nil {
		return answer{}, err
	}
	if !strings.HasPrefix(uri, "ui://") {
		return answer{}, errors.New("mcp_read_resource: uri must use the ui:// scheme")
	}
	st, err := p.server(name)
	switch {
	case err != nil:
		return answer{}, err
	case st.Config.Type == "sdk":
		return answer{}, errors.New("mcp_read_resource does not support SDK MCP servers: the caller hosts them and can read them directly")
	case st.Status == "disabled":
		return answer{}, &HostError{Text: "MCP server " + name + " is disabled — enable it (mcp_toggle) before reading"}
	}
	result, err := p.s.Servers().ReadResource(ctx, name, uri)
	if err != nil {
		return answer{}, err
	}
	return answer{payload: result}, nil
}

// manifests are handshakes that a host has had with its own servers already:
// what is asked in them is answered from here, once (the SDK's type
// SDKControlInitializeRequest).
type manifests struct {
	mu   sync.Mutex
	kept map[string]manifest
}

type manifest struct {
	Hello json.RawMessage `json:"initializeResult"`
	Tools json.RawMessage `json:"toolsListResult"` // nil = the server is asked
}

// park keeps the handshakes of servers that are not connected yet, and tells
// what became of each. Nil = the request brought none.
func (m *manifests) park(in request, names []string, connected func(name string) bool) map[string]string {
	raw := in.keys["sdkMcpServerManifests"]
	if !given(raw) || len(names) == 0 {
		return nil
	}
	var entries map[string]json.RawMessage
	whole := json.Unmarshal(raw, &entries) == nil
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = map[string]manifest{}
	became := map[string]string{}
	for _, name := range names {
		entry, sent := entries[name]
		if whole && !sent {
			continue
		}
		one := fields[manifest](entry)
		hello := fields[struct {
			Version *string `json:"protocolVersion"`
		}](one.Hello)
		switch {
		case !objects(entry) || hello.Version == nil:
			became[name] = "malformed"
		case connected(name):
			became[name] = "already_connected"
		case *hello.Version != mcp.ProtocolVersion:
			became[name] = "protocol_version_mismatch"
		default:
			became[name] = "parked"
			m.kept[name] = one
		}
	}
	return became
}

// answer gives the answer to a message of a handshake; false = the server is to
// be asked.
func (m *manifests) answer(server string, message json.RawMessage) (json.RawMessage, bool) {
	in := fields[struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}](message)
	m.mu.Lock()
	defer m.mu.Unlock()
	one, ok := m.kept[server]
	if !ok {
		return nil, false
	}
	var result json.RawMessage
	switch in.Method {
	case "initialize":
		result = one.Hello
	case "notifications/initialized":
		return nil, true
	case "tools/list":
		delete(m.kept, server)
		result = one.Tools
	}
	if result == nil {
		delete(m.kept, server)
		return nil, false
	}
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{"2.0", in.ID, result})
	return answer, err == nil
}
