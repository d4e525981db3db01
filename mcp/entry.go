package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/ordered"
)

// entryError says why one entry is skipped.
type entryError struct{ kind, message string }

// fields reads the members of one entry and collects what is wrong with them.
type fields struct {
	m        map[string]json.RawMessage
	problems []string
	seen     map[string]bool
}

func newFields(entry json.RawMessage) *fields {
	f := &fields{seen: map[string]bool{}}
	if ordered.TypeOf(entry) != "object" {
		f.problem("", "object", entry)
		return f
	}
	if err := json.Unmarshal(entry, &f.m); err != nil {
		f.problems = append(f.problems, err.Error())
	}
	return f
}

func (f *fields) problem(field, want string, got json.RawMessage) {
	text := fmt.Sprintf("expected %s, received %s", want, ordered.TypeOf(got))
	if field != "" {
		text = field + ": " + text
	}
	f.problems = append(f.problems, text)
}

func (f *fields) get(name, kind string) (json.RawMessage, bool) {
	f.seen[name] = true
	v, ok := f.m[name]
	if !ok {
		return nil, false
	}
	if k := ordered.TypeOf(v); k != kind {
		want := kind
		if kind == "object" {
			want = "record"
		}
		f.problem(name, want, v)
		return nil, false
	}
	return v, true
}

func read[T any](f *fields, name, kind string) (v T) {
	if raw, ok := f.get(name, kind); ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			f.problems = append(f.problems, name+": "+err.Error())
		}
	}
	return v
}

func (f *fields) text(name string) string { return read[string](f, name, "string") }
func (f *fields) flag(name string) bool   { return read[bool](f, name, "boolean") }

func (f *fields) required(name string) string {
	if _, ok := f.m[name]; !ok {
		f.problem(name, "string", nil)
	}
	return f.text(name)
}

func (f *fields) duration(name string, unit time.Duration) time.Duration {
	return time.Duration(read[float64](f, name, "number") * float64(unit))
}

func (f *fields) optionalFlag(name string) *bool {
	if _, ok := f.m[name]; !ok {
		return nil
	}
	v := f.flag(name)
	return &v
}

