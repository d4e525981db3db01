package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailscale/hujson"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/mcp/internal/entry"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The transports.
const (
	typeStdio = "stdio"
	typeHTTP  = "http"
	typeSSE   = "sse"
	typeSDK   = "sdk"
	typeWS    = "ws" // known, and never connects
)

// ServerConfig is one server as configured, before variables are expanded.
type ServerConfig struct {
	Name    string
	Source  string // dynamic (--mcp-config), project (.mcp.json), user, local, sdk
	Type    string // stdio, http, sse, sdk; empty = stdio
	Command string
	Args    []string
	Env     map[string]string
	CWD     string // empty = Options.CWD
	URL     string
	Headers map[string]string
	// HeadersHelper is a shell command that prints more headers, as a JSON
	// object of strings, which outrank Headers; it runs at each connect and once
	// more when a call is refused. Empty = none.
	HeadersHelper string
	// OrSSE takes an http server for one of the older transport when there is
	// nothing that takes messages at its URL (HTTP 404 or 405).
	OrSSE bool
	// Timeout bounds one call between two signs of life; 0 = the manager's.
	Timeout time.Duration
	// MaxTotal bounds one call altogether; 0 = no bound.
	MaxTotal       time.Duration
	ConnectTimeout time.Duration // 0 = the manager's
	ShutdownGrace  time.Duration // each step of the shutdown; 0 = 500 ms
	MaxLineBytes   int           // longest message; 0 = 16 MB
	AlwaysLoad     bool          // tools are loaded without being asked for
	// AutoReconnect brings a lost server back in the background; nil = for
	// http and sse only.
	AutoReconnect *bool
	Disabled      bool // configured but switched off
	// Literal entries have no variables to expand (the servers dialect).
	Literal bool
}

// entryError says why one entry is skipped.
type entryError struct{ kind, message string }

// expandConfig expands command, arguments, environment, url and headers.
func expandConfig(cfg ServerConfig, vars entry.Variables) (ServerConfig, []string) {
	if cfg.Literal {
		return cfg, nil
	}
	var unset []string
	one := func(s string) string {
		s, missing := vars.Expand(s)
		unset = append(unset, missing...)
		return s
	}
	table := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			m[k] = one(m[k])
		}
		return m
	}
	cfg.Command, cfg.URL, cfg.CWD = one(cfg.Command), one(cfg.URL), one(cfg.CWD)
	cfg.Args = slices.Clone(cfg.Args)
	for i := range cfg.Args {
		cfg.Args[i] = one(cfg.Args[i])
	}
	cfg.Env, cfg.Headers = table(cfg.Env), table(cfg.Headers)
	slices.Sort(unset)
	return cfg, slices.Compact(unset)
}

// ConfigOptions say where LoadConfigs looks.
type ConfigOptions struct {
	// Values are those of --mcp-config, in order: JSON text or a file.
	Values []string
	CWD    string
	// Environ gives the variables that are checked, not yet expanded.
	Environ []string
	// Scopes are entries of settings files, lowest precedence first. The
	// project's .mcp.json goes between them as source "project".
	Scopes []Scope
	// ValuesOnly leaves out Scopes and .mcp.json (--strict-mcp-config).
	ValuesOnly bool
	// NoProject leaves out .mcp.json alone.
	NoProject bool
	// Disabled names servers, of any source, that are switched off.
	Disabled []string
	// DisabledProject names servers of .mcp.json that are left out.
	DisabledProject []string
}

// Scope is a JSON object of server entries and where it was found.
type Scope struct {
	Source  string // user, project, local
	Servers json.RawMessage
}

// Config is what LoadConfigs found.
type Config struct {
	// Servers in the order of their first mention; of equal names the last
	// entry counts.
	Servers []ServerConfig
	// Errors are entries that were skipped.
	Errors []protocol.MCPServerError
	// Warnings name unset variables and white space around values.
	Warnings []string
}

// ConfigError is a --mcp-config value that cannot be used at all.
type ConfigError struct {
	Details []string // one line each
}

func (e *ConfigError) Error() string {
	return "Invalid MCP configuration:\n" + strings.Join(e.Details, "\n")
}

// LoadConfigs reads and merges all configuration. A broken value of Values is
// a *ConfigError; a broken entry is skipped and listed in Config.Errors; a
// broken .mcp.json is ignored.
func LoadConfigs(o ConfigOptions) (Config, error) {
	l := loader{o: o, vars: entry.NewVariables(o.Environ, o.CWD)}
	if !o.ValuesOnly {
		l.scopes()
	}
	for _, value := range o.Values {
		if err := l.value(value); err != nil {
			return Config{}, err
		}
	}
	return l.config, nil
}

type loader struct {
	o      ConfigOptions
	vars   entry.Variables
	config Config
}

