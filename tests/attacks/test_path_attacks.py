from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from scripted_runs import call, fixture_case, results_of, run_case, run_script

from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.errors import ToolError
from pytest_tooleval.tools import run_command
from pytest_tooleval.tools.registry import ToolRegistry
from pytest_tooleval.tools.tool import ToolContext

SECRET = "outside-secret-7d1f"
PLANTED = "planted-by-the-model"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


def tries(path: str) -> list[dict[str, Any]]:
    """Return a call of each file tool on a path."""
    return [
        call("file_read", path=path),
        call("list_dir", path=path),
        call("glob", pattern="*", path=path),
        call("grep", pattern=".", path=path),
        call("file_write", path=path, content=PLANTED),
        call("file_write", path=f"{path}/new/{PLANTED}", content=PLANTED),
        call("file_edit", path=path, old_text=SECRET, new_text=PLANTED),
    ]


def assert_untouched(outside: Path) -> None:
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret.txt": SECRET}


@pytest.mark.parametrize(
    "links",
    [
        "ln -s {outside} way",
        "ln -s {outside}/secret.txt way",
        "ln -s /proc/self/root{outside} way",
        "ln -s $(pwd)/../../../../../../../../..{outside} way",
        "mkdir a b; ln -s ../b a/b; ln -s ../a b/a; ln -s {outside} b/end; ln -s a/b/a/b/end way",
        "ln -s {outside}/fresh way",
        "ln -s way2 way; ln -s way3 way2; ln -s {outside} way3",
    ],
)
def test_links_that_a_command_makes_lead_nowhere(links: str, outside: Path) -> None:
    command = call("run_command", command=links.format(outside=outside))
    result = run_script(command, *tries("way"), *tries("way/secret.txt"), *tries("way/."))

    made, *tried = results_of(result)
    assert made[1] == "ok"
    assert len(tried) == 21
    assert {outcome for _, outcome, _ in tried} == {"error"}, tried
    assert SECRET not in repr(tried)
    assert_untouched(outside)


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/self/cwd/../../../../etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/thread-self/fd/0",
        "/dev/fd/0",
        "/dev/stdin",
        "proc/../../../../../../../etc/passwd",
        "//etc/passwd",
        "/./etc/passwd",
        "~root/.ssh/id_rsa",
        "$HOME/.ssh/id_rsa",
        "..\\..\\etc\\passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "\u2024\u2024/\u2024\u2024/etc/passwd",
        "\uff0e\uff0e/\uff0e\uff0e/etc/passwd",
        "..\u2215..\u2215etc\u2215passwd",
        "\u202e../etc/passwd",
        "file:///etc/passwd",
        "a" * 255 + "/.." * 400 + "/etc/passwd",
    ],
    ids=lambda path: ascii(path)[1:40],
)
def test_spellings_of_the_way_out_are_refused_or_mere_names(path: str) -> None:
    result = run_script(*tries(path), call("run_command", command="find . -type f"))

    *tried, (_, _, found) = results_of(result)
    assert "root:" not in repr(tried)
    assert all(outcome == "error" or name == "file_write" for name, outcome, _ in tried)
    created = [text for name, outcome, text in tried if name == "file_write" and outcome == "ok"]
    assert sum(line.startswith("./") for line in found.splitlines()) == len(created)


def test_a_hard_link_does_not_let_a_write_through(outside: Path, tmp_path: Path) -> None:
    secret = outside / "secret.txt"
    case = fixture_case(
        call("run_command", command=f"ln {secret} twin && ln {secret} twin2"),
        call("file_write", path="twin", content=PLANTED),
        call("file_edit", path="twin2", old_text=SECRET, new_text=PLANTED),
        call("run_command", command="cat twin twin2"),
    )
    made, written, edited, (_, _, seen) = results_of(run_case(case))
    if made[1] != "ok":
        pytest.skip(f"hard links cannot be made here: {made[2]}")
    assert (written[1], edited[1]) == ("ok", "ok")
    assert seen.startswith(PLANTED * 2)
    assert_untouched(outside)


SWAPPER = """
import os, sys
folder, outside, pid = sys.argv[1:]
os.closerange(0, 64)
way, real = os.path.join(folder, "way"), os.path.join(folder, "real")
os.mkdir(real)
with open(os.path.join(real, "secret.txt"), "w") as file:
    file.write("inside")
with open(pid, "w") as file:
    file.write(str(os.getpid()))
while True:
    os.symlink(outside, way)
    os.unlink(way)
    os.rename(real, way)
    os.rename(way, real)
"""


