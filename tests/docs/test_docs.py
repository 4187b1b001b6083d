"""The documentation: every example runs, every list is whole, every link leads somewhere.

How an example is marked. A mark is an HTML comment right above a fenced block, so that readers do not see it:

- `<!-- file: evals/fixtures/x.json -->`: the block is that file of the page's project. Fixtures and thresholds
  have to load, workflows have their pytest commands run. A path that begins with `~/.config/` is in the user's
  configuration folder.
- `<!-- wrong file: PATH -->`: the same, for a file that is wrong on purpose.
- `<!-- verifier -->`: the block is the verifier of a fixture.
- `<!-- answer: COMMAND -->`: the block is the JSON that the command prints, laid out for readers.
- `<!-- exits: 1 -->`: the commands of a `console` block end with this exit code, else with 0.
- `<!-- not run: needs a key -->`: the block is only read.
- `<!-- own suite -->`, in the README: its commands are run in the project's own folder.
- `<!-- files of: PAGE -->`, in the README: its commands are run in a new project with the files of that page.

Each line of a `console` block that begins with `$ ` is run in the project; the lines below it are its output, with
`...` for what differs. `http://localhost:8080/v1` and `:11434/v1` are a server that plays the fixtures' scripts.

Marks that stand alone: `<!-- new project -->` begins a new empty one;
`<!-- server: MODEL plays [TURNS] -->` gives a model of the server a script of its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from doc_pages import DOCS, PAGES, ROOT, Block, Mark, anchors, blocks, prose, relative_links, steps, table
from doc_project import Project, console_commands, in_a_process, is_shown, model_server
from mcp import Client, StdioServerParameters

from pytest_tooleval import hookspecs
from pytest_tooleval.broker.answers import BUDGET_BYTES, DECISIONS
from pytest_tooleval.broker.cache import DEFAULT_MOST_ENTRIES, DEFAULT_TTL_SECONDS
from pytest_tooleval.broker.decision import Limits
from pytest_tooleval.broker.embedders.registry import EmbedderRegistry, register_builtin_embedders
from pytest_tooleval.broker.envelope import ERROR_TYPES
from pytest_tooleval.broker.lexical import FIELD_WEIGHTS, K1, B
from pytest_tooleval.broker.lint import RULES, TOKEN_BUDGET
from pytest_tooleval.broker.mapping import load_mapping
from pytest_tooleval.broker.near_duplicates import LEAST_SIMILARITY
from pytest_tooleval.broker.provider_rules import MOST_DESCRIPTION, NAME_PATTERNS
from pytest_tooleval.broker.surface import OPERATIONS
from pytest_tooleval.cases.catalog import load_catalogs
from pytest_tooleval.cases.matcher import MATCHER_NAMES
from pytest_tooleval.cases.schema import schema_text
from pytest_tooleval.cli.init import suite_files
from pytest_tooleval.cli.main import COMMANDS
from pytest_tooleval.families.remote_session import parse_broker
from pytest_tooleval.families.remote_targets import RemoteEngine
from pytest_tooleval.gates.thresholds import _TOOL_USE_KEYS as GATE_KEYS
from pytest_tooleval.measures.gold import GOLD_METRICS
from pytest_tooleval.measures.matching import ABSENT, equal, matches
from pytest_tooleval.measures.text import fold_typography
from pytest_tooleval.measures.token_estimates import EstimatorRegistry, register_builtin_estimators
from pytest_tooleval.options import OPTIONS, PREFIX, SHORT_NAMES, Option
from pytest_tooleval.providers.presets import DIALECTS, PRESETS, ChatQuirks, Preset
from pytest_tooleval.tools.registry import ToolRegistry

NOT_RUN = frozenset({"needs a key", "needs a model", "needs a package"})
MOST_NOT_RUN = 6
WITHOUT_EXAMPLES = frozenset({"README.md"})
README = ROOT / "README.md"
OWN_SUITE = [block for block in blocks(README) if "own suite" in block.marks]
PROGRAMS: Mapping[str, tuple[str, Sequence[str]]] = {
    "pytest": ("pytest", ["-p", "no:cacheprovider", "-p", "no:randomly"]),
    "tooleval": ("pytest_tooleval.cli.main", []),
}
FIXTURE_SCHEMA = json.loads(schema_text("fixture"))["$defs"]


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # an example starts `python`
    monkeypatch.setattr(
        tempfile, "tempdir", str(tmp_path_factory.mktemp("kept"))
    )  # an example keeps a folder there
    with model_server() as server:
        yield Project(pytester, monkeypatch.chdir, server)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_runs(page: Path, project: Project) -> None:
    for step in steps(page):
        project.take(step)
    assert project.commands or page.name in WITHOUT_EXAMPLES


def test_every_example_of_the_readme_runs(project: Project) -> None:
    for step in steps(README):
        if isinstance(step, Mark) or (step.language != "sh" and not {"own suite", "files of"} & set(step.marks)):
            project.take(step)
    assert project.commands


def test_what_the_readme_shows_of_a_page_is_what_it_gives(project: Project) -> None:
    shown = [block for block in blocks(README) if "files of" in block.marks]
    assert shown
    for block in shown:
        project.start_anew()
        take_files(block.marks["files of"], project)
        project.take(block)


@pytest.mark.parametrize("block", OWN_SUITE, ids=lambda block: f"line-{block.line}")
def test_what_the_readme_shows_of_our_own_suite_is_what_it_gives(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command, output in console_commands(block.text):
        program, *arguments = shlex.split(command)
        module, before = PROGRAMS[program]
        exit_code, finished = in_a_process(module, [*before, *arguments], ROOT)
        assert exit_code == int(block.marks.get("exits", "0")), finished
        assert is_shown(output, finished), finished


def test_what_is_not_run_is_little_and_needs_what_tests_have_not() -> None:
    left_out = [block for page in PAGES for block in blocks(page) if "not run" in block.marks]
    assert {block.marks["not run"] for block in left_out} <= NOT_RUN
    assert len(left_out) <= MOST_NOT_RUN


@pytest.mark.parametrize(
    ("shown", "output", "expected"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a\nb\n", False),
        ("...\nb", "b\n", True),
        ("...\nb", "x\ny\nb\n", True),
        ("...\nb", "x\nbb\n", False),
        ("1 passed in ...", "1 passed in 0.1s\n", True),
        ("1 passed in ...", "2 passed in 0.1s\n", False),
        ("a.c", "abc\n", False),
        ("==== 1 passed in ... ====", "===== 1 passed in 10.00s =====\n", True),
    ],
)
def test_an_output_is_compared_whole(shown: str, output: str, *, expected: bool) -> None:
    assert is_shown(shown, output) is expected


def documented(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def names_in_code(name: str) -> set[str]:
    """Return what stands alone between backticks in a page's prose."""
    return set(re.findall(r"`([^`\n]+)`", prose(DOCS / name)))


