package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func (v *sessionMCPServers) startInBackground(ctx context.Context) error {
	v.callContext = context.WithoutCancel(ctx)
	if err := v.manager.StartAndWait(alreadyCancelledContext(ctx)); err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		return err
	}
	go func() { // returns when the servers have settled or ctx is cancelled
		defer close(v.lateServers.settled)
		if v.lateServers.err = v.manager.Settle(ctx); v.lateServers.err == nil {
			v.journalAndWarnUnstartedServers()
			v.lateServers.err = v.checkRequiredServersStarted()
		}
	}()
	return nil
}

// settleAndConnectHostServers waits until the servers have settled. Without an initialize request, it then connects the host's servers.
func (v *sessionMCPServers) settleAndConnectHostServers(ctx context.Context) error {
	select {
	case <-v.lateServers.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v.lateServers.err != nil {
		return v.lateServers.err
	}
	v.lateServers.mu.Lock()
	introduced := v.lateServers.hostConnected
	v.lateServers.mu.Unlock()
	if !introduced {
		return v.connectServersInsideHost(ctx, nil)
	}
	if v.lateServers.hostConnecting.Swap(false) {
		return v.manager.Settle(ctx)
	}
	return nil
}

// connectServersInsideHost connects the MCP servers that run inside the host: those of --mcp-config, and those with the given names.
func (v *sessionMCPServers) connectServersInsideHost(ctx context.Context, additionalNames []string) error {
	v.lateServers.mu.Lock()
	v.lateServers.hostConnected = true
	v.lateServers.mu.Unlock()
	var list []mcp.ServerConfig
	for _, s := range v.plan.InHost {
		list = appendServerIfNameIsNew(list, s)
	}
	for _, name := range additionalNames {
		list = appendServerIfNameIsNew(list, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	if len(list) == 0 {
		return nil
	}
	_, err := v.manager.ReplaceServersOfSource(ctx, "sdk", list)
	return err
}

func appendServerIfNameIsNew(list []mcp.ServerConfig, s mcp.ServerConfig) []mcp.ServerConfig {
	if slices.ContainsFunc(list, func(o mcp.ServerConfig) bool { return o.Name == s.Name }) {
		return list
	}
	return append(list, s)
}

// queuePluginServers stores servers for connectPluginServers. They belong to plugins that the host has requested.
func (v *sessionMCPServers) queuePluginServers(servers []mcp.ServerConfig) {
	v.lateServers.mu.Lock()
	defer v.lateServers.mu.Unlock()
	v.lateServers.pluginServers = append(v.lateServers.pluginServers, servers...)
}

// connectPluginServers connects the stored servers together with the plugin servers of the plan.
func (v *sessionMCPServers) connectPluginServers(ctx context.Context) error {
	v.lateServers.mu.Lock()
	all := slices.Clone(v.lateServers.pluginServers)
	v.lateServers.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	for _, s := range v.plan.Configs {
		if s.Source == launch.PluginServerSource {
			all = append(all, s)
		}
	}
	_, err := v.manager.ReplaceServersOfSource(ctx, launch.PluginServerSource, all)
	return err
}

// alreadyCancelledContext returns a context that is already cancelled, for calls that must start work without waiting for it.
func alreadyCancelledContext(parent context.Context) context.Context {
	ended, cancel := context.WithCancel(parent)
	cancel()
	return ended
}

// replaceHostServers replaces all servers that the host has added or that run inside it. object is an mcpServers object.
func (v *sessionMCPServers) replaceHostServers(ctx context.Context, mcpServersObject json.RawMessage) (mcp.ReplaceServersResult, error) {
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": mcpServersObject})
	if err != nil {
		return mcp.ReplaceServersResult{}, err
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: v.plan.Client.CWD, Environ: v.plan.Client.Environ})
	if err != nil {
		return mcp.ReplaceServersResult{}, err
	}
	bySource := map[string][]mcp.ServerConfig{}
	for _, server := range config.Servers {
		server.LacksArgs = server.Type == "stdio" && server.Args == nil
		bySource[server.Source] = append(bySource[server.Source], server)
	}
	all := mcp.ReplaceServersResult{Errors: map[string]string{}}
	for _, source := range []string{"dynamic", "sdk"} {
		limit := ctx
		if source == "sdk" { // servers inside the host are reachable only after the host has received its response
			limit = alreadyCancelledContext(ctx)
			v.lateServers.hostConnecting.Store(true)
		}
		change, err := v.manager.ReplaceServersOfSource(limit, source, bySource[source])
		if err != nil && limit.Err() == nil {
			return all, err
		}
		all.Added, all.Removed = append(change.Added, all.Added...), append(change.Removed, all.Removed...) // the answer lists servers inside the host first
		maps.Copy(all.Errors, change.Errors)
	}
	for _, bad := range config.Errors {
		all.Errors[bad.Name] = bad.Message
	}
	return all, nil
}
