package mcp

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/mcp/internal/entry"
	"github.com/claudeless/claudeless/mcp/internal/shown"
	"github.com/claudeless/claudeless/mcp/internal/trace"
)

// shared is what the servers of a manager share.
type shared struct {
	o     Options       // without the servers: from here on they themselves tell
	debug *trace.Sink   // nil = off
	local chan struct{} // a slot for each local server that connects at once
	far   chan struct{} // the same for remote ones

	tasks   sync.WaitGroup // every goroutine of the manager
	version atomic.Int64   // counts changes of any server
	roots   roots
	news    pendingUpdates
}

func newCommons(o Options) *shared {
	o.Servers = nil
	return &shared{
		o:     o,
		debug: trace.NewSink(o.Debug, o.Environ),
		local: make(chan struct{}, o.Batch.Local),
		far:   make(chan struct{}, o.Batch.Remote),
		roots: roots{dirs: slices.Clone(o.Roots)},
	}
}

// slot waits until one more server may connect.
func (c *shared) slot(ctx context.Context, kind string) (release func(), err error) {
	slots := c.far
	if kind == typeStdio || kind == "" {
		slots = c.local
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// variables are what entries may name.
func (c *shared) variables() entry.Variables { return entry.NewVariables(c.o.Environ, c.o.CWD) }

// same reports whether two entries of one name mean the same server now.
func (c *shared) same(old, desired ServerConfig) bool {
	desired.Source = old.Source
	vars := c.variables()
	a, _ := expandConfig(old, vars)
	b, _ := expandConfig(desired, vars)
	return reflect.DeepEqual(a, b)
}

// view is how results of a server are shown.
func (c *shared) view(server string) shown.View {
	return shown.View{Files: c.o.Files, MaxTokens: c.o.MaxOutputTokens, Log: c.debug.Log(server)}
}

// environ is the environment of a stdio server. Telemetry settings of the CLI
// are not for its servers.
func (c *shared) environ(cfg ServerConfig) []string {
	env := slices.DeleteFunc(slices.Clone(c.o.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, "OTEL_")
	})
	if _, ok := lastOf(env, entrypointVar); !ok {
		env = append(env, entrypointVar+"="+defaultEntrypoint)
	}
	env = append(env, "CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+c.o.CWD, "CLAUDE_CODE_SESSION_ID="+c.o.SessionID)
	for _, k := range slices.Sorted(maps.Keys(cfg.Env)) {
		env = append(env, k+"="+cfg.Env[k])
	}
	return env
}

const (
	entrypointVar     = "CLAUDE_CODE_ENTRYPOINT"
	defaultEntrypoint = "sdk-cli"
)

// lastOf is the value of a variable; of equal names the last counts.
func lastOf(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if key, v, _ := strings.Cut(kv, "="); key == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// userAgent is how remote servers are told who asks (observed with 2.1.329).
func (c *shared) userAgent() string {
	entrypoint, _ := lastOf(c.o.Environ, entrypointVar)
	about := cmp.Or(entrypoint, defaultEntrypoint)
	if sdk, _ := lastOf(c.o.Environ, "CLAUDE_AGENT_SDK_VERSION"); sdk != "" {
		about += ", agent-sdk/" + sdk
	}
	return "claude-code/" + c.o.ClientVersion + " (" + about + ")"
}

// roots are the directories that servers are told of.
type roots struct {
	mu   sync.Mutex
	dirs []string
}

// set changes them and reports whether they were others before.
func (r *roots) set(dirs []string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = !slices.Equal(r.dirs, dirs)
	r.dirs = slices.Clone(dirs)
	return changed
}

type rootList struct {
	Roots []root `json:"roots"`
}

type root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

func (r *roots) list() rootList {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := rootList{Roots: []root{}}
	for _, dir := range r.dirs {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		list.Roots = append(list.Roots, root{URI: u.String()})
	}
	return list
}

// pendingUpdates are changed resources that Options.ResourceUpdated has not heard of yet.
type pendingUpdates struct {
	mu      sync.Mutex
	waiting []update
	telling bool // a goroutine is at it
}

type update struct{ server, uri string }

// updated passes on that a resource changed, off the caller's goroutine.
func (c *shared) updated(server, uri string) {
	if c.o.ResourceUpdated == nil {
		return
	}
	n, u := &c.news, update{server, uri}
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
			c.o.ResourceUpdated(u.server, u.uri)
		}
	}()
}