def first_cells(name: str, header: str) -> list[str]:
    return [row[0] for row in table(DOCS / name, header)]


def test_every_fixture_key_is_documented() -> None:
    assert sorted(first_cells("fixtures.md", "key")) == sorted(FIXTURE_SCHEMA["fixture"]["properties"])


@pytest.mark.parametrize(
    ("header", "schema", "part"),
    [
        ("key of a tool", "catalog", "tool"),
        ("key of a row", "discovery", ""),
        ("key of a scenario", "invocation", "scenario"),
        ("key of an ergonomics case", "ergonomics", "case"),
    ],
)
def test_every_key_of_a_gold_row_has_its_line(header: str, schema: str, part: str) -> None:
    whole = json.loads(schema_text(schema))
    keys = (whole["$defs"][part] if part else whole)["properties"]
    assert sorted(first_cells("gold-sets.md", header)) == sorted(keys)


def property_names(schema: Any) -> Iterator[str]:
    """Yield the name of every property in a schema, whatever its depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for inner in schema.values():
            yield from property_names(inner)


@pytest.mark.parametrize("schema", ["catalog", "discovery", "invocation", "ergonomics", "workloads"])
def test_every_key_of_a_gold_file_is_named(schema: str) -> None:
    keys = set(property_names(json.loads(schema_text(schema))))
    assert len(keys) >= 6
    assert keys <= names_in_code("gold-sets.md")


def test_every_category_is_documented() -> None:
    categories = json.loads(schema_text("discovery"))["properties"]["category"]["enum"]
    assert sorted(first_cells("gold-sets.md", "a row of category")) == sorted(categories)


@pytest.mark.parametrize("family", sorted(GOLD_METRICS))
def test_every_gold_metric_is_defined(family: str) -> None:
    assert set(GOLD_METRICS[family]([])) <= names_in_code("gold-sets.md")


def test_every_verifier_key_is_documented() -> None:
    assert sorted(first_cells("verifiers.md", "key")) == sorted(FIXTURE_SCHEMA["verifier"]["properties"])


@pytest.mark.parametrize("part", ["answer", "files"])
def test_every_check_of_texts_is_documented(part: str) -> None:
    schema = FIXTURE_SCHEMA["verifier"]["properties"][part]
    keys = schema.get("properties") or schema["additionalProperties"]["properties"]
    assert set(keys) <= names_in_code("verifiers.md")


def test_every_matcher_is_documented() -> None:
    shown = [json.loads(cell) for cell in first_cells("verifiers.md", "matcher")]
    assert {name for matcher in shown for name in matcher} == set(MATCHER_NAMES)


def value_of(cell: str) -> Any:
    return ABSENT if cell == "(absent)" else json.loads(cell)


def test_the_matchers_hold_and_fail_as_documented() -> None:
    for matcher, held, failed, _ in table(DOCS / "verifiers.md", "matcher"):
        expected = json.loads(matcher)
        assert matches(expected, value_of(held)), (matcher, held)
        assert failed == "(nothing)" or not matches(expected, value_of(failed)), (matcher, failed)


def test_equality_is_as_documented() -> None:
    rows = table(DOCS / "verifiers.md", "expected")
    assert len(rows) >= 5
    for left, right, verdict in rows:
        assert equal(json.loads(left), json.loads(right)) is {"equal": True, "not equal": False}[verdict]


def test_folding_is_as_documented() -> None:
    rows = table(DOCS / "verifiers.md", "written")
    assert len(rows) >= 3
    for written, read in rows:
        assert fold_typography(json.loads(written)) == json.loads(read) != json.loads(written)


def test_every_tool_and_its_arguments_are_documented() -> None:
    registry = ToolRegistry()
    registry.add_built_in()
    rows = {row[0]: row[1:] for row in table(DOCS / "tools.md", "tool")}
    assert list(rows) == list(registry.tools)
    for name, tool in registry.tools.items():
        category, arguments = rows[name][:2]
        assert category == tool.category
        required = set(tool.parameters.get("required", ()))
        names = [text if text in required else f"[{text}]" for text in tool.parameters["properties"]]
        assert re.findall(r"`([^`]+)`", f"`{arguments}`" if "`" not in arguments else arguments) == names


def test_every_hook_is_documented_with_a_conftest() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("pytest_tooleval_")}
    used = "".join(b.text for b in blocks(DOCS / "hooks.md") if b.marks.get("file", "").endswith("conftest.py"))
    assert hooks
    for hook in hooks:
        assert f"def {hook}(" in used
        assert hook in names_in_code("hooks.md")


def test_every_gate_key_is_documented() -> None:
    assert sorted(first_cells("gates.md", "gate")) == sorted(GATE_KEYS)


def gold_gates() -> dict[str, list[str]]:
    """Return the gates of each section of a threshold file, tool use left out."""
    schema = json.loads(schema_text("thresholds"))
    sections = {name: part["properties"] for name, part in schema["properties"].items() if "properties" in part}
    del sections["tool_use"]
    discovery = schema["$defs"]["discoveryGates"]["properties"]
    return {name: sorted(discovery if name == "discovery" else gates) for name, gates in sections.items()}


def test_every_gate_of_gold_sets_is_documented() -> None:
    found: dict[str, list[str]] = {}
    for section, gate, _ in table(DOCS / "gates.md", "section"):
        found.setdefault(section or list(found)[-1], []).append(gate)
    found["discovery"].append("requiresSemanticLeg")
    assert "requiresSemanticLeg" in documented("gates.md")
    assert {name: sorted(gates) for name, gates in found.items()} == gold_gates()


@pytest.mark.parametrize(
    ("page", "header", "names"),
    [
        ("search.md", "decision", DECISIONS),
        ("broker.md", "error type", ERROR_TYPES),
    ],
)
def test_what_a_broker_says_is_documented(page: str, header: str, names: Iterable[str]) -> None:
    assert sorted(first_cells(page, header)) == sorted(names)


def test_every_embedder_and_estimator_is_documented() -> None:
    embedders, estimators = EmbedderRegistry(), EstimatorRegistry()
    register_builtin_embedders(embedders)
    register_builtin_estimators(estimators)
    assert sorted(cell.partition(":")[0] for cell in first_cells("search.md", "embedder")) == list(embedders.names)
    assert sorted(first_cells("broker.md", "estimator")) == list(estimators.names)


def test_the_fields_are_weighted_as_documented() -> None:
    weights = {float(weight) for _, weight in table(DOCS / "search.md", "field")}
    assert weights == set(FIELD_WEIGHTS.values())
    assert f"k1 {K1}, b {B}" in documented("search.md")
    assert f"The floor is\n{Limits().relevance}." in documented("search.md")
    assert f"less than {Limits().lead:.0%}".replace("%", " %") in documented("search.md")


def test_the_budgets_are_as_documented() -> None:
    find, describe, call = (f"{BUDGET_BYTES[kind]:,}" for kind in ("find", "describe", "call"))
    assert f"at most {find} bytes (find), {describe} (describe) or {call} (call)" in documented("broker.md")
    assert f"have at most {find} bytes (find), {describe} (describe) or {call} (call)" in documented("gold-sets.md")
    assert f"lives {DEFAULT_TTL_SECONDS:.0f} seconds. {DEFAULT_MOST_ENTRIES:,} answers" in documented("broker.md")


def test_every_command_is_documented() -> None:
    shown = {cell.split()[1] for cell in first_cells("options.md", "command")}
    assert shown == {command.name for command in COMMANDS}


def preset_row(preset: Preset) -> list[str]:
    keys = [preset.key_variable, *preset.other_key_variables]
    listed = ", ".join(f"`{key}`" for key in keys) if keys[1:] or not preset.key_required else keys[0]
    needed = "" if preset.key_required else ", not needed"
    return [preset.name, preset.dialect, preset.url or "your own", listed + needed]


def test_every_provider_is_documented() -> None:
    assert table(DOCS / "providers.md", "provider") == [preset_row(preset) for preset in PRESETS]
    assert "mock" in names_in_code("providers.md")


def test_every_dialect_and_quirk_is_documented() -> None:
    assert sorted(first_cells("providers.md", "dialect")) == sorted(DIALECTS)
    assert first_cells("providers.md", "quirk") == [field.name for field in dataclasses.fields(ChatQuirks)]


def option_row(option: Option) -> list[str]:
    name = PREFIX + option.name
    return [name if option.kind == "flag" else f"{name} {option.metavar}", option.ini, option.kind, option.help]


def test_the_options_are_listed_as_they_are() -> None:
    assert table(DOCS / "options.md", "option") == [option_row(option) for option in OPTIONS]
    for option in OPTIONS:
        assert option.default in (None, False) or "default: " in option.help


def test_the_short_names_are_listed() -> None:
    assert sorted(first_cells("options.md", "short")) == sorted(SHORT_NAMES)


def result_keys(document: dict[str, Any]) -> dict[str, set[str]]:
    return {
        "top": set(document),
        "provenance": set(document["provenance"]),
        "totals": {key for totals in document["toolUse"]["byTarget"].values() for key in totals},
        "case": {key for case in document["toolUse"]["cases"] for key in case},
        "trace": {key for case in document["toolUse"]["cases"] for call in case["trace"] for key in call},
        "gate": {key for gate in document["gates"] for key in gate},
    }


def all_keys(value: Any) -> set[str]:
    """Return every key in a JSON value, but for names that the run's files chose."""
    if isinstance(value, list):
        return {key for member in value for key in all_keys(member)}
    if not isinstance(value, dict):
        return set()
    own = set(value) - {"byCategory", "byTarget"}
    chosen = [member for name in ("byCategory", "byTarget") for member in value.get(name, {}).values()]
    return {*value, *all_keys([value[key] for key in own]), *all_keys(chosen)}


