"""A tool server of the Python SDK: over HTTP on the port of the first argument, or with `stdio` as a program."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("python")


@server.tool()
def look(city: str) -> str:
    """Looks at the weather."""
    return f"rain in {city}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
