"""What a case has to be run again for, and what not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_tooleval.agent.loop import AgentSettings
from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import (
    FileCheck,
    Page,
    ScriptedCall,
    ScriptedTurn,
    ServerUse,
    Source,
    TextCheck,
    ToolUseCase,
    Verifier,
)
from pytest_tooleval.families.fingerprints import ToolUseFingerprints
from pytest_tooleval.families.tool_sets import ToolSet, ToolSetVariant
from pytest_tooleval.families.tool_use import ToolUseRunner
from pytest_tooleval.measures.fingerprint import what_changed
from pytest_tooleval.providers.provider import ProviderSettings, Sampling
from pytest_tooleval.providers.target import Target
from pytest_tooleval.tools.registry import Offer, ToolRegistry
from pytest_tooleval.tools.source import CaseTools
from pytest_tooleval.tools.tool import Tool, ToolContext, ToolLimits

CASE = ToolUseCase(
    id="a",
    task="Look.",
    source=Source(Path("evals/fixtures/a.json")),
    files={"b.txt": "2", "a.txt": "1"},
    expected=(("grep",),),
    verifier=Verifier(args={"grep": {"pattern": "x", "path": "."}}),
    mock=(ScriptedTurn("Done."),),
)
TARGET = Target("openai", ProviderSettings("gpt", "https://user:secret@host/v1?key=hidden"))
LIMITS = ToolLimits()
SETTINGS = AgentSettings()


def registry(*more: Tool) -> ToolRegistry:
    tools = ToolRegistry()
    tools.add_built_in()
    for tool in more:
        tools.add(tool)
    return tools


def own(description: str = "Mine.", run=lambda arguments, context: "", **schema) -> Tool:
    return Tool("mine", description, {"type": "object", **schema}, "read", run)


def runner(tools=None, **more) -> ToolUseRunner:
    return ToolUseRunner(tools=tools or registry(), worktrees=WorktreeRoot(), **more)


def parts(case=CASE, target=TARGET, tier="", **run) -> dict[str, str]:
    return ToolUseFingerprints(target, runner(**run), tier).of(case).parts


BEFORE = parts()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"task": "Look!"}, ["task changed"]),
        ({"files": {"a.txt": "1"}}, ["files changed"]),
        ({"files": {"a.txt": "1", "b.txt": "3"}}, ["files changed"]),
        ({"git": True}, ["git changed"]),
        ({"expected": (("glob",),)}, ["expected changed"]),
        ({"expected": None}, ["expected changed"]),
        ({"verifier": Verifier(args={"grep": {"pattern": "y", "path": "."}})}, ["verifier changed"]),
        ({"verifier": Verifier(answer=TextCheck(contains=("x",)))}, ["verifier changed"]),
        ({"verifier": Verifier(files={"a": FileCheck(exists=True)})}, ["verifier changed"]),
        ({"pages": {"http://a": Page("x")}}, ["pages changed"]),
        ({"max_turns": 3}, ["max turns changed"]),
        ({"timeout": 3.0}, ["time limit changed"]),
        ({"tools_deny": ("grep",)}, ["denied tools changed", "tool grep is gone"]),
        ({"tool_permission": {"bash": "allow"}}, ["denied tools changed", "tool run_command is new"]),
    ],
)
def test_each_part_of_a_case_counts(changed, words):
    assert sorted(what_changed(BEFORE, parts(replace(CASE, **changed)))) == words


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "b"},
        {"description": "Says more."},
        {"tags": ("slow",)},
        {"source": Source(Path("elsewhere.json"), 7, 3)},
        {"files": {"a.txt": "1", "b.txt": "2"}},
        {"verifier": Verifier(args={"grep": {"path": ".", "pattern": "x"}})},
        {"max_turns": SETTINGS.max_turns},
        {"mock": (ScriptedTurn("Else."),)},
    ],
)
def test_what_is_neither_sent_nor_scored_does_not_count(changed):
    assert what_changed(BEFORE, parts(replace(CASE, **changed))) == []


@pytest.mark.parametrize("provider", ["mock", "of-a-conftest"])
def test_the_script_counts_where_the_provider_reads_it(provider):
    target = Target(provider, ProviderSettings())
    other = replace(CASE, mock=(ScriptedTurn("", (ScriptedCall("grep", {"pattern": "x"}),)),))
    assert what_changed(parts(target=target), parts(other, target=target)) == ["script changed"]
    assert what_changed(parts(target=target), parts(replace(CASE, mock=None), target=target)) == ["script changed"]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (parts(settings=replace(SETTINGS, system_prompt="Be brief.")), ["system prompt changed"]),
        (parts(settings=replace(SETTINGS, max_turns=3)), ["max turns changed"]),
        (parts(settings=replace(SETTINGS, sampling=Sampling(temperature=0.0))), ["temperature changed"]),
        (parts(settings=replace(SETTINGS, sampling=Sampling(seed=0))), ["seed changed"]),
        (parts(settings=replace(SETTINGS, sampling=Sampling(max_output_tokens=9))), ["max output tokens changed"]),
        (parts(settings=replace(SETTINGS, sampling=Sampling(tool_choice="none"))), ["tool-choice changed"]),
        (parts(seconds=60.0), ["time limit changed"]),
        (parts(tier="first_call"), ["tier changed"]),
        (parts(tool_set=ToolSet(ToolSetVariant("broker"))), ["set of tools changed"]),
        (parts(limits=replace(LIMITS, result_chars=200)), ["result chars changed"]),
        (parts(limits=replace(LIMITS, command_seconds=1.0)), ["command seconds changed"]),
        (parts(target=replace(TARGET, settings=replace(TARGET.settings, model="x"))), ["model changed"]),
        (parts(target=replace(TARGET, settings=replace(TARGET.settings, url=None))), ["provider url changed"]),
        (parts(target=replace(TARGET, settings=replace(TARGET.settings, timeout=1.0, retries=0))), []),
    ],
)
def test_the_options_count_that_are_sent_or_scored(now, words):
    assert what_changed(BEFORE, now) == words


def test_of_a_registered_tool_description_and_schema_count():
    before = parts(tools=registry(own()))
    assert what_changed(BEFORE, before) == ["tool mine is new"]
    assert what_changed(before, parts(tools=registry(own(run=lambda arguments, context: "else")))) == []
    assert what_changed(before, parts(tools=registry(own("Yours.")))) == ["tool mine changed"]
    assert what_changed(before, parts(tools=registry(own(required=["x"])))) == ["tool mine changed"]


def test_a_tool_that_is_not_offered_does_not_count():
    case = replace(CASE, tools_deny=("mine",))
    assert parts(case, tools=registry(own())) == parts(case, tools=registry(own("Yours.")))


def test_secrets_are_hashed_and_parts_are_short():
    assert not {"user", "secret", "hidden", "host"} & set("".join(BEFORE.values()).split())
    assert max(map(len, BEFORE.values())) <= 16


def test_cases_with_the_same_permissions_share_their_parts():
    prints = ToolUseFingerprints(TARGET, runner())
    first, second = prints.of(CASE), prints.of(replace(CASE, task="Else."))
    assert first.shared is second.shared
    assert prints.of(replace(CASE, tools_deny=("grep",))).shared.id != first.shared.id


class Server:
    """A tool source that serves one tool and counts how often it is asked."""

    def __init__(self, description: str = "Says hello.") -> None:
        self.tool = own(description)
        self.asked = 0

    def cannot_run(self, case: ToolUseCase) -> None:
        return None

    @contextlib.contextmanager
    def offer(self, case: ToolUseCase, base: Offer, context: ToolContext) -> Iterator[CaseTools]:
        assert context.worktree.is_dir()
        self.asked += 1
        yield CaseTools(Offer({**base.offered, "greet__hello": self.tool}, base.denied))

    def close(self) -> None: ...


SERVED = replace(CASE, mcp=(ServerUse("greet"),))


def test_the_tools_of_a_server_count_by_what_it_lists():
    before = parts(SERVED, servers=Server())
    assert what_changed(BEFORE, before) == ["mcp changed", "tool greet__hello is new"]
    assert what_changed(before, parts(SERVED, servers=Server())) == []
    assert what_changed(before, parts(SERVED, servers=Server("Greets."))) == ["tool greet__hello changed"]
    fewer = replace(CASE, mcp=(ServerUse("greet", ("hello",)),))
    assert what_changed(before, parts(fewer, servers=Server())) == ["mcp changed"]


def test_a_server_is_asked_once_for_all_cases_that_name_it():
    server = Server()
    prints = ToolUseFingerprints(TARGET, runner(servers=server))
    threads = [threading.Thread(target=prints.of, args=(replace(SERVED, task=str(n)),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prints.of(CASE)
    assert server.asked == 1
