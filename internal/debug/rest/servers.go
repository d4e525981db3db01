package rest

import (
	"encoding/json"
	"net/http"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

func serverRoutes(external *debug.ServerManager) []route {
	table := []route{
		{method: "GET", path: "/api/mcp-clients", summary: "List external servers", answer: (*api).listServers},
		{method: "POST", path: "/api/mcp-clients/connect", summary: "Add an external server", answer: withBody((*api).connectServer)},
		{method: "POST", path: "/api/mcp-clients/{name}/disconnect", summary: "Disconnect an external server", answer: (*api).disconnectServer},
		{method: "POST", path: "/api/mcp-clients/{name}/reconnect", summary: "Connect an external server again", answer: (*api).reconnectServer},
		{method: "GET", path: "/api/mcp-tools", summary: "List external tools", answer: (*api).tools},
		{method: "POST", path: "/api/mcp-tools/call", summary: "Call an external tool", answer: withBody((*api).callTool)},
		{method: "GET", path: "/api/mcp-resources", summary: "List external resources", answer: (*api).resources},
		{method: "POST", path: "/api/mcp-resources/read", summary: "Read an external resource", answer: withBody((*api).readResource)},
	}
	if external == nil {
		for i := range table {
			table[i].answer = func(*api, *http.Request) (any, error) {
				return nil, &debug.Error{Code: codeNoServers, Message: "start the debugger with --mcp-clients to use external servers"}
			}
		}
	}
	return table
}

func (a *api) listServers(*http.Request) (any, error) {
	out := map[string]any{}
	for _, c := range a.External.Servers() {
		out[c.Name] = c
	}
	return fields{"clients": out}, nil
}

// connectServer connects an external MCP server. The body is its configuration entry with one more member, "name".
func (a *api) connectServer(r *http.Request, entry map[string]json.RawMessage) (any, error) {
	var name string
	if err := json.Unmarshal(entry["name"], &name); err != nil || name == "" {
		return nil, debug.MissingParameter("name")
	}
	delete(entry, "name")
	config, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	tools, err := a.External.Connect(r.Context(), name, config)
	return compat.SuccessFields("name", name, "tools", tools), err
}

func (a *api) disconnectServer(r *http.Request) (any, error) {
	name := r.PathValue("name")
	return compat.SuccessFields("name", name), a.External.Disconnect(r.Context(), name)
}

func (a *api) reconnectServer(r *http.Request) (any, error) {
	name := r.PathValue("name")
	tools, err := a.External.Reconnect(r.Context(), name)
	return compat.SuccessFields("name", name, "tools", tools), err
}

func (a *api) tools(r *http.Request) (any, error) {
	tools, err := a.External.Tools(r.URL.Query().Get("server"))
	return fields{"tools": tools}, err
}

type toolCallRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func (a *api) callTool(r *http.Request, in toolCallRequest) (any, error) {
	if in.Tool == "" {
		return nil, debug.MissingParameter("tool")
	}
	if args := in.Arguments; len(args) > 0 && args[0] != '{' && string(args) != "null" {
		return nil, &debug.Error{Code: debug.CodeInvalidArguments, Message: "arguments must be an object", Detail: fields{"parameter": "arguments"}}
	}
	if string(in.Arguments) == "null" {
		in.Arguments = nil
	}
	result, err := a.External.Call(r.Context(), in.Tool, in.Arguments)
	return fields{"result": result}, err
}

func (a *api) resources(r *http.Request) (any, error) {
	resources, err := a.External.Resources(r.URL.Query().Get("server"))
	return fields{"resources": resources}, err
}

func (a *api) readResource(r *http.Request, in struct{ Server, URI string }) (any, error) {
	switch {
	case in.Server == "":
		return nil, debug.MissingParameter("server")
	case in.URI == "":
		return nil, debug.MissingParameter("uri")
	}
	return a.External.ReadResource(r.Context(), in.Server, in.URI)
}
