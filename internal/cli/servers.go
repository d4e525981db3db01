package cli

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// scenarioServers is the scenario's [mcp.servers] as a --mcp-config value; ""
// when there are none. A fixture is served by this very binary.
func (r *run) scenarioServers() (string, error) {
	names := r.scenario.MCP.ServerNames()
	if len(names) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	out.WriteString(`{"mcpServers":{`)
	for i, name := range names {
		entry := map[string]any{}
		maps.Copy(entry, r.scenario.MCP.Servers[name])
		if fixture, ok := entry["fixture"].(string); ok {
			delete(entry, "fixture")
			entry["command"] = "${CLAUDELESS_BIN}"
			entry["args"] = []string{"fixture", "serve", r.besideScenario(fixture)}
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

// besideScenario makes a path of the scenario file absolute; a bare name of the
// fixture library stays.
func (r *run) besideScenario(path string) string {
	if filepath.IsAbs(path) || filepath.Base(path) == path && filepath.Ext(path) == "" {
		return path
	}
	dir := filepath.Dir(r.scenarioPath)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.cwd, dir)
	}
	return filepath.Join(dir, path)
}

// elicit answers what a server asks the user: as the scenario says, else as
// the host says, else as the real CLI does in print mode, by cancelling.
func (r *run) elicit(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer {
	scripted := r.scenario.MCP.Elicitation
	if scripted == nil && r.peer != nil {
		action, content := r.peer.Elicit(ctx, control.Question{Server: q.Server, Message: q.Message, Mode: "form", Schema: q.Schema})
		return mcp.ElicitAnswer{Action: action, Content: content}
	}
	if scripted == nil {
		return mcp.ElicitAnswer{}
	}
	answer := mcp.ElicitAnswer{Action: scripted.Action}
	if answer.Action == "" {
		answer.Action = "decline"
	}
	if content, err := protocol.Marshal(scripted.Content); err == nil && answer.Action == "accept" && scripted.Content != nil {
		answer.Content = content
	}
	return answer
}
