"""SQL expressions as trees: parsing in Spark's dialect, and syntax errors in plain words.

Importing this module imports sqlglot, which takes a good part of a second's budget: import it only
where an expression is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_PREFIX = "SELECT "
"""Alone, an expression that begins with a word like `comment` or `load` would be read as a statement."""

_QUOTES = {"'": "'", '"': '"', "`": "`"}


@dataclass(frozen=True)
class Parsed:
    """An expression's tree, or what is wrong with its syntax. The tree is shared: do not change it."""

    tree: Expr | None
    error: str = ""


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Parsed:
    """Parse one SQL expression, with or without `as name`."""
    if not text.strip():
        return Parsed(None, "it is empty")
    try:
        statement = sqlglot.parse_one(_PREFIX + text, dialect="spark")
    except TokenError:
        return Parsed(None, _token_error(text))
    except ParseError as error:
        return Parsed(None, _plain_words(error))
    except RecursionError:
        return Parsed(None, "it is nested too deeply")
    if not isinstance(statement, exp.Select):
        return Parsed(None, "it must be one expression, without ';'")
    clauses = [name.strip("_") for name, value in statement.args.items() if value and name != "expressions"]
    if clauses:
        return Parsed(None, f"it must be an expression alone, without '{clauses[0]}'")
    if len(statement.expressions) > 1:
        return Parsed(None, "it must be one expression, without ',' outside brackets")
    if not statement.expressions:
        return Parsed(None, "it is empty")
    return Parsed(statement.expressions[0])


def show(node: Expr) -> str:
    """A part of an expression as SQL."""
    if isinstance(node, exp.Cast):
        # Spark's `cast` is read as one that gives null; it must not be shown as `try_cast`.
        return f"cast({show(node.this)} as {node.args['to'].sql('spark').lower()})"
    return node.sql("spark")


def _token_error(text: str) -> str:
    opened, position = "", 0
    escaped = False
    for index, char in enumerate(text):
        if opened:
            if not escaped and char == opened:
                opened = ""
            escaped = char == "\\" and not escaped
        elif char in _QUOTES:
            opened, position, escaped = char, index, False
    if opened:
        return f"the quote {opened} at character {position + 1} is never closed"
    return "it holds a character that SQL does not know"


def _plain_words(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    token = str(first.get("highlight") or "")
    line, column = int(first.get("line") or 1), int(first.get("col") or 0)
    # sqlglot counts to the end of the token.
    start = max(column - max(len(token), 1) + 1 - (len(_PREFIX) if line == 1 else 0), 1)
    place = f"at character {start}" if line == 1 else f"at line {line}, character {start}"
    description = str(first.get("description") or error)
    if description.startswith("Expecting"):
        return f"'{description.removeprefix('Expecting').strip()}' is missing {place}, after '{token}'"
    if description.startswith("Required keyword"):
        return f"something is missing {place}, near '{token}'"
    return f"'{token}' is unexpected {place}"
