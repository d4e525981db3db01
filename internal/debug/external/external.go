// Package external connects additional MCP servers to the debugger, at start-up
// or later, so that users of the debugger can call their tools and read their
// resources. These calls are recorded and never paused.
//
// A server that fails affects only calls to it, which return an error with a
// code.
package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The codes of refusals beside those of package debug.
const (
	CodeServerNotFound     = "server_not_found"
	CodeServerNotConnected = "server_not_connected"
	CodeToolNotFound       = "tool_not_found"
	CodeInvalidToolName    = "invalid_tool_name"
	CodeCallTimeout        = "call_timeout"
	CodeCallFailed         = "call_failed"
	CodeDuplicateName      = "duplicate_name"
	CodeInvalidName        = "invalid_name"
	CodeInvalidConfig      = "invalid_config"
	CodeConnectFailed      = "connect_failed"
	CodeResourceNotFound   = "resource_not_found"
)

// connectTimeout bounds a connect; it is fixed.
const connectTimeout = 30 * time.Second

// Options configure a Manager. Hub and Now must be set.
type Options struct {
	Hub     *debug.Hub
	Now     func() time.Time
	Servers []mcp.ServerConfig // connected by Start
	Environ []string           // of stdio servers
	CWD     string
	Version string // clientInfo.version
}

// Manager is the set of external servers. All methods may be called from many
// goroutines.
type Manager struct {
	hub *debug.Hub
	now func() time.Time
	mcp *mcp.Manager

	add sync.Mutex // held while a server is added

	mu        sync.Mutex
	runtime   []mcp.ServerConfig   // added at run time
	connected map[string]time.Time // since when, as far as it was seen
	once      map[string]bool      // servers that were connected at any time
}

// New makes a manager; it connects to nothing before Start.
func New(o Options) (*Manager, error) {
	if o.Hub == nil || o.Now == nil {
		return nil, errors.New("external: Hub and Now must be set")
	}
	for _, s := range o.Servers {
		if !mcp.ValidName(s.Name) {
			return nil, badName(s.Name)
		}
	}
	m, err := mcp.New(mcp.Options{
		Servers: o.Servers, ClientVersion: o.Version, Environ: o.Environ, CWD: o.CWD, ConnectTimeout: connectTimeout,
		Batch: mcp.Batch{Local: 64, Remote: 64}, // none waits for another
	})
	if err != nil {
		return nil, err
	}
	return &Manager{hub: o.Hub, now: o.Now, mcp: m, connected: map[string]time.Time{}, once: map[string]bool{}}, nil
}

func badName(name string) error {
	return debug.Refuse(CodeInvalidName, fmt.Sprintf("server name %q: use letters, digits, _ and -", name), "name", name)
}

// Start connects the configured servers and returns when each is connected or
// has failed. ctx bounds only the waiting.
func (m *Manager) Start(ctx context.Context) error {
	err := m.mcp.Start(ctx)
	m.look()
	return err
}

// Close ends all servers; afterwards nothing of them is left. It may be called
// more than once.
func (m *Manager) Close(ctx context.Context) error { return m.mcp.Close(ctx) }

// The states a server can be in.
const (
	StatusConnecting   = "connecting"
	StatusConnected    = "connected"
	StatusDisconnected = "disconnected"
	StatusError        = "error"  // it could not be connected
	StatusFailed       = "failed" // it was lost and did not come back
)

// Client is one server as fronts show it.
type Client struct {
	Name        string   `json:"-"`
	Status      string   `json:"status"`
	Transport   string   `json:"transport"`
	Tools       []string `json:"tools"` // "server/tool"
	ConnectedAt *float64 `json:"connected_at,omitempty"`
	Error       string   `json:"error,omitempty"`
}

// Clients lists the servers in the order of their configuration.
func (m *Manager) Clients() []Client {
	all := []Client{}
	for _, s := range m.look() {
		all = append(all, m.client(s))
	}
	return all
}

func (m *Manager) client(s mcp.ServerStatus) Client {
	c := Client{Name: s.Name, Transport: s.Config.Type, Tools: []string{}, Status: m.status(s)}
	c.Transport = cmp.Or(c.Transport, "stdio")
	if c.Status != StatusConnected {
		c.Error = s.Error
		return c
	}
	for _, t := range m.callable(s.Name) {
		c.Tools = append(c.Tools, t.Server+"/"+t.RawName)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := float64(m.connected[s.Name].UnixMicro()) / 1e6
	c.ConnectedAt = &at
	return c
}

// callable lists a server's tools without those that another tool hides by its
// canonical name.
func (m *Manager) callable(server string) []protocol.Tool {
	return slices.DeleteFunc(m.mcp.Tools(), func(t protocol.Tool) bool { return t.Server != server })
}

// status renders the one state machine of the servers in the words of this
// surface.
func (m *Manager) status(s mcp.ServerStatus) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s.State {
	case mcp.StateConnected:
		return StatusConnected
	case mcp.StateConfigured, mcp.StateConnecting:
		return StatusConnecting
	case mcp.StateFailed, mcp.StateNeedsAuth:
		if m.once[s.Name] {
			return StatusFailed
		}
		return StatusError
	default:
		return StatusDisconnected
	}
}

