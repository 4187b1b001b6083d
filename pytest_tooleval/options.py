"""Every option and its ini twin. This is loaded in every pytest run, so it imports and makes little."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest

Kind: TypeAlias = Literal["flag", "list", "value", "optional"]
FAMILIES = ("tool_use", "discovery", "invocation", "ergonomics", "tokens", "performance", "cache")
TOOL_CHOICES = ("auto", "required", "none")
TOOL_WAYS = ("direct", "broker")
SHORT_NAMES = ("--provider", "--model", "--compare", "--provider-url")
PREFIX = "--tooleval-"


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def _number(least: float, most: float = float("inf")) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not least <= number <= most or number == float("inf"):
            bounds = f"at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {bounds}")
        return number

    return parse


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is none of: {', '.join(choices)}")
        return text

    return parse


def _some_of(choices: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    one = _one_of(choices)
    return lambda text: tuple(dict.fromkeys(one(part.strip()) for part in text.split(",")))


def _whole_numbers(least: int) -> Callable[[str], tuple[int, ...]]:
    whole = _whole(least)
    return lambda text: tuple(sorted({whole(part.strip()) for part in text.split(",")}))


def _text(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty")
    return text


class Option(NamedTuple):
    """An option `--tooleval-NAME` and its ini twin `tooleval_NAME`.

    Attributes:
        name: with dashes.
        help: what it does, for `pytest --help` and the documentation.
        kind: a flag, a value, a list (the option is repeated, the ini value has one entry a line), or an optional
            value, as `--tooleval-NAME` or `--tooleval-NAME=VALUE`; left out it is an empty text.
        parse: checks one value, raises ArgumentTypeError.
        default: the value when neither is given.
        metavar: the value's name in the help.

    """

    name: str
    help: str
    kind: Kind = "value"
    parse: Callable[[str], Any] = _text
    default: Any = None
    metavar: str = "VALUE"

    @property
    def ini(self) -> str:
        """The ini twin's name, which is the option's `dest` as well."""
        return "tooleval_" + self.name.replace("-", "_")


OPTIONS = (
    Option("suites", "folders that hold cases (default: evals)", "list", default=("evals",), metavar="DIR"),
    Option(
        "provider", "model to measure, as NAME or NAME:MODEL; short: --provider", "list", metavar="NAME[:MODEL]"
    ),
    Option("model", "model of each provider that names none; short: --model", metavar="MODEL"),
    Option("compare", "targets to compare, separated by commas; short: --compare", metavar="A,B"),
    Option(
        "provider-url",
        "base URL that replaces the provider's own, as URL or NAME=URL; short: --provider-url",
        "list",
        metavar="URL",
    ),
    Option(
        "add-provider",
        "another provider of a known dialect, as NAME = DIALECT URL [KEY_VARIABLE]",
        "list",
        metavar="LINE",
    ),
    Option("tool-choice", "auto, required or none (default: auto)", parse=_one_of(TOOL_CHOICES), default="auto"),
    Option("temperature", "sampling temperature", parse=_number(0), metavar="T"),
    Option("max-output-tokens", "most tokens of one reply", parse=_whole(1), metavar="N"),
    Option(
        "context-tokens",
        "context length to ask for, where the API has such a setting",
        parse=_whole(1),
        metavar="N",
    ),
    Option("seed", "sampling seed, where the provider knows one", parse=_whole(0), metavar="N"),
    Option("system-prompt", "file that holds the system prompt", metavar="FILE"),
    Option(
        "max-turns", "most replies of a case that sets none (default: 10)", parse=_whole(1), default=10, metavar="N"
    ),
    Option(
        "concurrency",
        "cases that run at a time in each process (default: 8, and 1 for mock)",
        parse=_whole(1),
        metavar="N",
    ),
    Option("timeout", "seconds for one run of a case that sets none (default: no limit)", parse=_number(0.001)),
    Option(
        "record",
        "write the models' replies to cassettes (default: SUITE/cassettes); beside --tooleval-replay what is new",
        "optional",
        str,
        metavar="DIR",
    ),
    Option(
        "replay",
        "take the models' replies from cassettes, without network and key (default: SUITE/cassettes)",
        "optional",
        str,
        metavar="DIR",
    ),
    Option("first-call", "ask once, run nothing, judge the first reply", "flag", default=False),
    Option("max-tokens", "begin no more cases once so many tokens are spent", parse=_whole(1), metavar="N"),
    Option("max-cost", "begin no more cases once so many US dollars are spent", parse=_number(0), metavar="USD"),
    Option(
        "tools",
        "how a model reaches tools: direct, broker, or direct,broker for both (default: direct)",
        parse=_some_of(TOOL_WAYS),
        default=("direct",),
        metavar="WAY[,WAY]",
    ),
    Option(
        "distractors",
        "measure each target again with so many tools of a catalog beside those of the case",
        parse=_whole_numbers(1),
        metavar="N[,M]",
    ),
    Option(
        "distractor-catalog",
        "catalog or tools/list result, or a folder of them, that distractors are taken from",
        metavar="FILE",
    ),
    Option("trials", "how often each case is run (default: 1)", parse=_whole(1), default=1, metavar="N"),
    Option("request-timeout", "seconds for one request (default: 120)", parse=_number(0.001), default=120.0),
    Option(
        "retries",
        "repeats of a request after a passing fault (default: 4)",
        parse=_whole(0),
        default=4,
        metavar="N",
    ),
    Option("command-timeout", "seconds for one run_command (default: 60)", parse=_number(0.001), default=60.0),
    Option(
        "result-chars",
        "most characters of a tool result (default: 30000)",
        parse=_whole(200),
        default=30_000,
        metavar="N",
    ),
    Option(
        "family",
        "run only this family of cases: tool_use, discovery, invocation, ergonomics, tokens, performance, cache",
        "list",
        _one_of(FAMILIES),
        metavar="NAME",
    ),
    Option(
        "engine", "search to measure, as a name or module:attr (default: the reference)", "list", metavar="NAME"
    ),
    Option("semantic", "search by meaning as well as by words", "flag", default=False),
    Option("embedder", "embeds for --tooleval-semantic, as NAME or NAME:MODEL (default: minilm)", default="minilm"),
    Option("embedder-url", "base URL of the embedder's API", metavar="URL"),
    Option("mcp-config", "file that describes MCP servers (default: mcp.json in the suite)", metavar="FILE"),
    Option("broker", "tool broker to measure: a command that speaks MCP, or a URL", metavar="[NAME=]TARGET"),
    Option("broker-mapping", "how that broker's tools and results are named", metavar="FILE"),
    Option("token-estimator", "counts tokens: chars/4, o200k or cl100k (default: chars/4)", default="chars/4"),
    Option("bundled", "add the bundled fixtures to each suite", "flag", default=False),
    Option("keep-worktrees", "leave the cases' folders and print where they are", "flag", default=False),
    Option("json", "write the result file", metavar="FILE"),
    Option(
        "snapshot",
        "write the result file under its time, and from a whole run that passes the baseline and BENCHMARKS.md",
        metavar="DIR",
    ),
    Option("resume", "take finished cases from the last run's log, and run the rest", "flag", default=False),
    Option("no-run-log", "write no log of finished cases to pytest's cache", "flag", default=False),
    Option("baseline", "compare with this result file or snapshot", metavar="FILE"),
    Option("strict", "fail on every miss, whatever the gates say", "flag", default=False),
    Option("defer-gates", "in a partial run, leave misses to a later evaluation", "flag", default=False),
    Option(
        "min-measured",
        "least share of a gate's cases that must be measured (default: 1.0)",
        parse=_number(0, 1),
        default=1.0,
        metavar="SHARE",
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin."""
    group = parser.getgroup("tooleval", "measuring tool use (pytest-tooleval)")
    for option in OPTIONS:
        _add_option(group, option)
        ini_type: Any = {"flag": "bool", "list": "linelist"}.get(option.kind, "string")
        parser.addini(option.ini, option.help, type=ini_type, default=None)