// scopes adds settings entries and .mcp.json, which outranks user scope and
// not local scope.
func (l *loader) scopes() {
	project := func() {
		if l.o.NoProject {
			return
		}
		data, err := os.ReadFile(filepath.Join(l.o.CWD, ".mcp.json"))
		if err != nil {
			return
		}
		doc, err := standardJSON(data)
		if err != nil {
			return
		}
		if _, err := l.document(doc, "project"); err != nil {
			return // silent, as the real CLI is
		}
	}
	done := false
	for _, s := range l.o.Scopes {
		if !done && s.Source == "local" {
			project()
			done = true
		}
		l.entries(s.Servers, s.Source, claudeEntry)
	}
	if !done {
		project()
	}
}

// value adds one --mcp-config value.
func (l *loader) value(value string) error {
	doc := []byte(strings.TrimSpace(value))
	if !json.Valid(doc) {
		path := value
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.o.CWD, path)
		}
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
			return &ConfigError{Details: []string{"MCP config file not found: " + path}}
		case err != nil:
			return &ConfigError{Details: []string{fmt.Sprintf("Failed to read MCP config file: %v", err)}}
		}
		if doc, err = standardJSON(data); err != nil {
			return &ConfigError{Details: []string{"MCP config is not a valid JSON"}}
		}
	}
	if problem, err := l.document(doc, "dynamic"); err != nil {
		return &ConfigError{Details: []string{problem}}
	}
	return nil
}

// standardJSON accepts JSON with comments and trailing commas.
func standardJSON(data []byte) ([]byte, error) {
	if json.Valid(data) {
		return data, nil
	}
	return hujson.Standardize(bytes.Clone(data))
}

var errDocument = errors.New("not a configuration")

// document adds the entries of a whole file; its top key tells the dialect.
func (l *loader) document(doc json.RawMessage, source string) (problem string, err error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(doc, &top) != nil || top == nil {
		return "Invalid input: expected object, received " + ordered.TypeOf(doc), errDocument
	}
	servers, claude := top["mcpServers"]
	other, ours := top["servers"]
	switch {
	case claude && ours:
		return "mcpServers and servers cannot both be given", errDocument
	case ours:
		if ordered.TypeOf(other) != "object" {
			return "servers: Invalid input: expected record, received " + ordered.TypeOf(other), errDocument
		}
		parse := codeEntry
		if hasTransport(other) {
			parse = managedEntry
		}
		l.entries(other, source, parse)
		return "", nil
	case ordered.TypeOf(servers) != "object":
		return "mcpServers: Invalid input: expected record, received " + ordered.TypeOf(servers), errDocument
	}
	l.entries(servers, source, claudeEntry)
	return "", nil
}

func hasTransport(servers json.RawMessage) bool {
	entries, _ := entry.Members(servers)
	return slices.ContainsFunc(entries, func(e ordered.Member) bool {
		var m map[string]json.RawMessage
		return json.Unmarshal(e.Value, &m) == nil && m["transport"] != nil
	})
}

