from __future__ import annotations

import random

import pytest

from pytest_tooleval.cases.catalog import Catalog, CatalogServer, CatalogTool
from pytest_tooleval.errors import ToolError, ToolUnavailableError
from pytest_tooleval.tools.distractors import DistractorPool
from pytest_tooleval.tools.registry import Offer
from pytest_tooleval.tools.tool import Tool, ToolContext

REAL = Tool("grep", "Search.", {"type": "object"}, "read", lambda _arguments, _context: "found")
OWN = Offer({"grep": REAL}, {"run_command": "denied"})


def listed(ref: str, schema: object = None) -> CatalogTool:
    server, _, name = ref.partition(".")
    return CatalogTool(ref, server, name, "", f"Does {name}.", {} if schema is None else schema)


def catalog(*tools: CatalogTool) -> Catalog:
    return Catalog(tuple(CatalogServer(name) for name in dict.fromkeys(tool.server_id for tool in tools)), tools)


MANY = [listed(f"s{number % 3}.tool_{number}") for number in range(50)]


def names(pool: DistractorPool, count: int, offer: Offer = OWN) -> list[str]:
    return list(pool.added_to(offer, count).distractors)


def test_distractors_stand_behind_the_tools_of_the_case():
    offer = DistractorPool(catalog(*MANY)).added_to(OWN, 3)
    assert list(offer.offered) == ["grep", *offer.distractors]
    assert len(offer.distractors) == 3
    assert offer.offered["grep"] is REAL
    assert offer.denied is OWN.denied
    name, entry = next(iter(offer.distractors.items()))
    assert (entry.name, offer.offered[name].description) == (name, f"Does {name}.")
    assert offer.offered[name].parameters == {"type": "object"}


def test_the_choice_follows_from_the_catalog_alone_and_a_larger_number_adds_to_it():
    shuffled = list(MANY)
    random.Random(7).shuffle(shuffled)
    first, second = DistractorPool(catalog(*MANY)), DistractorPool(catalog(*shuffled))
    assert names(first, 20) == names(second, 20)
    assert names(first, 20)[:5] == names(first, 5)
    assert names(first, 20) != [tool.name for tool in MANY[:20]]


def test_none_has_the_name_of_a_tool_of_the_case_or_of_a_denied_one():
    pool = DistractorPool(catalog(listed("a.grep"), listed("a.GREP"), listed("a.run_command"), listed("a.send")))
    assert pool.count_beside(OWN) == 1
    assert names(pool, 1) == ["send"]
    assert pool.count_beside(Offer({}, {})) == 3


def test_of_several_tools_with_one_name_one_is_taken():
    pool = DistractorPool(catalog(listed("a.send"), listed("b.send"), listed("c.Send")))
    assert pool.count_beside(OWN) == 1


@pytest.mark.parametrize(
    "unusable",
    [
        listed("a.odd", {"type": "array"}),
        listed("a.odd", {"type": "object", "properties": 3}),
        listed("a.odd", {"$ref": "https://example.invalid/schema.json"}),
        listed("a." + "x" * 201),
        listed("a.odd\x07"),
    ],
)
def test_a_tool_that_no_model_can_be_offered_is_left_out(unusable):
    assert names(DistractorPool(catalog(unusable, listed("a.send"))), 1) == ["send"]


def test_too_few_are_an_error_that_counts_them():
    pool = DistractorPool(catalog(listed("a.send"), listed("a.grep")))
    with pytest.raises(ToolUnavailableError, match="2 distractors were asked for, and the catalog has 1 that"):
        pool.added_to(OWN, 2)


def test_calling_one_is_an_error_that_says_so(tmp_path):
    tool = DistractorPool(catalog(listed("a.send"))).added_to(OWN, 1).offered["send"]
    with pytest.raises(ToolError, match="the tool send is not available in this run: do without it"):
        tool.run({}, ToolContext(tmp_path))
    assert not tool.needs_directory
