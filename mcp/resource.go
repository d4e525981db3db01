package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// Resources lists the resources of all connected servers, in config order;
// server narrows it to one by its raw name, empty = all. A name that no server has
// is ErrUnknownServer.
func (m *Manager) Resources(server string) ([]Resource, error) {
	var all []Resource
	found := server == ""
	for _, s := range m.all() {
		if server != "" && s.cfg.Name != server {
			continue
		}
		found = true
		st, _ := s.look()
		all = append(all, st.lists.resources...)
	}
	if !found {
		return nil, fmt.Errorf("%w: %s", ErrUnknownServer, server)
	}
	return all, nil
}

// ReadResource reads one resource and returns the result as the server sent it.
// The server goes by its raw name; one that was lost is started again first, and has
// 60 s to answer, or its Timeout where that is shorter. The error is a routing error
// with nothing sent, an [*RPCError], [ErrConnectionClosed], or says that no answer
// came. That holds for all requests beside calls.
func (m *Manager) ReadResource(ctx context.Context, server, uri string) (result json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		result, err = c.ReadResource(ctx, uri)
		return err
	})
	return result, err
}

// ResourceTemplates lists a server's resource templates as it sent them; nil = it has
// no resources at all. Errors are those of [Manager.ReadResource].
func (m *Manager) ResourceTemplates(ctx context.Context, server string) (all []json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		if !c.Hello().Has("resources") {
			return nil
		}
		all, _, err = c.List(ctx, connection.Templates)
		return err
	})
	return all, err
}

// GetPrompt fills in a prompt, by the server's own name for it, and returns the result
// as the server sent it. Errors are those of [Manager.ReadResource].
func (m *Manager) GetPrompt(ctx context.Context, server, name string, args map[string]string) (result json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		result, err = c.GetPrompt(ctx, name, args)
		return err
	})
	return result, err
}

// requestLimit bounds requests other than calls; a shorter time-out of calls
// bounds them too.
const requestLimit = 60 * time.Second

// open is find, of a manager that is not closed.
func (m *Manager) open(server string) (*server, error) {
	if m.isClosed() {
		return nil, ErrClosed
	}
	return m.known(server)
}

// ask makes requests to a server, found by its raw name, within requestLimit.
func (m *Manager) ask(ctx context.Context, server string, request func(ctx context.Context, c *connection.Conn) error) error {
	s, err := m.open(server)
	if err != nil {
		return err
	}
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	limit := min(requestLimit, orDefault(s.cfg.Timeout, m.o.ToolTimeout))
	late := fmt.Errorf("MCP server %q did not answer within %s", server, limit)
	ctx, stop := context.WithTimeoutCause(ctx, limit, late)
	defer stop()
	err = public(request(ctx, c))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// ErrNoSubscriptions says that a server does not tell of changed resources.
var ErrNoSubscriptions = errors.New("MCP server has no resource subscriptions")

// Ping asks a connected server for a sign of life. One that is not connected is
// an error at once, and nothing is started for it. Protocol version 2026-07-28
// has no ping: of its servers it is enough that they are connected.
func (m *Manager) Ping(ctx context.Context, server string) error {
	s, err := m.open(server)
	if err != nil {
		return err
	}
	st, _ := s.look()
	switch {
	case st.state == StateDisabled:
		return fmt.Errorf("%w: %s", ErrDisabled, server)
	case st.conn == nil || st.conn.IsLost():
		return fmt.Errorf("%w: %s", ErrNotConnected, server)
	}
	return public(st.conn.Ping(ctx))
}

// Subscribe asks a server to tell of changes to a resource, which go to
// Options.ResourceUpdated; after a reconnect it is asked again. A server that has no
// subscriptions is [ErrNoSubscriptions]; other errors are those of
// [Manager.ReadResource].
func (m *Manager) Subscribe(ctx context.Context, server, uri string) error {
	return m.ask(ctx, server, func(ctx context.Context, c *connection.Conn) error {
		if !c.Hello().Subscribable() {
			return fmt.Errorf("%w: %s", ErrNoSubscriptions, server)
		}
		if err := c.Subscribe(ctx, uri); err != nil {
			return err
		}
		m.wish(server, uri, true)
		return nil
	})
}

// Unsubscribe ends a subscription; one that was never made is no error.
func (m *Manager) Unsubscribe(ctx context.Context, server, uri string) error {
	return m.ask(ctx, server, func(ctx context.Context, c *connection.Conn) error {
		if !m.wish(server, uri, false) {
			return nil
		}
		return c.Unsubscribe(ctx, uri)
	})
}

// wish is server.wish for a server that may have been taken away meanwhile.
func (m *Manager) wish(server, uri string, want bool) (was bool) {
	if s, err := m.known(server); err == nil {
		was = s.wish(uri, want)
	}
	return was
}
