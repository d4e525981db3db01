"""A server with the stock of a shop."""
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

server = FastMCP("stock")
shelf = {"apples": 7, "pears": 0}


@server.tool
def count(item: str) -> int:
    """How many of an item are in stock."""
    if item not in shelf:
        raise ToolError(f"unknown item {item}")
    return shelf[item]


@server.tool
def take(item: str, number: int) -> str:
    """Take items out of the stock."""
    if number > shelf[item]:
        raise ToolError(f"only {shelf[item]} {item} left")
    shelf[item] -= number
    return f"{shelf[item]} {item} left"


if __name__ == "__main__":
    server.run(show_banner=False, log_level="ERROR")
