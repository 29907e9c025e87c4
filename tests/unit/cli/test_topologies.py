"""What `penstock logs -f` shows of a log of which it is told the end, again and again."""

from __future__ import annotations

import pytest

from penstock.cli.topologies import new_lines


@pytest.mark.parametrize(("text", "before", "new", "whole"), [
    ("a\nb\n", "", ["a", "b"], True),
    ("a\nb\n", "a\nb\n", [], True),
    ("a\nb\nc\n", "a\nb\n", ["c"], True),
    ("c\nd\n", "a\nb\nc\n", ["d"], True),
    ("b\nb\nb\n", "a\nb\nb\n", ["b"], True),
    ("x\ny\n", "a\nb\n", ["x", "y"], False),
    ("", "a\n", [], True),
])  # fmt: skip
def test_only_what_is_new_is_shown(text: str, before: str, new: list[str], whole: bool) -> None:
    assert new_lines(text, before) == (new, whole)
