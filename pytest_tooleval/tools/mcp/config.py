"""The file that says which MCP servers there are."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.cases.jsontext import pointer_text, read_document
from pytest_tooleval.cases.schema import Fault, Schema, describe
from pytest_tooleval.errors import CaseError, Problem, ToolUnavailableError, nearest

CONFIG_FILE = "mcp.json"
"""The file's name in a suite's folder."""

DEFAULT_START_SECONDS = 30.0
DEFAULT_CALL_SECONDS = 60.0
WORKTREE = "{worktree}"
"""What stands for the case's folder in `command`, `args`, `env` and `cwd`."""

_SCHEMA = Schema("mcp")
_OWN_KEYS = (
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "isolated",
    "startSeconds",
    "callSeconds",
    "disabled",
)
_OF_COMMAND = ("args", "env", "cwd")
_PLACEHOLDER = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\{worktree\}", re.ASCII)
_OF_OTHER_CLIENTS = re.compile(r"\$\{(?!env:)[A-Za-z]+:[A-Za-z][^}]*\}")


@dataclass(frozen=True, slots=True)
class Command:
    """A server that is a program, spoken to over its input and output.

    Attributes:
        program: a name that is looked for on PATH, or a path.
        args: its arguments.
        env: variables beside those that every server gets.
        cwd: where it runs, or None for the default.

    """

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that runs somewhere and is spoken to over HTTP.

    Attributes:
        url: where it listens.
        headers: HTTP headers of every request.
        is_sse: whether it speaks the older transport of two addresses, HTTP with SSE.

    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_sse: bool = False


@dataclass(frozen=True, slots=True)
class McpServer:
    """A configured server; its texts may hold placeholders.

    Attributes:
        name: what fixtures call it.
        target: how it is reached.
        folder: where its relative paths begin.
        per_case: whether each case gets a server of its own.
        start_seconds: most seconds until it answers for the first time.
        call_seconds: most seconds of one call.
        disabled: whether it may not be used.
        place: the file and the pointer of its entry, for messages.

    """

    name: str
    target: Command | Endpoint
    folder: Path
    per_case: bool = False
    start_seconds: float = DEFAULT_START_SECONDS
    call_seconds: float = DEFAULT_CALL_SECONDS
    disabled: bool = False
    place: str = CONFIG_FILE


@dataclass(frozen=True, slots=True)
class McpConfig:
    """The servers that cases can name.

    Attributes:
        servers: by name.
        shown: the file's name in messages.

    """

    servers: Mapping[str, McpServer] = field(default_factory=dict)
    shown: Path = Path(CONFIG_FILE)

    def unknown_names(self, case: ToolUseCase) -> list[str]:
        """Return a message for each server that a case names and cannot have."""
        return [message for use in case.mcp if (message := self.refusal(use.server))]

    def refusal(self, name: str) -> str:
        """Return why a server of this name cannot be had, an empty string when it can."""
        named = f"'mcp' names the server {name!r}"
        if not self.servers:
            return f"{named}, and no servers are configured; describe it in {self.shown}"
        if name not in self.servers:
            known = nearest(name, self.servers) or f"; there are: {', '.join(self.servers)}"
            return f"{named}, which is not in {self.shown}{known}"
        return f"{named}, which is disabled in {self.shown}" if self.servers[name].disabled else ""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A server's target with values for placeholders, and the values that must not be shown."""

    target: Command | Endpoint
    secrets: tuple[str, ...] = field(default=(), repr=False)


def load_mcp_config(path: Path, shown: Path) -> McpConfig:
    """Load the servers of a configuration file, as many MCP clients have it.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        CaseError: with every fault, each with line, JSON pointer and what would be right.

    """
    document = read_document(path, shown)
    value: Any = [e.value for e in document.elements] if document.is_list else document.elements[0].value
    problems = [
        Problem(shown, fault.message, document.line_of(fault.path), pointer_text(fault.path) or None)
        for fault in _faults(value)
    ]
    if problems:
        raise CaseError(problems)
    folder = path.absolute().parent
    return McpConfig(
        {name: _server(name, entry, folder, shown) for name, entry in value["mcpServers"].items()}, shown
    )


def named_values(config: McpConfig) -> Iterator[tuple[str, str]]:
    """Yield what the configuration itself says under a name: variables of programs, headers of requests.

    Of a header's value its last word is yielded too, which is the secret in `Bearer …`.
    """
    for server in config.servers.values():
        if isinstance(server.target, Command):
            yield from server.target.env.items()
        else:
            for name, text in server.target.headers.items():
                yield from ((name, part) for part in (text, *text.split()[-1:]))


def expand(server: McpServer, environ: Mapping[str, str], worktree: Path | None = None) -> Expanded:
    """Return a server's target with the values of variables and, for a server of one case, of the case's folder.

    Raises:
        ToolUnavailableError: a variable is not set.

    """
    values = _Values(environ, worktree)
    target: Command | Endpoint
    if isinstance(server.target, Command):
        command = server.target
        target = Command(
            program=values.expand(command.program),
            args=tuple(map(values.expand, command.args)),
            env={name: values.expand(text) for name, text in command.env.items()},
            cwd=None if command.cwd is None else values.expand(command.cwd),
        )
        configured: Iterable[str] = (target.env[name] for name, text in command.env.items() if WORKTREE not in text)
    else:
        headers = {name: values.expand(text) for name, text in server.target.headers.items()}
        target = Endpoint(values.expand(server.target.url), headers, server.target.is_sse)
        configured = (part for text in headers.values() for part in (text, *text.split()[-1:]))
    if values.missing:
        names = ", ".join(dict.fromkeys(values.missing))
        raise ToolUnavailableError(
            f"MCP server {server.name!r} needs the environment variables that {server.place} names; "
            f"not set: {names}. Set them, or give a default as ${{NAME:-default}}"
        )
    secrets = (secret for secret in (*configured, *values.used) if not os.path.lexists(secret))
    return Expanded(target, tuple(secrets))


