from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pytest_tooleval.cases.catalog import (
    Catalog,
    CatalogServer,
    CatalogTool,
    catalog_document,
    load_catalog,
    load_catalogs,
    merge_catalogs,
)
from pytest_tooleval.cases.schema import Schema
from pytest_tooleval.errors import CaseError, ConfigError

SHOWN = Path("evals/catalog/world.json")
SEARCH = {"toolRef": "wiki.search_pages", "serverId": "wiki", "name": "search_pages"}


@pytest.fixture
def load(tmp_path):
    """Load the catalog of a file with the given text or value."""

    def loaded(content: object, name: str = "world.json") -> Catalog:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return load_catalog(path, SHOWN)

    return loaded


@pytest.fixture
def problems(load):
    """Load a file that has to be refused, and return what is said of it."""

    def refused(content: object) -> list[str]:
        with pytest.raises(CaseError) as caught:
            load(content)
        return [str(problem) for problem in caught.value.problems]

    return refused


def with_tools(*tools: object, **keys: object) -> dict[str, object]:
    return {"servers": [{"id": "wiki"}], "tools": list(tools), **keys}


def test_every_key_of_a_catalog(load):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    assert load(
        {
            "$schema": "catalog.schema.json",
            "_note": "x",
            "version": 3,
            "description": "A world.",
            "servers": [{"id": "wiki", "status": "offline", "_why": "y"}, {"id": "mail"}],
            "tools": [
                {
                    **SEARCH,
                    "title": "Search",
                    "description": "Search pages.",
                    "inputSchema": schema,
                    "readOnly": True,
                    "_n": 1,
                },
                {"toolRef": "mail.send", "serverId": "mail", "name": "send"},
            ],
        }
    ) == Catalog(
        servers=(CatalogServer("wiki", "offline"), CatalogServer("mail", "online")),
        tools=(
            CatalogTool("wiki.search_pages", "wiki", "search_pages", "Search", "Search pages.", schema, True),
            CatalogTool("mail.send", "mail", "send", "", "", {}, False),
        ),
        version=3,
        description="A world.",
    )


def test_what_a_server_answered(load):
    catalog = load(
        {
            "server": "files",
            "version": "1.2.3",
            "serverInfo": {"name": "x"},
            "tools": [
                {
                    "name": "read",
                    "title": "Read",
                    "description": "Read a file.",
                    "inputSchema": {"type": "object"},
                    "outputSchema": {},
                    "annotations": {"readOnlyHint": True, "title": "Other", "openWorldHint": False},
                    "_meta": {},
                },
                {"name": "write", "annotations": {"title": "Write", "readOnlyHint": False}},
                {"name": "a.b", "title": None, "description": None, "inputSchema": None, "annotations": None},
            ],
        }
    )
    assert catalog == Catalog(
        (CatalogServer("files"),),
        (
            CatalogTool("files.read", "files", "read", "Read", "Read a file.", {"type": "object"}, True),
            CatalogTool("files.write", "files", "write", "Write"),
            CatalogTool("files.a.b", "files", "a.b"),
        ),
    )


def test_a_bare_tools_list_is_named_as_its_file(load):
    catalog = load({"tools": [{"name": "now"}]}, "clock.json")
    assert catalog.servers == (CatalogServer("clock"),)
    assert [tool.ref for tool in catalog.tools] == ["clock.now"]


@pytest.mark.parametrize("content", [{"tools": []}, {"version": 1, "servers": [], "tools": []}])
def test_a_catalog_of_no_tools_loads(load, content):
    assert load(content).tools == ()


