"""What `penstock logs -f` shows of a log of which it is told the end, again and again."""

from __future__ import annotations

import pytest

from penstock.cli.topologies import new_lines


@pytest.mark.parametrize(("text", "before", "new"), [
    ("a\nb\n", "", ["a", "b"]),
    ("a\nb\n", "a\nb\n", []),
    ("a\nb\nc\n", "a\nb\n", ["c"]),
    ("c\nd\n", "a\nb\nc\n", ["d"]),
    ("b\nb\nb\n", "a\nb\nb\n", ["b"]),
    ("x\ny\n", "a\nb\n", ["x", "y"]),
    ("", "a\n", []),
])  # fmt: skip
def test_only_what_is_new_is_shown(text: str, before: str, new: list[str]) -> None:
    assert new_lines(text, before) == new
