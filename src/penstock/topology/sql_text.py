"""SQL as text: where its parts begin and end, without knowing what they mean."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|[()\[\]{},]""", re.DOTALL)


QUOTE_IT = "put it in quotes, for inside {…} and […] a comma ends it: "
"""What to say of a text that YAML has cut at a comma."""


def split_sql(text: str) -> list[str]:
    """Split at commas outside brackets and quotes; unlike in a schema, < and > compare."""
    parts, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif token[0] == "," and depth == 0:
            parts.append(text[start:token.start()])
            start = token.end()
    return [*parts, text[start:]]


def closes_what_it_opens(text: str) -> bool:
    """Whether each bracket outside quotes has its partner, in this order."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if depth < 0:
            return False
    return depth == 0
