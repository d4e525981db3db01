// Package mcpserver offers the hub to AI agents as an MCP server: breakpoints, paused calls, evaluations and records as
// tools, resources and prompts, the hub's events as notifications, and the tools of the external servers.
//
// The package keeps no state, so its answers agree with those of the other front ends.
//
// # Mounting
//
// Make one [Server] with [New] for one hub and run [Server.ForwardEvents] for the lifetime of the program: it forwards
// the hub's events to all clients. [Server.ServeStdio] serves one client over a pair of streams and returns when the
// input ends. [Server.Handler] serves these paths only:
//
//	/mcp           streamable HTTP
//	/mcp/sse       the stream of the older HTTP transport
//	/mcp/messages  its messages
//
// The handler does not check Host and Origin; localhttp.Guard does.
//
// A session over streamable HTTP ends after half an hour without a request or an open stream; its next request gets an
// error with the reason. Messages that wait for clients are bounded over all sessions. The number of notifications that
// a session missed for that reason is in the _meta of its next tool result, as claudeless/toolResultMeta.
//
// # Results
//
// The result of a tool is one text that holds a JSON object. An error has the member "error" with a code, and isError
// is set; invalid arguments and unknown tools are errors of this kind, too. Parameters that a tool does not know are
// ignored. A resource that does not exist and a prompt that cannot be created are errors of the protocol.
package mcpserver
