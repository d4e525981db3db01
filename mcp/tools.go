package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// maxName is the longest tool name the API takes.
const maxName = 128

// CanonicalName is mcp__server__tool with every character outside
// [A-Za-z0-9_-] replaced by an underscore. It cannot be taken apart again:
// names may contain double underscores.
func CanonicalName(server, tool string) string {
	return "mcp__" + normalise(server) + "__" + normalise(tool)
}

func normalise(name string) string {
	const beyondUTF16 = 0xFFFF
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > beyondUTF16: // two code units for the real CLI
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// fetchTools lists a server's tools. Failures are tried again after the pauses
// from pause on; a server that never lists them has none.
func (c *conn) fetchTools(ctx context.Context, cfg ServerConfig, pause time.Duration) (out lists, err error) {
	var all []json.RawMessage
	var warning string
	for attempt := 0; ; attempt++ {
		all, warning, err = pages(ctx, "tools", func(ctx context.Context, req wire.PaginatedRequest) error {
			_, err := c.client.ListToolsByPage(ctx, wire.ListToolsRequest{PaginatedRequest: req})
			return err
		})
		var rpc *RPCError
		if err == nil {
			break
		}
		if !errors.As(err, &rpc) {
			return out, err
		}
		if attempt == maxRetries || (rpc.Code == codeMethodNotFound && !c.hello.has("tools")) {
			if c.hello.has("tools") {
				out.warnings, out.err = warn("tools", "", err), err
			}
			return out, nil
		}
		if err := sleep(ctx, pause<<attempt); err != nil {
			return out, err
		}
	}
	out.warnings = warn("tools", warning, nil)
	seen := map[string]bool{}
	for _, r := range all {
		t, problem := toolOf(cfg, c.hello.ServerInfo, r)
		if problem == "" && seen[t.RawName] {
			problem = fmt.Sprintf("tool %q is listed twice", t.RawName)
		}
		if problem != "" {
			out.warnings = append(out.warnings, problem+"; it was left out")
			continue
		}
		seen[t.RawName] = true
		out.tools, out.raw = append(out.tools, t), append(out.raw, r)
	}
	return out, nil
}

// maxRetries is how often a first connect, or a list, is tried again.
const maxRetries = 3

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// toolOf reads one definition; its schema and annotations stay as they came.
func toolOf(cfg ServerConfig, info ServerInfo, r json.RawMessage) (t protocol.Tool, problem string) {
	var d struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(r, &d); err != nil {
		return t, fmt.Sprintf("tool %q cannot be read", d.Name)
	}
	t = protocol.Tool{
		Name: CanonicalName(cfg.Name, d.Name), Title: d.Title, Description: d.Description,
		InputSchema: optional(d.InputSchema), Annotations: optional(d.Annotations),
		Server: cfg.Name, ServerTitle: info.Name, RawName: d.Name, ServerSource: cfg.Source,
	}
	switch {
	case d.Name == "":
		return t, "a tool has no name"
	case t.InputSchema != nil && ordered.TypeOf(t.InputSchema) != "object":
		return t, fmt.Sprintf("tool %q has %s as input schema", d.Name, ordered.TypeOf(t.InputSchema))
	case len(t.Name) > maxName:
		return t, fmt.Sprintf("tool name %s is longer than %d characters", t.Name, maxName)
	}
	var hints struct {
		Title    string `json:"title"`
		ReadOnly bool   `json:"readOnlyHint"`
	}
	if json.Unmarshal(t.Annotations, &hints) == nil {
		t.ReadOnly = hints.ReadOnly
		if t.Title == "" {
			t.Title = hints.Title
		}
	}
	return t, ""
}

// optional is nil for a member that is absent or null.
func optional(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || bytes.Equal(v, []byte("null")) {
		return nil
	}
	return v
}

// catalogue is the table of all callable tools. Names are looked up in it and
// never taken apart.
type catalogue struct {
	tools  []protocol.Tool
	owner  map[string]*server // by canonical name
	byName map[string]int     // canonical name → index in tools
	hidden []Hidden
}

// Hidden is a tool that cannot be called because another one has its
// canonical name.
type Hidden struct {
	Name         string // canonical
	Server, Tool string // raw
	By           string // raw name of the server whose tool is called instead
}

// catalogue returns the table for the servers as they are now.
func (m *Manager) catalogue() *catalogue {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := m.version.Load()
	if m.names != nil && m.namesAt == version {
		return m.names
	}
	c := &catalogue{owner: map[string]*server{}, byName: map[string]int{}}
	for _, s := range m.servers {
		st, _ := s.look()
		if s.cfg.Name == "ide" { // connects, and shows no tools
			continue
		}
		for _, t := range st.lists.tools {
			if by := c.owner[t.Name]; by != nil {
				c.hidden = append(c.hidden, Hidden{Name: t.Name, Server: t.Server, Tool: t.RawName, By: by.cfg.Name})
				continue
			}
			c.owner[t.Name], c.byName[t.Name] = s, len(c.tools)
			c.tools = append(c.tools, t)
		}
	}
	if m.names == nil || len(m.names.hidden) != len(c.hidden) {
		m.reportHidden(c.hidden)
	}
	m.names, m.namesAt = c, version
	return c
}

func (m *Manager) reportHidden(hidden []Hidden) {
	for _, h := range hidden {
		m.debug.Log(h.Server).Printf("tool %q is hidden: %s is already a tool of %q", h.Tool, h.Name, h.By)
	}
}

// Tools lists the callable tools: servers in config order, each server's in
// its own. Of two tools with one canonical name the first is listed.
func (m *Manager) Tools() []protocol.Tool {
	return append([]protocol.Tool(nil), m.catalogue().tools...)
}

// HiddenTools lists the tools that Tools leaves out for their name.
func (m *Manager) HiddenTools() []Hidden {
	return append([]Hidden(nil), m.catalogue().hidden...)
}

// Resolve finds a tool by its canonical name, as server/tool in raw names, or
// by its bare raw name (config order, the first wins). The error is one of
// ErrUnknownServer, ErrUnknownTool, ErrNotConnected and ErrDisabled.
func (m *Manager) Resolve(name string) (protocol.Tool, error) {
	c := m.catalogue()
	if i, ok := c.byName[name]; ok {
		return c.tools[i], nil
	}
	for _, t := range c.tools {
		if t.Server+"/"+t.RawName == name {
			return t, nil
		}
	}
	for _, t := range c.tools {
		if t.RawName == name {
			return t, nil
		}
	}
	return protocol.Tool{}, m.unresolved(name)
}

// unresolved tells why a name leads nowhere.
func (m *Manager) unresolved(name string) error {
	qualified := strings.HasPrefix(name, "mcp__") || strings.Contains(name, "/")
	for _, s := range m.all() {
		if !strings.HasPrefix(name, "mcp__"+normalise(s.cfg.Name)+"__") && !strings.HasPrefix(name, s.cfg.Name+"/") {
			continue
		}
		switch st, _ := s.look(); st.state {
		case StateConnected, StateLost:
			return fmt.Errorf("%w: %s", ErrUnknownTool, name)
		case StateDisabled:
			return fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
		default:
			return fmt.Errorf("%w: %s", ErrNotConnected, s.cfg.Name)
		}
	}
	if qualified {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	return fmt.Errorf("%w: %s", ErrUnknownTool, name)
}

// freshTool resolves a name; when it is unknown while lists are being fetched
// again, it waits for them.
func (m *Manager) freshTool(ctx context.Context, name string) (protocol.Tool, error) {
	t, err := m.Resolve(name)
	if err == nil {
		return t, nil
	}
	m.waitFresh(ctx, listWait)
	return m.Resolve(name)
}

// FreshTools is [Manager.Tools] after a short wait for lists that servers said
// have changed.
func (m *Manager) FreshTools(ctx context.Context) []protocol.Tool {
	m.waitFresh(ctx, freshWait)
	return m.Tools()
}

func (m *Manager) waitFresh(ctx context.Context, most time.Duration) {
	limit, stop := context.WithTimeout(ctx, most)
	defer stop()
	for _, s := range m.all() {
		s.waitFresh(limit)
	}
}

const (
	listWait  = 2 * time.Second
	freshWait = 300 * time.Millisecond
)

// waitFresh waits until a connected server's lists are up to date.
func (s *server) waitFresh(ctx context.Context) {
	for {
		st, changed := s.look()
		if st.conn == nil || !st.conn.stale() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
