// Package mcpface offers the hub to AI agents as an MCP server: breakpoints,
// paused calls, evaluations and records as tools, resources and prompts, the
// hub's events as notifications, and the tools of the external servers.
//
// The package keeps no state of its own, so its answers agree with those of the
// other front ends.
//
// # Mounting
//
// Make one [Server] with [New] for one hub, and let [Server.Run] go on as long
// as the program does: it hands the hub's events to all clients there are.
// [Server.ServeStdio] serves one client over a pair of streams and returns at
// its end. [Server.Handler] answers these paths, and nothing else:
//
//	/mcp           streamable HTTP
//	/mcp/sse       the stream of the older HTTP transport
//	/mcp/messages  its messages
//
// Host and Origin are left to the server, see package serve.
//
// A session over streamable HTTP ends after half an hour without a request or an
// open stream, and its next request is told so. What waits for clients that do
// not come is bounded over all sessions; how many notifications a session missed
// for that is in the _meta of its next tool result, as
// claudeless/missedNotifications.
//
// # Answers
//
// The result of a tool is one text that holds a JSON object. An error has the
// member "error" with a code, and isError is set; wrong arguments and unknown
// tools are errors of this kind too. Parameters that a tool does not know are
// ignored. A resource that does not exist, and a prompt that cannot be made, are
// errors of the protocol.
package mcpface
