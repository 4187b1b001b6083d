from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from json_values import json_values
from small_broker import one_tool

from pytest_tooleval.broker.lint import RULES, Finding, LintSettings, counts_of, lint
from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.errors import ConfigError

GOOD: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where it is."}},
    "required": ["path"],
}


def catalog(*tools: tuple[str, str, str], schema: dict[str, Any] = GOOD) -> Catalog:
    servers = dict.fromkeys(server for server, _, _ in tools)
    return Catalog(
        tuple(map(CatalogServer, servers)),
        tuple(CatalogTool(f"{s}.{name}", s, name, "", text, schema) for s, name, text in tools),
    )


def parameter(schema: Any) -> dict[str, Any]:
    definitions = {"told": {"description": "What it is."}, "bare": {"type": "string"}}
    return {"type": "object", "properties": {"a": schema}, "$defs": definitions}


def test_a_good_tool_has_no_finding() -> None:
    assert lint(catalog(("fs", "read_file", "Read a text file."), ("fs", "remove", "Delete a folder."))) == []


@pytest.mark.parametrize(
    ("tool", "rule", "message"),
    [
        (("s", "t", " "), "description-missing", "it has no description"),
        (
            ("s", "t", "é" * 1025),
            "description-too-long",
            "its description has 1,025 characters; OpenAI takes 1,024",
        ),
        (("s", "a.b", "Read."), "name-refused", r"OpenAI takes ^[a-zA-Z0-9_-]{1,64}$"),
    ],
)
def test_what_is_found_of_texts(tool: tuple[str, str, str], rule: str, message: str) -> None:
    (finding,) = lint(catalog(tool))
    assert (finding.rule, finding.ref) == (rule, f"s.{tool[1]}")
    assert message in finding.message
    assert finding.fix.endswith(".")


def test_a_description_of_1024_characters_is_not_too_long() -> None:
    assert lint(catalog(("s", "t", "é" * 1024))) == []


def test_who_refuses_a_name_is_said() -> None:
    (finding,) = lint(catalog(("s", "1st", "Read.")))
    assert "Gemini takes" in finding.message
    assert "OpenAI" not in finding.message


def test_a_name_on_several_servers_is_found_on_each() -> None:
    found = lint(
        catalog(("a", "search", "Search issues."), ("b", "search", "Find mail."), ("b", "send", "Post a letter."))
    )
    assert [(finding.rule, finding.ref) for finding in found] == [
        ("name-on-several-servers", "a.search"),
        ("name-on-several-servers", "b.search"),
    ]
    assert found[0].message == "there is a tool 'search' on b too"


def test_the_later_of_two_near_duplicates_is_named() -> None:
    (finding,) = lint(catalog(("a", "one", "Read a text file."), ("a", "two", "read a text file.")))
    assert (finding.rule, finding.ref) == ("description-near-duplicate", "a.two")
    assert finding.message == "to a search its description is the same as that of a.one"


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({}, ["schema-without-type", "schema-without-properties"]),
        ({"type": "object"}, ["schema-without-properties"]),
        ({"properties": {}}, ["schema-without-type"]),
        ({"type": "object", "properties": {}}, []),
        ({"type": "object", "properties": {}, "anyOf": [{}]}, ["schema-refused"]),
        ({"type": "object", "properties": {"a": {"type": "strin", "description": "A."}}}, ["schema-invalid"]),
        ({"type": "object", "properties": {"a": {"pattern": "(", "description": "A."}}}, ["schema-invalid"]),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/no", "description": "A."}}},
            ["schema-invalid", "schema-refused"],
        ),
        ({"type": "object", "properties": []}, ["schema-invalid"]),
        (parameter({"type": "string"}), ["parameter-without-description"]),
        (parameter({"type": "string", "description": "  "}), ["parameter-without-description"]),
        (parameter({"type": "string", "title": "A"}), ["parameter-without-description"]),
        (parameter(True), ["parameter-without-description"]),
        (parameter({"anyOf": [{"type": "string"}, {"type": "null"}]}), ["parameter-without-description"]),
        (parameter({"anyOf": [{"type": "string", "description": "A."}, {"type": "null"}]}), []),
        (parameter({"$ref": "#/$defs/told"}), ["schema-refused"]),
        (parameter({"$ref": "#/$defs/bare"}), ["parameter-without-description", "schema-refused"]),
    ],
)
def test_what_is_found_of_schemas(schema: dict[str, Any], rules: list[str]) -> None:
    assert [finding.rule for finding in lint(one_tool(schema))] == rules


def test_parameters_without_description_are_listed() -> None:
    (finding,) = lint(one_tool({"type": "object", "properties": {f"p{n}": {} for n in range(7)}}))
    assert finding.message == "7 parameters have no description: p0, p1, p2, p3, p4 and 2 more"


def test_a_definition_over_the_budget() -> None:
    small = catalog(("s", "t", "x" * 800))
    definition = {"name": "t", "description": "x" * 800, "inputSchema": GOOD}
    size = len(json.dumps(definition, separators=(",", ":")))
    assert lint(small) == []
    (finding,) = lint(small, LintSettings(token_budget=200))
    assert finding.rule == "definition-too-large"
    assert finding.message == f"its definition costs {-(-size // 4)} tokens (chars/4); the budget is 200"


class Words:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def test_another_estimator_counts() -> None:
    assert lint(catalog(("s", "t", "a b c d e f")), LintSettings(token_budget=3, estimator=Words()))


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_can_be_left_out(rule: str) -> None:
    bad = Catalog(
        (CatalogServer("a"), CatalogServer("b")),
        (
            CatalogTool("a.x y", "a", "x y", "", "same " * 400, {"anyOf": [{"type": 1}], "properties": {"p": {}}}),
            CatalogTool("b.x y", "b", "x y", "", "same " * 400, {}),
            CatalogTool("b.z", "b", "z", "", "", {}),
        ),
    )
    everything = lint(bad, LintSettings(token_budget=10))
    assert set(counts_of(everything)) == set(RULES)
    rest = lint(bad, LintSettings(disabled=frozenset({rule}), token_budget=10))
    assert rest == [finding for finding in everything if finding.rule != rule]


def test_a_rule_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no rule 'schema-invald' \(did you mean 'schema-invalid'\?\)"):
        LintSettings(disabled=frozenset({"schema-invald"}))


def test_counts_are_in_the_order_of_the_rules() -> None:
    found = [Finding(rule, "s.t", "", "") for rule in ("schema-refused", "description-missing", "schema-refused")]
    assert list(counts_of(found).items()) == [("description-missing", 1), ("schema-refused", 2)]


@given(json_values())
def test_whatever_stands_in_a_schema_is_no_crash(value: Any) -> None:
    schema = value if isinstance(value, dict) else {"type": "object", "properties": value, "$ref": value}
    for finding in lint(one_tool(schema)):
        assert finding.rule in RULES
