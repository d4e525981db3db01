package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

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

// strict refuses a run whose servers are not all there, if it is to.
func (r *run) strict() error {
	strict := r.f.StrictMCPConfig && r.sys.Getenv("CLAUDELESS_STRICT_MCP") != "report"
	if !strict && !r.f.MCPRequire {
		return nil
	}
	return r.failedServers()
}

// statuses are the servers that were tried.
func (r *run) statuses() []mcp.ServerStatus {
	if r.manager == nil {
		return nil
	}
	return r.manager.Servers()
}

// failedServers is one line for each server that is not there.
func (r *run) failedServers() error {
	var lines []string
	for _, e := range r.servers.Errors {
		lines = append(lines, fmt.Sprintf("MCP server '%s' failed to start: %s", e.Name, e.Message))
	}
	for _, st := range r.statuses() {
		if st.Status != "connected" && st.Status != "disabled" {
			reason := st.Error
			if reason == "" {
				reason = "no answer in time"
			}
			lines = append(lines, fmt.Sprintf("MCP server '%s' failed to start: %s", st.Name, reason))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return claudeErrorf("%s", strings.Join(lines, "\n"))
}