func (f *fields) list(name string) []string {
	raw, ok := f.get(name, "array")
	if !ok {
		return nil
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // its kind was checked
	all := make([]string, len(elements))
	for i, e := range elements {
		if json.Unmarshal(e, &all[i]) != nil || ordered.TypeOf(e) != "string" {
			f.problem(fmt.Sprintf("%s.%d", name, i), "string", e)
		}
	}
	return all
}

func (f *fields) table(name string) map[string]string {
	raw, ok := f.get(name, "object")
	if !ok {
		return nil
	}
	all := map[string]string{}
	entries, _ := members(raw) // its kind was checked
	for _, e := range entries {
		var v string
		if json.Unmarshal(e.Value, &v) != nil || ordered.TypeOf(e.Value) != "string" {
			f.problem(name+"."+e.Key, "string", e.Value)
		}
		all[e.Key] = v
	}
	return all
}

// unknown names the members nobody asked for.
func (f *fields) unknown() []string {
	var names []string
	for name := range maps.Keys(f.m) {
		if !f.seen[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// claudeEntry reads an entry of mcpServers; unknown members are tolerated.
// cwd, connectTimeout, maxTotal, shutdownGrace (ms), maxLineBytes,
// autoReconnect, disabled and timeoutMs are our own.
func claudeEntry(f *fields) (ServerConfig, *entryError) {
	if f.m == nil {
		return ServerConfig{}, nil
	}
	if _, ok := f.m["type"]; !ok && f.m["url"] != nil && f.m["command"] == nil {
		return ServerConfig{}, &entryError{
			"url_missing_type",
			`MCP server "%NAME%" has a "url" but no "type"; add "type": "http" (or "sse" / "ws") to this entry`,
		}
	}
	cfg := ServerConfig{Type: f.text("type")}
	if len(f.problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server type %q for server "%%NAME%%"`, cfg.Type)}
	}
	f.common(&cfg)
	const ignoredBelow = time.Second
	cfg.Timeout = max(f.duration("timeout", time.Millisecond), f.duration("timeoutMs", time.Millisecond))
	if cfg.Timeout < ignoredBelow {
		cfg.Timeout = 0
	}
	cfg.MaxTotal = f.duration("maxTotal", time.Millisecond)
	cfg.ConnectTimeout = f.duration("connectTimeout", time.Millisecond)
	cfg.ShutdownGrace = f.duration("shutdownGrace", time.Millisecond)
	cfg.MaxLineBytes = int(read[float64](f, "maxLineBytes", "number"))
	cfg.AlwaysLoad = f.flag("alwaysLoad")
	cfg.AutoReconnect = f.optionalFlag("autoReconnect")
	cfg.Disabled = f.flag("disabled")
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
func (f *fields) common(cfg *ServerConfig) {
	switch cfg.Type {
	case typeStdio:
		cfg.Command = f.required("command")
		cfg.Args = f.list("args")
		cfg.Env = f.table("env")
		cfg.CWD = f.text("cwd")
	case typeSDK:
		f.text("name")
	default:
		cfg.URL = f.required("url")
		cfg.Headers = f.table("headers")
		cfg.HeadersHelper = f.text("headersHelper")
	}
}

// codeEntry reads an entry of an editor's mcp.json: servers without transport.
func codeEntry(f *fields) (ServerConfig, *entryError) {
	if f.m == nil {
		return ServerConfig{}, nil
	}
	cfg := ServerConfig{Type: f.text("type")}
	if cfg.Type == "" && f.m["url"] != nil {
		cfg.Type = typeHTTP
	}
	cfg.OrSSE = cfg.Type == typeHTTP // this dialect's http is either
	if len(f.problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server type %q for server "%%NAME%%"`, cfg.Type)}
	}
	f.common(&cfg)
	return cfg, nil
}

var managedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// ValidName reports whether servers may be added under a name at run time.
func ValidName(name string) bool { return managedName().MatchString(name) }

// managedEntry reads an entry of the servers dialect with transport, whose
// unknown members are errors and whose values are taken literally.
func managedEntry(f *fields) (ServerConfig, *entryError) {
	if f.m == nil {
		return ServerConfig{}, nil
	}
	on := true
	cfg := ServerConfig{Type: f.required("transport"), AutoReconnect: &on, Literal: true}
	if len(f.problems) == 0 && !knownType(&cfg.Type) {
		return cfg, &entryError{"unknown_type", fmt.Sprintf(`Skipped — unknown MCP server transport %q for "%%NAME%%"`, cfg.Type)}
	}
	f.common(&cfg)
	cfg.Timeout = 30 * time.Second
	if _, ok := f.m["timeout_s"]; ok {
		if cfg.Timeout = f.duration("timeout_s", time.Second); cfg.Timeout <= 0 {
			f.problems = append(f.problems, "timeout_s: must be greater than 0")
		}
	}
	if set := f.optionalFlag("auto_reconnect"); set != nil {
		cfg.AutoReconnect = set
	}
	for _, name := range f.unknown() {
		f.problems = append(f.problems, fmt.Sprintf("%s: unknown key", name))
	}
	return cfg, nil
}

// variable is ${NAME}, ${NAME:-default} or an editor's ${env:NAME}.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })

// expand puts values for variables; what is unset and has no default stays as
// it stands and is listed.
func expand(text string, lookup func(string) (string, bool)) (expanded string, unset []string) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	expanded = variable().ReplaceAllStringFunc(text, func(whole string) string {
		parts := variable().FindStringSubmatch(whole)
		name := strings.TrimPrefix(parts[1], "env:")
		if v, ok := lookup(name); ok {
			return v
		}
		if parts[2] != "" {
			return parts[2][len(":-"):]
		}
		unset = append(unset, name)
		return whole
	})
	return expanded, unset
}

// expandConfig expands command, arguments, environment, url and headers.
func expandConfig(cfg ServerConfig, lookup func(string) (string, bool)) (ServerConfig, []string) {
	if cfg.Literal {
		return cfg, nil
	}
	var unset []string
	one := func(s string) string {
		s, missing := expand(s, lookup)
		unset = append(unset, missing...)
		return s
	}
	table := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		for _, k := range sortedKeys(m) {
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

// lookupFunc finds variables in an environment; workspaceFolder is cwd.
func lookupFunc(environ []string, cwd string) func(string) (string, bool) {
	vars := map[string]string{"workspaceFolder": cwd, "workspaceFolderBasename": filepath.Base(cwd)}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	if home, ok := vars["HOME"]; ok {
		vars["userHome"] = home
	}
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}
