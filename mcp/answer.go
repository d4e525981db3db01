package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// answer handles what a server asks of us.
func (s *server) answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "ping":
		return struct{}{}, nil
	case "roots/list":
		return s.m.listRoots(), nil
	case "sampling/createMessage":
		return s.sample(ctx, params)
	case "elicitation/create":
		return s.elicit(ctx, params)
	default:
		return nil, errMethod
	}
}

var errMethod = &RPCError{Code: codeMethodNotFound, Message: "Method not found"}

func (s *server) sample(ctx context.Context, params json.RawMessage) (any, error) {
	if s.m.o.Sample == nil {
		return nil, errMethod
	}
	return s.m.o.Sample(ctx, s.cfg.Name, params)
}

type rootList struct {
	Roots []root `json:"roots"`
}

type root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

func (m *Manager) listRoots() rootList {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := rootList{Roots: []root{}}
	for _, dir := range m.roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		list.Roots = append(list.Roots, root{URI: u.String()})
	}
	return list
}

// SetRoots changes the roots, absolute paths, and tells all connected servers
// but those of the SDK host when they are others than before. Telling a remote
// server goes on in the background until it is told or, at the latest, the
// manager is closed.
func (m *Manager) SetRoots(ctx context.Context, roots []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	same := slices.Equal(m.roots, roots)
	m.roots = slices.Clone(roots)
	if same || m.closed {
		return
	}
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = "notifications/roots/list_changed"
	ctx = context.WithoutCancel(ctx)
	for _, s := range m.servers {
		st, _ := s.look()
		switch {
		case st.conn == nil, s.cfg.Type == typeSDK:
		case st.conn.remote:
			ctx, stop := context.WithCancel(ctx)
			m.tasks.Go(func() { // ends within cancelLimit
				defer stop()
				st.conn.tell(ctx, n)
			})
			m.tasks.Go(func() { // ends with it, or ends it
				defer stop()
				select {
				case <-st.conn.ended:
				case <-ctx.Done():
				}
			})
		default:
			st.conn.tell(ctx, n) // it is queued and cannot block
		}
	}
}

// tell sends a notification; a server that does not take it shows elsewhere.
func (c *conn) tell(ctx context.Context, n wire.JSONRPCNotification) {
	ctx, stop := context.WithTimeout(ctx, cancelLimit)
	defer stop()
	_ = c.link.SendNotification(ctx, n)
}

// asker answers what results of the newer era ask for.
type asker struct{ s *server }

// Elicit implements client.ElicitationHandler.
func (a asker) Elicit(ctx context.Context, req wire.ElicitationRequest) (*wire.ElicitationResult, error) {
	params, err := json.Marshal(req.Params)
	if err != nil {
		return nil, err
	}
	answer, err := a.s.elicit(ctx, params)
	if err != nil {
		return nil, err
	}
	out := &wire.ElicitationResult{}
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(raw, out)
}

// ListRoots implements client.RootsHandler.
func (a asker) ListRoots(context.Context, wire.ListRootsRequest) (*wire.ListRootsResult, error) {
	out := &wire.ListRootsResult{}
	for _, r := range a.s.m.listRoots().Roots {
		out.Roots = append(out.Roots, wire.Root{URI: r.URI})
	}
	return out, nil
}

func (s *server) elicit(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitationId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &RPCError{Code: codeInvalidParams, Message: "Invalid params"}
	}
	answer := ElicitAnswer{}
	if s.m.o.Elicit != nil {
		answer = s.m.o.Elicit(ctx, ElicitRequest{Server: s.cfg.Name, Message: p.Message, Schema: p.Schema, URL: p.URL, ID: p.ID, Params: params})
	}
	out := map[string]any{"action": cmp.Or(answer.Action, "cancel")}
	if answer.Action == "accept" && p.URL == "" {
		out["content"] = withDefaults(answer.Content, p.Schema)
	}
	return out, nil
}

// withDefaults fills in what an answer leaves out from the schema's defaults.
func withDefaults(content, schema json.RawMessage) map[string]json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(schema, &s)    // a schema we cannot read has no defaults
	_ = json.Unmarshal(content, &out) // neither has an answer that is no object
	for name, p := range s.Properties {
		if _, given := out[name]; !given && p.Default != nil {
			out[name] = p.Default
		}
	}
	return out
}

// news are changed resources that ResourceUpdated has not heard of yet.
type news struct {
	mu      sync.Mutex
	waiting []update
	telling bool // a goroutine is at it
}

type update struct{ server, uri string }

// updated passes on that a resource changed, off the caller's goroutine.
func (m *Manager) updated(server, uri string) {
	if m.o.ResourceUpdated == nil {
		return
	}
	n, u := &m.news, update{server, uri}
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.waiting, u) {
		return
	}
	n.waiting = append(n.waiting, u)
	if n.telling {
		return
	}
	n.telling = true
	go func() { // ends when all is told
		for {
			n.mu.Lock()
			if len(n.waiting) == 0 {
				n.telling = false
				n.mu.Unlock()
				return
			}
			u := n.waiting[0]
			n.waiting = n.waiting[1:]
			n.mu.Unlock()
			m.o.ResourceUpdated(u.server, u.uri)
		}
	}()
}
