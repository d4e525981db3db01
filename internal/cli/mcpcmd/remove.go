package mcpcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

// runRemove runs `mcp remove`: it uses the scope of --scope, or else the only scope that has the server.
func runRemove(_ context.Context, o *Options, words []string) error {
	scope := ""
	found, help, err := parseOperands(o, []argv.Option{scopeFlag(&scope)}, words, "name")
	if err != nil || help {
		return err
	}
	name := found[0]
	if scope != "" {
		return removeServer(o, scope, name, name)
	}
	var scopes []string
	for _, s := range []string{scopeLocal, scopeProject, scopeUser} {
		has, err := o.Store.hasServer(s, name)
		if err != nil {
			return err
		}
		if has {
			scopes = append(scopes, s)
		}
	}
	switch len(scopes) {
	case 0:
		config, err := o.configuredServers()
		if err != nil {
			return err
		}
		return noServerError(name, config.Servers)
	case 1:
		return removeServer(o, scopes[0], name, `"`+name+`"`)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server %q exists in multiple scopes:\n", name)
	for _, s := range scopes {
		fmt.Fprintf(&b, "  - %s (%s)\n", scopeLabel(s), scopeFile(o, s))
	}
	b.WriteString("\nTo remove from a specific scope, use:\n")
	for _, s := range scopes {
		fmt.Fprintf(&b, "  claude mcp remove %s -s %s\n", name, s)
	}
	return process.Verbatimf("%s", strings.TrimSuffix(b.String(), "\n"))
}

// runResetProjectChoices runs `mcp reset-project-choices`: it removes the user's choices about servers in .mcp.json.
func runResetProjectChoices(_ context.Context, o *Options, words []string) error {
	if _, help, err := parseOperands(o, nil, words); err != nil || help {
		return err
	}
	for file, keys := range map[string][]string{o.Store.File: {projectsKey, o.Store.CWD}, filepath.Join(o.Store.CWD, ".claude", "settings.local.json"): nil} {
		if file == "" {
			continue
		}
		if err := removeProjectChoices(file, keys); err != nil {
			return err
		}
	}
	fmt.Fprintln(o.Stdout, "Project-scoped (.mcp.json) server approvals and rejections stored for this project have been reset.\nYou will be prompted for approval next time you start Claude Code.")
	return nil
}

func removeProjectChoices(file string, keys []string) error {
	doc, err := plainjson.ReadFile(file)
	if err != nil {
		return err
	}
	changed := false
	for _, choice := range []string{"enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"} {
		path := append(slices.Clone(keys), choice)
		if doc.At(path...) == nil {
			continue
		}
		if doc, err = doc.SetAt(path, nil); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return doc.WriteFile(file, "\n", 0o600)
}

// removeServer removes a server from a scope. reportedName is its name in the message.
func removeServer(o *Options, scope, name, reportedName string) error {
	if err := checkScope(scope); err != nil {
		return err
	}
	has, err := o.Store.hasServer(scope, name)
	switch {
	case err != nil:
		return err
	case has:
	case scope == scopeProject:
		return process.Verbatimf("No MCP server named %q in .mcp.json", name)
	default:
		return process.Verbatimf("No MCP server named %q in %s scope", name, scope)
	}
	if server, err := o.server(name); err == nil && isRemote(server) {
		if err := server.OAuthClient(o.Client).Forget(); err != nil {
			return err
		}
	}
	if err := o.Store.writeServer(scope, name, nil); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "Removed MCP server %s from %s config\n", reportedName, scope)
	printModifiedFile(o, scope)
	return nil
}

func noServerError(name string, servers []mcp.ServerConfig) error {
	if len(servers) == 0 {
		return process.Verbatimf("No MCP server named %q. Run `claude mcp add` to add one.", name)
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	slices.Sort(names)
	return process.Verbatimf("No MCP server named %q. Configured servers: %s", name, strings.Join(names, ", "))
}

func scopeLabel(scope string) string {
	switch scope {
	case scopeLocal:
		return "Local config (private to you in this project)"
	case scopeProject:
		return "Project config (shared via .mcp.json)"
	case scopeUser:
		return "User config (available in all your projects)"
	default:
		return "Dynamic config (from command line)"
	}
}
