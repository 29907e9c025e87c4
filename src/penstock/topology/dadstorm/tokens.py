"""The words of a DADSTORM file: comments gone, quotes taken off, keywords known in every spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


class Section(StrEnum):
    """The parts of an operator's description, in the spelling that messages use."""

    INPUT_OPS = "input_ops"
    REP_FACT = "rep_fact"
    ROUTING = "routing"
    ADDRESS = "address"
    OPERATOR_SPEC = "operator_spec"


class Setting(StrEnum):
    """What is said of the whole topology."""

    SEMANTICS = "Semantics"
    LOGGING_LEVEL = "LoggingLevel"


@dataclass(frozen=True)
class Token:
    """A word, a quoted text without its quotes, or a comma."""

    text: str
    line: int
    quoted: bool = False
    closed: bool = True
    """False when the text begins with a quote that is never closed."""

    @property
    def is_comma(self) -> bool:
        return self.text == "," and not self.quoted


@dataclass(frozen=True)
class Line:
    """One line's tokens; without any, `comment` tells a comment from a blank line."""

    number: int
    text: str
    tokens: tuple[Token, ...]
    comment: bool = False


# A '%' inside a word is part of it (a URL's %20, a value of 50%) unless a comment plainly follows.
_COMMENT = r'(?<![^\s"])%|%%|%(?=\s+\S)'
_TOKEN = re.compile(
    rf"""(?P<comment>(?:{_COMMENT}).*)
    | (?P<comma>,)
    | "(?P<double>[^"]*)" | “(?P<curly>[^”]*)” | '(?P<single>[^']*)'
    | ["“](?P<unclosed>.*)
    | (?P<bare>(?:(?!{_COMMENT})[^\s,"“])+)""",
    re.VERBOSE,
)


def split_lines(text: str) -> Iterator[Line]:
    """Every line of a file with its tokens, numbered from 1."""
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for number, written in enumerate(unified.split("\n"), start=1):
        matches = list(_TOKEN.finditer(written))
        tokens = tuple(_token(match, number) for match in matches if match.lastgroup != "comment")
        yield Line(number, written.strip(), tokens, len(tokens) < len(matches))


def _token(match: re.Match[str], number: int) -> Token:
    kind = match.lastgroup or ""
    quoted = kind not in ("bare", "comma")
    return Token(match[kind], number, quoted, kind != "unclosed")


def keyword_at(tokens: Sequence[Token], index: int) -> tuple[Section, int] | None:
    """The section keyword at `index` and how many tokens it takes, or None.

    `input_ops`, `input ops`, `INPUT-OPS` and `InputOps` are all the same word.
    """
    return _match_at(tokens, index, _SECTIONS)


def setting_at(tokens: Sequence[Token], index: int) -> tuple[Setting, int] | None:
    """The setting's keyword at `index` and how many tokens it takes, or None."""
    return _match_at(tokens, index, _SETTINGS)


def values_of(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The tokens that are not commas: commas and blanks separate alike."""
    return tuple(token for token in tokens if not token.is_comma)


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


_SECTIONS = {_fold(section): section for section in Section}
_SETTINGS = {_fold(setting): setting for setting in Setting}


_Word = TypeVar("_Word", bound=StrEnum)


def _match_at(tokens: Sequence[Token], index: int, words: dict[str, _Word]) -> tuple[_Word, int] | None:
    folded = ""
    for width, token in enumerate(tokens[index : index + 2], start=1):
        if token.quoted or token.is_comma:
            return None
        folded += _fold(token.text)
        if folded in words:
            return words[folded], width
    return None