def test_names_of_any_script(load):
    tool = {"toolRef": "文件.読む", "serverId": "文件", "name": "読む"}
    assert load({"servers": [{"id": "文件"}], "tools": [tool]}).by_ref["文件.読む"].name == "読む"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "evals/catalog/world.json:1: found a list ([1]); expected an object with 'tools'"),
        ('"x"', "evals/catalog/world.json:1: found \"x\"; expected an object with 'tools'"),
        ("", "evals/catalog/world.json:1: is empty; expected a JSON object or a list of objects"),
        ('{"tools": [NaN]}', "evals/catalog/world.json:1: is not strict JSON: NaN is not a JSON number"),
        ("{}", "evals/catalog/world.json:1: the key 'tools' is missing"),
        ('{"servers": []}', "evals/catalog/world.json:1: the key 'tools' is missing"),
        ('{"tools": {}}', "evals/catalog/world.json:1 at /tools: found an object ({}); expected a list"),
        (
            '{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}',
            "evals/catalog/world.json:1: found a JSON-RPC response; store what stands under its key 'result'",
        ),
        (
            '{"tools": [\n{"name": " "}]}',
            'evals/catalog/world.json:2 at /tools/0/name: found " "; expected a name that is not blank',
        ),
        (
            '{"tools": [\n{"name": "a"},\n{"inputSchema": []}]}',
            (
                "evals/catalog/world.json:3 at /tools/1: the key 'name' is missing\n"
                "evals/catalog/world.json:3 at /tools/1/inputSchema: found a list ([]); expected an object or null"
            ),
        ),
        (
            '{"tools": [\n{"name": "a"},\n{"description": "x",\n"name": "a"}]}',
            (
                "evals/catalog/world.json:4 at /tools/1/name: the tool name 'a' stands at /tools/0/name already; "
                "give each its own"
            ),
        ),
    ],
)
def test_files_that_are_no_catalog(problems, content, message):
    assert "\n".join(problems(content)) == message


@pytest.mark.parametrize(
    ("content", "pointer", "message"),
    [
        (
            with_tools({**SEARCH, "name": ""}),
            "/tools/0/name",
            'found ""; expected a name that is not blank',
        ),
        (
            with_tools({**SEARCH, "inputSchema": "object"}),
            "/tools/0/inputSchema",
            'found "object"; expected an object',
        ),
        (with_tools({**SEARCH, "inputSchema": True}), "/tools/0/inputSchema", "found true; expected an object"),
        (with_tools({**SEARCH, "readOnly": "yes"}), "/tools/0/readOnly", 'found "yes"; expected true or false'),
        (
            with_tools({**SEARCH, "inputschema": {}}),
            "/tools/0/inputschema",
            "unknown key 'inputschema' (did you mean 'inputSchema'?)",
        ),
        (with_tools(tool=1), "/tool", "unknown key 'tool' (did you mean 'tools'?)"),
        (
            {"servers": [{"id": "wiki", "status": "onlin"}], "tools": []},
            "/servers/0/status",
            "found \"onlin\"; expected one of: online, offline, auth_required (did you mean 'online'?)",
        ),
        (
            with_tools({**SEARCH, "toolRef": "wiki.search"}),
            "/tools/0/toolRef",
            'found "wiki.search"; expected serverId.name, which is wiki.search_pages',
        ),
        (
            with_tools({"toolRef": "wiky.a", "serverId": "wiky", "name": "a"}),
            "/tools/0/serverId",
            "no server 'wiky' stands under 'servers' (did you mean 'wiki'?)",
        ),
        (
            {"servers": [], "tools": [SEARCH]},
            "/tools/0/serverId",
            "no server 'wiki' stands under 'servers'; known are: none",
        ),
        (
            with_tools(SEARCH, SEARCH),
            "/tools/1/toolRef",
            "the toolRef 'wiki.search_pages' stands at /tools/0/toolRef already; give each its own",
        ),
        (
            {"servers": [{"id": "a"}, {"id": "a"}], "tools": []},
            "/servers/1/id",
            "the server id 'a' stands at /servers/0/id already; give each its own",
        ),
    ],
)
def test_what_is_wrong_with_a_catalog(problems, content, pointer, message):
    assert problems(content) == [f"{SHOWN}:1 at {pointer}: {message}"]


def test_every_fault_of_a_file_has_its_line(problems):
    tools = ",\n".join(
        json.dumps({**SEARCH, "toolRef": ref, "serverId": server})
        for ref, server in [("wiki.search_pages", "wiki"), ("x", "wiki"), ("mail.search_pages", "mail")]
    )
    assert problems('{"servers": [{"id": "wiki"}],\n"tools": [\n' + tools + "]}") == [
        f'{SHOWN}:4 at /tools/1/toolRef: found "x"; expected serverId.name, which is wiki.search_pages',
        f"{SHOWN}:5 at /tools/2/serverId: no server 'mail' stands under 'servers'; known are: wiki",
    ]


def test_a_thousand_faults_are_enough(problems):
    assert len(problems({"tools": [{}] * 1001})) == 1000


