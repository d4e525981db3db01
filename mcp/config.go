package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailscale/hujson"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/oauth"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	typeStdio = "stdio"
	typeHTTP  = "http"
	typeSSE   = "sse"
	typeSDK   = "sdk"
	typeWS    = "ws" // recognized in a configuration, but cannot be connected to
)

// ServerConfig is one server as configured, before variables are expanded.
type ServerConfig struct {
	Name    string
	Source  string // dynamic (--mcp-config), project (.mcp.json), user, local, sdk
	Type    string // stdio, http, sse, sdk; empty means stdio
	Command string
	Args    []string
	Env     map[string]string
	CWD     string // empty means Options.CWD
	URL     string
	Headers map[string]string
	AuthorizationConfig
	// Timeout limits a whole call. But if MaxTotal is set, Timeout limits the time between two messages. 0 means Options.ToolTimeout.
	Timeout        time.Duration
	MaxTotal       time.Duration // limits a whole call; 0 means that only Timeout limits the call
	ConnectTimeout time.Duration // 0 means the default of the manager
	ShutdownGrace  time.Duration // limit for each step of the shutdown; 0 means 500 ms
	MaxLineBytes   int           // longest message; 0 means 16 MB
	AlwaysLoad     bool          // the model sees the tools at once, without searching for them first
	AutoReconnect  *bool         // true if a lost server is reconnected in the background; nil means true only for http and sse
	Disabled       bool          // configured but switched off
	IsLiteral      bool          // true for an entry of "servers" with a "transport", in which variables such as ${HOME} are not expanded
	LacksArgs      bool          // the host configured the server without args, so it cannot start, as in the real CLI
}

// AuthorizationConfig says how requests to a remote server are authorized, in addition to its configured headers.
type AuthorizationConfig struct {
	// HeadersHelper is a shell command that prints additional headers as a JSON object of strings; empty means none.
	// They replace configured headers of the same name. The command runs before each connection attempt. It runs once
	// more when the server refuses a call for lack of authorization.
	HeadersHelper string
	OAuth         oauth.Config
}

type configEntryError struct{ kind, message string }

// expandConfig expands command, arguments, environment, url, headers and cwd, and returns the names of unset variables.
func expandConfig(cfg ServerConfig, vars configVariableValues) (ServerConfig, []string) {
	if cfg.IsLiteral {
		return cfg, nil
	}
	var unset []string
	one := func(s string) string {
		s, missing := vars.Expand(s)
		unset = append(unset, slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(unset, name) })...)
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
	return cfg, unset
}

// ConfigOptions are the sources that LoadConfigs reads.
type ConfigOptions struct {
	Values []string // the values of --mcp-config, in order: JSON text or a file
	CWD    string
	// Environ is the environment ("K=V"). LoadConfigs warns about variables that are not in it, but expands none.
	Environ              []string
	Scopes               []ScopeServers // the sources besides Values, lowest precedence first
	EntriesHaveTransport bool           // selects the format of debugger configurations: entries with "transport" below "servers"
	Disabled             []string       // lists the names of disabled servers from all sources
	// DisabledProject lists servers of .mcp.json that are not started. Equal names from other sources are started.
	DisabledProject []string
}

// ScopeServers is a JSON object of server entries and its source. For the source "project", the entries are instead read from .mcp.json in CWD
// and its parents.
type ScopeServers struct {
	Source  string // user, project, local
	Servers json.RawMessage
}

// Config is the result of LoadConfigs.
type Config struct {
	Servers  []ServerConfig            // in the order of first mention; a later entry with the same name replaces an earlier one
	Errors   []protocol.MCPServerError // lists the entries that were skipped
	Warnings []string                  // report unset variables and white space around values
	// UnknownKeys are keys that have no meaning in the entry of their server. They are ignored, as in the real CLI.
	UnknownKeys []UnknownConfigKey
	Problems    []ConfigProblem // what is wrong with Scopes and .mcp.json, in the words and the order of `claude mcp list`
}

// ConfigProblem is what is wrong with a server, or with the whole of .mcp.json if Server is empty. Source is that of the [ScopeServers].
type ConfigProblem struct{ Source, Server, Message string }

// UnknownConfigKey is a key of a server's entry that has no meaning there. Known are the keys that an entry of this type may have.
type UnknownConfigKey struct {
	Server, Key string
	Known       []string
}