def _add_option(group: Any, option: Option) -> None:
    name = PREFIX + option.name
    if option.kind == "flag":
        group.addoption(name, dest=option.ini, action="store_true", default=None, help=option.help)
    else:
        more: dict[str, Any] = {"nargs": "?", "const": ""} if option.kind == "optional" else {}
        group.addoption(
            name,
            dest=option.ini,
            action="append" if option.kind == "list" else "store",
            type=option.parse,
            default=None,
            metavar=option.metavar,
            help=option.help,
            **more,
        )


def part_from_following(args: list[str]) -> bool:
    """End options without a value with `=`, or they would take a path that follows; True when there were any."""
    names = {PREFIX + option.name for option in OPTIONS if option.kind == "optional"}
    bare = [index for index, arg in enumerate(args) if arg in names]
    for index in bare:
        args[index] += "="
    return bool(bare)


def expand_short_names(parser: pytest.Parser, args: list[str]) -> None:
    """Rewrite the short names in place, each only where nobody else has declared it.

    They are not declared as options: a conftest that declares `--model` or `--provider` keeps its own.
    """
    if not any(arg.split("=", 1)[0] in SHORT_NAMES for arg in args):
        return
    _, unknown = parser.parse_known_and_unknown_args(args)
    free = {arg.split("=", 1)[0] for arg in unknown} & set(SHORT_NAMES)
    for index, arg in enumerate(args):
        name, *value = arg.split("=", 1)
        if name in free:
            args[index] = "=".join([PREFIX + name.removeprefix("--"), *value])


def suite_folders(config: pytest.Config) -> tuple[Path, ...]:
    """Return the suites' folders, whether they exist or not.

    Folders that are named are relative to the root folder. The default one is looked for there, in the folder
    that pytest was started in, and in the paths of the command line.

    Raises:
        UsageError: a folder that was named does not exist.

    """
    option = OPTIONS[0]
    named = _given(config, option)
    if named:
        folders = tuple(config.rootpath / folder for folder in named)
        for folder in folders:
            if not folder.is_dir():
                hint = "make it with 'tooleval init', or correct tooleval_suites"
                raise pytest.UsageError(f"tooleval: the suite {folder} is no folder; {hint}")
        return folders
    started = config.invocation_params.dir
    found = [base / name for name in option.default for base in (config.rootpath, started)]
    for argument in config.args:
        path = started / argument.split("::", 1)[0]
        found += [place for place in (path, *path.parents) if place.name in option.default]
    return tuple(dict.fromkeys(found))


def given_on_command_line(config: pytest.Config, *names: str) -> bool:
    """Whether any of the options stands on the command line, and not only in the ini file."""
    return any(config.getoption(f"tooleval_{name}", default=None) is not None for name in names)


def option_value(config: pytest.Config, option: Option) -> Any:
    """Return what the command line says, else what the ini file says, else the default.

    Raises:
        UsageError: the ini value is wrong.

    """
    given = _given(config, option)
    return option.default if given is None else given


def _given(config: pytest.Config, option: Option) -> Any:
    """Return what the command line says, else what the ini file says, else None."""
    value = config.getoption(option.ini, default=None)
    if value is not None:
        return value
    value = config.getini(option.ini)
    if option.kind == "flag" or not value:
        return value or None
    try:
        return [option.parse(entry) for entry in value] if option.kind == "list" else option.parse(value)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"tooleval: ini value {option.ini}: {error}") from None
