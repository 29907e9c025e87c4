"""What was set for a topology may be a password: wherever it stands in what is told, it is left out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.validation.types import is_number

MASK = "…"
_SHORTEST = 4
"""Shorter values stand in too many words that have nothing to do with them."""
_PLAIN = frozenset({"true", "false", "null", "none"})


def masked(text: str, sets: Sequence[str]) -> str:
    """A text without the values of `sets`, which are as for `--set`; rows that are JSON stay so.

    Left out are `KEY=VALUE`, and wherever they stand the value, a password in it, and the texts of a value that is
    JSON. Numbers, and values of less than four characters, are no secrets.
    """
    hidden = _hidden(sets)
    if not any(each in text for each in hidden):
        return text
    return "\n".join(_masked_line(line, hidden) for line in text.split("\n"))


def _hidden(sets: Sequence[str]) -> dict[str, str]:
    """What is to be hidden, and what stands in its place; the longest first, as one may be a part of another."""
    found: dict[str, str] = {}
    for item in sets:
        key, _, value = item.partition("=")
        found[item] = f"{key}={MASK}"
        found |= dict.fromkeys((each for part in _parts(value) for each in _spellings(part)), MASK)
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def _parts(value: str) -> Iterator[str]:
    """What of a value is a secret by itself; of several lines each one, for what is told is looked at line by line."""
    yield value
    if len(lines := value.splitlines()) > 1:
        yield from (line.strip() for line in lines)
    # Not an address.
    with suppress(ValueError):
        if password := urlsplit(value).password:
            yield password
            yield unquote(password)
    # Not JSON.
    with suppress(ValueError):
        yield from _texts(json.loads(value))


def _spellings(part: str) -> Iterator[str]:
    """As it is, and as it stands in JSON and in Python's words."""
    if len(part) >= _SHORTEST and part.lower() not in _PLAIN and not is_number(part):
        yield from (part, json.dumps(part)[1:-1], repr(part)[1:-1])


def _masked_line(line: str, hidden: dict[str, str]) -> str:
    if not any(each in line for each in hidden):
        return line
    if line.startswith("{"):
        with suppress(ValueError):
            return json.dumps(_masked_values(json.loads(line), hidden))
    return _without(line, hidden)


def _without(text: str, hidden: dict[str, str]) -> str:
    for each, instead in hidden.items():
        text = text.replace(each, instead)
    return text


def _masked_values(found: Any, hidden: dict[str, str]) -> Any:
    """The texts in it, but no names of fields: whoever reads it looks for those."""
    match found:
        case dict():
            return {name: _masked_values(value, hidden) for name, value in found.items()}
        case list():
            return [_masked_values(value, hidden) for value in found]
        case str():
            return _without(found, hidden)
        case _:
            return found


def _texts(found: Any) -> Iterator[str]:
    match found:
        case dict():
            yield from (text for value in found.values() for text in _texts(value))
        case list():
            yield from (text for value in found for text in _texts(value))
        case str():
            yield found
