from __future__ import annotations

from pathlib import Path

from side_by_side.events import passing, write_events


def test_the_counts_are_those_of_the_lines_that_were_written(tmp_path: Path) -> None:
    events = write_events(tmp_path, 12)

    lines = [line for file in sorted(events.folder.iterdir()) for line in file.read_bytes().splitlines()]
    assert len(lines) == events.lines
    assert passing(lines) == events.counts
    assert sum(file.stat().st_size for file in events.folder.iterdir()) == events.bytes


def test_a_few_of_the_files_are_there_to_warm_up(tmp_path: Path) -> None:
    events = write_events(tmp_path, 12)
    few = sorted(path.name for path in (tmp_path / "few").iterdir())

    assert few == sorted(path.name for path in events.folder.iterdir())[: len(few)]
    assert len(few) == 1