def test_a_program_that_a_command_left_and_that_swaps_links_gets_nothing_through(
    outside: Path, tmp_path: Path
) -> None:
    """The program drops all by which it could be found, so that it outlives its command."""
    tools = ToolRegistry()
    tools.add_built_in()
    (tmp_path / "swapper.py").write_text(SWAPPER)
    pid = tmp_path / "pid"
    seen: list[str] = []
    with WorktreeRoot(tmp_path) as worktrees, worktrees.worktree(fixture_case()) as worktree:
        context = ToolContext(worktree.path, worktree.environment)
        swapper = f"{sys.executable} {tmp_path}/swapper.py {worktree.path} {outside} {pid}"
        command = f"cd /; env -i setsid {swapper} >/dev/null 2>&1 & while [ ! -s {pid} ]; do sleep 0.01; done"
        run_command.TOOL.run({"command": command, "timeout": 20}, context)
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                for attempt in (*tries("way"), *tries("way/secret.txt"), call("list_dir", depth=3)):
                    called = attempt["calls"][0]
                    with suppress(ToolError):
                        seen.append(tools.tools[called["name"]].run(called["arguments"], context))
        finally:
            with suppress(ProcessLookupError):  # found all the same and ended
                os.kill(int(pid.read_text()), signal.SIGKILL)
    assert len(seen) > 100
    assert SECRET not in repr(seen)
    assert_untouched(outside)


def test_links_that_commands_make_between_the_calls_of_one_reply_get_nothing_through(outside: Path) -> None:
    link, folder = f"rm -rf way; ln -s {outside} way", "rm -f way; mkdir way; echo inside > way/secret.txt"
    calls = [
        each
        for command in (link, folder) * 5
        for attempt in (call("run_command", command=command), *tries("way/secret.txt"))
        for each in attempt["calls"]
    ]
    result = run_script({"calls": calls})

    texts = results_of(result)
    assert len(texts) == 80
    assert SECRET not in repr(texts)
    assert any("inside" in text for _, outcome, text in texts if outcome == "ok")
    assert_untouched(outside)


@pytest.mark.parametrize(
    "command",
    [
        "ln -s {outside}/secret.txt end.txt",
        "ln {outside}/secret.txt hard; ln -s hard inner; ln -s {outside} folder; ln -s folder/secret.txt end.txt",
        "mkfifo end.txt",
        "ln -s /proc/self/environ end.txt",
        "ln -s /dev/zero end.txt",
        "ln -s end.txt end.txt",
        "mkdir end.txt",
    ],
)
def test_the_end_state_of_a_file_is_not_read_through_links(command: str, outside: Path) -> None:
    verifier = {"files": {"end.txt": {"contains": [SECRET]}, "folder/secret.txt": {"exists": False}}}
    result = run_script(call("run_command", command=command.format(outside=outside)), verifier=verifier)

    assert not result.passed
    assert any("end.txt" in mismatch.what for mismatch in result.mismatches)
    assert SECRET not in repr([m.what.replace(f'"{SECRET}"', "") for m in result.mismatches])


OUTWARD = ["../out", "a/../../out", "/tmp/tooleval-out", "a/b/../../../out", "a\0b", "..", ".", "", "a//../../out"]


@pytest.mark.parametrize("name", OUTWARD)
def test_a_fixture_that_writes_outside_is_refused_when_it_is_loaded(suite: Any, name: str) -> None:
    suite.passing("wicked", files={"ok.txt": "", name: PLANTED})
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["evals/fixtures/wicked.json:* at /files/*"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("name", OUTWARD)
def test_so_is_one_that_a_hook_contributes(suite: Any, pytester: pytest.Pytester, name: str) -> None:
    fixture = {"id": "wicked", "task": "t", "expected": [], "files": {name: PLANTED}}
    pytester.makeconftest(f"def pytest_tooleval_register_fixtures(fixtures): fixtures.add({fixture!r})")
    suite.passing("good")
    result = suite.run("--continue-on-collection-errors")
    assert result.parseoutcomes().get("errors") == 1
    assert PLANTED not in result.stdout.str()


def test_files_that_get_in_each_others_way_are_an_error_of_that_case_only(suite: Any) -> None:
    suite.passing("wicked", files={"a": "x", "a/b": "y"})
    suite.passing("good")
    result = suite.run("--continue-on-collection-errors")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["errors"]) == (1, 1)
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_path_of_a_verifier_cannot_leave_the_folder(suite: Any) -> None:
    suite.passing("wicked", verifier={"files": {"../../../../etc/passwd": {"contains": "root"}}})
    result = suite.run()
    result.assert_outcomes(errors=1)


def test_a_command_that_removes_every_folder_around_it_does_no_harm_to_later_cases(tmp_path: Path) -> None:
    tools = ToolRegistry()
    tools.add_built_in()
    with WorktreeRoot(tmp_path) as worktrees:
        with worktrees.worktree(fixture_case()) as worktree:
            context = ToolContext(worktree.path, worktree.environment)
            with suppress(ToolError):
                run_command.TOOL.run({"command": "cd ..; cd ..; rm -rf *"}, context)
        with worktrees.worktree(fixture_case(files={"a": "b"})) as following:
            assert (following.path / "a").read_text() == "b"
    assert not list(tmp_path.iterdir())


def test_results_name_no_folder_of_the_host(outside: Path) -> None:
    record = json.dumps([text for _, _, text in results_of(run_script(*tries("missing"), *tries("../x")))])
    assert "/tooleval-" not in record