// look returns the servers' states and notes since when they are connected.
func (m *Manager) look() []mcp.ServerStatus {
	all := m.mcp.Servers()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range all {
		_, known := m.connected[s.Name]
		switch {
		case s.State != mcp.StateConnected:
			delete(m.connected, s.Name)
		case !known:
			m.connected[s.Name] = m.now()
			m.once[s.Name] = true
		}
	}
	return all
}

func (m *Manager) find(name string) (mcp.ServerStatus, bool) {
	all := m.look()
	i := slices.IndexFunc(all, func(s mcp.ServerStatus) bool { return s.Name == name })
	if i < 0 {
		return mcp.ServerStatus{}, false
	}
	return all[i], true
}

// reach tells why a server cannot be called; nil = it is connected.
func (m *Manager) reach(name string) error {
	s, ok := m.find(name)
	switch {
	case !ok:
		return debug.Refuse(CodeServerNotFound, "", "server", name)
	case s.State != mcp.StateConnected:
		return debug.Refuse(CodeServerNotConnected, s.Error, "server", name)
	}
	return nil
}

// Connect adds a server under a name that is not in use and returns its tools.
// config is its entry in the servers dialect. A server that cannot be reached
// stays configured.
func (m *Manager) Connect(ctx context.Context, name string, config json.RawMessage) ([]string, error) {
	if !mcp.ValidName(name) {
		return nil, badName(name)
	}
	m.add.Lock()
	defer m.add.Unlock()
	if _, ok := m.find(name); ok {
		return nil, debug.Refuse(CodeDuplicateName, "", "name", name)
	}
	cfg, err := Entry(name, config)
	if err != nil {
		return nil, debug.Refuse(CodeInvalidConfig, err.Error(), "name", name)
	}
	m.mu.Lock()
	m.runtime = append(m.runtime, cfg)
	desired := slices.Clone(m.runtime)
	m.mu.Unlock()
	change, err := m.mcp.SetServers(ctx, runtimeSource, desired)
	m.hub.Announce(debug.TopicServers)
	if err != nil {
		return nil, debug.Refuse(CodeConnectFailed, err.Error(), "name", name)
	}
	if reason, failed := change.Errors[name]; failed {
		return nil, debug.Refuse(CodeConnectFailed, reason, "name", name)
	}
	return m.toolNames(name), nil
}

const runtimeSource = "runtime"

func (m *Manager) toolNames(name string) []string {
	s, ok := m.find(name)
	if !ok {
		return []string{}
	}
	return m.client(s).Tools
}

// Disconnect ends a server's connection and keeps its configuration.
func (m *Manager) Disconnect(ctx context.Context, name string) error {
	if _, ok := m.find(name); !ok {
		return debug.Refuse(CodeServerNotFound, "", "name", name)
	}
	err := m.mcp.Disconnect(ctx, name)
	m.look()
	m.hub.Announce(debug.TopicServers)
	return err
}

// Reconnect connects a server that is not connected and returns its tools.
func (m *Manager) Reconnect(ctx context.Context, name string) ([]string, error) {
	if _, ok := m.find(name); !ok {
		return nil, debug.Refuse(CodeServerNotFound, "", "name", name)
	}
	err := m.mcp.Connect(ctx, name)
	m.hub.Announce(debug.TopicServers)
	if err != nil {
		return nil, debug.Refuse(CodeConnectFailed, err.Error(), "name", name)
	}
	return m.toolNames(name), nil
}

