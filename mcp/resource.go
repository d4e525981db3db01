package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/ordered"
)

// Resource is a resource a server offers.
type Resource struct {
	Server      string `json:"server"` // raw name
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Prompt is a prompt a server offers.
type Prompt struct {
	Server      string           `json:"server"` // raw name
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// PromptArgument is one argument of a Prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// fetch asks a server for everything it declared. A server that declared
// nothing at all is asked for tools once: some have them all the same. Lists
// other than that of tools may fail; they are then empty.
func (c *conn) fetch(ctx context.Context, cfg ServerConfig) (lists, error) {
	var out, prompts, resources lists
	var err error
	var others sync.WaitGroup
	if c.hello.has("prompts") {
		others.Go(func() { prompts = c.fetchPrompts(ctx, cfg.Name) })
	}
	if c.hello.has("resources") {
		others.Go(func() { resources = c.fetchResources(ctx, cfg.Name) })
	}
	if c.hello.has("tools") || c.hello.bare() {
		out, err = c.fetchTools(ctx, cfg, c.retryPause)
	}
	others.Wait()
	out.prompts, out.resources, out.hasResources = prompts.prompts, resources.resources, resources.hasResources
	out.warnings = append(append(out.warnings, prompts.warnings...), resources.warnings...)
	return out, err
}

func (c *conn) fetchPrompts(ctx context.Context, server string) (out lists) {
	all, warning, err := pages(ctx, "prompts", func(ctx context.Context, req wire.PaginatedRequest) error {
		_, err := c.client.ListPromptsByPage(ctx, wire.ListPromptsRequest{PaginatedRequest: req})
		return err
	})
	out.warnings = warn("prompts", warning, err)
	for _, r := range all {
		p := Prompt{}
		if json.Unmarshal(r, &p) != nil || p.Name == "" {
			out.warnings = append(out.warnings, "a prompt that cannot be read was left out")
			continue
		}
		p.Server = server
		out.prompts = append(out.prompts, p)
	}
	return out
}

func (c *conn) fetchResources(ctx context.Context, server string) (out lists) {
	out.hasResources = true
	all, warning, err := pages(ctx, "resources", func(ctx context.Context, req wire.PaginatedRequest) error {
		_, err := c.client.ListResourcesByPage(ctx, wire.ListResourcesRequest{PaginatedRequest: req})
		return err
	})
	out.warnings = warn("resources", warning, err)
	for _, r := range all {
		res := Resource{}
		if json.Unmarshal(r, &res) != nil || res.URI == "" {
			out.warnings = append(out.warnings, "a resource that cannot be read was left out")
			continue
		}
		res.Server = server
		out.resources = append(out.resources, res)
	}
	return out
}

func warn(what, warning string, err error) []string {
	switch {
	case err != nil:
		return []string{fmt.Sprintf("listing %s failed: %v", what, err)}
	case warning != "":
		return []string{warning}
	}
	return nil
}

// pages follows cursors and returns the elements as they came. A cursor that
// was there before, or too many pages, ends the list with a warning.
func pages(ctx context.Context, key string, page func(context.Context, wire.PaginatedRequest) error) (all []json.RawMessage, warning string, err error) {
	var req wire.PaginatedRequest
	seen := map[wire.Cursor]bool{"": true}
	for range maxPages {
		result, err := raw(ctx, `{}`, func(ctx context.Context) error { return page(ctx, req) })
		if err != nil {
			return all, "", err
		}
		var p map[string]json.RawMessage
		var elements []json.RawMessage
		if err := json.Unmarshal(result, &p); err != nil {
			return all, "", fmt.Errorf("reading the list of %s: %w", key, err)
		}
		if v := p[key]; v != nil && json.Unmarshal(v, &elements) != nil {
			return all, fmt.Sprintf("the list of %s is %s, not an array", key, ordered.TypeOf(v)), nil
		}
		all = append(all, elements...)
		next := wire.Cursor("")
		if v, ok := p["nextCursor"]; ok {
			_ = json.Unmarshal(v, &next) // a cursor that is no string ends the list
		}
		if next == "" {
			return all, "", nil
		}
		if seen[next] {
			return all, fmt.Sprintf("the list of %s repeats cursor %q; %d were read", key, next, len(all)), nil
		}
		seen[next] = true
		req.Params.Cursor = next
	}
	return all, fmt.Sprintf("the list of %s has more than %d pages; %d were read", key, maxPages, len(all)), nil
}

// Resources lists the resources of all connected servers, in config order;
// server narrows it to one by its raw name.
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
func (m *Manager) ReadResource(ctx context.Context, server, uri string) (result json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *conn) (err error) {
		var req wire.ReadResourceRequest
		req.Params.URI = uri
		result, err = raw(ctx, `{"contents":[]}`, func(ctx context.Context) error {
			_, err := c.client.ReadResource(ctx, req)
			return err
		})
		return err
	})
	return result, err
}

