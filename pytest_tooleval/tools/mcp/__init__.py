"""MCP servers as sources of tools: configured in a file, started when a case needs them, gone afterwards."""
