package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
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

// maxName is the longest tool name the API takes.
const maxName = 128

// CanonicalName is mcp__server__tool with every character outside
// [A-Za-z0-9_-] replaced by an underscore. It cannot be taken apart again:
// names may contain double underscores.
func CanonicalName(server, tool string) string {
	return "mcp__" + normalise(server) + "__" + normalise(tool)
}

// Command is the slash command of a prompt; other than the name of a tool it keeps the characters of the prompt's.
func (p Prompt) Command() string { return CanonicalName(p.Server, "") + p.Name }

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

// lists is what a server offers.
type lists struct {
	tools        []protocol.Tool
	raw          []json.RawMessage // the tools' definitions as they came, in the same order
	prompts      []Prompt
	resources    []Resource
	hasResources bool // declared, be there any or not
	warnings     map[connection.List][]string
	err          error // the server would not list its tools; nil = it did
}

// allWarnings are those of all lists.
func (l *lists) allWarnings() []string {
	return slices.Concat(l.warnings[connection.Tools], l.warnings[connection.Prompts], l.warnings[connection.Resources])
}

// listFetcher asks a server for its lists.
type listFetcher struct {
	conn  *connection.Conn
	cfg   ServerConfig
	pause time.Duration // before the first retry of the list of tools
}

// fetch asks a server for what it declared of some lists, nil = all, and returns
// them together with the others of old. A server that declared nothing at all is
// asked for tools once: some have them all the same. Lists other than that of tools
// may fail; they are then empty. They are asked for one after another, in the order
// of the real CLI, so that no two runs differ.
func (f listFetcher) fetch(ctx context.Context, old lists, only map[connection.List]bool) (lists, error) {
	out := old
	out.err = nil
	out.warnings = maps.Clone(old.warnings)
	if out.warnings == nil {
		out.warnings = map[connection.List][]string{}
	}
	order := []connection.List{connection.Tools, connection.Prompts, connection.Resources}
	if f.conn.Modern() {
		order = []connection.List{connection.Prompts, connection.Resources, connection.Tools}
	}
	hello := f.conn.Hello()
	out.hasResources = hello.Has("resources")
	for _, list := range order {
		declared := hello.Has(string(list)) || list == connection.Tools && hello.Bare()
		if !declared || only != nil && !only[list] {
			continue
		}
		delete(out.warnings, list)
		if err := f.list(ctx, list, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// list asks for one list.
func (f listFetcher) list(ctx context.Context, list connection.List, out *lists) error {
	if list == connection.Tools {
		return f.tools(ctx, out)
	}
	if list == connection.Prompts {
		out.prompts = items(ctx, f.conn, list, out, func(p *Prompt) bool {
			p.Server = f.cfg.Name
			return p.Name != ""
		})
		return nil
	}
	out.resources = items(ctx, f.conn, list, out, func(r *Resource) bool {
		r.Server = f.cfg.Name
		return r.URI != ""
	})
	return nil
}

// items are those of a list that keep takes; each of the others is a warning.
func items[T any](ctx context.Context, c *connection.Conn, list connection.List, out *lists, keep func(*T) bool) (kept []T) {
	all, warning, err := c.List(ctx, list)
	out.warn(list, warn(string(list), warning, err)...)
	for _, raw := range all {
		var item T
		if json.Unmarshal(raw, &item) != nil || !keep(&item) {
			out.warn(list, "a "+strings.TrimSuffix(string(list), "s")+" that cannot be read was left out")
			continue
		}
		kept = append(kept, item)
	}
	return kept
}

func (l *lists) warn(list connection.List, warnings ...string) {
	l.warnings[list] = append(l.warnings[list], warnings...)
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

// tools lists a server's tools. Failures are tried again after the pauses from
// f.pause on; a server that never lists them has none.
func (f listFetcher) tools(ctx context.Context, out *lists) error {
	var all []json.RawMessage
	var warning string
	var err error
	hello := f.conn.Hello()
	out.tools, out.raw = nil, nil
	for attempt := 0; ; attempt++ {
		all, warning, err = f.conn.List(ctx, connection.Tools)
		var rpc *connection.Error
		if err == nil {
			break
		}
		if !errors.As(err, &rpc) {
			return err
		}
		if attempt == maxRetries || (rpc.Code == connection.CodeMethodNotFound && !hello.Has("tools")) {
			if hello.Has("tools") {
				out.warn(connection.Tools, warn("tools", "", err)...)
				out.err = err
			}
			return nil
		}
		if err := sleep(ctx, f.pause<<attempt); err != nil {
			return err
		}
	}
	out.warn(connection.Tools, warn("tools", warning, nil)...)
	seen := map[string]bool{}
	for _, r := range all {
		t, problem := toolOf(f.cfg, hello.ServerInfo.Name, r)
		if problem == "" && seen[t.RawName] {
			problem = fmt.Sprintf("tool %q is listed twice", t.RawName)
		}
		if err := f.conn.Callable(r); problem == "" && err != nil {
			problem = fmt.Sprintf("tool %q cannot be called: %v", t.RawName, err)
		}
		if problem != "" {
			out.warn(connection.Tools, problem+"; it was left out")
			continue
		}
		seen[t.RawName] = true
		out.tools, out.raw = append(out.tools, t), append(out.raw, r)
	}
	return nil
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
func toolOf(cfg ServerConfig, title string, r json.RawMessage) (t protocol.Tool, problem string) {
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
		Server: cfg.Name, ServerTitle: title, RawName: d.Name, ServerSource: cfg.Source,
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
		t.ReadOnly, t.Title = hints.ReadOnly, cmp.Or(t.Title, hints.Title)
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
