package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestEntries: dialects, entry errors and merge order (M1, M2, M3, M4).
func TestEntries(t *testing.T) {
	on, off := true, false
	tests := []struct {
		name   string
		values []string
		want   []ServerConfig
		errors []protocol.MCPServerError
	}{
		{
			name:   "one bad, one good", // golden mcp-cfg-one-bad-one-good
			values: []string{`{"mcpServers":{"good":{"command":"node","args":["x"],"extra":1},"bad":{"command":5}}}`},
			want:   []ServerConfig{{Name: "good", Source: "dynamic", Type: "stdio", Command: "node", Args: []string{"x"}}},
			errors: []protocol.MCPServerError{{Name: "bad", Type: "invalid_config", Message: `Skipped — invalid MCP server config for "bad": command: expected string, received number`}},
		},
		{
			name: "all kinds of entry errors",
			values: []string{`{"mcpServers":{"workspace":{"command":"x"},"u":{"url":"http://h"},"k":{"type":"carrier-pigeon"},
				"n":7,"m":{},"a":{"command":"x","args":[1],"env":{"K":2}}}}`},
			errors: []protocol.MCPServerError{
				{Name: "workspace", Type: "reserved_name", Message: `Skipped — "workspace" is a reserved MCP server name`},
				{Name: "u", Type: "url_missing_type", Message: `Skipped — MCP server "u" has a "url" but no "type"; add "type": "http" (or "sse" / "ws") to this entry`},
				{Name: "k", Type: "unknown_type", Message: `Skipped — unknown MCP server type "carrier-pigeon" for server "k"`},
				{Name: "n", Type: "invalid_config", Message: `Skipped — invalid MCP server config for "n": expected object, received number`},
				{Name: "m", Type: "invalid_config", Message: `Skipped — invalid MCP server config for "m": command: expected string, received undefined`},
				{Name: "a", Type: "invalid_config", Message: `Skipped — invalid MCP server config for "a": args.0: expected string, received number; env.K: expected string, received number`},
			},
		},
		{
			name: "later values win, places stay",
			values: []string{
				`{"mcpServers":{"b":{"command":"1"},"a":{"command":"1"},"b":{"command":"2"}}}`,
				`{"mcpServers":{"c":{"command":"1"},"a":{"type":"streamable-http","url":"http://h","headers":{"X":"y"}}}}`,
			},
			want: []ServerConfig{
				{Name: "b", Source: "dynamic", Type: "stdio", Command: "2"},
				{Name: "a", Source: "dynamic", Type: "http", URL: "http://h", Headers: map[string]string{"X": "y"}},
				{Name: "c", Source: "dynamic", Type: "stdio", Command: "1"},
			},
		},
		{
			name: "own keys",
			values: []string{`{"mcpServers":{"s":{"command":"x","cwd":"/w","timeout":1500,"connectTimeout":10,"maxTotal":20,
				"shutdownGrace":30,"maxLineBytes":40,"autoReconnect":false,"alwaysLoad":true},"t":{"command":"x","timeout":999}}}`},
			want: []ServerConfig{
				{
					Name: "s", Source: "dynamic", Type: "stdio", Command: "x", CWD: "/w", Timeout: 1500 * time.Millisecond,
					ConnectTimeout: 10 * time.Millisecond, MaxTotal: 20 * time.Millisecond, ShutdownGrace: 30 * time.Millisecond,
					MaxLineBytes: 40, AutoReconnect: &off, AlwaysLoad: true,
				},
				{Name: "t", Source: "dynamic", Type: "stdio", Command: "x"},
			},
		},
		{
			name:   "servers with transport",
			values: []string{`{"servers":{"s":{"transport":"stdio","command":"x","timeout_s":2},"u":{"transport":"sse","url":"http://h","comment":1}}}`},
			want: []ServerConfig{{
				Name: "s", Source: "dynamic", Type: "stdio", Command: "x", Timeout: 2 * time.Second, AutoReconnect: &on, IsLiteral: true,
			}},
			errors: []protocol.MCPServerError{{Name: "u", Type: "invalid_config", Message: `Skipped — invalid MCP server config for "u": comment: unknown key`}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := LoadConfigs(ConfigOptions{Values: test.values, CWD: t.TempDir(), EntriesHaveTransport: test.name == "servers with transport"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Servers); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.errors, got.Errors); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestConfigErrors: errors that end the run. The second line is that of the real CLI.
func TestConfigErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("broken.json", `{"mcpServers":`)
	write("lax.json", "{\n// comment\n\"mcpServers\": {},}")
	for _, test := range []struct{ value, want string }{
		{"nosuch.json", "MCP config file not found: " + filepath.Join(dir, "nosuch.json")},
		{"{bad", "MCP config file not found: " + filepath.Join(dir, "{bad")},
		{"broken.json", "MCP config is not a valid JSON"},
		{"{}", "mcpServers: Invalid input: expected record, received undefined"},
		{`{"mcpServers":[]}`, "mcpServers: Invalid input: expected record, received array"},
		{`{"servers":{}}`, `mcpServers: Missing "mcpServers" — found "servers" instead. Claude Code reads MCP servers from the "mcpServers" key.`},
		{"lax.json", ""},
	} {
		_, err := LoadConfigs(ConfigOptions{Values: []string{test.value}, CWD: dir})
		var ce *ConfigFlagError
		switch {
		case test.want == "":
			if err != nil {
				t.Error(err)
			}
		case !errors.As(err, &ce) || err.Error() != "Invalid MCP configuration:\n"+test.want:
			t.Errorf("%s: %v", test.value, err)
		}
	}
}

// TestScopes checks that the flag has precedence over local, project and user scope, in this order. It also checks that
// only flags are used on request, that disabled project servers are excluded, and that unset variables are reported.
func TestScopes(t *testing.T) {
	dir := t.TempDir()
	project := `{"mcpServers":{"a":{"command":"project"},"p":{"command":"project"},"q":{"command":"q"}}}`
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ConfigOptions{
		CWD:    dir,
		Values: []string{`{"mcpServers":{"p":{"command":"flag ${NOPE} ${YES} ${D:-d}"}}}`},
		Scopes: []ScopeServers{
			{Source: "user", Servers: []byte(`{"a":{"command":"user"},"u":{"command":"user"},"l":{"command":"user"}}`)},
			{Source: "project"},
			{Source: "local", Servers: []byte(`{"l":{"command":"local"}}`)},
		},
		DisabledProject: []string{"q"},
		Environ:         []string{"YES=1"},
	}
	show := func(c Config) string {
		var b strings.Builder
		for _, s := range c.Servers {
			b.WriteString(s.Name + "=" + s.Source + " ")
		}
		return b.String()
	}
	got, err := LoadConfigs(o)
	if err != nil || show(got) != "a=project u=user l=local p=dynamic " {
		t.Errorf("%s %v", show(got), err)
	}
	if diff := cmp.Diff([]string{`MCP server "p": variable NOPE is not set`}, got.Warnings); diff != "" {
		t.Error(diff)
	}
	o.Scopes = nil
	if got, _ := LoadConfigs(o); show(got) != "p=dynamic " {
		t.Error(show(got))
	}
}

func FuzzLoadConfigs(f *testing.F) {
	f.Add(`{"mcpServers":{"s":{"command":"x","args":["${A:-b}"]}}}`)
	f.Add(`{"servers":{"s":{"transport":"sse","url":"http://h"}}}`)
	f.Add(`{"mcpServers":{"s":{"type":"http","url":null,"headers":{"a":[]}}}}`)
	f.Fuzz(func(t *testing.T, value string) {
		if !strings.HasPrefix(strings.TrimSpace(value), "{") {
			return // a file name
		}
		c, err := LoadConfigs(ConfigOptions{Values: []string{value}, CWD: t.TempDir()})
		if err != nil {
			return
		}
		for _, s := range c.Servers {
			if s.Type == "stdio" && s.Source != "dynamic" {
				t.Errorf("source %q", s.Source)
			}
		}
	})
}

// TestValidName: the rule for servers added at run time (S6).
func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{"a-B_9": true, "": false, "a b": false, "a/b": false, "é": false} {
		if got := IsValidServerName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