// Tool is one external tool.
type Tool struct {
	Name        string          `json:"name"` // "server/tool"
	Server      string          `json:"server"`
	Original    string          `json:"original_name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // as the server sent it; null = none
}

// Tools lists the tools of all connected servers, or of one.
func (m *Manager) Tools(server string) ([]Tool, error) {
	if server != "" {
		if _, ok := m.find(server); !ok {
			return nil, debug.Refuse(CodeServerNotFound, "", "server", server)
		}
	}
	all := []Tool{}
	for _, s := range m.look() {
		if s.State != mcp.StateConnected || server != "" && s.Name != server {
			continue
		}
		for _, t := range m.callable(s.Name) {
			all = append(all, Tool{
				Name: t.Server + "/" + t.RawName, Server: t.Server, Original: t.RawName,
				Description: t.Description, InputSchema: t.InputSchema,
			})
		}
	}
	return all, nil
}

// Call runs a tool and returns its result as the server sent it. The call is
// recorded and its result kept, however it went.
func (m *Manager) Call(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	server, tool, err := m.split(name)
	if err != nil {
		return nil, err
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	rec := debug.Record{Ending: debug.Ending{Source: "mcp_client", Server: server, Status: "success"}}
	cid, _, _ := m.hub.Store().PutJSON(arguments)
	rec.MethodName, rec.Client, rec.Values = name, debug.ClientExternal, debug.Input{JSON: arguments, CID: cid}
	rec.StartedAt = float64(m.now().UnixMicro()) / 1e6
	result, err := m.call(ctx, server, tool, arguments)
	if err != nil {
		rec.Status, rec.Error, rec.ErrorType = "exception", err.Error(), "Error"
		if e, ok := errors.AsType[*debug.Error](err); ok {
			rec.ErrorType = e.Code
		}
		rec.Exception, _ = protocol.Marshal(err.Error())
	} else {
		var meta struct {
			IsError bool `json:"isError"`
		}
		if json.Unmarshal(result, &meta) == nil && meta.IsError {
			rec.Status = "exception"
		}
		rec.ResultCID, err = m.hub.Store().Put(result)
		if _, tooLarge := errors.AsType[*cas.TooLargeError](err); tooLarge {
			err = nil
		}
		rec.PrettyResult = result
	}
	m.hub.AddRecord(rec)
	return result, err
}

// split takes "server/tool" apart at the names there are.
func (m *Manager) split(name string) (server, tool string, err error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		server, tool = name[:i], name[i+1:]
		if err := m.reach(server); err != nil {
			return "", "", err
		}
		if !slices.ContainsFunc(m.callable(server), func(t protocol.Tool) bool { return t.RawName == tool }) {
			return "", "", debug.Refuse(CodeToolNotFound, "", "tool", name)
		}
		return server, tool, nil
	}
	return "", "", debug.Refuse(CodeInvalidToolName, "a tool is named server/tool", "tool", name)
}

func (m *Manager) call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	name := server + "/" + tool
	result, err := m.mcp.CallRaw(ctx, mcp.CallRequest{Tool: name, Input: arguments})
	if err == nil {
		return result, nil
	}
	e := debug.Refuse(CodeCallFailed, err.Error(), "tool", name)
	timeout, isTimeout := errors.AsType[*mcp.TimeoutError](err)
	rpc, isRPC := errors.AsType[*mcp.RPCError](err)
	switch {
	case isTimeout:
		e.Code, e.Message = CodeCallTimeout, fmt.Sprintf("no answer within %s", timeout.Limit)
	case isRPC:
		e.Message = fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code)
		e.Detail["code"] = rpc.Code
	case errors.Is(err, mcp.ErrUnknownServer):
		e.Code = CodeServerNotFound
	case errors.Is(err, mcp.ErrUnknownTool):
		e.Code = CodeToolNotFound
	case errors.Is(err, mcp.ErrNotConnected), errors.Is(err, mcp.ErrDisabled):
		e.Code = CodeServerNotConnected
		e.Detail["server"] = server
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = CodeCallTimeout
	}
	return nil, e
}

// Resource is one external resource.
type Resource struct {
	URI         string `json:"uri"`
	Server      string `json:"server"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mime_type"`
}

// Resources lists the resources of all connected servers, or of one.
func (m *Manager) Resources(server string) ([]Resource, error) {
	found, err := m.mcp.Resources(server)
	if err != nil {
		return nil, debug.Refuse(CodeServerNotFound, "", "server", server)
	}
	all := []Resource{}
	for _, r := range found {
		all = append(all, Resource{URI: r.URI, Server: r.Server, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType})
	}
	return all, nil
}

// Contents is a resource that was read.
type Contents struct {
	Content  string `json:"content"` // base64 for binary contents
	MIMEType string `json:"mime_type"`
}

// Read reads one resource; of several contents the first is returned.
func (m *Manager) Read(ctx context.Context, server, uri string) (Contents, error) {
	if err := m.reach(server); err != nil {
		return Contents{}, err
	}
	raw, err := m.mcp.ReadResource(ctx, server, uri)
	if err != nil {
		return Contents{}, debug.Refuse(CodeResourceNotFound, err.Error(), "uri", uri, "server", server)
	}
	var result struct {
		Contents []struct {
			Text     *string `json:"text"`
			Blob     string  `json:"blob"`
			MIMEType string  `json:"mimeType"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Contents) == 0 {
		return Contents{}, debug.Refuse(CodeResourceNotFound, "the server sent no contents", "uri", uri)
	}
	first := result.Contents[0]
	c := Contents{Content: first.Blob, MIMEType: first.MIMEType}
	if first.Text != nil {
		c.Content = *first.Text
	}
	return c, nil
}
