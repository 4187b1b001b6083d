"""The scoreboard: a result document as Markdown. Nothing stands in it that the document does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tooleval.gates.evaluate import shown_apart
from pytest_tooleval.measures.tool_sets import is_scripted
from pytest_tooleval.reports.markdown import NO_VALUE, code, count, prose, rate, seconds, table

Document = Mapping[str, Any]

_TOOL_USE = {
    "cases": ("n", count),
    "measured": ("measured", count),
    "accuracy": ("accuracy", rate),
    "pass rate": ("passRate", rate),
    "calls": ("calls", count),
    "redundant": ("redundant", count),
    "errors": ("errors", count),
    "tokens": ("tokens", count),
    "seconds": ("latencySeconds", seconds),
}
_DISCOVERY = {
    "rows": ("n", count),
    "measured": ("measured", count),
    "top-1": ("top1", rate),
    "top-3": ("top3", rate),
    "MRR": ("mrr", rate),
    "wrong server": ("wrongServerRate", rate),
    "no match": ("noMatchCorrectness", rate),
    "false refusal": ("falseRefusalRate", rate),
}
_FINDINGS = {
    "nonInstructional": "Without a next step",
    "budgetExceeded": "Over budget",
    "parityMismatches": "Surfaces disagree",
}
_COUNTS = frozenset({"n", "measured"})
_SCRIPTED = "mock"
_IS_SHARE = re.compile(r"(?:Ratio|Reduction)$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def scoreboard(document: Document) -> str:
    """Return the scoreboard of a result document.

    Args:
        document: a result file's content, as `read_result` returns it. The same document gives the same text.

    """
    blocks = [*_head(document)]
    for section in (_tool_use, _discovery, _rates, _token_economy, _cache, _performance, _hygiene, _gates):
        blocks += section(document)
    return "\n\n".join(blocks) + "\n"


def without_cases(document: Document) -> dict[str, Any]:
    """Return a result document without the records of single cases: what the scoreboard is made of."""
    return {key: _without_cases(section) for key, section in document.items() if key != "comparison"}


def _without_cases(section: Any) -> Any:
    return {k: v for k, v in section.items() if k != "cases"} if isinstance(section, Mapping) else section


def _head(document: Document) -> Iterator[str]:
    yield "# Scoreboard"
    yield _block(table(["provenance", "value"], _provenance(document), text_columns=2))
    yield from (f"Note: {prose(note)}" for note in document.get("notes", ()))


def _provenance(document: Document) -> Iterator[tuple[str, str]]:
    known = document["provenance"]
    interrupted = " (the run was interrupted)" if document.get("interrupted") else ""
    yield "verdict", f"{document['verdict']}{interrupted}"
    yield "time", prose(document["generatedAt"])
    yield "targets", ", ".join(map(code, known.get("targets", ()))) or NO_VALUE
    yield "corpus version", _version(known.get("corpusVersion"))
    yield "search model", _named(known.get("model"))
    yield "semantic leg", {True: "ran", False: "did not run"}.get(known.get("semanticRan"), NO_VALUE)
    yield "token estimator", _named(known.get("tokenEstimator"))
    yield "git commit", _named(known.get("gitCommit"))
    yield "host", _named(known.get("host"))
    versions = known.get("versions", {})
    yield "versions", ", ".join(f"{prose(name)} {prose(number)}" for name, number in versions.items()) or NO_VALUE


def _named(value: str | None) -> str:
    return NO_VALUE if value is None else code(value)


def _version(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{code(corpus)}: {_version(version)}" for corpus, version in value.items())
    return NO_VALUE if value is None else prose(str(value))


def _tool_use(document: Document) -> Iterator[str]:
    section = document.get("toolUse")
    if section:
        yield "## Tool use"
        rows = ([code(target), *_cells(totals, _TOOL_USE)] for target, totals in section["byTarget"].items())
        yield _block(table(["target", *_TOOL_USE], rows))
        if any(map(is_scripted, section["byTarget"])):
            yield f"{code(_SCRIPTED)} plays scripts: its numbers measure fixtures and tools, not a model."


def _discovery(document: Document) -> Iterator[str]:
    section = document.get("discovery")
    if not section:
        return
    yield "## Discovery"
    for target, scores in by_target(section).items():
        if "byTarget" in section:
            yield f"Engine {code(target)}:"
        rows = [["overall", *_cells(scores["overall"], _DISCOVERY)]]
        rows += [[code(name), *_cells(found, _DISCOVERY)] for name, found in scores["byCategory"].items()]
        yield _block(table(["category", *_DISCOVERY], rows))


def by_target(discovery: Document) -> Mapping[str, Any]:
    """Return the scores of a discovery section by the engine that they are of."""
    if "byTarget" in discovery:
        return dict(discovery["byTarget"])
    target = discovery["cases"][0]["target"] if discovery["cases"] else ""
    return {target: {"overall": discovery["overall"], "byCategory": discovery["byCategory"]}}


def _rates(document: Document) -> Iterator[str]:
    for key, title in (("invocation", "Invocation"), ("ergonomics", "Ergonomics")):
        section = document.get(key)
        if section:
            yield f"## {title}"
            overall = section["overall"]
            rows = [["cases", count(overall.get("n"))]]
            rows += [[_words(name), rate(value)] for name, value in overall.items() if name not in _COUNTS]
            yield _block(table(["rate", "value"], rows))
            yield from _findings(section)


def _findings(section: Document) -> Iterator[str]:
    for key, title in _FINDINGS.items():
        if section.get(key):
            yield f"{title}: {', '.join(map(code, section[key]))}."


def _token_economy(document: Document) -> Iterator[str]:
    yield from _workload(document.get("tokenEconomy"), "Token economy")


def _cache(document: Document) -> Iterator[str]:
    yield from _workload(document.get("cache"), "Result cache")


def _workload(section: Document | None, title: str) -> Iterator[str]:
    """Yield a table with a column for each corpus."""
    if not section:
        return
    records = _by_corpus(section)
    names = dict.fromkeys(name for record in records.values() for name, value in record.items() if _is_plain(value))
    rows = ([_words(name), *(_number(name, r.get(name)) for r in records.values())] for name in names)
    yield f"## {title}"
    yield _block(table(["measure", *map(_corpus_title, records)], rows))


def _by_corpus(section: Document) -> Mapping[str, Document]:
    """Return the records of a workload by corpus; the only one has no name."""
    records: Mapping[str, Document] = section.get("byCorpus", {"": section})
    return records


def _corpus_title(corpus: str) -> str:
    return code(corpus) if corpus else "value"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _performance(document: Document) -> Iterator[str]:
    section = document.get("performance")
    if not section:
        return
    yield "## Performance"
    yield f"Machine dependent: measured on {_named(document['provenance'].get('host'))}."
    records = _by_corpus(section)
    corpora = ["corpus"] if len(records) > 1 else []
    rows = (
        [*([code(corpus)] if corpora else []), _words(path), *_timing(timing)]
        for corpus, record in records.items()
        for path, timing in record.items()
        if isinstance(timing, Mapping)
    )
    header = [*corpora, "path", "n", "p50 µs", "p95 µs", "operations/s"]
    yield _block(table(header, rows, text_columns=1 + len(corpora)))


def _timing(timing: Document) -> Iterator[str]:
    for key in ("n", "p50Micros", "p95Micros", "opsPerSec"):
        yield count(timing.get(key))


def _hygiene(document: Document) -> Iterator[str]:
    findings = document.get("hygiene")
    if findings is None:
        return
    yield "## Hygiene"
    if not findings:
        yield "No findings."
        return
    rows = ([code(f["category"]), prose(f["intent"]), prose(f["issue"])] for f in findings)
    yield _block(table(["category", "intent", "issue"], rows, text_columns=3))


def _gates(document: Document) -> Iterator[str]:
    gates = document["gates"]
    if not gates:
        return
    words = [_gate_word(gate) for gate in gates]
    yield "## Gates"
    yield ", ".join(f"{words.count(word)} {word}" for word in ("pass", "fail", "skipped")) + "."
    files = dict.fromkeys(gate.get("file", "") for gate in gates)
    more = ["file"] if len(files) > 1 else []
    rows = (
        [code(gate["name"]), *([code(gate.get("file", ""))] if more else []), word, *_bound(gate), _reason(gate)]
        for gate, word in zip(gates, words, strict=True)
    )
    yield _block(table(["gate", *more, "result", "bound", "actual", "reason"], rows, text_columns=6))


def _gate_word(gate: Document) -> str:
    return "skipped" if gate.get("skipped") else "pass" if gate["pass"] else "fail"


def _bound(gate: Document) -> tuple[str, str]:
    threshold, actual = gate["threshold"], gate["actual"]
    sign = "≥" if gate["comparator"] == "min" else "≤"
    shown, bound = shown_apart(threshold if actual is None else actual, threshold)
    return f"{sign} {bound}", NO_VALUE if actual is None else shown


def _reason(gate: Document) -> str:
    return prose(gate.get("skipReason") or gate.get("detail") or "")


def _cells(numbers: Document, columns: Mapping[str, tuple[str, Any]]) -> list[str]:
    return [shown(numbers.get(key)) for key, shown in columns.values()]


def _number(name: str, value: Any) -> str:
    if isinstance(value, str):
        return code(value)
    return rate(value) if _IS_SHARE.search(name) else count(value)


def _words(name: str) -> str:
    """Return a key as words: `direct startup tokens`."""
    return prose(_HUMP.sub(" ", name).lower())


def _block(lines: Iterator[str] | Sequence[str]) -> str:
    return "\n".join(lines)
