"""Without the package `mcp` everything works but MCP servers, which say what is missing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_tooleval
from pytest_tooleval.tools.mcp.package import missing_package

SOURCES = Path(pytest_tooleval.__file__).parents[1]
SCRIPT = """
import json, sys
from pathlib import Path
from pytest_tooleval.cases.case import ServerUse, Source, ToolUseCase
from pytest_tooleval.errors import ToolUnavailableError
from pytest_tooleval.tools.mcp.config import load_mcp_config
from pytest_tooleval.tools.mcp.servers import McpServers
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import ToolContext

path = Path(sys.argv[1])
servers = McpServers(load_mcp_config(path, path))
source = Source(path)
plain, needy = ToolUseCase("a", "t", source), ToolUseCase("b", "t", source, mcp=(ServerUse("own"),))
said = [servers.cannot_run(plain), servers.cannot_run(needy)]
try:
    with servers.offer(plain, Offer({}, {}), ToolContext(path.parent)):
        pass
    with servers.offer(needy, Offer({}, {}), ToolContext(path.parent)):
        pass
except ToolUnavailableError as error:
    said.append(str(error))
servers.close()
heavy = {"mcp", "mcp_types", "httpx2", "anyio", "pydantic"} & sys.modules.keys()
print(json.dumps([*said, sorted(heavy)]))
"""
MESSAGE = "MCP servers need the package 'mcp': pip install 'pytest-tooleval[mcp]'"


@pytest.fixture
def without_mcp(tmp_path: Path) -> Path:
    """Give a folder of all installed packages but `mcp`."""
    folder = tmp_path / "packages"
    folder.mkdir()
    spec = importlib.util.find_spec("pytest")
    assert spec is not None
    assert spec.origin is not None
    for entry in Path(spec.origin).parents[1].iterdir():
        if not entry.name.startswith("mcp") and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


def said_in(path: list[str], config: Path) -> list[str]:
    code = f"import sys; sys.path[:0] = {path!r}\n{SCRIPT}"
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(config)], stdout=subprocess.PIPE, check=True
    )
    said: list[str] = json.loads(found.stdout)
    return said


def test_what_is_said_without_the_package(without_mcp: Path, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"own": {"command": "x"}}}')
    assert said_in([str(SOURCES), str(without_mcp)], config) == [None, MESSAGE, MESSAGE, []]


def test_what_is_said_of_a_version_that_is_too_old(without_mcp: Path, tmp_path: Path) -> None:
    info = without_mcp / "mcp-1.9.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp\nVersion: 1.9.4\n")
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"own": {"command": "x"}}}')
    message = "MCP servers need the package 'mcp' 2.3 or newer, and 1.9.4 is installed: "
    _, said, _, _ = said_in([str(SOURCES), str(without_mcp)], config)
    assert said.startswith(message)


def test_nothing_is_missing_where_the_package_is() -> None:
    if importlib.util.find_spec("mcp") is None:
        pytest.skip("it is not")
    assert missing_package() == ""
