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
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// PluginServerSource is the source of a plugin's servers.
const PluginServerSource = "plugin"

func (r *planResolver) resolveServers() error {
	s := &r.plan.Servers
	strict := r.flags.StrictMCPConfig && !r.sys.CalledAsClaude() && r.sys.Getenv("CLAUDELESS_STRICT_MCP") != "report"
	s.Required, s.NoPluginServers = strict || r.flags.MCPRequire, r.flags.StrictMCPConfig
	s.Client.Listing.DeclaredOnly = r.sys.CalledAsClaude()
	s.Client.MaxOutputTokens = envInt(r.sys, "MAX_MCP_OUTPUT_TOKENS")
	if r.flags.MCPDebug {
		s.Client.Debug = r.sys.Stderr
	}
	scripted, err := r.plan.scenarioServersAsMCPConfigJSON()
	if err != nil {
		return err
	}
	values := r.mcpConfigValuesFromEnvAndFlag()
	if scripted != "" {
		values = append([]string{scripted}, values...)
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{
		Values: values, CWD: r.plan.CWD, Environ: r.plan.Environ, Scopes: r.enabledStoredServerScopes(),
		DisabledProject: r.plan.Settings.DisabledMCPJSONServers, Disabled: r.plan.Store.DisabledServers(),
	})
	if broken, ok := errors.AsType[*mcp.ConfigFlagError](err); ok {
		return process.Verbatimf("Error: %v", broken)
	}
	if err != nil {
		return err
	}
	s.Configs, s.Errors = config.Servers, config.Errors
	s.InitErrors = slices.DeleteFunc(slices.Clone(s.Errors), func(e protocol.MCPServerError) bool { // init lists those of --mcp-config
		return !slices.ContainsFunc(config.Problems, func(p mcp.ConfigProblem) bool { return p.Source == "dynamic" && p.Server == e.Name })
	})
	if r.flags.SafeMode {
		s.Configs, s.Errors = nil, nil
	}
	if !s.NoPluginServers && !r.flags.Bare {
		r.addMCPServersOfPluginsToPlan()
	}
	r.dropForbiddenServersAndWarn()
	if r.flags.InputFormat == "stream-json" {
		s.moveSDKServersFromConfigsToInHost()
	}
	return nil
}

// enabledStoredServerScopes returns the scopes whose servers a run starts.
func (r *planResolver) enabledStoredServerScopes() []mcp.ScopeServers {
	if r.flags.StrictMCPConfig || r.flags.Bare {
		return nil
	}
	all, err := r.plan.Store.Scopes()
	if err != nil {
		r.plan.warn("MCP servers of user and local scope are ignored: " + err.Error())
	}
	return slices.DeleteFunc(all, func(s mcp.ScopeServers) bool { return !r.plan.Settings.IsSourceEnabled(s.Source) })
}

func (s *MCPServers) moveSDKServersFromConfigsToInHost() {
	all := s.Configs
	s.Configs = nil
	for _, server := range all {
		if server.Type == "sdk" {
			s.InHost = append(s.InHost, server)
		} else {
			s.Configs = append(s.Configs, server)
		}
	}
}

// scenarioServersAsMCPConfigJSON returns the scenario's [mcp.servers] in the form of --mcp-config; "" means none. For a
// fixture, the command of the server is this program, which then serves the fixture.
func (p *Plan) scenarioServersAsMCPConfigJSON() (string, error) {
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
			entry["args"] = []string{"fixture", "serve", p.absolutePathOfFileNamedInScenario(fixture)}
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

// absolutePathOfFileNamedInScenario resolves a path in the scenario relative to the scenario's
// file. A bare name without an extension is unchanged, because it names a fixture of the library.
func (p *Plan) absolutePathOfFileNamedInScenario(pathOrLibraryFixture string) string {
	if filepath.IsAbs(pathOrLibraryFixture) || filepath.Base(pathOrLibraryFixture) == pathOrLibraryFixture && filepath.Ext(pathOrLibraryFixture) == "" {
		return pathOrLibraryFixture
	}
	return filepath.Join(p.AbsFromStartDir(filepath.Dir(p.Scenario.Path)), pathOrLibraryFixture)
}

// dropForbiddenServersAndWarn removes the servers that the settings forbid. It warns about removed servers that came from the
// command line (observed with 2.1.329).
func (r *planResolver) dropForbiddenServersAndWarn() {
	var blocked []string
	r.plan.Servers.Configs = slices.DeleteFunc(r.plan.Servers.Configs, func(c mcp.ServerConfig) bool {
		s := settings.MCPServer{Name: c.Name, URL: c.URL}
		if c.Command != "" {
			s.Command = append([]string{c.Command}, c.Args...)
		}
		drop := c.Type != "sdk" && (r.plan.Settings.DeniedServers.Denies(s) || !r.plan.Settings.AllowedServers.Allows(s))
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

// addMCPServersOfPluginsToPlan adds the servers of all plugins except the plugins that --plugin-dir-no-mcp names.
func (r *planResolver) addMCPServersOfPluginsToPlan() {
	for _, parts := range r.plan.Catalog.InitialPluginParts() {
		if !slices.ContainsFunc(r.flags.PluginDirsNoMCP, func(given string) bool { return catalog.IsPluginIn(parts.Dir, r.plan.AbsFromStartDir(given)) }) {
			r.plan.Servers.Configs = append(r.plan.Servers.Configs, r.plan.PluginServers(parts)...)
		}
	}
}

// PluginServers returns the servers of a plugin with prefixed names. Invalid entries are ignored.
func (p *Plan) PluginServers(parts catalog.PluginHooksAndServers) []mcp.ServerConfig {
	if parts.Servers == nil {
		return nil
	}
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": parts.Servers})
	if err != nil {
		return nil
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: p.CWD, Environ: p.Environ})
	if err != nil {
		return nil
	}
	for i := range config.Servers {
		s := &config.Servers[i]
		s.Name, s.Source = "plugin:"+parts.Name+":"+s.Name, PluginServerSource
		env := parts.Environ()
		maps.Copy(env, s.Env)
		s.Env = env
	}
	return config.Servers
}

// mcpConfigValuesFromEnvAndFlag returns the values of CLAUDELESS_MCP_CONFIG, set by `claudeless exec`, then those of --mcp-config.
func (r *planResolver) mcpConfigValuesFromEnvAndFlag() []string {
	more := r.sys.Getenv("CLAUDELESS_MCP_CONFIG")
	if more == "" {
		return r.flags.MCPConfig
	}
	return append(strings.Split(more, "\n"), r.flags.MCPConfig...)
}
