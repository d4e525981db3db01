package debug

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp"
)

// ParseServerEntry parses the configuration of one server: transport; command, args, env and cwd, or url; timeout_s;
// auto_reconnect. Other members and wrong types are errors that name the field.
func ParseServerEntry(name string, entry json.RawMessage) (mcp.ServerConfig, error) {
	if !mcp.IsValidServerName(name) {
		return mcp.ServerConfig{}, invalidServerNameError(name)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(entry, &fields) != nil || fields == nil {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: its entry must be an object", name)
	}
	if _, ok := fields["transport"]; !ok {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: missing `transport`: set it to stdio, sse or http", name)
	}
	doc, err := json.Marshal(map[string]any{"servers": map[string]any{name: fields}})
	if err != nil {
		return mcp.ServerConfig{}, err
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(doc)}, EntriesHaveTransport: true})
	if err != nil {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: %w", name, err)
	}
	if len(config.Errors) > 0 {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: %s", name, config.Errors[0].Message)
	}
	if len(config.Servers) != 1 {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: the entry must describe exactly one MCP server", name)
	}
	cfg := config.Servers[0]
	if transports := []string{"stdio", "sse", "http"}; !slices.Contains(transports, cfg.Type) {
		return mcp.ServerConfig{}, fmt.Errorf("server %q: transport %q is not one of stdio, sse, http", name, cfg.Type)
	}
	cfg.Source = runtimeServerSource
	return cfg, nil
}

// ParseServerConfig parses a configuration file: {"servers": {NAME: ENTRY}}. The error lists every problem in it.
func ParseServerConfig(file string, data []byte) ([]mcp.ServerConfig, error) {
	var doc struct {
		Servers *json.RawMessage `json:"servers"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s%s: %w", file, syntaxErrorPosition(data, err), err)
	}
	if doc.Servers == nil {
		return nil, fmt.Errorf(`%s: the key "servers" is missing`, file)
	}
	servers, err := plainjson.Parse(*doc.Servers)
	if err != nil {
		return nil, fmt.Errorf(`%s: "servers" must be an object`, file)
	}
	var all []mcp.ServerConfig
	var wrong []error
	for _, server := range servers {
		cfg, err := ParseServerEntry(server.Key, server.Value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
			continue
		}
		cfg.Source = ""
		all = AddOrReplaceServer(all, cfg)
	}
	return all, errors.Join(wrong...)
}

// syntaxErrorPosition returns ":LINE:COL" of a JSON syntax error, or "" for other errors.
func syntaxErrorPosition(data []byte, err error) string {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return ""
	}
	before := data[:min(int(syntax.Offset), len(data))]
	return fmt.Sprintf(":%d:%d", bytes.Count(before, []byte("\n"))+1, max(1, len(before)-bytes.LastIndexByte(before, '\n')-1))
}

// ParseInlineServer parses "NAME:VALUE". If VALUE is a URL, the server is reached over SSE. Otherwise, VALUE is a
// command and its arguments, separated by white space.
func ParseInlineServer(nameColonCommandOrURL string) (serverConfig mcp.ServerConfig, syntaxError error) {
	name, value, ok := strings.Cut(nameColonCommandOrURL, ":")
	value = strings.TrimSpace(value)
	switch {
	case !ok:
		return mcp.ServerConfig{}, fmt.Errorf("invalid server %q: expected NAME:COMMAND or NAME:URL", nameColonCommandOrURL)
	case name == "":
		return mcp.ServerConfig{}, fmt.Errorf("invalid server %q: the name is empty", nameColonCommandOrURL)
	case value == "":
		return mcp.ServerConfig{}, fmt.Errorf("invalid server %q: the command or URL is empty", nameColonCommandOrURL)
	case !mcp.IsValidServerName(name):
		return mcp.ServerConfig{}, invalidServerNameError(name)
	}
	cfg := mcp.ServerConfig{Name: name, AutoReconnect: new(true), Timeout: 30 * time.Second, IsLiteral: true}
	if strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://") {
		cfg.Type, cfg.URL = "sse", value
		return cfg, nil
	}
	words := strings.Fields(value)
	cfg.Type, cfg.Command, cfg.Args = "stdio", words[0], words[1:]
	return cfg, nil
}

// AddOrReplaceServer adds a server to a list. It replaces an earlier server with the same name.
func AddOrReplaceServer(list []mcp.ServerConfig, cfg mcp.ServerConfig) []mcp.ServerConfig {
	if at := slices.IndexFunc(list, func(c mcp.ServerConfig) bool { return c.Name == cfg.Name }); at >= 0 {
		list[at] = cfg
		return list
	}
	return append(list, cfg)
}
