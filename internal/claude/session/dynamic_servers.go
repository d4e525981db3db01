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

// launch connects the servers beside the reading of stdin.
func (v *servers) launch(ctx context.Context) error {
	v.life = context.WithoutCancel(ctx)
	if err := v.manager.Start(begun(ctx)); err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		return err
	}
	go func() { // ends when the servers have settled, or with ctx
		defer close(v.guests.settled)
		if v.guests.failure = v.manager.Settle(ctx); v.guests.failure == nil {
			v.reportMissing()
			v.guests.failure = v.strict()
		}
	}()
	return nil
}

// settle waits for the servers before a turn; those of a host that has sent no initialize are connected now.
func (v *servers) settle(ctx context.Context) error {
	select {
	case <-v.guests.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v.guests.failure != nil {
		return v.guests.failure
	}
	v.guests.mu.Lock()
	introduced := v.guests.introduced
	v.guests.mu.Unlock()
	if !introduced {
		return v.introduce(ctx, nil)
	}
	if v.guests.joining.Swap(false) {
		return v.manager.Settle(ctx)
	}
	return nil
}

// introduce connects the servers that live inside the host: those of --mcp-config and those it names.
func (v *servers) introduce(ctx context.Context, names []string) error {
	v.guests.mu.Lock()
	v.guests.introduced = true
	v.guests.mu.Unlock()
	var list []mcp.ServerConfig
	for _, s := range v.plan.Hosted {
		list = add(list, s)
	}
	for _, name := range names {
		list = add(list, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	if len(list) == 0 {
		return nil
	}
	_, err := v.manager.SetServers(ctx, "sdk", list)
	return err
}

// add keeps the first server of each name.
func add(list []mcp.ServerConfig, s mcp.ServerConfig) []mcp.ServerConfig {
	if slices.ContainsFunc(list, func(o mcp.ServerConfig) bool { return o.Name == s.Name }) {
		return list
	}
	return append(list, s)
}

// plug notes the servers of plugins that the host has named.
func (v *servers) plug(servers []mcp.ServerConfig) {
	v.guests.mu.Lock()
	defer v.guests.mu.Unlock()
	v.guests.plugged = append(v.guests.plugged, servers...)
}

// connectPlugged connects them, beside those of the plugins that were there.
func (v *servers) connectPlugged(ctx context.Context) error {
	v.guests.mu.Lock()
	all := slices.Clone(v.guests.plugged)
	v.guests.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	for _, s := range v.plan.Configs {
		if s.Source == launch.PluginSource {
			all = append(all, s)
		}
	}
	_, err := v.manager.SetServers(ctx, launch.PluginSource, all)
	return err
}

// begun is a context for what is only to be begun: who gets it waits for nothing.
func begun(ctx context.Context) context.Context {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended
}

// replace replaces the servers that came from the host; those of --mcp-config
// stay.
func (v *servers) replace(ctx context.Context, object json.RawMessage) (mcp.Change, error) {
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": object})
	if err != nil {
		return mcp.Change{}, err
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: v.plan.Client.CWD, Environ: v.plan.Client.Environ, ValuesOnly: true})
	if err != nil {
		return mcp.Change{}, err
	}
	bySource := map[string][]mcp.ServerConfig{}
	for _, server := range config.Servers {
		bySource[server.Source] = append(bySource[server.Source], server)
	}
	all := mcp.Change{Errors: map[string]string{}}
	for _, source := range []string{"dynamic", "sdk"} {
		limit := ctx
		if source == "sdk" { // they are reached when the host has its answer
			limit = begun(ctx)
			v.guests.joining.Store(true)
		}
		change, err := v.manager.SetServers(limit, source, bySource[source])
		if err != nil && limit.Err() == nil {
			return all, err
		}
		all.Added, all.Removed = append(all.Added, change.Added...), append(all.Removed, change.Removed...)
		maps.Copy(all.Errors, change.Errors)
	}
	for _, bad := range config.Errors {
		all.Errors[bad.Name] = bad.Message
	}
	return all, nil
}
