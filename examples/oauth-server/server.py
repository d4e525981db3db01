"""Notes behind a login: resource server and authorization server on one port, which is the first argument."""
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

address = f"http://127.0.0.1:{sys.argv[1]}"
auth = InMemoryOAuthProvider(
    base_url=address,
    required_scopes=["notes"],
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["notes"], default_scopes=["notes"]),
)
server = FastMCP("notes", auth=auth)


@server.tool
def read() -> str:
    """Read the notes."""
    return "buy milk"


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
