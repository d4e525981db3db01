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

	"github.com/claudeless/claudeless/internal/base/proc"
)

type managerState struct {
	options     Options               // Options without Servers, which are in Manager.servers
	debug       *sharedDebugLogOutput // nil means off
	localSlots  chan struct{}         // one slot for each local server that may connect at the same time
	remoteSlots chan struct{}         // one slot for each remote server that may connect at the same time

	goroutines             sync.WaitGroup           // goroutines that Close waits for
	changeCount            atomic.Int64             // counts changes of any server
	roots                  atomic.Pointer[[]string] // absolute paths; never nil
	pendingResourceUpdates pendingResourceUpdates
}

func newManagerState(o Options) *managerState {
	o.Servers = nil
	c := &managerState{
		options:     o,
		debug:       newSharedDebugLogOutput(o.Debug, o.Environ),
		localSlots:  make(chan struct{}, o.Batch.Local),
		remoteSlots: make(chan struct{}, o.Batch.Remote),
	}
	c.roots.Store(new(slices.Clone(o.Roots)))
	return c
}

func (c *managerState) acquireConnectAttemptSlot(ctx context.Context, transportType string) (release func(), err error) {
	slots := c.remoteSlots
	if transportType == typeStdio || transportType == "" {
		slots = c.localSlots
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *managerState) configVariables() configVariableValues {
	return newVariables(c.options.Environ, c.options.CWD)
}

// equalAfterExpansion reports whether two entries with the same name have equal expanded values. Their sources may differ.
func (c *managerState) equalAfterExpansion(old, desired ServerConfig) bool {
	desired.Source = old.Source
	vars := c.configVariables()
	a, _ := expandConfig(old, vars)
	b, _ := expandConfig(desired, vars)
	return reflect.DeepEqual(a, b)
}

func (c *managerState) resultConverterFor(server string) resultConverter {
	return resultConverter{Files: c.options.Files, MaxTokens: c.options.MaxOutputTokens, Log: c.debug.LogOfServer(server)}
}

// serverEnviron returns the environment of a stdio server: Environ without OTEL_ variables, the variables that the CLI adds, and cfg.Env.
func (c *managerState) serverEnviron(cfg ServerConfig) []string {
	env := slices.DeleteFunc(slices.Clone(c.options.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, "OTEL_")
	})
	if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, entrypointEnvironmentVariable+"=") }) {
		env = append(env, entrypointEnvironmentVariable+"="+defaultEntrypoint)
	}
	env = append(env, "CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+c.options.CWD, "CLAUDE_CODE_SESSION_ID="+c.options.SessionID)
	for _, k := range slices.Sorted(maps.Keys(cfg.Env)) {
		env = append(env, k+"="+cfg.Env[k])
	}
	return env
}

const (
	entrypointEnvironmentVariable = "CLAUDE_CODE_ENTRYPOINT"
	defaultEntrypoint             = "sdk-cli"
)

// userAgent returns the User-Agent header for remote servers (observed with 2.1.329).
func (c *managerState) userAgent() string {
	about := cmp.Or(proc.Getenv(c.options.Environ, entrypointEnvironmentVariable), defaultEntrypoint)
	if sdk := proc.Getenv(c.options.Environ, "CLAUDE_AGENT_SDK_VERSION"); sdk != "" {
		about += ", agent-sdk/" + sdk
	}
	return "claude-code/" + c.options.ClientVersion + " (" + about + ")"
}

func (c *managerState) rootsListResult() map[string]any {
	list := []map[string]string{}
	for _, dir := range *c.roots.Load() {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		list = append(list, map[string]string{"uri": u.String()})
	}
	return map[string]any{"roots": list}
}

// pendingResourceUpdates are changed resources that have not been passed to Options.ResourceUpdated yet.
type pendingResourceUpdates struct {
	mu         sync.Mutex
	waiting    []resourceUpdate
	delivering bool
}

type resourceUpdate struct{ server, uri string }

// reportResourceUpdateAsync reports a changed resource to Options.ResourceUpdated on another goroutine.
func (c *managerState) reportResourceUpdateAsync(server, uri string) {
	if c.options.ResourceUpdated == nil {
		return
	}
	n, u := &c.pendingResourceUpdates, resourceUpdate{server, uri}
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.waiting, u) {
		return
	}
	n.waiting = append(n.waiting, u)
	if n.delivering {
		return
	}
	n.delivering = true
	go func() { // returns when everything is delivered
		for {
			n.mu.Lock()
			if len(n.waiting) == 0 {
				n.delivering = false
				n.mu.Unlock()
				return
			}
			u := n.waiting[0]
			n.waiting = n.waiting[1:]
			n.mu.Unlock()
			c.options.ResourceUpdated(u.server, u.uri)
		}
	}()
}
