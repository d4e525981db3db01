package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// Resources lists the resources of all connected servers in config order, or only those of the server with the given
// raw name (empty means all). If the name is unknown, the error is ErrUnknownServer.
func (m *Manager) Resources(server string) ([]Resource, error) {
	var all []Resource
	found := server == ""
	for _, s := range m.allServers() {
		if server != "" && s.cfg.Name != server {
			continue
		}
		found = true
		st, _ := s.statusAndChangeSignal()
		all = append(all, st.lists.resources...)
	}
	if !found {
		return nil, fmt.Errorf("%w: %s", ErrUnknownServer, server)
	}
	return all, nil
}

// ReadResource reads one resource of the server with this raw name and returns the result as the server sent it. A server that
// was lost is started again first. The time limit is 60 s, or the Timeout of the server if that is shorter. There are four
// kinds of errors: a routing error (nothing was sent), an [*RPCError], [ErrConnectionClosed], and an error that reports that no
// response came in time. All this also applies to ResourceTemplates, GetPrompt and Subscribe.
func (m *Manager) ReadResource(ctx context.Context, server, uri string) (result json.RawMessage, err error) {
	err = m.requestReconnectingIfLost(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		result, err = c.ReadResource(ctx, uri)
		return err
	})
	return result, err
}

// ResourceTemplates lists the resource templates of a server as it sent them; nil means the server has no resources.
// Errors are those of [Manager.ReadResource].
func (m *Manager) ResourceTemplates(ctx context.Context, server string) (all []json.RawMessage, err error) {
	err = m.requestReconnectingIfLost(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		if !c.InitializeResult().Has("resources") {
			return nil
		}
		all, _, err = c.List(ctx, connection.ListTemplates)
		return err
	})
	return all, err
}

// GetPrompt asks the server to fill in its prompt of this name with args, a JSON object of texts, and returns the result as the
// server sent it. Errors are those of [Manager.ReadResource].
func (m *Manager) GetPrompt(ctx context.Context, server, name string, args json.RawMessage) (result json.RawMessage, err error) {
	err = m.requestReconnectingIfLost(ctx, server, func(ctx context.Context, c *connection.Conn) (err error) {
		result, err = c.GetPrompt(ctx, name, args)
		return err
	})
	return result, err
}

// FetchPromptText asks the server of p to fill in the prompt with words, one per argument, and returns the contents as one text without
// images. Errors are those of [Manager.ReadResource].
func (m *Manager) FetchPromptText(ctx context.Context, p Prompt, words []string) (string, error) {
	args := plainjson.Object{}
	for i, a := range p.Arguments[:min(len(words), len(p.Arguments))] {
		args = args.Set(a.Name, json.RawMessage(plainjson.MarshalString(words[i])))
	}
	raw, err := m.GetPrompt(ctx, p.Server, p.Name, args.Raw())
	if err != nil {
		return "", err
	}
	b := blockBuilder{files: m.options.Files, server: p.Server}
	for _, message := range plainjson.DecodeIgnoringErrors[struct {
		Messages []struct{ Content json.RawMessage }
	}](raw).Messages {
		if contentKind(message.Content) != "image" {
			b.addItemSavingBinaries(message.Content)
		}
	}
	return b.plainText(), nil
}

// requestTimeout is the time limit of requests other than tool calls. A shorter ServerConfig.Timeout replaces it.
const requestTimeout = 60 * time.Second

func (m *Manager) requestReconnectingIfLost(ctx context.Context, server string, request func(ctx context.Context, c *connection.Conn) error) error {
	s, err := m.findServerUnlessClosed(server)
	if err != nil {
		return err
	}
	c, err := s.connectionReconnectingIfLost(ctx)
	if err != nil {
		return err
	}
	limit := min(requestTimeout, positiveOr(s.cfg.Timeout, m.options.ToolTimeout))
	late := fmt.Errorf("MCP server %q did not answer within %s", server, limit)
	ctx, stop := context.WithTimeoutCause(ctx, limit, late)
	defer stop()
	err = wrappedRPCErrorOrSelf(request(ctx, c))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// ErrNoSubscriptions reports that a server does not support resource subscriptions.
var ErrNoSubscriptions = errors.New("the MCP server does not support resource subscriptions")

// Subscribe subscribes to a resource: its changes are reported to Options.ResourceUpdated. The subscription is renewed after a reconnect.
// If the server does not support subscriptions, the error is [ErrNoSubscriptions]. All other errors are those of [Manager.ReadResource].
func (m *Manager) Subscribe(ctx context.Context, server, uri string) error {
	return m.requestReconnectingIfLost(ctx, server, func(ctx context.Context, c *connection.Conn) error {
		if !c.InitializeResult().HasResourceSubscriptions() {
			return fmt.Errorf("%w: %s", ErrNoSubscriptions, server)
		}
		err := c.Subscribe(ctx, uri)
		if s, gone := m.findServer(server); err == nil && gone == nil { // it may have been removed in the meantime
			s.mu.Lock()
			s.subscriptions[uri] = true
			s.mu.Unlock()
		}
		return err
	})
}
