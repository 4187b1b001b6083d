"""The text of a missed case: what was expected, what happened, each mismatch, the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tooleval.cases.case import FileCheck, NameSequence, TextCheck, ToolUseCase, Verifier
from pytest_tooleval.measures.text import bounded_lines, printable, shorten

_ANSWER_CHARS = 500
_ARGUMENT_CHARS = 300
_RESULT_CHARS = 200


def failure_text(case: ToolUseCase, record: Mapping[str, Any]) -> str:
    """Return the failure text of a missed case.

    Args:
        case: what was demanded.
        record: the case's fields in the result file.

    Returns:
        Lines of printable text; the first says in short what was expected, what was called, and what ended the run
        where it did not end by itself.

    """
    expected = list(_expectations(case))
    ended = f"; {record['detail']}" if record["detail"] else ""
    headline = f"expected {'; '.join(expected)}; called {', '.join(record['names']) or 'nothing'}{ended}"
    sections = {
        "expected": expected,
        "what happened": list(_happened(record)),
        "beside that the broker was asked": list(_asked(record)),
        "mismatches": [f"{mismatch['kind']}: {mismatch['what']}" for mismatch in record["mismatches"]],
        "answer": [shorten(record["answer"], _ANSWER_CHARS) or "(none)"],
        "not judged from the first turn": record.get("notJudged", ()),
        "notes": record["notes"],
    }
    lines = [shorten(headline, 400)]
    for title, entries in sections.items():
        if entries:
            lines += ["", f"{title}:", *(f"  {entry}" for entry in bounded_lines(entries))]
    return printable("\n".join(lines))


def _happened(record: Mapping[str, Any]) -> Iterator[str]:
    for entry in record["trace"]:
        yield _call_line(entry)
    if not record["trace"]:
        yield "no tool was called"
    if record["detail"]:
        yield f"then {record['detail']}"


def _call_line(entry: Mapping[str, Any]) -> str:
    arguments = entry["arguments"]
    shown = entry["rawArguments"] if arguments is None else json.dumps(arguments, ensure_ascii=False)
    outcome = str(entry["outcome"]).replace("_", " ")
    line = f"{entry['name']}({shorten(shown, _ARGUMENT_CHARS)}) -> {outcome}"
    if "result" not in entry:
        return line
    return f"{line}: {shorten(entry['result'].removeprefix(f'{outcome}: '), _RESULT_CHARS)}"


def _asked(record: Mapping[str, Any]) -> Iterator[str]:
    for call in record.get("brokerCalls", ()):
        arguments = call["arguments"]
        shown = call["rawArguments"] if arguments is None else json.dumps(arguments, ensure_ascii=False)
        answer = call["error"] if "error" in call else ", ".join(call["shown"]) or "no tool"
        yield f"{call['name']}({shorten(shown, _ARGUMENT_CHARS)}) -> {shorten(answer, _RESULT_CHARS)}"


def _expectations(case: ToolUseCase) -> Iterator[str]:
    if case.verifier is None:
        yield _sequences(case.expected or ())
        return
    yield from _verifier_lines(case.verifier)


def _sequences(sequences: tuple[NameSequence, ...]) -> str:
    return " or ".join("[" + ", ".join(names) + "]" if names else "no call" for names in sequences)


def _verifier_lines(verifier: Verifier) -> Iterator[str]:
    if verifier.exact is not None:
        yield "exactly " + _sequences(verifier.exact)
    yield from _names_lines(verifier)
    for demand, by_tool in (("", verifier.args), (" and no other arguments", verifier.args_exact)):
        for tool, arguments in by_tool.items():
            yield f"{tool} with {json.dumps(arguments, ensure_ascii=False)}{demand}"
    if verifier.answer is not None:
        yield "an answer " + _text_check(verifier.answer)
    for path, check in verifier.files.items():
        yield f"file {path} " + _file_check(check)


def _names_lines(verifier: Verifier) -> Iterator[str]:
    for words, names in (
        ("a call of each of", verifier.must_include),
        ("no call of", verifier.avoid),
        ("in this order", verifier.in_order),
        ("in any order", verifier.any_order or ()),
    ):
        if names:
            yield f"{words} [{', '.join(names)}]"
    if verifier.no_calls or verifier.any_order == ():
        yield "an answer without a tool"
    if verifier.max_calls is not None:
        yield f"at most {_calls(verifier.max_calls)}"
    if verifier.min_calls is not None:
        yield f"at least {_calls(verifier.min_calls)}"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _file_check(check: FileCheck) -> str:
    if check.exists is False:
        return "does not exist"
    parts = ["exists"] if check.exists else []
    if check.equals is not None:
        parts.append(f"equals {shorten(json.dumps(check.equals, ensure_ascii=False), _RESULT_CHARS)}")
    text = _text_check(check.text)
    return " and ".join([*parts, text] if text else parts)


def _text_check(check: TextCheck) -> str:
    parts = [f"with {json.dumps(text, ensure_ascii=False)}" for text in check.contains]
    parts += [f"without {json.dumps(text, ensure_ascii=False)}" for text in check.not_contains]
    if check.regex is not None:
        parts.append(f"that matches {json.dumps(check.regex, ensure_ascii=False)}")
    return " and ".join(parts)
