"""An MCP server made with the Python SDK, as a peer for tests of the client.

    peer.py                 serves stdio
    peer.py http PORT       serves streamable HTTP at /mcp
    peer.py sse PORT        serves the older transport at /sse

It runs on version 1 of the package, with FastMCP, and on version 2.
"""

import sys

try:
    from mcp.server.fastmcp import Context, FastMCP as Server

    VERSION = 1
except ImportError:
    from mcp.server.mcpserver import Context, MCPServer as Server

    VERSION = 2

way = sys.argv[1] if len(sys.argv) > 1 else "stdio"
port = {"port": int(sys.argv[2])} if len(sys.argv) > 2 else {}
server = Server("python", **(port if VERSION == 1 else {}))


@server.tool(structured_output=False)
def echo(message: str) -> str:
    """Says it again."""
    return "echo: " + message


@server.tool()
def sum(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"total": a + b}


@server.tool(structured_output=False)
def fail() -> str:
    """Fails."""
    raise ValueError("it failed")


@server.tool(structured_output=False)
async def progress(steps: int, ctx: Context) -> str:
    """Takes its time."""
    for i in range(steps):
        await ctx.report_progress(i + 1, steps)
    return "done"


@server.resource("test://static", mime_type="text/plain")
def static() -> str:
    return "static body"


@server.prompt()
def greet(name: str) -> str:
    return "Please greet " + name


transport = {"http": "streamable-http"}.get(way, way)
server.run(transport, **(port if VERSION == 2 else {}))
