"""The small language of the generator: a column is `sequence`, `int(1, 6)`, `choice(a, b)`…"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.arrow_types import arrow_type
from penstock.connectors.base import ROW
from penstock.connectors.generator_random import (
    Numbers,
    random_bits,
    random_floats,
    random_letters,
    random_uuids,
    stream_key,
)
from penstock.errors import TopologyError
from penstock.topology.schema import Field, split_top_level

Make = Callable[[np.uint64, Numbers], pa.Array]
"""The values of some rows of a column, given the key of its random numbers."""

Parsed = tuple[str, Make, str | None]
"""The type of a column, how it is made, and how in SQL."""

LANGUAGE = (
    "sequence, int(lo, hi), float(lo, hi), choice(a, b, …), word(n), string(n), uuid, "
    "timestamp(start, step), constant(x)"
)

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*$", re.DOTALL)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)?$")
_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"]
_MOST_WORDS = 1_000_000
_LONGEST_STRING = 100_000


@dataclass(frozen=True)
class Column:
    """A generated column: its name and type, and how to make any of its rows."""

    field: Field
    make: Make
    of_row: str | None = None
    """The same in SQL, where it can be said there: random numbers need multiplications that overflow."""

    def values(self, seed: int, begin: int, end: int) -> pa.Array:
        """The values of the rows from `begin` to `end`, the same however the rows are divided."""
        return self.make(stream_key(seed, self.field.name), np.arange(begin, end, dtype=np.uint64))


def parse_column(name: str, written: Any) -> Column:
    """The column that `written` describes; raises TopologyError that says what can be written."""
    try:
        type_name, make, of_row = _parse(written)
    except ValueError as error:
        raise TopologyError(f"column '{name}': '{written}': {error}; write one of {LANGUAGE}") from error
    return Column(Field(name, type_name), make, of_row)


def _parse(written: Any) -> Parsed:
    if isinstance(written, bool | int | float):
        return _one_of([written])
    call = _CALL.match(written) if isinstance(written, str) else None
    if call is None or call[1] not in _FUNCTIONS:
        raise ValueError("no such function")
    arguments = [part.strip() for part in split_top_level(call[2])] if (call[2] or "").strip() else []
    least, most, make = _FUNCTIONS[call[1]]
    if not least <= len(arguments) <= most:
        raise ValueError(f"{call[1]} takes {least if least == most else f'at least {least}'} arguments")
    return make(arguments)


def _sequence(_: list[str]) -> Parsed:
    return "bigint", lambda key, rows: pa.array(rows.astype(np.int64)), ROW


def _int(arguments: list[str]) -> Parsed:
    low, high = int(arguments[0]), int(arguments[1])
    if low > high or low < -(2**63) or high >= 2**63 or high - low >= 2**63:
        raise ValueError(f"no 64-bit range from {low} to {high}")
    span = np.uint64(high - low + 1)
    name = "int" if low >= -(2**31) and high < 2**31 else "bigint"
    arrow = arrow_type(name)

    def make(key: np.uint64, rows: Numbers) -> pa.Array:
        return pa.array((random_bits(key, rows) % span).astype(np.int64) + np.int64(low)).cast(arrow)

    return name, make, None


def _float(arguments: list[str]) -> Parsed:
    low, high = float(arguments[0]), float(arguments[1])
    if not low <= high:
        raise ValueError(f"{low} is above {high}")
    return "double", lambda key, rows: pa.array(low + random_floats(key, rows) * (high - low)), None


def _choice(arguments: list[str]) -> Parsed:
    return _one_of(_literals(arguments))


def _one_of(values: list[Any]) -> Parsed:
    name = _type_of(values)
    choices = pa.array(values, arrow_type(name))
    count = np.uint64(len(values))
    return name, lambda key, rows: choices.take(pa.array(random_bits(key, rows) % count)), None


def _word(arguments: list[str]) -> Parsed:
    count = _number_up_to(arguments[0], _MOST_WORDS)
    return "string", lambda key, rows: _words(count).take(pa.array(random_bits(key, rows) % np.uint64(count))), None


def _string(arguments: list[str]) -> Parsed:
    width = _number_up_to(arguments[0], _LONGEST_STRING)
    return "string", lambda key, rows: random_letters(key, rows, width), None


def _uuid(_: list[str]) -> Parsed:
    return "string", random_uuids, None


def _timestamp(arguments: list[str]) -> Parsed:
    start = datetime.datetime.fromisoformat(_unquoted(arguments[0]))
    start = start if start.tzinfo else start.replace(tzinfo=datetime.UTC)
    first = (start - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(microseconds=1)
    step = _microseconds(_unquoted(arguments[1]))
    arrow = arrow_type("timestamp")
    of_row = f"timestamp_micros({first} + {ROW} * {step})"
    return "timestamp", lambda key, rows: pa.array(first + rows.astype(np.int64) * step).cast(arrow), of_row


_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[str]], Parsed]]] = {
    "sequence": (0, 0, _sequence),
    "int": (2, 2, _int),
    "float": (2, 2, _float),
    "choice": (1, 10_000, _choice),
    "constant": (1, 1, _choice),
    "word": (1, 1, _word),
    "string": (1, 1, _string),
    "uuid": (0, 0, _uuid),
    "timestamp": (2, 2, _timestamp),
}
"""By name: the fewest and the most arguments, and what makes the column of them."""


def _literals(texts: list[str]) -> list[Any]:
    """Values as their common type: all numbers, all booleans, or else all text."""
    for read in (_boolean, int, float):
        try:
            return [read(text) for text in texts]
        except ValueError:
            continue
    return [_unquoted(text) for text in texts]


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _type_of(values: list[Any]) -> str:
    if isinstance(values[0], int) and not isinstance(values[0], bool):
        if not all(-(2**63) <= value < 2**63 for value in values):
            raise ValueError("the number does not fit 64 bits")
        return "int" if all(-(2**31) <= value < 2**31 for value in values) else "bigint"
    return {bool: "boolean", float: "double", str: "string"}[type(values[0])]


def _number_up_to(text: str, most: int) -> int:
    number = int(text)
    if not 1 <= number <= most:
        raise ValueError(f"{number} is not between 1 and {most}")
    return number


def _microseconds(text: str) -> int:
    duration = _DURATION.match(text)
    if duration is None:
        raise ValueError(f"'{text}' is not a duration such as 100ms or 1s")
    return round(float(duration[1]) * _MICROSECONDS[duration[2] or "s"])


@lru_cache(maxsize=16)
def _words(count: int) -> pa.Array:
    """The first `count` words of a made-up language, all different."""
    return pa.array([_nth_word(number) for number in range(count)], pa.string())


def _nth_word(number: int) -> str:
    syllables = [_SYLLABLES[number % 100], _SYLLABLES[number // 100 % 100]]
    while (number := number // 100) >= 100:
        syllables.append(_SYLLABLES[number // 100 % 100])
    return "".join(syllables)
