package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

type addFlags struct {
	scope, transport       string
	env, headers           []string
	clientID, callbackPort string
	clientSecret           bool
}

func (f *addFlags) options() []argv.OptionDefinition {
	text := func(to *string) func(string) error { return func(v string) error { *to = v; return nil } }
	return []argv.OptionDefinition{
		scopeFlag(&f.scope),
		{Flags: "-t, --transport <transport>", Help: "Transport: stdio (default), sse or http", Set: text(&f.transport)},
		{Flags: "-e, --env <env...>", Help: "Environment variables of a stdio server, such as KEY=value", Set: appendTo(&f.env)},
		{Flags: "-H, --header <header...>", Help: "HTTP headers of a remote server, such as \"X-Key: value\"", Set: appendTo(&f.headers)},
		{Flags: "--client-id <clientId>", Help: "OAuth client id of a remote server", Set: text(&f.clientID)},
		secretFlag(&f.clientSecret),
		{Flags: "--callback-port <port>", Help: "Port of this machine that receives the OAuth redirect", Set: text(&f.callbackPort)},
	}
}

func secretFlag(to *bool) argv.OptionDefinition {
	return argv.OptionDefinition{Flags: "--client-secret", Help: "Ask for the OAuth client secret (or read MCP_CLIENT_SECRET)", Set: func(string) error { *to = true; return nil }}
}

func runAdd(_ context.Context, o *Options, words []string) error {
	f := addFlags{scope: scopeLocal}
	found, help, err := parseOperands(o, f.options(), words, "name", "commandOrUrl")
	if err != nil || help {
		return err
	}
	name, target, args := found[0], found[1], found[2:]
	transport, guessed := cmp.Or(f.transport, "stdio"), f.transport == ""
	if !slices.Contains([]string{"stdio", "sse", "http"}, transport) {
		return process.Verbatimf("Invalid transport type: %s. Must be one of: stdio, sse, http (or streamable-http)", transport)
	}
	if err := checkScope(f.scope); err != nil {
		return err
	}
	if transport == "stdio" {
		if guessed && (strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")) {
			fmt.Fprintf(o.Stderr, "\nWarning: The command %q looks like a URL, but is treated as a stdio server because --transport wasn't set.\n"+
				"If this is an HTTP server, use: %s mcp add --transport http %s %[1]s\n"+
				"If this is an SSE server, use: %[2]s mcp add --transport sse %[3]s %[1]s\n", target, o.Name, name)
		}
		if f.clientID != "" || f.clientSecret || f.callbackPort != "" {
			fmt.Fprintln(o.Stderr, "Warning: --client-id, --client-secret, --callback-port, and --xaa only work with HTTP/SSE servers and are ignored for stdio.")
		}
		return f.addStdio(o, name, append([]string{target}, args...))
	}
	return f.addRemote(o, name, transport, target)
}

func rejectInvalidOrTakenServerName(o *Options, name, scope string) error {
	if err := checkScope(scope); err != nil {
		return err
	}
	if !mcp.IsValidServerName(name) {
		return process.Verbatimf("Invalid name %s. Names can only contain letters, numbers, hyphens, and underscores.", name)
	}
	existing, err := o.Store.entryOrNil(scope, name)
	if existing != nil {
		err = process.Verbatimf("MCP server %s already exists in %s config", name, scope)
	}
	return err
}

func checkScope(scope string) error {
	if !slices.Contains([]string{scopeLocal, scopeUser, scopeProject}, scope) {
		return process.Verbatimf("Invalid scope: %s. Must be one of: local, user, project, dynamic, enterprise, claudeai, managed, agent", scope)
	}
	return nil
}

// object is a JSON object that keeps the order and the exact bytes of its members.
type object = plainjson.Object

func jsonString(s string) json.RawMessage { return json.RawMessage(plainjson.MarshalString(s)) }

func (f *addFlags) addStdio(o *Options, name string, command []string) error {
	env := object{}
	for _, kv := range f.env {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return process.Verbatimf("Invalid environment variable format: %s, environment variables should be added as: -e KEY1=value1 -e KEY2=value2", kv)
		}
		env = env.Set(key, jsonString(value))
	}
	args := json.RawMessage(plainjson.MarshalString(command[1:]))
	entry := object{{Key: "type", Value: jsonString("stdio")}, {Key: "command", Value: jsonString(command[0])}, {Key: "args", Value: args}, {Key: "env", Value: env.Raw()}}
	if err := validateAndSaveEntry(o, f.scope, name, entry.Raw()); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "Added stdio MCP server %s with command: %s to %s config\n", name, command[0]+" "+strings.Join(command[1:], " "), f.scope)
	printPathOfModifiedFile(o, f.scope)
	return nil
}

