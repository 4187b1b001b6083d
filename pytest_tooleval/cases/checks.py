"""What a JSON Schema cannot say of a fixture: its paths, its patterns, and whether it checks anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from pytest_tooleval.cases.matcher import argument_faults, regex_faults
from pytest_tooleval.cases.schema import Fault

_MAX_NAME_BYTES = 255


def fixture_faults(fixture: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of a fixture that keeps the schema."""
    verifier: Mapping[str, Any] = fixture.get("verifier", {})
    if "expected" not in fixture and not any(not key.startswith("_") for key in verifier):
        message = "checks nothing: give it 'expected' or a 'verifier', or every run would pass"
        yield Fault((), message)
    yield from _files_faults(fixture.get("files", {}), ("files",))
    yield from _server_faults(fixture)
    if verifier:
        yield from _verifier_faults(verifier)


def _files_faults(files: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Fault]:
    seen: dict[PurePosixPath, str] = {}
    for name in files:
        reason = unsafe_path(name)
        if reason:
            yield Fault((*path, name), f"{name!r} {reason}; give a path inside the worktree, as src/app.py")
            continue
        clean = PurePosixPath(name)
        if clean in seen:
            yield Fault((*path, name), f"{name!r} and {seen[clean]!r} are one file")
        seen[clean] = name
    for clean, name in seen.items():
        folder = next((parent for parent in clean.parents if parent in seen), None)
        if folder is not None:
            yield Fault((*path, name), f"{name!r} lies below {seen[folder]!r}, which is a file")


def unsafe_path(name: str) -> str | None:
    """Return why a fixture's path cannot name a file inside the worktree, or None when it can."""
    if not name or name.endswith("/") or PurePosixPath(name) == PurePosixPath():
        return "names no file"
    if any(character < " " for character in name):
        return "holds a control character"
    if name.startswith("/") or PureWindowsPath(name).anchor or "\\" in name:
        return "is absolute or holds a backslash"
    parts = PurePosixPath(name).parts
    if ".." in parts:
        return "holds '..'"
    if parts[0].casefold() == ".git":
        return "lies in .git, which belongs to git"
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        return f"has a name of more than {_MAX_NAME_BYTES} bytes"
    return None


def _server_faults(fixture: Mapping[str, Any]) -> Iterator[Fault]:
    uses = fixture.get("mcp", ())
    servers = [use if isinstance(use, str) else use["server"] for use in uses]
    for index, server in enumerate(servers):
        if server in servers[:index]:
            yield Fault(
                ("mcp", index), f"the server {server!r} stands here twice; name it once, with all its tools"
            )
    if servers and fixture.get("tool_permission", {}).get("mcp") == "deny":
        message = "'mcp' names servers, and yet their tools are denied; leave out one of the two"
        yield Fault(("tool_permission", "mcp"), message)


def _verifier_faults(verifier: Mapping[str, Any]) -> Iterator[Fault]:
    here = ("verifier",)
    for key in ("args", "args_exact"):
        for tool, arguments in verifier.get(key, {}).items():
            yield from argument_faults(arguments, (*here, key, tool))
    if "regex" in verifier.get("answer", {}):
        yield from regex_faults(verifier["answer"]["regex"], (*here, "answer", "regex"))
    for name, check in verifier.get("files", {}).items():
        if "regex" in check:
            yield from regex_faults(check["regex"], (*here, "files", name, "regex"))
        if check.get("exists") is False and len(check) > 1:
            yield Fault((*here, "files", name), "a file that must not exist can hold nothing else to check")
    yield from _file_check_paths(verifier.get("files", {}))
    yield from _contradictions(verifier)


def _file_check_paths(files: Mapping[str, Any]) -> Iterator[Fault]:
    for name in files:
        reason = unsafe_path(name)
        if reason:
            yield Fault(("verifier", "files", name), f"{name!r} {reason}; give a path inside the worktree")


def _contradictions(verifier: Mapping[str, Any]) -> Iterator[Fault]:
    demanded = _demanded(verifier)
    for name in sorted(demanded & set(verifier.get("avoid", ()))):
        yield Fault(("verifier", "avoid"), f"{name!r} is demanded and to be avoided: no run can pass")
    fewest = max(len(demanded), verifier.get("min_calls", 0), *map(len, _demanded_lists(verifier)))
    if fewest > verifier.get("max_calls", fewest):
        message = f"max_calls is {verifier['max_calls']}, but at least {fewest} calls are demanded: no run can pass"
        yield Fault(("verifier", "max_calls"), message)
    if fewest and verifier.get("no_calls"):
        yield Fault(("verifier", "no_calls"), "no_calls, and yet calls are demanded: no run can pass")


def _demanded(verifier: Mapping[str, Any]) -> set[str]:
    """Return the tools that every run that passes has called."""
    keys = ("must_include", "args", "args_exact")
    return {name for names in (*_demanded_lists(verifier), *map(verifier.get, keys)) for name in names or ()}


def _demanded_lists(verifier: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lists of which every entry is a call of its own."""
    return verifier.get("in_order", ()), verifier.get("any_order", ())
