from __future__ import annotations

import os
from pathlib import Path

import pytest
from side_by_side import new_rows
from side_by_side.new_rows import NewRows


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    understood = new_rows.counted_row
    monkeypatch.setattr(new_rows, "counted_row", lambda line: parsed.append(line) or understood(line))
    rows, file = NewRows(tmp_path), tmp_path / "rows"
    file.write_text("a,1\nb,2\nc,")
    assert list(rows.look()) == [(("a",), 1), (("b",), 2)]
    assert list(rows.look()) == []
    with file.open("a") as more:
        more.write("3\nd,4\n")
    (tmp_path / "other").write_text("e,5\n")
    assert list(rows.look()) == [(("e",), 5), (("c",), 3), (("d",), 4)]
    assert parsed == ["a,1", "b,2", "e,5", "c,3", "d,4"]


@pytest.mark.parametrize("anew", ["a,10\n", "a,10\nb,9\n", "a,10\nb,22\nc,3\n"])
def test_a_file_that_is_cut_off_and_written_on_is_read_from_its_beginning(tmp_path: Path, anew: str) -> None:
    rows, file = NewRows(tmp_path), tmp_path / "rows"
    file.write_text("a,10\nb,2\n")
    assert len(list(rows.look())) == 2
    file.write_text(anew)
    os.utime(file, ns=(1, 1))
    assert [key for key, _ in rows.look()] == [(line[0],) for line in anew.splitlines()]


def test_a_file_that_cannot_be_understood_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    rows, broken = NewRows(tmp_path), tmp_path / "broken"
    broken.write_text("a,none\n")
    (tmp_path / "whole").write_text("b,2\n")
    assert list(rows.look()) == [(("b",), 2)]
    broken.write_text("a,1\n")
    assert list(rows.look()) == [(("a",), 1)]
