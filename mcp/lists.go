package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Resource is a resource that a server offers.
type Resource struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	URI         string          `json:"uri"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mimeType,omitempty"`
	Size        json.RawMessage `json:"size,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
	Server      string          `json:"server"` // name of the server in the configuration
}

// Prompt is a prompt that a server offers.
type Prompt struct {
	Server      string           `json:"server"` // name of the server in the configuration
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

// maxToolNameLength is the longest tool name that the API accepts.
const maxToolNameLength = 128

// CanonicalToolName returns mcp__server__tool with every character outside [A-Za-z0-9_-] replaced by an underscore. The
// result cannot be split again, because names may contain double underscores.
func CanonicalToolName(server, tool string) string {
	return "mcp__" + protocol.NormalizeMCPNamePart(server) + "__" + protocol.NormalizeMCPNamePart(tool)
}

// SlashCommand returns the slash command of a prompt. Unlike a tool's name, it contains the unchanged name of the prompt.
func (p Prompt) SlashCommand() string { return CanonicalToolName(p.Server, "") + p.Name }

type serverLists struct {
	tools        []protocol.Tool
	rawTools     []json.RawMessage // the definitions of tools as the server sent them, in the order of tools
	prompts      []Prompt
	resources    []Resource
	hasResources bool // the server declared resources, even if it has none
	warnings     map[connection.ListKind][]string
	err          error // the reason why the server did not list its tools; nil means that it did
}

func (l *serverLists) toolPromptAndResourceWarnings() []string {
	return slices.Concat(l.warnings[connection.ListTools], l.warnings[connection.ListPrompts], l.warnings[connection.ListResources])
}

type listFetcher struct {
	conn    *connection.Conn
	cfg     ServerConfig
	pause   time.Duration // pause before the first retry
	listing ListFetchOptions
}

// fetchListsWithRetries fetches the lists that the server declared. If onlyKinds is not nil, it fetches only those lists, and takes the
// others from otherLists. It fetches one list after another in the order of the real CLI, so that runs are reproducible. It tries again if
// a list fails, after pauses that begin with f.pause; a list that keeps failing is empty. Some servers declare no capabilities but have
// tools. Their tools are fetched too, unless f.listing.DeclaredOnly is set. An error means that the server did not answer the request for
// its tools, or that ctx has ended.
func (f listFetcher) fetchListsWithRetries(ctx context.Context, otherLists serverLists, onlyKinds map[connection.ListKind]bool) (serverLists, error) {
	out := otherLists
	out.err = nil
	out.warnings = maps.Clone(otherLists.warnings)
	if out.warnings == nil {
		out.warnings = map[connection.ListKind][]string{}
	}
	pending := []connection.ListKind{connection.ListTools, connection.ListPrompts, connection.ListResources}
	if f.conn.IsModern() {
		pending = []connection.ListKind{connection.ListPrompts, connection.ListResources, connection.ListTools}
	}
	hello := f.conn.InitializeResult()
	out.hasResources = hello.Has("resources")
	undeclared := hello.HasNoCapabilities() && !f.listing.DeclaredOnly && !f.conn.IsModern()
	pending = slices.DeleteFunc(pending, func(list connection.ListKind) bool {
		declared := hello.Has(string(list)) || undeclared && list == connection.ListTools
		return !declared || onlyKinds != nil && !onlyKinds[list] || f.listing.ToolsOnly && list != connection.ListTools
	})
	for attempt := 0; ; attempt++ {
		failed, err := f.fetchListsSequentiallyOnce(ctx, pending, &out)
		if err != nil || len(failed) == 0 || attempt == maxFirstConnectOrListRetries {
			return out, err
		}
		if !connection.SleepUnlessCancelled(ctx, f.pause<<attempt) {
			return out, ctx.Err()
		}
		pending = failed
	}
}

// fetchListsSequentiallyOnce fetches each list once. failedRetryable are the lists that failed and may succeed later. The error lost means
// that the server did not answer the request for its tools at all.
func (f listFetcher) fetchListsSequentiallyOnce(ctx context.Context, listKinds []connection.ListKind, out *serverLists) (failedRetryable []connection.ListKind, lost error) {
	for _, list := range listKinds {
		delete(out.warnings, list)
		items, warning, err := f.conn.List(ctx, list)
		if warning != "" {
			out.addWarnings(list, warning)
		}
		if err != nil && f.conn.InitializeResult().Has(string(list)) {
			out.addWarnings(list, fmt.Sprintf("listing %s failed: %v", list, err))
			rpc, refused := errors.AsType[*connection.RPCError](err)
			answer, failedHTTP := errors.AsType[*connection.UnusableHTTPAnswerError](err)
			final := refused && (rpc.Code == connection.CodeMethodNotFound || rpc.Code == connection.CodeInvalidParams) ||
				failedHTTP && answer.Status < http.StatusInternalServerError
			if !final {
				failedRetryable = append(failedRetryable, list)
			}
		}
		switch list {
		case connection.ListTools:
			if err != nil && !isUnusableServerAnswer(err) {
				return nil, err
			}
			if out.err = err; !f.conn.InitializeResult().Has(string(list)) {
				out.err = nil
			}
			f.replaceToolsByValidOnes(items, out)
		case connection.ListPrompts:
			out.prompts = decodeListItemsOrZero(items, func(p *Prompt) { p.Server = f.cfg.Name })
		default:
			out.resources = decodeListItemsOrZero(items, func(r *Resource) { r.Server = f.cfg.Name })
		}
	}
	return failedRetryable, nil
}

// isUnusableServerAnswer reports whether a server answered a request, but not with a usable result.
func isUnusableServerAnswer(err error) bool {
	_, refused := errors.AsType[*connection.RPCError](err)
	_, unusable := errors.AsType[*connection.UnusableResultError](err)
	_, answered := errors.AsType[*connection.UnusableHTTPAnswerError](err)
	return refused || unusable || answered
}

// decodeListItemsOrZero decodes list items and calls completeItem on each. Invalid items become zero values.
func decodeListItemsOrZero[T any](rawItems []json.RawMessage, completeItem func(*T)) []T {
	items := make([]T, len(rawItems))
	for i, raw := range rawItems {
		items[i] = plainjson.DecodeIgnoringErrors[T](raw)
		completeItem(&items[i])
	}
	return items
}

func (l *serverLists) addWarnings(list connection.ListKind, warnings ...string) {
	l.warnings[list] = append(l.warnings[list], warnings...)
}

// replaceToolsByValidOnes replaces the tools of out by those of a list. A tool that cannot be used becomes a warning.
func (f listFetcher) replaceToolsByValidOnes(all []json.RawMessage, out *serverLists) {
	out.tools, out.rawTools = nil, nil
	seen := map[string]bool{}
	for _, r := range all {
		t, problem := parseTool(f.cfg, cmp.Or(f.conn.InitializeResult().ServerInfo.Name, f.cfg.Name), r)
		if problem == "" && seen[t.RawName] {
			problem = fmt.Sprintf("tool %q is listed twice", t.RawName)
		}
		if err := f.conn.ToolHeaderAnnotationError(r); problem == "" && err != nil {
			problem = fmt.Sprintf("tool %q cannot be called: %v", t.RawName, err)
		}
		if problem != "" {
			out.addWarnings(connection.ListTools, problem+"; it was left out")
			continue
		}
		seen[t.RawName] = true
		out.tools, out.rawTools = append(out.tools, t), append(out.rawTools, r)
	}
}

// maxFirstConnectOrListRetries is the number of retries of a first connect or a list request.
const maxFirstConnectOrListRetries = 3

// parseTool reads one tool definition, which the caller has checked against its schema.
func parseTool(cfg ServerConfig, serverTitle string, definition json.RawMessage) (t protocol.Tool, problem string) {
	d := plainjson.DecodeIgnoringErrors[struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	}](definition)
	t = protocol.Tool{
		Name: CanonicalToolName(cfg.Name, d.Name), Title: d.Title, Description: d.Description,
		InputSchema: schemaWithMCPKeysFirst(d.InputSchema), Annotations: d.Annotations,
		Server: cfg.Name, ServerTitle: serverTitle, RawName: d.Name, ServerSource: cfg.Source,
	}
	if len(t.Name) > maxToolNameLength {
		return t, fmt.Sprintf("tool name %s is longer than %d characters", t.Name, maxToolNameLength)
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

// schemaWithMCPKeysFirst moves the keys that MCP itself defines before all others, as the real CLI does when it reads a tool.
func schemaWithMCPKeysFirst(schema json.RawMessage) json.RawMessage {
	object, err := plainjson.Parse(schema)
	if err != nil {
		return schema
	}
	rank := func(m plainjson.Member) int {
		return (slices.Index([]string{"type", "properties", "required"}, m.Key) + 4) % 4 // 3 for all other keys
	}
	slices.SortStableFunc(object, func(a, b plainjson.Member) int { return rank(a) - rank(b) })
	return object.Raw()
}

// ShadowedTool is a tool that cannot be called because an earlier tool has the same canonical name.
type ShadowedTool struct {
	Name       string `json:"name"`   // canonical name
	Server     string `json:"server"` // raw name
	Tool       string `json:"tool"`   // raw name
	ShadowedBy string `json:"by"`     // raw name of the server whose tool is called instead
}

// toolCatalogue is the table of callable tools. Its keys are canonical names, which cannot be split into server and tool.
type toolCatalogue struct {
	changeCount   int64 // value of managerState.changeCount from which the table was built
	tools         []protocol.Tool
	owners        map[string]*server // by canonical name
	byName        map[string]int     // canonical name → index in tools
	shadowedTools []ShadowedTool
}

func newToolCatalogue(servers []*server, statusVersion int64) *toolCatalogue {
	c := &toolCatalogue{changeCount: statusVersion, owners: map[string]*server{}, byName: map[string]int{}}
	for _, s := range servers {
		st, _ := s.statusAndChangeSignal()
		if s.cfg.Name == "ide" { // connected, but its tools are not shown
			continue
		}
		for _, t := range st.lists.tools {
			if by := c.owners[t.Name]; by != nil {
				c.shadowedTools = append(c.shadowedTools, ShadowedTool{Name: t.Name, Server: t.Server, Tool: t.RawName, ShadowedBy: by.cfg.Name})
				continue
			}
			c.owners[t.Name], c.byName[t.Name] = s, len(c.tools)
			c.tools = append(c.tools, t)
		}
	}
	return c
}

func (c *toolCatalogue) logShadowedToolsIfChanged(before *toolCatalogue, debug *sharedDebugLogOutput) {
	if before != nil && len(before.shadowedTools) == len(c.shadowedTools) {
		return
	}
	for _, h := range c.shadowedTools {
		debug.LogOfServer(h.Server).Printf("tool %q is hidden: %s is already a tool of %q", h.Tool, h.Name, h.ShadowedBy)
	}
}

// findTool finds a tool by its canonical name, by "server/tool" (raw names), or by its raw name; the first match wins.
func (c *toolCatalogue) findTool(canonicalOrRawName string) (protocol.Tool, bool) {
	if i, ok := c.byName[canonicalOrRawName]; ok {
		return c.tools[i], true
	}
	i := slices.IndexFunc(c.tools, func(t protocol.Tool) bool { return t.Server+"/"+t.RawName == canonicalOrRawName })
	if i < 0 {
		i = slices.IndexFunc(c.tools, func(t protocol.Tool) bool { return t.RawName == canonicalOrRawName })
	}
	if i < 0 {
		return protocol.Tool{}, false
	}
	return c.tools[i], true
}

func unresolvedToolError(name string, servers []*server) error {
	qualified := strings.HasPrefix(name, "mcp__") || strings.Contains(name, "/")
	for _, s := range servers {
		if !strings.HasPrefix(name, "mcp__"+protocol.NormalizeMCPNamePart(s.cfg.Name)+"__") && !strings.HasPrefix(name, s.cfg.Name+"/") {
			continue
		}
		switch st, _ := s.statusAndChangeSignal(); st.state {
		case StateConnected, StateLost:
			return fmt.Errorf("%w: %s", ErrUnknownTool, name)
		case StateDisabled:
			return fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
		default:
			return notConnectedError{s.cfg.Name}
		}
	}
	if qualified {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	return fmt.Errorf("%w: %s", ErrUnknownTool, name)
}
