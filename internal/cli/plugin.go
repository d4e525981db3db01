package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"

	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// pluginSource is the source of a plugin's servers.
const pluginSource = "plugin"

func pluginEnv(parts persona.Parts) string { return "CLAUDE_PLUGIN_ROOT=" + parts.Dir }

// pluginHooks are the hooks of a plugin, which find its directory in their
// environment.
func pluginHooks(parts persona.Parts) hook.Source {
	return hook.Source{Name: "plugin " + parts.Name, Raw: parts.Hooks, Environ: []string{pluginEnv(parts)}}
}

// pluginServers are the servers of a plugin, under names of their own. What
// cannot be read is left out.
func (r *run) pluginServers(parts persona.Parts) []mcp.ServerConfig {
	if parts.Servers == nil {
		return nil
	}
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": parts.Servers})
	if err != nil {
		return nil
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: r.cwd, Environ: r.environ(), ValuesOnly: true})
	if err != nil {
		return nil
	}
	for i := range config.Servers {
		s := &config.Servers[i]
		s.Name, s.Source = "plugin:"+parts.Name+":"+s.Name, pluginSource
		env := map[string]string{"CLAUDE_PLUGIN_ROOT": parts.Dir}
		for name, value := range s.Env {
			env[name] = value
		}
		s.Env = env
	}
	return config.Servers
}

// addPlugins loads the plugins that initialize names, before the first turn of
// a process that waits for initialize; it tells whether all of them are loaded.
func (h *host) addPlugins(in []json.RawMessage, begun bool) (applied bool, err error) {
	var dirs []string
	withServers := map[string]bool{}
	for _, raw := range in {
		var p struct {
			Path    string `json:"path"`
			SkipMCP bool   `json:"skipMcpDiscovery"`
		}
		if json.Unmarshal(raw, &p) != nil || p.Path == "" {
			continue
		}
		abs, err := h.sys.abs(h.f, p.Path)
		if err != nil {
			return false, err
		}
		dirs = append(dirs, abs)
		withServers[abs] = !p.SkipMCP
	}
	if !h.f.AwaitInitialize || begun {
		return h.catalog.HasPlugins(dirs...), nil
	}
	for _, parts := range h.catalog.AddPlugins(func(dir string) fs.FS { return os.DirFS(dir) }, dirs...) {
		if !h.settings.DisableAllHooks {
			for _, w := range h.hooks.Add(pluginHooks(parts)) {
				h.warn(w.Text)
			}
		}
		if withServers[parts.Dir] && !h.f.StrictMCPConfig {
			h.mu.Lock()
			h.plugged = append(h.plugged, h.pluginServers(parts)...)
			h.mu.Unlock()
		}
	}
	return h.catalog.HasPlugins(dirs...), nil
}

// connectPlugins connects the servers of the plugins that initialize named.
func (h *host) connectPlugins(ctx context.Context) error {
	h.mu.Lock()
	servers := h.plugged
	h.mu.Unlock()
	if len(servers) == 0 {
		return nil
	}
	all := append([]mcp.ServerConfig{}, servers...)
	for _, s := range h.servers.Servers {
		if s.Source == pluginSource {
			all = append(all, s)
		}
	}
	_, err := h.manager.SetServers(ctx, pluginSource, all)
	return err
}