def test_every_key_of_the_gold_sections_is_documented(project: Project) -> None:
    for step in steps(DOCS / "gold-sets.md"):
        if isinstance(step, Block) and "file" in step.marks:
            project.take(step)
    ranking = 'def engine(catalog):\n    return lambda query: ["nothing.there"]\n'
    (project.folder / "unsure.py").write_text(ranking)
    arguments = ("--tooleval-json", "r.json", "--tooleval-engine", "lexical", "--tooleval-engine", "unsure:engine")
    project.pytester.runpytest_inprocess("-p", "no:randomly", "-o", "pythonpath=.", "evals", *arguments)
    document = json.loads((project.folder / "r.json").read_text())
    sections = ("discovery", "invocation", "ergonomics", "tokenEconomy", "performance", "cache", "hygiene")
    keys = all_keys([document[section] for section in sections])
    assert {"byTarget", "notes", "hygiene", "p95Micros"} <= keys
    assert {*sections, *document, *document["provenance"], *keys} <= names_in_code("results.md")


@pytest.mark.parametrize("part", ["top", "provenance", "totals", "case", "trace", "gate"])
def test_every_key_of_the_result_file_is_documented(part: str, project: Project) -> None:
    fixtures = [
        {
            "id": "a",
            "task": "Look.",
            "expected": ["glob"],
            "mock": [{"calls": [{"name": "glob", "arguments": "{"}]}],
        },
        {"id": "b", "task": "Look.", "expected": ["glob"], "mock": [{"calls": [{"name": "tools.glob"}]}]},
    ]
    thresholds = {"tool_use": {"passRateMin": 1, "tokensMax": 1}}
    for name, value in (("fixtures/x.json", fixtures), ("thresholds.json", thresholds)):
        path = project.folder / "evals" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    project.pytester.runpytest_inprocess("-p", "no:randomly", "evals", "--tooleval-json", "r.json")
    keys = result_keys(json.loads((project.folder / "r.json").read_text()))[part]
    assert keys
    assert keys <= names_in_code("results.md")


