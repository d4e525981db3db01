package debug

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Error codes about external servers.
const (
	CodeServerNotFound         = "server_not_found"
	CodeServerNotConnected     = "server_not_connected"
	CodeToolNotFound           = "tool_not_found"
	CodeInvalidToolName        = "invalid_tool_name"
	CodeCallTimeout            = "call_timeout"
	CodeExternalToolCallFailed = "call_failed"
	CodeDuplicateName          = "duplicate_name"
	CodeInvalidName            = "invalid_name"
	CodeInvalidConfig          = "invalid_config"
	CodeConnectFailed          = "connect_failed"
	CodeResourceNotFound       = "resource_not_found"
)

const connectTimeout = 30 * time.Second

// ExternalServersOptions configure a ExternalServers. Hub and Now must be set.
type ExternalServersOptions struct {
	Hub     *Hub
	Now     func() time.Time
	Servers []mcp.ServerConfig // connected by Start
	Environ []string           // environment of stdio servers
	CWD     string
	Version string // clientInfo.version
}

// ExternalServers connects additional MCP servers to the debugger, at start-up or later, so that users of the debugger
// can call their tools and read their resources. These calls are recorded and never paused. A server that fails
// affects only calls to it, which return an error with a code. All methods may be called from many goroutines.
type ExternalServers struct {
	hub *Hub
	now func() time.Time
	mcp *mcp.Manager

	addMu sync.Mutex // locked while a server is added

	mu             sync.Mutex
	runtimeServers []mcp.ServerConfig
	connectedSince map[string]time.Time // since when each connected server is known to be connected
	everConnected  map[string]bool
}

// NewExternalServers creates a manager. It connects to no server before Start.
func NewExternalServers(o ExternalServersOptions) (*ExternalServers, error) {
	if o.Hub == nil || o.Now == nil {
		return nil, errors.New("debug: Hub and Now of the server manager must be set")
	}
	for _, s := range o.Servers {
		if !mcp.IsValidServerName(s.Name) {
			return nil, invalidServerNameError(s.Name)
		}
	}
	m, err := mcp.New(mcp.Options{
		OptionalSchemas: true,
		Servers:         o.Servers, ClientVersion: o.Version, Environ: o.Environ, CWD: o.CWD, ConnectTimeout: connectTimeout,
		Batch: mcp.ParallelConnectionLimits{Local: 64, Remote: 64}, // all servers connect at the same time
	})
	if err != nil {
		return nil, err
	}
	return &ExternalServers{hub: o.Hub, now: o.Now, mcp: m, connectedSince: map[string]time.Time{}, everConnected: map[string]bool{}}, nil
}

func invalidServerNameError(name string) error {
	return NewError(CodeInvalidName, fmt.Sprintf("invalid server name %q: use letters, digits, _ and -", name), "name", name)
}

// Start connects the configured servers and returns when each is connected or has failed. ctx bounds only the waiting.
func (m *ExternalServers) Start(ctx context.Context) error {
	err := m.mcp.StartAndWait(ctx)
	m.refreshStatuses()
	return err
}

// Close closes all connections and ends all server processes. It may be called more than once.
func (m *ExternalServers) Close(ctx context.Context) error { return m.mcp.Close(ctx) }

// The states of a server.
const (
	StatusConnecting           = "connecting"
	StatusConnected            = "connected"
	StatusDisconnected         = "disconnected"
	StatusConnectAttemptFailed = "error"  // the connection attempt failed
	StatusFailed               = "failed" // the connection was lost and could not be restored
)

// ExternalServerStatus describes one server for front ends.
type ExternalServerStatus struct {
	Name        string   `json:"-"`
	Status      string   `json:"status"`
	Transport   string   `json:"transport"`
	Tools       []string `json:"tools"` // "server/tool"
	ConnectedAt *float64 `json:"connected_at,omitempty"`
	Error       string   `json:"error,omitempty"`
}

// Servers lists the servers in the order of their configuration.
func (m *ExternalServers) Servers() []ExternalServerStatus {
	all := []ExternalServerStatus{}
	for _, s := range m.refreshStatuses() {
		all = append(all, m.externalServerOf(s))
	}
	return all
}

func (m *ExternalServers) externalServerOf(s mcp.ServerStatus) ExternalServerStatus {
	c := ExternalServerStatus{Name: s.Name, Transport: s.Config.Type, Tools: []string{}, Status: m.externalStatus(s)}
	c.Transport = cmp.Or(c.Transport, "stdio")
	if c.Status != StatusConnected {
		c.Error = s.Error
		return c
	}
	for _, t := range m.toolsOfServerWithoutDuplicates(s.Name) {
		c.Tools = append(c.Tools, t.Server+"/"+t.RawName)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.ConnectedAt = new(float64(m.connectedSince[s.Name].UnixMicro()) / 1e6)
	return c
}

// toolsOfServerWithoutDuplicates lists a server's tools. It omits a tool if an earlier one has the same canonical name.
func (m *ExternalServers) toolsOfServerWithoutDuplicates(serverName string) []protocol.Tool {
	return slices.DeleteFunc(m.mcp.Tools(), func(t protocol.Tool) bool { return t.Server != serverName })
}

func (m *ExternalServers) externalStatus(s mcp.ServerStatus) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s.State {
	case mcp.StateConnected:
		return StatusConnected
	case mcp.StateConfigured, mcp.StateConnecting:
		return StatusConnecting
	case mcp.StateFailed, mcp.StateNeedsAuth:
		if m.everConnected[s.Name] {
			return StatusFailed
		}
		return StatusConnectAttemptFailed
	default:
		return StatusDisconnected
	}
}

