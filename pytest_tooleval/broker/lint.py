"""What is wrong with the tools of a catalog, before any model or search sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pytest_tooleval.broker.argument_check import BrokenSchemaError, checker_of
from pytest_tooleval.broker.envelope import json_text
from pytest_tooleval.broker.near_duplicates import Twin, near_duplicates
from pytest_tooleval.broker.provider_rules import (
    MOST_DESCRIPTION,
    NAME_PATTERNS,
    refusals,
    refusing_name,
    subschemas,
)
from pytest_tooleval.cases.catalog import Catalog, CatalogTool
from pytest_tooleval.errors import ConfigError, nearest
from pytest_tooleval.measures.text import cut
from pytest_tooleval.measures.token_estimates import CharacterEstimator, TokenEstimator

TOKEN_BUDGET = 1000
_MOST_NAMED = 5

RULES: Mapping[str, str] = {
    "description-missing": "the tool has no description",
    "description-too-long": f"the description has more than {MOST_DESCRIPTION:,} characters",
    "description-near-duplicate": "the search can hardly tell the description from another tool's",
    "name-refused": "a provider refuses the tool's name",
    "name-on-several-servers": "another server has a tool of the same name",
    "parameter-without-description": "a parameter has no description",
    "schema-without-type": "the input schema has no 'type'",
    "schema-without-properties": "the input schema has no 'properties'",
    "schema-invalid": "the input schema is not a JSON Schema",
    "schema-refused": "a provider refuses the input schema",
    "definition-too-large": "the definition costs more tokens than the budget",
}
"""Each rule's id, and what it finds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one tool.

    Attributes:
        rule: the rule's id, one of `RULES`.
        ref: the tool.
        message: what was found.
        fix: what to do about it, a sentence.

    """

    rule: str
    ref: str
    message: str
    fix: str

    def to_plain(self) -> dict[str, str]:
        """Return what the JSON output holds of it."""
        return {"rule": self.rule, "toolRef": self.ref, "message": self.message, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class LintSettings:
    """How a catalog is looked at.

    Attributes:
        disabled: ids of rules that are left out.
        token_budget: most tokens of one definition.
        estimator: counts them.

    """

    disabled: Collection[str] = frozenset()
    token_budget: int = TOKEN_BUDGET
    estimator: TokenEstimator = field(default_factory=CharacterEstimator)

    def __post_init__(self) -> None:
        for rule in self.disabled:
            if rule not in RULES:
                raise ConfigError(f"no rule {rule!r}{nearest(rule, RULES)}; there are: {', '.join(RULES)}")


def lint(catalog: Catalog, settings: LintSettings | None = None) -> list[Finding]:
    """Return what is wrong with a catalog's tools, in the order of the tools and of `RULES`.

    Raises:
        ConfigError: the settings name a rule that does not exist.

    """
    wanted = _Look(catalog, settings or LintSettings())
    active = [(rule, check) for rule, check in _CHECKS.items() if rule not in wanted.settings.disabled]
    return [
        Finding(rule, tool.ref, message, fix)
        for tool in catalog.tools
        for rule, check in active
        for message, fix in check(tool, wanted)
    ]


def counts_of(findings: Sequence[Finding]) -> dict[str, int]:
    """Return how many findings each rule has, in the order of `RULES`; rules without any are left out."""
    counts = Counter(finding.rule for finding in findings)
    return {rule: counts[rule] for rule in RULES if counts[rule]}


class _Look:
    """What the checks of single tools need to know of the others."""

    def __init__(self, catalog: Catalog, settings: LintSettings) -> None:
        self.settings = settings
        is_compared = "description-near-duplicate" not in settings.disabled
        self.twins: Mapping[str, Twin] = near_duplicates(catalog.tools) if is_compared else {}
        self.servers_of: dict[str, list[str]] = {}
        for tool in catalog.tools:
            self.servers_of.setdefault(tool.name, []).append(tool.server_id)


_Faults: TypeAlias = Iterator[tuple[str, str]]


def _description_missing(tool: CatalogTool, _: _Look) -> _Faults:
    if not tool.description.strip():
        yield "it has no description", "Say in a sentence what it does and when it is the right one."


def _description_too_long(tool: CatalogTool, _: _Look) -> _Faults:
    length = len(tool.description)
    if length > MOST_DESCRIPTION:
        yield (
            f"its description has {length:,} characters; OpenAI takes {MOST_DESCRIPTION:,}",
            "Keep what tells when to use it, and move the rest to its parameters.",
        )


def _near_duplicate(tool: CatalogTool, look: _Look) -> _Faults:
    twin = look.twins.get(tool.ref)
    if twin is not None:
        likeness = "the same as" if twin.similarity == 1 else f"{twin.similarity:.0%} like"
        yield (
            f"to a search its description is {likeness} that of {twin.ref}",
            "Say first what only this one does.",
        )


def _name_refused(tool: CatalogTool, _: _Look) -> _Faults:
    refusing = refusing_name(tool.name)
    if refusing:
        patterns = ", ".join(f"{provider} takes {NAME_PATTERNS[provider]}" for provider in refusing)
        yield (
            f"the name {cut(tool.name, 140)!r} is refused: {patterns}",
            "Use letters, digits, '_' and '-', a letter first, at most 64 characters.",
        )


def _name_on_several_servers(tool: CatalogTool, look: _Look) -> _Faults:
    others = [server for server in look.servers_of[tool.name] if server != tool.server_id]
    if others:
        yield (
            f"there is a tool {tool.name!r} on {_some(others)} too",
            "Put into name or description what it works on, or have the client prefix the server.",
        )


def _parameter_without_description(tool: CatalogTool, _: _Look) -> _Faults:
    properties = _mapping(tool.input_schema.get("properties"))
    bare = [name for name, schema in properties.items() if not _is_described(schema, tool.input_schema)]
    if bare:
        kind = "parameter has" if len(bare) == 1 else "parameters have"
        yield (
            f"{len(bare)} {kind} no description: {_some(bare)}",
            "Say of each what it means and how it is written.",
        )


def _schema_without_type(tool: CatalogTool, _: _Look) -> _Faults:
    if "type" not in tool.input_schema:
        yield (
            "its input schema has no 'type': the protocol demands it, and clients drop the server's whole list",
            'Add "type": "object".',
        )


def _schema_without_properties(tool: CatalogTool, _: _Look) -> _Faults:
    if "properties" not in tool.input_schema:
        yield (
            "its input schema has no 'properties', which OpenAI refuses",
            'Add "properties": {}, empty if it must be.',
        )


def _schema_invalid(tool: CatalogTool, _: _Look) -> _Faults:
    problem = _problem_of(tool.input_schema)
    if problem:
        yield f"its input schema is not a JSON Schema: {problem}", "Correct it; until then calls cannot be checked."


def _schema_refused(tool: CatalogTool, _: _Look) -> _Faults:
    yield from ((refusal.message, refusal.fix) for refusal in refusals(tool.input_schema))


def _definition_too_large(tool: CatalogTool, look: _Look) -> _Faults:
    estimator, budget = look.settings.estimator, look.settings.token_budget
    definition = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    tokens = estimator.count(json_text(definition))
    if tokens > budget:
        yield (
            f"its definition costs {tokens:,} tokens ({estimator.name}); the budget is {budget:,}",
            "Split the tool, or shorten its descriptions: a model reads all of it before its first turn.",
        )


_CHECKS: Mapping[str, Callable[[CatalogTool, _Look], _Faults]] = {
    "description-missing": _description_missing,
    "description-too-long": _description_too_long,
    "description-near-duplicate": _near_duplicate,
    "name-refused": _name_refused,
    "name-on-several-servers": _name_on_several_servers,
    "parameter-without-description": _parameter_without_description,
    "schema-without-type": _schema_without_type,
    "schema-without-properties": _schema_without_properties,
    "schema-invalid": _schema_invalid,
    "schema-refused": _schema_refused,
    "definition-too-large": _definition_too_large,
}


def _problem_of(schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a schema, empty when nothing is; only what a fast look doubts is checked slowly."""
    import jsonschema_rs

    try:
        if jsonschema_rs.meta.is_valid(dict(schema)) and not _needs_thorough_look(schema):
            return ""
    except (ValueError, OverflowError, RecursionError):
        pass
    try:
        checker_of(schema)
    except BrokenSchemaError as error:
        return str(error)
    return ""


def _needs_thorough_look(schema: Mapping[str, Any]) -> bool:
    return any("$ref" in part or "pattern" in part for _, part in subschemas(schema))


def _is_described(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether a parameter says what it is: itself, in an alternative, or in the definition that it refers to."""
    if not isinstance(schema, Mapping):
        return False
    if str(schema.get("description") or "").strip():
        return True
    branches = [one for key in ("anyOf", "oneOf", "allOf") for one in _list(schema.get(key))]
    target = _target(schema.get("$ref"), root)
    described = [*branches, target]
    return any(isinstance(one, Mapping) and str(one.get("description") or "").strip() for one in described)


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference to a definition at the schema's top leads to, else None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    place, _, name = reference.removeprefix("#/").partition("/")
    return _mapping(root.get(place)).get(name)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(cut(name, 60) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
