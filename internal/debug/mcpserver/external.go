package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
)

func externalTools() []tool {
	server := param{name: "server", kind: kindText, doc: "only this server"}
	return []tool{
		{name: "external_list_servers", doc: "List the external MCP servers with their status.", run: requireServers(listServers)},
		{name: "external_list_tools", doc: "List the tools of the external servers, named server/tool.", run: requireServers(listTools), params: []param{server}},
		{name: "external_call_tool", doc: "Call a tool of an external server. The call is recorded; breakpoints do not stop it.", run: requireServers(callExternalTool), params: []param{
			{name: "tool", kind: kindText, required: true, doc: "server/tool"},
			{name: "arguments", kind: kindObject, doc: "the tool's arguments; default {}"},
		}},
		{name: "external_list_resources", doc: "List the resources of the external servers.", run: requireServers(listResources), params: []param{server}},
		{name: "external_read_resource", doc: "Read a resource of an external server.", run: requireServers(readExternalResource), params: []param{
			{name: "server", kind: kindText, required: true, doc: "the server"},
			{name: "uri", kind: kindText, required: true, doc: "of the resource"},
		}},
	}
}

// requireServers returns a handler. It fails if there are no external servers; otherwise run computes the answer later.
func requireServers(run func(ctx context.Context, m *debug.ServerManager, a arguments) (any, error)) func(context.Context, *hubAccess, arguments) (any, error) {
	return func(_ context.Context, f *hubAccess, a arguments) (any, error) {
		if f.external == nil {
			return nil, debug.NewError("mcp_clients_unavailable", "start the debugger with --mcp-clients to use external servers")
		}
		return wire.DeferredAnswer(func(ctx context.Context) (any, error) { return run(ctx, f.external, a) }), nil
	}
}

func listServers(_ context.Context, m *debug.ServerManager, _ arguments) (any, error) {
	type server struct {
		Status string `json:"status"`
		Tools  *int   `json:"tool_count,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	servers := map[string]server{}
	for _, c := range m.Servers() {
		v := server{Status: c.Status, Error: c.Error}
		if c.Status == debug.StatusConnected {
			n := len(c.Tools)
			v.Tools = &n
		}
		servers[c.Name] = v
	}
	return fields{"servers": servers}, nil
}

func listTools(_ context.Context, m *debug.ServerManager, a arguments) (any, error) {
	tools, err := m.Tools(a.text("server"))
	return fields{"tools": tools}, err
}

// callExternalTool returns the result as the server sent it.
func callExternalTool(ctx context.Context, m *debug.ServerManager, a arguments) (any, error) {
	result, err := m.Call(ctx, a.text("tool"), a["arguments"])
	if err != nil {
		return nil, err
	}
	var meta struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(result, &meta) == nil && meta.IsError {
		return errorResult{result}, nil
	}
	return result, nil
}

func listResources(_ context.Context, m *debug.ServerManager, a arguments) (any, error) {
	resources, err := m.Resources(a.text("server"))
	return fields{"resources": resources}, err
}

func readExternalResource(ctx context.Context, m *debug.ServerManager, a arguments) (any, error) {
	return m.ReadResource(ctx, a.text("server"), a.text("uri"))
}