// ConfigFlagError reports a --mcp-config value that is unusable as a whole.
type ConfigFlagError struct {
	Details []string // one line each
}

func (e *ConfigFlagError) Error() string {
	return "Invalid MCP configuration:\n" + strings.Join(e.Details, "\n")
}

// LoadConfigs reads and merges all configuration. It returns a *ConfigFlagError for a broken value in Values, lists
// broken entries in Config.Errors, and reports a broken .mcp.json only in Config.Problems.
func LoadConfigs(o ConfigOptions) (Config, error) {
	l := configLoader{options: o, vars: newVariables(o.Environ, o.CWD)}
	for _, s := range o.Scopes {
		if s.Source == "project" {
			l.addServersOfMCPJSONFiles(o.CWD)
		} else {
			l.addServerEntries(s.Servers, s.Source, parseMCPServersEntry)
		}
	}
	wrong := &ConfigFlagError{}
	for _, value := range o.Values {
		if problem := l.addServersOfFlagValue(value); value != "" && problem != "" {
			wrong.Details = append(wrong.Details, problem)
		}
	}
	if wrong.Details != nil {
		return Config{}, wrong
	}
	return l.config, nil
}

type configLoader struct {
	options ConfigOptions
	vars    configVariableValues
	config  Config
}

// addServersOfMCPJSONFiles adds the servers of .mcp.json in a directory and its parents; the nearest entry of a name applies.
func (l *configLoader) addServersOfMCPJSONFiles(dir string) {
	if up := filepath.Dir(dir); up != dir {
		l.addServersOfMCPJSONFiles(up)
	}
	data, err := plainjson.ReadFileUnlessTooLarge(filepath.Join(dir, ".mcp.json"))
	if err != nil {
		return
	}
	doc, err := convertJSONCToJSON(data)
	if err != nil {
		l.addProblem("project", "", "MCP config is not a valid JSON"+errorPosition(err))
	} else if problem := l.addServersOfDocument(doc, "project"); problem != "" { // as in the real CLI, the run goes on
		l.addProblem("project", "", problem)
	}
}

func (l *configLoader) addServersOfFlagValue(value string) (problem string) {
	doc := []byte(strings.TrimSpace(value))
	if !json.Valid(doc) {
		path := value
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.options.CWD, path)
		}
		data, err := plainjson.ReadFileUnlessTooLarge(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
			return "MCP config file not found: " + path
		case err != nil:
			return fmt.Sprintf("Failed to read MCP config file: %v", err)
		}
		if doc, err = convertJSONCToJSON(data); err != nil {
			return "MCP config is not a valid JSON"
		}
	}
	return l.addServersOfDocument(doc, "dynamic")
}

func convertJSONCToJSON(data []byte) ([]byte, error) {
	if json.Valid(data) {
		return data, nil
	}
	return hujson.Standardize(bytes.Clone(data))
}

// errorPosition returns the position that an error of hujson begins with, such as " (line 1, column 2)".
func errorPosition(err error) string {
	_, text, _ := strings.Cut(err.Error(), "line ")
	position, _, found := strings.Cut(text, ":")
	if !found {
		return ""
	}
	return " (line " + position + ")"
}

// addServersOfDocument adds the entries of a whole file. If it cannot, problem says why in the words of the real CLI.
func (l *configLoader) addServersOfDocument(document json.RawMessage, source string) (problem string) {
	var top map[string]json.RawMessage
	if json.Unmarshal(document, &top) != nil || top == nil {
		return "Invalid input: expected object, received " + plainjson.TypeOf(document)
	}
	key, parse := "mcpServers", parseMCPServersEntry
	if l.options.EntriesHaveTransport {
		key, parse = "servers", parseServerEntryWithTransport
	}
	servers, found := top[key]
	switch {
	case !found && top["servers"] != nil:
		return `mcpServers: Missing "mcpServers" — found "servers" instead. Claude Code reads MCP servers from the "mcpServers" key.`
	case plainjson.TypeOf(servers) != "object":
		return key + ": Invalid input: expected record, received " + plainjson.TypeOf(servers)
	}
	l.addServerEntries(servers, source, parse)
	return ""
}

