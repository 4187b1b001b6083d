"""Our verdict on tool calls against that of the Berkeley Function-Calling Leaderboard's checker.

A folder holds `verdicts.jsonl`: on each line the offered functions, the gold calls (for each argument a list of
acceptable values, with "" where it may be left out), a candidate, and the checker's verdict on it. The gold becomes
a fixture's verifier, the candidate a run, and both verdicts are compared.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, TypeAlias

from pytest_tooleval.cases.case import Source, ToolUseCase, Verifier
from pytest_tooleval.measures.verify import Behaviour, CalledTool, verify
from pytest_tooleval.tools.arguments import argument_faults, without_refused_nulls
from pytest_tooleval.tools.tool import Tool

Row: TypeAlias = Mapping[str, Any]
Fold: TypeAlias = Callable[[str], str]
Verdict: TypeAlias = Callable[[Row], bool]

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
_FOLDED_AWAY = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row on which the verdicts differ."""

    row: Row
    ours: bool

    @property
    def kind(self) -> str:
        """How the candidate was made of the gold, and who accepts it."""
        return f"{self.row['mutation']}: {'we' if self.ours else 'they'} accept it"


def as_written(text: str) -> str:
    return text


def folded(text: str) -> str:
    """Return a text as their checker compares it: without case, blanks and some punctuation."""
    return _FOLDED_AWAY.sub("", text).lower().replace("'", '"')


def each_text(value: Any, fold: Fold) -> Any:
    """Return a JSON value with each of its texts folded, keys of objects left as they are."""
    if isinstance(value, str):
        return fold(value)
    if isinstance(value, list):
        return [each_text(item, fold) for item in value]
    if isinstance(value, dict):
        return {key: each_text(item, fold) for key, item in value.items()}
    return value


def expected_value(acceptable: Sequence[Any], fold: Fold) -> dict[str, Any]:
    """Return the matcher for a list of acceptable values, in which "" means that the argument may be left out."""
    options = [expected_option(value, fold) for value in acceptable if value != ""]
    return {"$any_of": [{"$absent": True}, *options] if "" in acceptable else options}


def expected_option(value: Any, fold: Fold) -> Any:
    """Return what stands for one acceptable value; the members of an object have lists of their own."""
    if isinstance(value, dict):
        return {key: expected_value(members, fold) for key, members in value.items()}
    return {"$equals": each_text(value, fold)}


def call_of(found: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of `{name: arguments}`."""
    ((name, arguments),) = found.items()
    return name, arguments


def passes(verifier: Verifier, *calls: CalledTool) -> bool:
    case = ToolUseCase("row", "task", Source(Path("row.json")), verifier=verifier)
    return not verify(case, Behaviour(calls, "done"))


def our_verdict(row: Row, fold: Fold = as_written) -> bool:
    """Whether the candidate makes exactly the gold's calls, in any order.

    A fixture names each tool's arguments once. Where the gold calls a tool several times, each of its calls is a
    verifier of its own, and each has to be met by a call of its own.
    """
    gold = [call_of(found) for found in row["gold"]]
    made = [called(row, *call_of(found), fold) for found in row["candidate"]]
    if not passes(Verifier(any_order=tuple(name for name, _ in gold)), *made):
        return False
    demands = [
        Verifier(args_exact={name: {key: expected_value(values, fold) for key, values in arguments.items()}})
        for name, arguments in gold
    ]
    met = [[passes(demand, call) for call in made] for demand in demands]
    return any(all(map(list.__getitem__, met, order)) for order in permutations(range(len(made))))


def called(row: Row, name: str, arguments: Mapping[str, Any], fold: Fold) -> CalledTool:
    """Return a call as the agent loop records it: nulls that stand for nothing are left out."""
    tool = tool_named(row, name)
    kept = dict(arguments) if tool is None else without_refused_nulls(tool, arguments)
    return CalledTool(name, each_text(kept, fold))


def with_schema_checked(row: Row) -> bool:
    """Whether the calls are the gold's, and the loop would have run each of them."""
    return our_verdict(row) and not any(faults(row, *call_of(found)) for found in row["candidate"])


def faults(row: Row, name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a call's arguments by its function's schema."""
    tool = tool_named(row, name)
    return [f"no tool {name}"] if tool is None else argument_faults(tool, without_refused_nulls(tool, arguments))


def tool_named(row: Row, name: str) -> Tool | None:
    parameters = next((each["parameters"] for each in row["function"] if each["name"] == name), None)
    return None if parameters is None else Tool(name, "", json_schema(parameters), "read", lambda *_: "")


def json_schema(value: Any) -> Any:
    """Return a function's parameters with the types of JSON Schema; `any` is no restriction."""
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: json_schema(item) for key, item in value.items() if (key, item) != ("type", "any")}
    if isinstance(changed.get("type"), str):
        changed["type"] = _TYPES.get(changed["type"], changed["type"])
    return changed


def disagreements(rows: Sequence[Row], verdict: Verdict) -> Iterator[Disagreement]:
    for row in rows:
        ours = verdict(row)
        if ours != row["valid"]:
            yield Disagreement(row, ours)


def report(name: str, rows: Sequence[Row], verdict: Verdict, shown: int) -> None:
    """Print how many verdicts agree, and each kind of disagreement."""
    found = list(disagreements(rows, verdict))
    agreed = len(rows) - len(found)
    print(f"{name}: {agreed} of {len(rows)} agree ({agreed / len(rows):.1%})")
    for kind, count in Counter(each.kind for each in found).most_common():
        print(f"  {count:4}  {kind}")
        for each in [each for each in found if each.kind == kind][:shown]:
            print(f"        {each.row['id']}: gold {each.row['gold']}, candidate {each.row['candidate']}")


def main() -> None:
    """Print the agreement of three readings of the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0, help="rows to print of each kind of disagreement")
    options = parser.parse_args()
    with (options.folder / "verdicts.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    report("verifier", rows, our_verdict, options.show)
    report("verifier and schema", rows, with_schema_checked, options.show)
    report("verifier, texts folded as theirs", rows, lambda row: our_verdict(row, folded), options.show)


if __name__ == "__main__":
    main()
