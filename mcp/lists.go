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

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Resource is a resource that a server offers.
type Resource struct {
	Server      string `json:"server"` // rawTools name
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Prompt is a prompt that a server offers.
type Prompt struct {
	Server      string           `json:"server"` // rawTools name
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

// maxName is the longest tool name that the API accepts.
const maxName = 128

// CanonicalName returns mcp__server__tool with every character outside [A-Za-z0-9_-] replaced by an underscore. The
// result cannot be split again, because names may contain double underscores.
func CanonicalName(server, tool string) string {
	return "mcp__" + normalise(server) + "__" + normalise(tool)
}

// Command returns the slash command of a prompt. Unlike a tool name, it keeps all characters of the prompt's name.
func (p Prompt) Command() string { return CanonicalName(p.Server, "") + p.Name }

func normalise(name string) string {
	const beyondUTF16 = 0xFFFF
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > beyondUTF16: // two UTF-16 code units in the real CLI
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// lists are the tools, prompts and resources that a server offers.
type lists struct {
	tools        []protocol.Tool
	rawTools     []json.RawMessage // the definitions of the tools as the server sent them, in the same order
	prompts      []Prompt
	resources    []Resource
	hasResources bool // the server declared resources, even if it has none
	warnings     map[connection.List][]string
	err          error // why the server did not list its tools; nil = it did
}

// allWarnings returns the warnings of all lists.
func (l *lists) allWarnings() []string {
	return slices.Concat(l.warnings[connection.ListTools], l.warnings[connection.ListPrompts], l.warnings[connection.ListResources])
}

// listFetcher fetches the lists of one server.
type listFetcher struct {
	conn  *connection.Conn
	cfg   ServerConfig
	pause time.Duration // before the first retry of the list of tools
}

// fetch fetches the declared lists among only (nil = all) and returns them together with the other lists of old. A
// server of an older revision that declared no capabilities at all is asked for tools once, because some have tools anyway. Lists
// other than tools may fail; they are then empty. The lists are fetched one after another in the order of the real
// CLI, so that runs are reproducible.
func (f listFetcher) fetch(ctx context.Context, old lists, only map[connection.List]bool) (lists, error) {
	out := old
	out.err = nil
	out.warnings = maps.Clone(old.warnings)
	if out.warnings == nil {
		out.warnings = map[connection.List][]string{}
	}
	order := []connection.List{connection.ListTools, connection.ListPrompts, connection.ListResources}
	if f.conn.IsModern() {
		order = []connection.List{connection.ListPrompts, connection.ListResources, connection.ListTools}
	}
	hello := f.conn.InitializeResult()
	out.hasResources = hello.Has("resources")
	for _, list := range order {
		declared := hello.Has(string(list)) || list == connection.ListTools && hello.IsEmpty() && !f.conn.IsModern()
		if !declared || only != nil && !only[list] {
			continue
		}
		delete(out.warnings, list)
		if err := f.fetchList(ctx, list, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// fetchList fetches one list.
func (f listFetcher) fetchList(ctx context.Context, list connection.List, out *lists) error {
	if list == connection.ListTools {
		return f.fetchTools(ctx, out)
	}
	if list == connection.ListPrompts {
		out.prompts = decodeItems(ctx, f.conn, list, out, func(p *Prompt) bool {
			p.Server = f.cfg.Name
			return p.Name != ""
		})
		return nil
	}
	out.resources = decodeItems(ctx, f.conn, list, out, func(r *Resource) bool {
		r.Server = f.cfg.Name
		return r.URI != ""
	})
	return nil
}

// decodeItems returns the elements of a list that keep accepts, and adds a warning for each of the others.
func decodeItems[T any](ctx context.Context, c *connection.Conn, list connection.List, out *lists, keep func(*T) bool) (kept []T) {
	all, warning, err := c.List(ctx, list)
	out.addWarnings(list, prefixWarning(string(list), warning, err)...)
	for _, raw := range all {
		var item T
		if json.Unmarshal(raw, &item) != nil || !keep(&item) {
			out.addWarnings(list, "a "+strings.TrimSuffix(string(list), "s")+" that cannot be read was left out")
			continue
		}
		kept = append(kept, item)
	}
	return kept
}

func (l *lists) addWarnings(list connection.List, warnings ...string) {
	l.warnings[list] = append(l.warnings[list], warnings...)
}

func prefixWarning(what, warning string, err error) []string {
	switch {
	case err != nil:
		return []string{fmt.Sprintf("listing %s failed: %v", what, err)}
	case warning != "":
		return []string{warning}
	}
	return nil
}

// fetchTools fetches the tools of a server. It retries failures with pauses that start at f.pause; a server that
// keeps failing has no tools.
func (f listFetcher) fetchTools(ctx context.Context, out *lists) error {
	var all []json.RawMessage
	var warning string
	var err error
	hello := f.conn.InitializeResult()
	out.tools, out.rawTools = nil, nil
	for attempt := 0; ; attempt++ {
		all, warning, err = f.conn.List(ctx, connection.ListTools)
		var rpc *connection.Error
		if err == nil {
			break
		}
		if _, unusable := errors.AsType[*connection.ResultError](err); !errors.As(err, &rpc) && !unusable {
			return err
		}
		if attempt == maxRetries || (rpc != nil && rpc.Code == connection.CodeMethodNotFound && !hello.Has("tools")) {
			if hello.Has("tools") {
				out.addWarnings(connection.ListTools, prefixWarning("tools", "", err)...)
				out.err = err
			}
			return nil
		}
		if err := sleep(ctx, f.pause<<attempt); err != nil {
			return err
		}
	}
	out.addWarnings(connection.ListTools, prefixWarning("tools", warning, nil)...)
	seen := map[string]bool{}
	for _, r := range all {
		t, problem := parseTool(f.cfg, hello.ServerInfo.Name, r)
		if problem == "" && seen[t.RawName] {
			problem = fmt.Sprintf("tool %q is listed twice", t.RawName)
		}
		if err := f.conn.CheckTool(r); problem == "" && err != nil {
			problem = fmt.Sprintf("tool %q cannot be called: %v", t.RawName, err)
		}
		if problem != "" {
			out.addWarnings(connection.ListTools, problem+"; it was left out")
			continue
		}
		seen[t.RawName] = true
		out.tools, out.rawTools = append(out.tools, t), append(out.rawTools, r)
	}
	return nil
}

// maxRetries is the number of retries of a first connect or a list request.
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

// parseTool parses one definition; schema and annotations stay as the server sent them.
func parseTool(cfg ServerConfig, title string, r json.RawMessage) (t protocol.Tool, problem string) {
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
		InputSchema: nilIfNull(d.InputSchema), Annotations: nilIfNull(d.Annotations),
		Server: cfg.Name, ServerTitle: title, RawName: d.Name, ServerSource: cfg.Source,
	}
	switch {
	case d.Name == "":
		return t, "a tool has no name"
	case t.InputSchema != nil && plainjson.TypeOf(t.InputSchema) != "object":
		return t, fmt.Sprintf("tool %q has %s as input schema", d.Name, plainjson.TypeOf(t.InputSchema))
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

// nilIfNull returns nil for a member that is absent or null.
func nilIfNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || bytes.Equal(v, []byte("null")) {
		return nil
	}
	return v
}
