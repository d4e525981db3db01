// An MCP server made with the TypeScript SDK, as a peer for tests of the client.
//
//	node peer.mjs DIR             serves stdio; DIR has node_modules with the SDK
//	node peer.mjs DIR http PORT   serves streamable HTTP at /mcp
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [dir, way, port] = process.argv.slice(2);
const require = createRequire(dir + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server");
const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
const { toNodeHandler } = await load("@modelcontextprotocol/node");
const { z } = await load("zod");

function makeServer() {
  const server = new McpServer({ name: "typescript", version: "1.0.0" });
  server.registerTool("echo", { description: "says it again", inputSchema: z.object({ message: z.string() }) }, async ({ message }) => ({
    content: [{ type: "text", text: "echo: " + message }],
  }));
  server.registerResource("static", "test://static", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "static body" }] }));
  server.registerPrompt("greet", {}, async () => ({ messages: [{ role: "user", content: { type: "text", text: "Please greet" } }] }));
  return server;
}

if (way === "http") createServer(toNodeHandler(createMcpHandler(makeServer))).listen(Number(port), "127.0.0.1");
else serveStdio(makeServer);