// refreshStatuses returns the state of each server, and updates m.connectedSince and m.everConnected.
func (m *ExternalServers) refreshStatuses() []mcp.ServerStatus {
	all := m.mcp.Servers()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range all {
		_, known := m.connectedSince[s.Name]
		switch {
		case s.State != mcp.StateConnected:
			delete(m.connectedSince, s.Name)
		case !known:
			m.connectedSince[s.Name] = m.now()
			m.everConnected[s.Name] = true
		}
	}
	return all
}

func (m *ExternalServers) findServer(name string) (mcp.ServerStatus, bool) {
	all := m.refreshStatuses()
	i := slices.IndexFunc(all, func(s mcp.ServerStatus) bool { return s.Name == name })
	if i < 0 {
		return mcp.ServerStatus{}, false
	}
	return all[i], true
}

// checkConnected returns an error that explains why a server cannot be called; nil means it is connected.
func (m *ExternalServers) checkConnected(name string) error {
	s, ok := m.findServer(name)
	switch {
	case !ok:
		return NewError(CodeServerNotFound, "", "server", name)
	case s.State != mcp.StateConnected:
		return NewError(CodeServerNotConnected, s.Error, "server", name)
	}
	return nil
}

// AddAndConnect adds a server under an unused name and returns its tools. config is the server's entry in the configuration
// format. A server that cannot be reached stays configured.
func (m *ExternalServers) AddAndConnect(ctx context.Context, name string, config json.RawMessage) ([]string, error) {
	if !mcp.IsValidServerName(name) {
		return nil, invalidServerNameError(name)
	}
	m.addMu.Lock()
	defer m.addMu.Unlock()
	if _, ok := m.findServer(name); ok {
		return nil, NewError(CodeDuplicateName, "", "name", name)
	}
	cfg, err := ParseServerEntry(name, config)
	if err != nil {
		return nil, NewError(CodeInvalidConfig, err.Error(), "name", name)
	}
	m.mu.Lock()
	m.runtimeServers = append(m.runtimeServers, cfg)
	desired := slices.Clone(m.runtimeServers)
	m.mu.Unlock()
	change, err := m.mcp.ReplaceServersOfSource(ctx, runtimeServerSource, desired)
	m.hub.PublishChange(TopicExternalMCPServers)
	if err != nil {
		return nil, NewError(CodeConnectFailed, err.Error(), "name", name)
	}
	if reason, failed := change.Errors[name]; failed { // the real CLI's text, which contains no details
		s, _ := m.findServer(name)
		return nil, NewError(CodeConnectFailed, cmp.Or(s.Error, reason), "name", name)
	}
	return m.externalToolNames(name), nil
}

const runtimeServerSource = "runtime"

func (m *ExternalServers) externalToolNames(name string) []string {
	s, ok := m.findServer(name)
	if !ok {
		return []string{}
	}
	return m.externalServerOf(s).Tools
}

// DisconnectKeepingConfig closes a server's connection and keeps its configuration.
func (m *ExternalServers) DisconnectKeepingConfig(ctx context.Context, name string) error {
	if _, ok := m.findServer(name); !ok {
		return NewError(CodeServerNotFound, "", "name", name)
	}
	err := m.mcp.Disconnect(ctx, name)
	m.refreshStatuses()
	m.hub.PublishChange(TopicExternalMCPServers)
	return err
}

// Reconnect connects a server that is not connected and returns its tools.
func (m *ExternalServers) Reconnect(ctx context.Context, name string) ([]string, error) {
	if _, ok := m.findServer(name); !ok {
		return nil, NewError(CodeServerNotFound, "", "name", name)
	}
	err := m.mcp.Connect(ctx, name)
	m.hub.PublishChange(TopicExternalMCPServers)
	if err != nil {
		return nil, NewError(CodeConnectFailed, err.Error(), "name", name)
	}
	return m.externalToolNames(name), nil
}