def test_generation_is_that_of_the_content():
    tools = [CatalogTool(f"s.{name}", "s", name, input_schema={"a": 1, "b": 2}) for name in "abcdef"]
    servers = [CatalogServer("s"), CatalogServer("t")]
    generation = Catalog(tuple(servers), tuple(tools)).generation
    shuffled = [*tools]
    random.Random(1).shuffle(shuffled)
    same = Catalog(tuple(reversed(servers)), tuple(shuffled), version=2)
    reordered = CatalogTool("s.a", "s", "a", input_schema={"b": 2, "a": 1})
    assert same.generation == generation
    assert Catalog(tuple(servers), (reordered, *tools[1:])).generation == generation
    assert Catalog(tuple(servers), tuple(tools[1:])).generation != generation
    assert Catalog((CatalogServer("s", "offline"), servers[1]), tuple(tools)).generation != generation
    assert len(generation) == 64
    assert int(generation, 16) >= 0


def test_several_catalogs_to_one():
    wiki = Catalog((CatalogServer("wiki"),), (CatalogTool("wiki.a", "wiki", "a"),), 1, "One.")
    mail = Catalog((CatalogServer("mail"), CatalogServer("wiki")), (CatalogTool("mail.a", "mail", "a"),), 1, "Two.")
    merged = merge_catalogs([(Path("wiki.json"), wiki), (Path("mail.json"), mail)])
    assert merged == Catalog((CatalogServer("wiki"), CatalogServer("mail")), (*wiki.tools, *mail.tools), 1, "")
    assert merge_catalogs([(Path("wiki.json"), wiki)]) == wiki
    assert merge_catalogs([]) == Catalog()


def test_catalogs_that_clash():
    one = Catalog((CatalogServer("wiki"),), (CatalogTool("wiki.a", "wiki", "a"),))
    two = Catalog((CatalogServer("wiki", "offline"),), (CatalogTool("wiki.a", "wiki", "a"),))
    with pytest.raises(CaseError) as caught:
        merge_catalogs([(Path("one.json"), one), (Path("two.json"), two)])
    assert [str(problem) for problem in caught.value.problems] == [
        "two.json: the server 'wiki' is offline here and online in one.json; let them agree",
        "two.json: the toolRef 'wiki.a' stands in one.json too; keep one of them",
    ]


def test_the_published_schema_takes_both_formats():
    schema = Schema("catalog")
    assert schema.is_valid(with_tools(SEARCH))
    assert schema.is_valid({"server": "x", "tools": [{"name": "a", "annotations": {}}]})
    assert not schema.is_valid({"servers": []})


def test_files_and_folders_are_one_catalog(tmp_path):
    for name in ("b/two.json", "b/one.json", "a.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"tools": [{"name": "roll"}]}), encoding="utf-8")
    (tmp_path / "b" / "notes.txt").touch()

    catalog = load_catalogs([tmp_path / "a.json", tmp_path / "b", tmp_path / "a.json"])

    assert [tool.ref for tool in catalog.tools] == ["a.roll", "one.roll", "two.roll"]


def test_a_folder_without_catalogs(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no \*\.json"):
        load_catalogs([tmp_path])


def test_a_file_that_clashes_is_named(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"server": "s", "tools": [{"name": "roll"}]}), encoding="utf-8")
    with pytest.raises(CaseError, match=r"b\.json: the toolRef 's\.roll' stands in .*a\.json too"):
        load_catalogs([tmp_path])


def test_what_is_written_is_what_is_read(load):
    catalog = Catalog(
        (CatalogServer("wiki", "offline", "Wiki server", "1.2"), CatalogServer("mail")),
        (
            CatalogTool(
                "wiki.search", "wiki", "search", "Search", "Search é.", {"type": "object", "properties": {}}, True
            ),
            CatalogTool("mail.send", "mail", "send"),
        ),
        version="7",
        description="A world.",
    )
    assert load(catalog_document(catalog)) == catalog
    assert load(catalog_document(Catalog())) == Catalog()


def test_what_a_server_told_of_itself_is_no_part_of_the_generation(load):
    told = load({"servers": [{"id": "wiki", "name": "Wiki", "version": "1"}], "tools": [SEARCH]})
    assert (told.servers[0].name, told.servers[0].version) == ("Wiki", "1")
    assert told.generation == load(with_tools(SEARCH)).generation


def test_a_part_of_a_catalog(load):
    tools = [SEARCH, {"toolRef": "mail.send", "serverId": "mail", "name": "send"}]
    catalog = load({"servers": [{"id": "wiki"}, {"id": "mail"}], "tools": tools})
    part = catalog.of_servers(["mail", "ghost"])
    assert [server.id for server in part.servers] == ["mail"]
    assert list(part.by_ref) == ["mail.send"]