def test_the_client_of_the_broker_page_starts_the_broker(project: Project) -> None:
    take_files("broker.md", project)
    (project.folder / "catalog").mkdir()
    (project.folder / "tools.json").rename(project.folder / "catalog" / "world.json")
    entry = json.loads((project.folder / "client.json").read_text())["mcpServers"]["tools"]
    command = [sys.executable, "-m", "pytest_tooleval.cli.main", *entry["args"]]

    async def listed() -> list[str]:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert entry["command"] == "tooleval"
    assert asyncio.run(listed()) == list(OPERATIONS)


def test_the_other_broker_of_the_broker_page_is_measured(project: Project) -> None:
    take_files("broker.md", project)
    mapping = load_mapping(project.folder / "mapping.json", Path("mapping.json"))
    catalog = load_catalogs([project.folder / "tools.json"])
    measured = parse_broker("python search_server.py", mapping, project.folder, {}, 30)
    try:
        engine = RemoteEngine(measured.over(catalog))
        found, refused = engine.search("post a message", 5), engine.search("bake a cake", 5)
    finally:
        measured.close()
    assert (found.refs, found.decision) == (("chat.post_message",), "use")
    assert (refused.refs, refused.decision) == ((), "no_good_match")


def take_files(page: str, project: Project) -> None:
    """Take the files of a page, of two with one name the last."""
    for step in steps(DOCS / page):
        if isinstance(step, Block) and "file" in step.marks:
            project.take(step)