// ResourceTemplates lists a server's resource templates as it sent them.
func (m *Manager) ResourceTemplates(ctx context.Context, server string) (all []json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *conn) (err error) {
		if !c.hello.has("resources") {
			return nil
		}
		all, _, err = pages(ctx, "resourceTemplates", func(ctx context.Context, req wire.PaginatedRequest) error {
			_, err := c.client.ListResourceTemplatesByPage(ctx, wire.ListResourceTemplatesRequest{PaginatedRequest: req})
			return err
		})
		return err
	})
	return all, err
}

// GetPrompt fills in a prompt and returns the result as the server sent it.
func (m *Manager) GetPrompt(ctx context.Context, server, name string, args map[string]string) (result json.RawMessage, err error) {
	err = m.ask(ctx, server, func(ctx context.Context, c *conn) (err error) {
		var req wire.GetPromptRequest
		req.Params.Name, req.Params.Arguments = name, args
		result, err = raw(ctx, `{"messages":[]}`, func(ctx context.Context) error {
			_, err := c.client.GetPrompt(ctx, req)
			return err
		})
		return err
	})
	return result, err
}

// requestLimit bounds requests other than calls; a shorter time-out of calls
// bounds them too.
const requestLimit = 60 * time.Second

// ask makes requests to a server, found by its raw name, within requestLimit.
func (m *Manager) ask(ctx context.Context, server string, request func(ctx context.Context, c *conn) error) error {
	s := m.find(server)
	switch {
	case m.isClosed():
		return ErrClosed
	case s == nil:
		return fmt.Errorf("%w: %s", ErrUnknownServer, server)
	}
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	limit := min(requestLimit, orDefault(s.cfg.Timeout, m.o.ToolTimeout))
	late := fmt.Errorf("MCP server %q did not answer within %s", server, limit)
	ctx, stop := context.WithTimeoutCause(ctx, limit, late)
	defer stop()
	err = request(ctx, c)
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
	s := m.find(server)
	switch {
	case m.isClosed():
		return ErrClosed
	case s == nil:
		return fmt.Errorf("%w: %s", ErrUnknownServer, server)
	}
	st, _ := s.look()
	switch {
	case st.state == StateDisabled:
		return fmt.Errorf("%w: %s", ErrDisabled, server)
	case st.conn == nil || st.conn.isLost():
		return fmt.Errorf("%w: %s", ErrNotConnected, server)
	case st.conn.link.modern.Load():
		return nil
	}
	return st.conn.client.Ping(ctx) //nolint:staticcheck // deprecated for a newer protocol version
}

// Subscribe asks a server to tell of changes to a resource, which go to
// Options.ResourceUpdated; after a reconnect it is asked again.
func (m *Manager) Subscribe(ctx context.Context, server, uri string) error {
	return m.ask(ctx, server, func(ctx context.Context, c *conn) error {
		if !c.hello.subscribable() {
			return fmt.Errorf("%w: %s", ErrNoSubscriptions, server)
		}
		if err := c.subscribe(ctx, uri); err != nil {
			return err
		}
		m.wish(server, uri, true)
		return nil
	})
}

// Unsubscribe ends a subscription; one that was never made is no error.
func (m *Manager) Unsubscribe(ctx context.Context, server, uri string) error {
	return m.ask(ctx, server, func(ctx context.Context, c *conn) error {
		if !m.wish(server, uri, false) {
			return nil
		}
		var req wire.UnsubscribeRequest
		req.Params.URI = uri
		_, err := raw(ctx, `{}`, func(ctx context.Context) error { return c.client.Unsubscribe(ctx, req) }) //nolint:staticcheck // deprecated for a newer protocol version
		return err
	})
}

func (c *conn) subscribe(ctx context.Context, uri string) error {
	var req wire.SubscribeRequest
	req.Params.URI = uri
	_, err := raw(ctx, `{}`, func(ctx context.Context) error { return c.client.Subscribe(ctx, req) }) //nolint:staticcheck // deprecated for a newer protocol version
	return err
}

// subscribable reports whether the server declared resource subscriptions.
func (h handshake) subscribable() bool {
	var c struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	return json.Unmarshal(h.Capabilities, &c) == nil && c.Resources.Subscribe
}

// wish is server.wish for a server that may have been taken away meanwhile.
func (m *Manager) wish(server, uri string, want bool) (was bool) {
	if s := m.find(server); s != nil {
		was = s.wish(uri, want)
	}
	return was
}

// wish remembers, or forgets, a subscription; it reports whether there was one.
func (s *server) wish(uri string, want bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.watched[uri]
	delete(s.watched, uri)
	if want {
		s.watched[uri] = true
	}
	return was
}

// resubscribe makes the subscriptions of an earlier connection again, in the
// background; what the server refuses now is forgotten.
func (l *life) resubscribe(ctx context.Context, c *conn) {
	l.mu.Lock()
	uris := sortedKeys(l.watched)
	l.mu.Unlock()
	if len(uris) == 0 {
		return
	}
	l.m.tasks.Go(func() { // ends within the connect time-out
		limit, stop := context.WithTimeout(ctx, l.connectTimeout())
		defer stop()
		for _, uri := range uris {
			if err := c.subscribe(limit, uri); err != nil {
				c.debug.Printf("subscribing again failed: %v", err)
				l.wish(uri, false)
			}
		}
	})
}
