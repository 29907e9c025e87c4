"""Conditions that ask whether a text is empty, without counting its characters.

Spark's `length` goes through a text byte by byte: a filter took 4.5 s for 4 million texts of 256 bytes, and 1.0 with
`octet_length`. One is zero where the other is.
"""

from __future__ import annotations

from collections.abc import Sequence

_COUNTING = frozenset({"length", "len", "char_length", "character_length"})
_COMPARING = frozenset({">", "<", ">=", "<=", "=", "==", "<>", "!=", "<=>"})
_BEFORE = frozenset({"(", "and", "or", "not"})
_AFTER = frozenset({")", "and", "or"})


def without_counting(condition: str) -> str:
    """The same condition, with `octet_length` where nothing but the length of a text is compared with zero."""
    if "len" not in condition.lower():
        return condition
    import sqlglot
    from sqlglot.errors import TokenError

    try:
        tokens = sqlglot.tokenize(condition, read="spark")
    except TokenError:
        return condition
    said = [condition[token.start : token.end + 1].lower() for token in tokens]
    if "between" in said:  # its own `and` stands between values
        return condition
    for at in reversed(range(len(said))):
        if said[at] in _COUNTING and _is_compared_with_zero(said, at):
            condition = f"{condition[: tokens[at].start]}octet_length{condition[tokens[at].end + 1 :]}"
    return condition


def _is_compared_with_zero(said: Sequence[str], at: int) -> bool:
    """Whether the call that begins there is one side of a comparison, zero the other, and both stand alone."""
    if (at and said[at - 1] not in _BEFORE) or said[at + 1 : at + 2] != ["("]:
        return False
    end = _closing(said, at + 1)
    if end is None or len(said) < end + 3:
        return False
    after = said[end + 3] if len(said) > end + 3 else ")"
    return said[end + 1] in _COMPARING and said[end + 2] == "0" and after in _AFTER


def _closing(said: Sequence[str], opening: int) -> int | None:
    depth = 0
    for at in range(opening, len(said)):
        depth += (said[at] == "(") - (said[at] == ")")
        if not depth:
            return at
    return None