// reservedNames are the names of servers that the real CLI itself provides.
var reservedNames = [...]string{"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}

func (l *configLoader) addServerEntries(entryByServerName json.RawMessage, source string, parseEntry func(*configEntryReader) (ServerConfig, *configEntryError)) {
	all, err := plainjson.Parse(entryByServerName)
	if err != nil {
		return
	}
	for _, m := range all.Distinct() {
		if source == "project" && slices.Contains(l.options.DisabledProject, m.Key) {
			continue
		}
		if slices.Contains(reservedNames[:], m.Key) {
			l.addProblem(source, m.Key, fmt.Sprintf("%q is a reserved MCP server name and was not loaded", m.Key))
			l.addError(m.Key, &configEntryError{"reserved_name", fmt.Sprintf("Skipped — %q is a reserved MCP server name", m.Key)})
			continue
		}
		f := readEntry(m.Value)
		var cfg ServerConfig
		var problem *configEntryError
		if f.members != nil {
			cfg, problem = parseEntry(f)
		}
		if problem == nil && len(f.Problems) > 0 {
			problem = &configEntryError{"invalid_config", fmt.Sprintf("Skipped — invalid MCP server config for %q: %s", m.Key, strings.Join(f.Problems, "; "))}
		}
		if problem != nil {
			problem.message = strings.ReplaceAll(problem.message, "%NAME%", m.Key)
			l.addProblem(source, m.Key, problem.message)
			l.addError(m.Key, problem)
			continue
		}
		for _, name := range f.UnreadMembers() {
			l.config.UnknownKeys = append(l.config.UnknownKeys, UnknownConfigKey{m.Key, name, slices.Sorted(slices.Values(f.memberNames))})
		}
		cfg.Name, cfg.Source = m.Key, source
		if cfg.Type == typeSDK {
			cfg.Source = typeSDK
		}
		l.addServerAndWarnIfVarsUnset(cfg)
	}
}

func (l *configLoader) addProblem(source, server, message string) {
	l.config.Problems = append(l.config.Problems, ConfigProblem{source, server, message})
}

func (l *configLoader) addError(name string, e *configEntryError) {
	l.config.Errors = append(l.config.Errors, protocol.MCPServerError{Name: name, Type: e.kind, Message: e.message})
}

// addServerAndWarnIfVarsUnset adds a server. If there is one of the same name, the new server takes its place in the list.
func (l *configLoader) addServerAndWarnIfVarsUnset(cfg ServerConfig) {
	cfg.Disabled = cfg.Disabled || slices.Contains(l.options.Disabled, cfg.Name)
	_, unset := expandConfig(cfg, l.vars)
	for _, name := range unset {
		l.config.Warnings = append(l.config.Warnings, fmt.Sprintf("MCP server %q: variable %s is not set", cfg.Name, name))
	}
	if len(unset) > 0 {
		l.addProblem(cfg.Source, cfg.Name, "Missing environment variables: "+strings.Join(unset, ", "))
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

// parseMCPServersEntry parses an entry of mcpServers and ignores unknown members. The members cwd, connectTimeout,
// maxTotal, shutdownGrace (ms), maxLineBytes, autoReconnect, disabled and timeoutMs are extensions of claudeless.
func parseMCPServersEntry(entry *configEntryReader) (ServerConfig, *configEntryError) {
	if !entry.Has("type") && entry.Has("url") && !entry.Has("command") {
		return ServerConfig{}, &configEntryError{
			"url_missing_type",
			`Skipped — MCP server "%NAME%" has a "url" but no "type"; add "type": "http" (or "sse" / "ws") to this entry`,
		}
	}
	var cfg ServerConfig
	entry.Decode("type", &cfg)
	if problem := readTransportMembers(entry, &cfg, unknownTypeFormat); problem != nil {
		return cfg, problem
	}
	var in struct {
		Timeout, TimeoutMs, MaxTotal, ConnectTimeout, ShutdownGrace, MaxLineBytes float64

		AlwaysLoad, Disabled bool
		AutoReconnect        *bool
	}
	entry.Decode("options of mcpServers", &in)
	const ignoredBelow = 1000
	if in.Timeout = max(in.Timeout, in.TimeoutMs); in.Timeout >= ignoredBelow {
		cfg.Timeout = milliseconds(in.Timeout)
	}
	cfg.MaxTotal, cfg.ConnectTimeout, cfg.ShutdownGrace = milliseconds(in.MaxTotal), milliseconds(in.ConnectTimeout), milliseconds(in.ShutdownGrace)
	cfg.MaxLineBytes, cfg.AlwaysLoad, cfg.AutoReconnect, cfg.Disabled = int(in.MaxLineBytes), in.AlwaysLoad, in.AutoReconnect, in.Disabled
	return cfg, nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// unknownTypeFormat is the text about an unknown type; addServerEntries replaces %NAME%.
const unknownTypeFormat = `Skipped — unknown MCP server type %q for server "%%NAME%%"`

// readTransportMembers replaces an alias of a transport with its canonical name, and reads the members of this transport. An
// unknown transport is an error with the text of unknownFormat.
func readTransportMembers(f *configEntryReader, cfg *ServerConfig, unknownTypeErrorFormat string) *configEntryError {
	switch {
	case cfg.Type == "" && len(f.Problems) == 0:
		cfg.Type = typeStdio
	case cfg.Type == "streamable-http":
		cfg.Type = typeHTTP
	}
	switch cfg.Type {
	case typeStdio:
		f.Decode("stdio", cfg)
	case typeSDK:
		f.Decode("sdk", &struct{}{})
	case typeHTTP, typeSSE, typeWS, "": // "" means that the type is not a text
		var in struct {
			URL           string
			Headers       map[string]string
			HeadersHelper string
			OAuth         json.RawMessage
		}
		f.Decode("remote", &in)
		cfg.URL, cfg.Headers, cfg.HeadersHelper, cfg.OAuth = in.URL, in.Headers, in.HeadersHelper, readOAuth(f, in.OAuth)
	default:
		return &configEntryError{"unknown_type", fmt.Sprintf(unknownTypeErrorFormat, cfg.Type)}
	}
	return nil
}

func readOAuth(f *configEntryReader, raw json.RawMessage) (cfg oauth.Config) {
	if raw == nil {
		return cfg
	}
	o := readEntry(raw)
	o.Decode("oauth", &cfg)
	if at := cfg.AuthServerMetadataURL; at != "" && !strings.HasPrefix(at, "https://") {
		o.AddProblem("authServerMetadataUrl: authServerMetadataUrl must use https://")
	}
	for _, problem := range o.Problems {
		f.AddProblem("oauth.%s", problem)
	}
	return cfg
}

// ExpandVariables returns a copy of the entry in which variables such as ${NAME} are replaced by their values.
func (cfg ServerConfig) ExpandVariables(o Options) ServerConfig {
	cfg, _ = expandConfig(cfg, newVariables(o.Environ, o.CWD))
	return cfg
}

// NewOAuthClient returns the OAuth client for the server. It must be called on an entry that Expand returned, because
// variables must be replaced. Of the options it uses only Credentials.
func (cfg ServerConfig) NewOAuthClient(o Options) *oauth.Client {
	return oauth.NewClient(oauth.Options{
		Server: oauth.Server{Name: cfg.Name, Type: cfg.Type, URL: cfg.URL, Headers: cfg.Headers},
		Config: cfg.OAuth, Store: oauth.Store{Path: o.Credentials.Path}, Clock: o.withDefaults().Credentials,
	})
}

var strictServerNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// IsValidServerName reports whether a server that is added by a command or at run time may have this name. Names in
// configuration files need not follow this rule.
func IsValidServerName(name string) bool { return strictServerNamePattern().MatchString(name) }

// parseServerEntryWithTransport parses an entry with "transport", without expanding values. Unknown members are errors.
func parseServerEntryWithTransport(entry *configEntryReader) (ServerConfig, *configEntryError) {
	var in struct{ Transport string }
	entry.Decode("transport", &in)
	cfg := ServerConfig{Type: in.Transport, IsLiteral: true}
	if problem := readTransportMembers(entry, &cfg, `Skipped — unknown MCP server transport %q for "%%NAME%%"`); problem != nil {
		return cfg, problem
	}
	options := struct {
		Seconds       float64 `json:"timeout_s"`
		AutoReconnect bool    `json:"auto_reconnect"`
	}{30, true}
	entry.Decode("options of servers", &options)
	if options.Seconds <= 0 {
		entry.AddProblem("timeout_s: must be greater than 0")
	}
	cfg.Timeout, cfg.AutoReconnect = milliseconds(options.Seconds*1000), &options.AutoReconnect
	for _, name := range entry.UnreadMembers() {
		entry.AddProblem("%s: unknown key", name)
	}
	return cfg, nil
}
