"""Server of the Model Context Protocol (MCP), by which assistants use a Facets server; needs the extra ``mcp``."""