// ExternalTool is a tool of an MCP server that the debugger has connected.
type ExternalTool struct {
	Name        string          `json:"name"` // "server/tool"
	Server      string          `json:"server"`
	Original    string          `json:"original_name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // schema as the server sent it; null means none
}

// Tools lists the tools of all connected servers, or of one.
func (m *ExternalServers) Tools(server string) ([]ExternalTool, error) {
	if server != "" {
		if _, ok := m.findServer(server); !ok {
			return nil, NewError(CodeServerNotFound, "", "server", server)
		}
	}
	all := []ExternalTool{}
	for _, s := range m.refreshStatuses() {
		if s.State != mcp.StateConnected || server != "" && s.Name != server {
			continue
		}
		for _, t := range m.toolsOfServerWithoutDuplicates(s.Name) {
			all = append(all, ExternalTool{
				Name: t.Server + "/" + t.RawName, Server: t.Server, Original: t.RawName,
				Description: t.Description, InputSchema: t.InputSchema,
			})
		}
	}
	return all, nil
}

// CallAndRecord runs a tool and returns its result as the server sent it. The hub records the call, even if it fails.
func (m *ExternalServers) CallAndRecord(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	server, tool, err := m.resolveServerSlashToolName(name)
	if err != nil {
		return nil, err
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	rec := CallRecord{CallEnding: CallEnding{Source: "mcp_client", Server: server, Status: "success"}}
	cid, _, _ := m.hub.Store().PutJSON(arguments)
	rec.MethodName, rec.Client, rec.Values = name, ClientExternal, ClaudelessCallInput{JSON: arguments, ContentID: cid}
	rec.StartedAt = float64(m.now().UnixMicro()) / 1e6
	result, err := m.callTool(ctx, server, tool, arguments)
	if err != nil {
		rec.Status, rec.Error, rec.ErrorType = "exception", err.Error(), "Error"
		if e, ok := errors.AsType[*Error](err); ok {
			rec.ErrorType = e.Code
		}
		rec.Exception, _ = protocol.Marshal(err.Error())
	} else {
		if plainjson.DecodeIgnoringErrors[struct{ IsError bool }](result).IsError {
			rec.Status = "exception"
		}
		rec.ResultCID, err = m.hub.Store().Put(result)
		if _, tooLarge := errors.AsType[*cas.TooLargeError](err); tooLarge {
			err = nil
		}
		rec.PrettyResult = result
	}
	m.hub.Records.AddExternalRecord(rec)
	return result, err
}

// resolveServerSlashToolName splits "server/tool". It returns an error if the server is not connected or has no such tool.
func (m *ExternalServers) resolveServerSlashToolName(name string) (server, tool string, err error) {
	server, tool, ok := strings.Cut(name, "/")
	if !ok {
		return "", "", NewError(CodeInvalidToolName, "the name of a tool must have the form server/tool", "tool", name)
	}
	if err := m.checkConnected(server); err != nil {
		return "", "", err
	}
	if !slices.ContainsFunc(m.toolsOfServerWithoutDuplicates(server), func(t protocol.Tool) bool { return t.RawName == tool }) {
		return "", "", NewError(CodeToolNotFound, "", "tool", name)
	}
	return server, tool, nil
}

func (m *ExternalServers) callTool(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	name := server + "/" + tool
	result, err := m.mcp.CallRaw(ctx, mcp.CallRequest{Tool: name, Input: arguments})
	if err == nil {
		return result, nil
	}
	e := NewError(CodeExternalToolCallFailed, err.Error(), "tool", name)
	timeout, isTimeout := errors.AsType[*mcp.CallTimeoutError](err)
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

// ExternalResource is a resource of an MCP server that the debugger has connected.
type ExternalResource struct {
	URI         string `json:"uri"`
	Server      string `json:"server"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mime_type"`
}

// Resources lists the resources of all connected servers, or of one.
func (m *ExternalServers) Resources(server string) ([]ExternalResource, error) {
	found, err := m.mcp.Resources(server)
	if err != nil {
		return nil, NewError(CodeServerNotFound, "", "server", server)
	}
	all := []ExternalResource{}
	for _, r := range found {
		all = append(all, ExternalResource{URI: r.URI, Server: r.Server, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType})
	}
	return all, nil
}

// ExternalResourceContent is the text of a resource that was read from an MCP server, or its bytes in base64.
type ExternalResourceContent struct {
	Content  string `json:"content"` // text, or base64 if the resource is binary
	MIMEType string `json:"mime_type"`
}

// ReadFirstContentOfResource reads one resource. If the server returns several contents, ReadFirstContentOfResource returns the first.
func (m *ExternalServers) ReadFirstContentOfResource(ctx context.Context, server, uri string) (ExternalResourceContent, error) {
	if err := m.checkConnected(server); err != nil {
		return ExternalResourceContent{}, err
	}
	raw, err := m.mcp.ReadResource(ctx, server, uri)
	if err != nil {
		return ExternalResourceContent{}, NewError(CodeResourceNotFound, err.Error(), "uri", uri, "server", server)
	}
	var result struct {
		Contents []struct {
			Text     *string `json:"text"`
			Blob     string  `json:"blob"`
			MIMEType string  `json:"mimeType"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Contents) == 0 {
		return ExternalResourceContent{}, NewError(CodeResourceNotFound, "the server sent no contents", "uri", uri)
	}
	first := result.Contents[0]
	c := ExternalResourceContent{Content: first.Blob, MIMEType: first.MIMEType}
	if first.Text != nil {
		c.Content = *first.Text
	}
	return c, nil
}
