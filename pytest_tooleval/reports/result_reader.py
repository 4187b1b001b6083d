"""Result files read back: strictly, for what is compared with a wrong file is worse than nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from pytest_tooleval.cases.jsontext import pointer_text
from pytest_tooleval.cases.schema import Schema, describe
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.reports.text_file import why_not_written

SCHEMA = "tooleval/v1"
_RESULT_SCHEMA = Schema("result")
_HOW_TO_WRITE = "--tooleval-snapshot DIR writes one"


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file or a snapshot.

    Raises:
        ConfigError: it cannot be read, is not strict JSON, is of another schema version, or lacks what every
            result file has.

    """
    value = _decoded(path, _text(path))
    version = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(version, str):
        raise ConfigError(f"{path} is no result file: it holds no 'schema' of {SCHEMA!r}; {_HOW_TO_WRITE}")
    if version != SCHEMA:
        hint = f"expected {SCHEMA!r}; run the suite again: {_HOW_TO_WRITE}"
        raise ConfigError(f"{path} is a result file of the schema {describe(version)}, {hint}")
    check_keeps(_RESULT_SCHEMA, path, value)
    return value


def check_keeps(schema: Schema, path: Path, value: Any) -> None:
    """Refuse a result file that breaks a schema.

    Raises:
        ConfigError: with the first fault.

    """
    faults = schema.faults(value)
    if faults:
        place = pointer_text(faults[0].path) or "its top"
        more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
        raise ConfigError(f"{path} is a damaged result file: at {place}: {faults[0].message}{more}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"; {_HOW_TO_WRITE}" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{path} cannot be read: {why_not_written(error)}{hint}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no result file: it is not UTF-8 at byte {error.start}") from None


def _decoded(path: Path, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path} is not JSON: line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{path} is no result file: it is nested too deep") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not strict JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number