class _Values:
    """Fills in placeholders, and remembers which variables were missing and which values were used."""

    def __init__(self, environ: Mapping[str, str], worktree: Path | None) -> None:
        self._environ = environ
        self._worktree = worktree
        self.missing: list[str] = []
        self.used: list[str] = []

    def expand(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0] if self._worktree is None else str(self._worktree)
        value = self._environ.get(name)
        default = found["default"]
        if default is not None and not value:
            return default
        if value is None:
            self.missing.append(name)
            return ""
        self.used.append(value)
        return value


def _server(name: str, entry: Mapping[str, Any], folder: Path, shown: Path) -> McpServer:
    target: Command | Endpoint
    if "command" in entry:
        target = Command(entry["command"], tuple(entry.get("args", ())), entry.get("env", {}), entry.get("cwd"))
    else:
        target = Endpoint(entry["url"].strip(), entry.get("headers", {}), entry.get("type") == "sse")
    return McpServer(
        name=name,
        target=target,
        folder=folder,
        per_case=entry.get("isolated", False) or _names_worktree(entry),
        start_seconds=float(entry.get("startSeconds", DEFAULT_START_SECONDS)),
        call_seconds=float(entry.get("callSeconds", DEFAULT_CALL_SECONDS)),
        disabled=entry.get("disabled", False),
        place=f"{shown} at {pointer_text(('mcpServers', name))}",
    )


def _names_worktree(entry: Mapping[str, Any]) -> bool:
    return any(WORKTREE in text for _, text in _texts(entry, ("command", *_OF_COMMAND)))


def _faults(value: Any) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault((), f"found {describe(value)}; expected an object with 'mcpServers'")
    elif other := _misnamed_servers(value):
        yield Fault((other,), f"the servers stand under {other!r}; expected them under 'mcpServers'")
    elif faults := _SCHEMA.faults(value):
        yield from faults
    else:
        for name, entry in value["mcpServers"].items():
            for fault in _entry_faults(entry):
                yield Fault(("mcpServers", name, *fault.path), fault.message)


def _misnamed_servers(value: Mapping[str, Any]) -> str:
    """Return the key that the servers stand under by mistake, empty where there is none."""
    if "mcpServers" in value:
        return ""
    near = difflib.get_close_matches("mcpServers", value, n=1, cutoff=0.8)
    return "servers" if "servers" in value else "".join(near)


def _entry_faults(entry: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _key_faults(entry)
    yield from _target_faults(entry)
    yield from _text_faults(entry)
    if entry.get("isolated") is False and _names_worktree(entry):
        yield Fault(("isolated",), f"is false, and yet the entry names {WORKTREE}, which each case has of its own")


def _key_faults(entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what looks like one of the known keys misspelt; all other keys are other clients' own."""
    for key in entry:
        hint = nearest(key, _OWN_KEYS, cutoff=0.85)
        if key not in _OWN_KEYS and hint:
            yield Fault((key,), f"unknown key {key!r}{hint}")


def _target_faults(entry: Mapping[str, Any]) -> Iterator[Fault]:
    kind, has_command, has_url = entry.get("type"), "command" in entry, "url" in entry
    if has_command == has_url:
        found = "has both 'command' and 'url'" if has_url else "has neither 'command' nor 'url'"
        yield Fault((), f"{found}; give 'command' for a program to start, or 'url' for a server that listens")
        return
    if kind is not None and (kind == "stdio") != has_command:
        needed = "command" if kind == "stdio" else "url"
        yield Fault(("type",), f"a server of type {kind!r} has a {needed!r}, and this one has none")
    for key in ("headers",) if has_command else _OF_COMMAND:
        if key in entry:
            yield Fault(
                (key,), f"{key!r} means nothing beside {'command' if has_command else 'url'!r}; leave it out"
            )
    if has_url and "${" not in entry["url"] and not is_http_url(entry["url"]):
        yield Fault(
            ("url",), f"found {describe(entry['url'])}; expected a URL that begins with http:// or https://"
        )


def is_http_url(url: str) -> bool:
    """Whether a text is the URL of an HTTP server."""
    return re.match(r"https?://[^/\s]", url.strip()) is not None


def _text_faults(entry: Mapping[str, Any]) -> Iterator[Fault]:
    for path, text in _texts(entry, ("command", *_OF_COMMAND, "url", "headers")):
        other = _OF_OTHER_CLIENTS.search(text)
        if other:
            yield Fault(path, f"{other[0]} is known to another client only; write ${{NAME}} for a variable")
        if path[0] in {"url", "headers"} and WORKTREE in text:
            yield Fault(path, f"{WORKTREE} stands for the case's folder in command, args, env and cwd only")


def _texts(entry: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for key in keys:
        value = entry.get(key, ())
        if isinstance(value, str):
            yield (key,), value
        elif isinstance(value, dict):
            yield from (((key, name), text) for name, text in value.items())
        else:
            yield from (((key, index), text) for index, text in enumerate(value))