def test_every_key_of_a_mapping_is_documented() -> None:
    schema = json.loads(schema_text("broker-mapping"))
    keys = {key for key in schema["properties"] if key != "$schema"}
    assert keys == set(first_cells("broker.md", "key of a mapping"))
    inner = {key for part in schema["$defs"].values() for key in part.get("properties", ())}
    assert inner <= names_in_code("broker.md")


def test_every_rule_of_lint_is_documented() -> None:
    assert first_cells("lint.md", "rule") == list(RULES)
    assert {row[0]: row[1] for row in table(DOCS / "lint.md", "provider")} == dict(NAME_PATTERNS)
    assert f"From {LEAST_SIMILARITY} on" in documented("lint.md")
    assert f"more than {MOST_DESCRIPTION:,} characters" in documented("lint.md")
    assert f"`--token-budget N`, {TOKEN_BUDGET:,} by default" in documented("lint.md")


def test_the_workflow_is_the_one_that_init_writes() -> None:
    path = ".github/workflows/tooleval.yml"
    shown = [block.text for block in blocks(DOCS / "ci.md") if block.marks.get("file") == path]
    assert shown[:1] == [suite_files()[path]]


def test_the_index_names_every_page() -> None:
    others = {page.name for page in PAGES} - {"README.md"}
    assert others <= set(relative_links(DOCS / "README.md"))


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in relative_links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def has_a_role(block: Block) -> bool:
    roles = {"file", "wrong file", "verifier", "answer", "not run"} & set(block.marks)
    return len(roles) == (0 if block.language == "console" and "not run" not in block.marks else 1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_an_example(page: Path) -> None:
    assert [block.place for block in blocks(page) if not has_a_role(block)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_one_title_and_no_trailing_blanks(page: Path) -> None:
    text = documented(page.name)
    assert len(re.findall(r"^# ", prose(page), re.MULTILINE)) == 1
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert text.isascii() or not re.search("[\U0001f000-\U0001faff\u2600-\u27bf]", text)
