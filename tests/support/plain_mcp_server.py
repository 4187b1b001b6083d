"""A small MCP server over standard input and output, for tests: what it says stands in a file that is read each time.

The file is JSON: `info` (name and version), `tools` (as in `tools/list`), and `results`: for each tool the result of
`tools/call`, or `{"error": …}`, `{"sleep": seconds}`, `{"exit": code}`, `{"echo": true}`. Started as a program; tests
use `written`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def written(folder: Path, name: str = "plain", **said: Any) -> dict[str, Any]:
    """Write what a server says, and return its entry for `mcpServers`."""
    state = folder / f"{name}.state.json"
    state.write_text(json.dumps({"info": {"name": name, "version": "1"}, "tools": [], "results": {}, **said}))
    return {"command": sys.executable, "args": ["-S", __file__, str(state)]}


def configured(folder: Path, servers: Mapping[str, Any]) -> Path:
    """Write a configuration file."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": dict(servers)}), encoding="utf-8")
    return path


def tool(name: str, description: str = "Do it.", **schema: Any) -> dict[str, Any]:
    """Return a tool as a server lists it."""
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}, **schema}}


def text(said: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return a result of one text."""
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def _answer(state: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": state["info"],
            }
        }
    if method == "tools/list":
        return {"result": {"tools": state["tools"]}}
    if method == "tools/call":
        return _called(state["results"].get(params["name"], {}), params.get("arguments", {}))
    return {"error": {"code": -32601, "message": f"no method {method}"}} if method != "ping" else {"result": {}}


def _called(result: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    time.sleep(result.get("sleep", 0))
    if "exit" in result:
        sys.exit(result["exit"])
    if "error" in result:
        return {"error": result["error"]}
    return {"result": text(json.dumps(arguments)) if result.get("echo") else result}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            state = json.loads(Path(sys.argv[1]).read_text())
            answer = _answer(state, message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