// reserved names belong to servers the real CLI brings along.
var reserved = [...]string{"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}

// entries adds the servers of one object.
func (l *loader) entries(servers json.RawMessage, source string, parse func(*entry.Fields) (ServerConfig, *entryError)) {
	all, err := entry.Members(servers)
	if err != nil {
		return
	}
	for _, m := range all {
		if source == "project" && slices.Contains(l.o.DisabledProject, m.Key) {
			continue
		}
		if slices.Contains(reserved[:], m.Key) {
			l.skip(m.Key, &entryError{"reserved_name", fmt.Sprintf("Skipped — %q is a reserved MCP server name", m.Key)})
			continue
		}
		f := entry.Read(m.Value)
		var cfg ServerConfig
		var problem *entryError
		if !f.None() {
			cfg, problem = parse(f)
		}
		if problem == nil && len(f.Problems) > 0 {
			problem = &entryError{"invalid_config", fmt.Sprintf("Skipped — invalid MCP server config for %q: %s", m.Key, strings.Join(f.Problems, "; "))}
		}
		if problem != nil {
			problem.message = strings.ReplaceAll(problem.message, "%NAME%", m.Key)
			l.skip(m.Key, problem)
			continue
		}
		cfg.Name, cfg.Source = m.Key, source
		if cfg.Type == typeSDK {
			cfg.Source = typeSDK
		}
		l.put(cfg)
	}
}

func (l *loader) skip(name string, e *entryError) {
	l.config.Errors = append(l.config.Errors, protocol.MCPServerError{Name: name, Type: e.kind, Message: e.message})
}

// put adds a server, or replaces the one of that name where it stands.
func (l *loader) put(cfg ServerConfig) {
	cfg.Disabled = cfg.Disabled || slices.Contains(l.o.Disabled, cfg.Name)
	_, unset := expandConfig(cfg, l.vars)
	for _, name := range unset {
		l.config.Warnings = append(l.config.Warnings, fmt.Sprintf("MCP server %q: variable %s is not set", cfg.Name, name))
	}
	if cfg.Command != strings.TrimSpace(cfg.Command) || cfg.URL != strings.TrimSpace(cfg.URL) {
		l.config.Warnings = append(l.config.Warnings, fmt.Sprintf("MCP server %q: white space around command or url", cfg.Name))
	}
	at := slices.IndexFunc(l.config.Servers, func(c ServerConfig) bool { return c.Name == cfg.Name })
	if at >= 0 {
		l.config.Servers[at] = cfg
		return
	}
	l.config.Servers = append(l.config.Servers, cfg)
}

// claudeEntry reads an entry of mcpServers; unknown members are tolerated.
// cwd, connectTimeout, maxTotal, shutdownGrace (ms), maxLineBytes,
// autoReconnect, disabled and timeoutMs are our own.
func claudeEntry(f *entry.Fields) (ServerConfig, *entryError) {
	if !f.Has("type") && f.Has("url") && !f.Has("command") {
		return ServerConfig{}, &entryError{
			"url_missing_type",
			`MCP server "%NAME%" has a "url" but no "type"; add "type": "http" (or "sse" / "ws") to this entry`,
		}
	}
	cfg := ServerConfig{Type: f.Text("type")}
	if len(f.Problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server type %q for server "%%NAME%%"`, cfg.Type)}
	}
	common(f, &cfg)
	const ignoredBelow = time.Second
	cfg.Timeout = max(f.Duration("timeout", time.Millisecond), f.Duration("timeoutMs", time.Millisecond))
	if cfg.Timeout < ignoredBelow {
		cfg.Timeout = 0
	}
	cfg.MaxTotal = f.Duration("maxTotal", time.Millisecond)
	cfg.ConnectTimeout = f.Duration("connectTimeout", time.Millisecond)
	cfg.ShutdownGrace = f.Duration("shutdownGrace", time.Millisecond)
	cfg.MaxLineBytes = int(f.Number("maxLineBytes"))
	cfg.AlwaysLoad = f.Flag("alwaysLoad")
	cfg.AutoReconnect = f.OptionalFlag("autoReconnect")
	cfg.Disabled = f.Flag("disabled")
	return cfg, nil
}

// knownType reports whether there is such a transport, and puts its plain name.
func knownType(t *string) bool {
	switch *t {
	case "":
		*t = typeStdio
	case "streamable-http":
		*t = typeHTTP
	case typeStdio, typeHTTP, typeSSE, typeSDK, typeWS:
	default:
		return false
	}
	return true
}

// common reads the members that tell how to reach the server.
func common(f *entry.Fields, cfg *ServerConfig) {
	switch cfg.Type {
	case typeStdio:
		cfg.Command = f.Required("command")
		cfg.Args = f.List("args")
		cfg.Env = f.Table("env")
		cfg.CWD = f.Text("cwd")
	case typeSDK:
		f.Text("name")
	default:
		cfg.URL = f.Required("url")
		cfg.Headers = f.Table("headers")
		cfg.HeadersHelper = f.Text("headersHelper")
	}
}

// codeEntry reads an entry of an editor's mcp.json: servers without transport.
func codeEntry(f *entry.Fields) (ServerConfig, *entryError) {
	cfg := ServerConfig{Type: f.Text("type")}
	if cfg.Type == "" && f.Has("url") {
		cfg.Type = typeHTTP
	}
	cfg.OrSSE = cfg.Type == typeHTTP // this dialect's http is either
	if len(f.Problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server type %q for server "%%NAME%%"`, cfg.Type)}
	}
	common(f, &cfg)
	return cfg, nil
}

var managedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// ValidName reports whether servers may be added under a name at run time.
func ValidName(name string) bool { return managedName().MatchString(name) }

// managedEntry reads an entry of the servers dialect with transport, whose
// unknown members are errors and whose values are taken literally.
func managedEntry(f *entry.Fields) (ServerConfig, *entryError) {
	on := true
	cfg := ServerConfig{Type: f.Required("transport"), AutoReconnect: &on, Literal: true}
	if len(f.Problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server transport %q for "%%NAME%%"`, cfg.Type)}
	}
	common(f, &cfg)
	cfg.Timeout = 30 * time.Second
	if f.Has("timeout_s") {
		if cfg.Timeout = f.Duration("timeout_s", time.Second); cfg.Timeout <= 0 {
			f.Wrong("timeout_s: must be greater than 0")
		}
	}
	if set := f.OptionalFlag("auto_reconnect"); set != nil {
		cfg.AutoReconnect = set
	}
	for _, name := range f.Unknown() {
		f.Wrong("%s: unknown key", name)
	}
	return cfg, nil
}
