package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claudecode/clientinfo"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// PluginSource is the source of a plugin's servers.
const PluginSource = "plugin"

func (r *resolver) servers() error {
	s := &r.p.Servers
	strict := r.f.StrictMCPConfig && r.sys.Getenv("CLAUDELESS_STRICT_MCP") != "report"
	s.Required, s.Fixed = strict || r.f.MCPRequire, r.f.StrictMCPConfig
	s.Client.MaxOutputTokens = number(r.sys, "MAX_MCP_OUTPUT_TOKENS")
	if r.f.MCPDebug {
		s.Client.Debug = r.sys.Stderr
	}
	scripted, err := r.p.scenarioServers()
	if err != nil {
		return err
	}
	values := r.givenServers()
	if scripted != "" {
		values = append([]string{scripted}, values...)
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{
		Values: values, CWD: r.p.CWD, Environ: r.p.Environ, ValuesOnly: r.f.StrictMCPConfig || r.f.Bare, Scopes: r.scopes(),
		NoProject: !r.p.Settings.Reads("project"), DisabledProject: r.p.Settings.DisabledMCPJSONServers, Disabled: r.p.Store.Disabled(),
	})
	if broken, ok := errors.AsType[*mcp.ConfigError](err); ok {
		return process.Verbatimf("Error: %v", broken)
	}
	if err != nil {
		return err
	}
	s.Configs, s.Errors = config.Servers, config.Errors
	if r.f.SafeMode {
		s.Configs, s.Errors = nil, nil
	}
	if !s.Fixed && !r.f.Bare {
		r.addPluginServers()
	}
	r.dropServers()
	if r.f.InputFormat == "stream-json" {
		s.partHosted()
	}
	return nil
}

// negotiation is how a version of the real CLI agrees on the revision of MCP. Of the
// values of MCP_PROTOCOL_NEGOTIATION only "legacy" makes a difference.
func negotiation(sys *process.System, version string) mcp.Negotiation {
	if sys.Getenv("MCP_PROTOCOL_NEGOTIATION") == "legacy" || !clientinfo.ProbesServers(version) {
		return mcp.NegotiateLegacy
	}
	return mcp.NegotiateAuto
}

// scopes are the servers of user and local scope that a run starts.
func (r *resolver) scopes() []mcp.Scope {
	if r.f.StrictMCPConfig || r.f.Bare {
		return nil
	}
	all, err := r.p.Store.Scopes()
	if err != nil {
		r.p.warn("MCP servers of user and local scope are left out: " + err.Error())
	}
	return slices.DeleteFunc(all, func(s mcp.Scope) bool { return !r.p.Settings.Reads(s.Source) })
}

// partHosted sets the servers inside the host apart.
func (s *Servers) partHosted() {
	all := s.Configs
	s.Configs = nil
	for _, server := range all {
		if server.Type == "sdk" {
			s.Hosted = append(s.Hosted, server)
		} else {
			s.Configs = append(s.Configs, server)
		}
	}
}

// scenarioServers is the scenario's [mcp.servers] as a --mcp-config value; "" when there are none. A fixture is served by
// this very binary.
func (p *Plan) scenarioServers() (string, error) {
	names := p.Scenario.MCP.ServerNames()
	if len(names) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	out.WriteString(`{"mcpServers":{`)
	for i, name := range names {
		entry := maps.Clone(p.Scenario.MCP.Servers[name])
		if fixture, ok := entry["fixture"].(string); ok {
			delete(entry, "fixture")
			entry["command"] = "${CLAUDELESS_BIN}"
			entry["args"] = []string{"fixture", "serve", p.besideScenario(fixture)}
		}
		key, err := protocol.Marshal(name)
		if err != nil {
			return "", err
		}
		value, err := protocol.Marshal(entry)
		if err != nil {
			return "", err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(append(append(key, ':'), value...))
	}
	out.WriteString("}}")
	return out.String(), nil
}

// besideScenario makes a path of the scenario file absolute; a bare name of the fixture library stays.
func (p *Plan) besideScenario(path string) string {
	if filepath.IsAbs(path) || filepath.Base(path) == path && filepath.Ext(path) == "" {
		return path
	}
	return filepath.Join(p.Abs(filepath.Dir(p.Scenario.Path)), path)
}

// dropServers leaves out the servers that the settings forbid. Those of the command line are told of (observed with
// 2.1.329).
func (r *resolver) dropServers() {
	var blocked []string
	r.p.Servers.Configs = slices.DeleteFunc(r.p.Servers.Configs, func(c mcp.ServerConfig) bool {
		s := settings.Server{Name: c.Name, URL: c.URL}
		if c.Command != "" {
			s.Command = append([]string{c.Command}, c.Args...)
		}
		drop := c.Type != "sdk" && (r.p.Settings.DeniedServers.Denies(s) || !r.p.Settings.AllowedServers.Allows(s))
		if drop && c.Source == "dynamic" {
			blocked = append(blocked, c.Name)
		}
		return drop
	})
	if len(blocked) > 0 {
		noun := "server"
		if len(blocked) > 1 {
			noun = "servers"
		}
		fmt.Fprintf(r.sys.Stderr, "Warning: MCP %s blocked by enterprise policy: %s\n", noun, strings.Join(blocked, ", "))
	}
}

// addPluginServers adds the servers of the plugins that flags name with their servers.
func (r *resolver) addPluginServers() {
	for _, parts := range r.p.Catalog.Parts() {
		if slices.ContainsFunc(r.f.PluginDirs, func(given string) bool { return catalog.Within(parts.Dir, r.p.Abs(given)) }) {
			r.p.Servers.Configs = append(r.p.Servers.Configs, r.p.PluginServers(parts)...)
		}
	}
}

// PluginServers are the servers of a plugin, under names of their own. What cannot be read is left out.
func (p *Plan) PluginServers(parts catalog.Parts) []mcp.ServerConfig {
	if parts.Servers == nil {
		return nil
	}
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": parts.Servers})
	if err != nil {
		return nil
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: p.CWD, Environ: p.Environ, ValuesOnly: true})
	if err != nil {
		return nil
	}
	for i := range config.Servers {
		s := &config.Servers[i]
		s.Name, s.Source = "plugin:"+parts.Name+":"+s.Name, PluginSource
		env := map[string]string{"CLAUDE_PLUGIN_ROOT": parts.Dir}
		maps.Copy(env, s.Env)
		s.Env = env
	}
	return config.Servers
}

// givenServers are the values of --mcp-config, after those that a shim hands over.
func (r *resolver) givenServers() []string {
	more := r.sys.Getenv("CLAUDELESS_MCP_CONFIG")
	if more == "" {
		return r.f.MCPConfig
	}
	return append(strings.Split(more, "\n"), r.f.MCPConfig...)
}
