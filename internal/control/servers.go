package control

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/claudeless/claudeless/mcp"
)

// serverStatus is one server as mcp_status shows it (spec: cli-contract 4.3).
type serverStatus struct {
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	ServerInfo *mcp.ServerInfo `json:"serverInfo,omitempty"`
	Error      string          `json:"error,omitempty"`
	Config     serverConfig    `json:"config"`
	Transport  string          `json:"transport"`
	Scope      string          `json:"scope"`
	Source     string          `json:"source"`
	Tools      []serverTool    `json:"tools,omitempty"`
}

// serverConfig leaves out environment variables and headers: they hold secrets.
type serverConfig struct {
	Type    string   `json:"type"`
	Name    string   `json:"name,omitempty"`
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

func mcpStatus(_ context.Context, p *Peer, _ json.RawMessage) (answer, error) {
	list := []serverStatus{}
	if p.s.Servers != nil {
		for _, st := range p.s.Servers.Servers() {
			list = append(list, describeServer(st))
		}
	}
	return answer{payload: map[string]any{"mcpServers": list}}, nil
}

func describeServer(st mcp.ServerStatus) serverStatus {
	kind := st.Config.Type
	if kind == "" {
		kind = "stdio"
	}
	out := serverStatus{
		Name: st.Name, Status: st.Status, Transport: kind, Scope: st.Source, Source: st.Source,
		Config: serverConfig{Type: kind, Command: st.Config.Command, Args: st.Config.Args, URL: st.Config.URL},
	}
	if kind == "stdio" && out.Config.Args == nil {
		out.Config.Args = []string{}
	}
	if kind == "sdk" {
		out.Config.Name, out.Scope = st.Name, "dynamic"
	}
	if st.Status != "connected" {
		out.Error = st.WireError
		return out
	}
	info := st.Info
	out.ServerInfo = &info
	for _, t := range st.Tools {
		tool := serverTool{Name: t.RawName, Description: t.Description}
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
	if p.s.Servers != nil {
		for _, st := range p.s.Servers.Servers() {
			if st.Name == name {
				return st, nil
			}
		}
	}
	return mcp.ServerStatus{}, &HostError{Text: "Server not found: " + name}
}

type aboutServer struct {
	Name    string `json:"serverName"`
	Enabled bool   `json:"enabled"`
	URI     string `json:"uri"`
}

func mcpReconnect(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[aboutServer](request)
	st, err := p.server(in.Name)
	if err == nil && st.Config.Type == "sdk" {
		err = &HostError{Text: "Cannot reconnect SDK server: " + in.Name}
	}
	if err == nil {
		err = p.s.Servers.Reconnect(ctx, in.Name)
	}
	return answer{}, err
}

func mcpToggle(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[aboutServer](request)
	_, err := p.server(in.Name)
	switch {
	case err != nil:
	case in.Enabled:
		// A server that does not come up shows so in its status.
		if failed := p.s.Servers.Enable(ctx, in.Name); failed != nil && ctx.Err() != nil {
			err = failed
		}
	default:
		err = p.s.Servers.Disable(ctx, in.Name)
	}
	return answer{}, err
}

func mcpSetServers(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Servers json.RawMessage `json:"servers"`
	}](request)
	if p.s.SetServers == nil {
		return answer{}, unsupported("mcp_set_servers")
	}
	change, err := p.s.SetServers(ctx, in.Servers)
	if err != nil {
		return answer{}, err
	}
	out := struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}{append([]string{}, change.Added...), append([]string{}, change.Removed...), change.Errors}
	if out.Errors == nil {
		out.Errors = map[string]string{}
	}
	return answer{payload: out}, nil
}

// mcpMessage passes on what a server inside the host sent by itself.
func mcpMessage(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}](request)
	if _, err := p.server(in.Server); err != nil {
		return answer{}, nil //nolint:nilerr // the real CLI takes messages of servers that it does not know in silence
	}
	return answer{}, p.s.Servers.Deliver(ctx, in.Server, in.Message)
}

func mcpCall(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Server    string          `json:"serverName"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}](request)
	if p.s.Servers == nil {
		return answer{}, mcp.ErrUnknownServer
	}
	name := in.Tool
	if in.Server != "" {
		name = mcp.CanonicalName(in.Server, in.Tool)
	}
	result, err := p.s.Servers.CallRaw(ctx, mcp.CallRequest{Tool: name, Input: in.Arguments})
	if err != nil {
		return answer{}, err
	}
	return answer{payload: result}, nil
}

func mcpReadResource(ctx context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[aboutServer](request)
	if _, err := p.server(in.Name); err != nil {
		return answer{}, err
	}
	result, err := p.s.Servers.ReadResource(ctx, in.Name, in.URI)
	if errors.Is(err, mcp.ErrUnknownServer) {
		err = &HostError{Text: "Server not found: " + in.Name}
	}
	if err != nil {
		return answer{}, err
	}
	return answer{payload: result}, nil
}