// credentialHeader matches the names of the headers whose values `mcp add` does not print.
var credentialHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)authorization|cookie|api[-_]?key|access[-_]?key|token|secret|password|bearer|credential`)
})

func (f *addFlags) addRemote(o *Options, name, transport, url string) error {
	entry := object{{Key: "type", Value: jsonString(transport)}, {Key: "url", Value: jsonString(url)}}
	headers, masked := object{}, object{}
	for _, h := range f.headers {
		key, value, ok := strings.Cut(h, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return process.Verbatimf("Invalid header format: %q. Expected format: \"Header-Name: value\"", h)
		}
		headers = headers.Set(key, jsonString(value))
		if credentialHeader().MatchString(key) {
			value = "[REDACTED]"
		}
		masked = masked.Set(key, jsonString(value))
	}
	if len(headers) > 0 {
		entry = append(entry, plainjson.Member{Key: "headers", Value: headers.Raw()})
	}
	oauth := object{}
	if f.clientID != "" {
		oauth = append(oauth, plainjson.Member{Key: "clientId", Value: jsonString(f.clientID)})
	}
	if f.callbackPort != "" {
		if port, err := strconv.Atoi(f.callbackPort); err != nil || port < 1 || port > 65535 {
			return process.Verbatimf("Error: --callback-port must be a whole number from 1 to 65535")
		}
		oauth = append(oauth, plainjson.Member{Key: "callbackPort", Value: json.RawMessage(f.callbackPort)})
	}
	if len(oauth) > 0 {
		entry = append(entry, plainjson.Member{Key: "oauth", Value: oauth.Raw()})
	}
	if err := saveEntryAndSecretIfRequested(o, f.scope, name, entry.Raw(), f.clientSecret && f.clientID != ""); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "Added %s MCP server %s with URL: %s to %s config\n", strings.ToUpper(transport), name, url, f.scope)
	if len(masked) > 0 {
		fmt.Fprintf(o.Stdout, "Headers: %s\n", masked.Indented())
	}
	printPathOfModifiedFile(o, f.scope)
	return nil
}

func runAddJSON(_ context.Context, o *Options, words []string) error {
	scope, clientSecret := scopeLocal, false
	options := []argv.OptionDefinition{scopeFlag(&scope), secretFlag(&clientSecret)}
	found, help, err := parseOperands(o, options, words, "name", "json")
	if err != nil || help {
		return err
	}
	name := found[0]
	entry, err := plainjson.ParseKeepingLastDuplicates([]byte(found[1]))
	if defect := entryDefect(entry, err); defect != "" {
		return process.Verbatimf("Invalid configuration: %s", defect)
	}
	if err := saveEntryAndSecretIfRequested(o, scope, name, entry.Raw(), clientSecret); err != nil {
		return err
	}
	transport := cmp.Or(plainjson.DecodeIgnoringErrors[string](entry.Get("type")), "stdio") // entryDefect has checked it
	fmt.Fprintf(o.Stdout, "Added %s MCP server %s to %s config\n", transport, name, scope)
	return nil
}

// entryDefect explains, in the words of the real CLI, why a JSON text cannot be the entry of a server; empty means that it can.
func entryDefect(entry object, parseError error) string {
	has := func(key string) bool { return entry.Get(key) != nil }
	kind := plainjson.DecodeIgnoringErrors[string](entry.Get("type"))
	switch {
	case parseError != nil:
		return "not a JSON object. Check its quotes, commas and braces."
	case has("type") && !slices.Contains([]string{"stdio", "sse", "http", "streamable-http", "ws"}, kind):
		return `unknown "type". Use "stdio", "sse", "http" (or "streamable-http") or "ws".`
	case has("type") || has("command"):
		return ""
	case has("url"):
		return `it has a "url" but no "type". Add "type": "http" (or "sse" / "ws").`
	case has(serversKey):
		return fmt.Sprintf("leave out the %q wrapper and the server name. Pass only the settings inside them.", serversKey)
	}
	return `it needs a "command" for a local server, or a "type" and a "url" for a remote one.`
}

func validateAndSaveEntry(o *Options, scope, name string, entry json.RawMessage) error {
	if err := rejectInvalidOrTakenServerName(o, name, scope); err != nil {
		return err
	}
	value := object{{Key: serversKey, Value: object{{Key: name, Value: entry}}.Raw()}}.Raw()
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: o.Store.CWD, Environ: o.Client.Environ})
	if err != nil {
		return err
	}
	if len(config.Errors) > 0 {
		problem := config.Errors[0]
		if problem.Type == "reserved_name" {
			return process.Verbatimf("Cannot add MCP server %q: this name is reserved.", name)
		}
		return process.Verbatimf("Invalid configuration: %s", strings.TrimPrefix(problem.Message, fmt.Sprintf("Skipped — invalid MCP server config for %q: ", name)))
	}
	return o.Store.writeOrRemoveServer(scope, name, entry)
}

func saveEntryAndSecretIfRequested(o *Options, scope, name string, entry json.RawMessage, withSecret bool) error {
	if !withSecret {
		return validateAndSaveEntry(o, scope, name, entry)
	}
	secret, err := o.readClientSecret()
	if err != nil {
		return err
	}
	if err := validateAndSaveEntry(o, scope, name, entry); err != nil {
		return err
	}
	server, err := o.expandedServer(name)
	if err != nil {
		return err
	}
	return server.NewOAuthClient(o.Client).SaveClientSecret(secret)
}

func printPathOfModifiedFile(o *Options, scope string) {
	fmt.Fprintf(o.Stdout, "File modified: %s\n", scopeFileLabel(o, scope))
}

func scopeFileLabel(o *Options, scope string) string {
	path := o.Store.scopePath(scope)
	if scope == scopeLocal {
		path += " [project: " + o.Store.project() + "]"
	}
	return path
}

// runRemove runs `mcp remove`: it uses the scope of --scope, or else the only scope that has the server.
func runRemove(_ context.Context, o *Options, words []string) error {
	scope := ""
	found, help, err := parseOperands(o, []argv.OptionDefinition{scopeFlag(&scope)}, words, "name")
	if err != nil || help {
		return err
	}
	name := found[0]
	if scope != "" {
		return removeServerAndCredentials(o, scope, name, name)
	}
	var scopes []string
	for _, s := range []string{scopeLocal, scopeProject, scopeUser} {
		switch entry, err := o.Store.entryOrNil(s, name); {
		case err != nil:
			return err
		case entry != nil:
			scopes = append(scopes, s)
		}
	}
	switch len(scopes) {
	case 0:
		config, err := o.configuredServers()
		if err != nil {
			return err
		}
		return noServerError(name, slices.DeleteFunc(config.Servers, func(s mcp.ServerConfig) bool {
			entry, _ := o.Store.entryOrNil(s.Source, s.Name)
			return entry == nil // of .mcp.json in a parent directory
		}))
	case 1:
		return removeServerAndCredentials(o, scopes[0], name, `"`+name+`"`)
	}
	places, commands := "", ""
	for _, s := range scopes {
		places += fmt.Sprintf("  - %s (%s)\n", scopeLabel(s), scopeFileLabel(o, s))
		commands += fmt.Sprintf("\n  claude mcp remove %s -s %s", name, s)
	}
	return process.Verbatimf("MCP server %q exists in multiple scopes:\n%s\nTo remove from a specific scope, use:%s", name, places, commands)
}

// runResetProjectChoices runs `mcp reset-project-choices`: it removes the user's choices about servers in .mcp.json.
func runResetProjectChoices(_ context.Context, o *Options, words []string) error {
	if _, help, err := parseOperands(o, nil, words); err != nil || help {
		return err
	}
	for file, keys := range map[string][]string{o.Store.File: {projectsKey, o.Store.project()}, filepath.Join(o.Store.CWD, ".claude", "settings.local.json"): nil} {
		if err := removeProjectServerChoices(file, keys); err != nil {
			return err
		}
	}
	fmt.Fprintln(o.Stdout, "Project-scoped (.mcp.json) server approvals and rejections stored for this project have been reset.")
	config, err := o.configuredServers()
	if err == nil && slices.ContainsFunc(config.Servers, o.isPendingApproval) {
		fmt.Fprintln(o.Stdout, "You will be prompted for approval next time you start Claude Code.")
	}
	return err
}

func removeProjectServerChoices(file string, projectKeyPath []string) error {
	doc, err := plainjson.ReadFileOrEmpty(file)
	if err != nil {
		return err
	}
	changed := false
	for _, choice := range []string{"enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"} {
		path := append(slices.Clone(projectKeyPath), choice)
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
	return doc.WriteFileAtomically(file, "\n", 0o600)
}

func removeServerAndCredentials(o *Options, scope, name, reportedName string) error {
	if err := checkScope(scope); err != nil {
		return err
	}
	entry, err := o.Store.entryOrNil(scope, name)
	switch {
	case err != nil:
		return err
	case entry != nil:
	case scope == scopeProject:
		return process.Verbatimf("No MCP server named %q in .mcp.json", name)
	default:
		return process.Verbatimf("No MCP server named %q in %s scope", name, scope)
	}
	if server, err := o.expandedServer(name); err == nil && isRemote(server) {
		if err := server.NewOAuthClient(o.Client).ForgetAllCredentials(); err != nil {
			return err
		}
	}
	if err := o.Store.writeOrRemoveServer(scope, name, nil); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "Removed MCP server %s from %s config\n", reportedName, scope)
	printPathOfModifiedFile(o, scope)
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
	const maxListedNames, maxEdits = 8, 2
	near := slices.MinFunc(names, func(a, b string) int { return diag.EditDistanceInBytes(name, a) - diag.EditDistanceInBytes(name, b) })
	if diag.EditDistanceInBytes(name, near) <= maxEdits {
		return process.Verbatimf("No MCP server named %q. Did you mean %q? Run `claude mcp list` to see all.", name, near)
	}
	rest := ""
	if n := len(names) - maxListedNames; n > 0 {
		names, rest = names[:maxListedNames], fmt.Sprintf(" (and %d more — run `claude mcp list` to see all)", n)
	}
	return process.Verbatimf("No MCP server named %q. Configured servers: %s%s", name, strings.Join(names, ", "), rest)
}

func scopeLabel(scope string) string {
	labels := map[string]string{
		scopeLocal: "Local config (private to you in this project)", scopeProject: "Project config (shared via .mcp.json)",
		scopeUser: "User config (available in all your projects)",
	}
	return cmp.Or(labels[scope], "Dynamic config (from command line)")
}
