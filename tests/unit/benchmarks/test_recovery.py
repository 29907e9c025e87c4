from __future__ import annotations

from pathlib import Path

from side_by_side.recovery import Watch, silent_seconds, usual_seconds

GROWTH = [(10.0, 100), (11.0, 200), (13.0, 300), (29.5, 400), (30.0, 500)]


def test_silence_is_from_the_last_result_before_the_kill_to_the_first_new_one() -> None:
    assert silent_seconds(GROWTH, killed=14.0) == 16.5


def test_what_is_usual_is_seen_before_the_kill() -> None:
    assert usual_seconds(GROWTH, killed=14.0) == 2.0
    assert usual_seconds(GROWTH, killed=10.5) is None


def test_without_output_on_both_sides_there_is_nothing_to_tell() -> None:
    assert silent_seconds(GROWTH, killed=5.0) is None
    assert silent_seconds(GROWTH, killed=31.0) is None


def test_only_more_tuples_than_ever_before_are_growth(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    seen = []
    for text in ("a,5\n", "a,5\nb,5\n", "a,5\n", "a,5\nb,4\n", "a,8\nb,5\n"):
        (tmp_path / "rows").write_text(text)
        watch.look()
        seen.append(watch.tuples)

    assert seen == [5, 10, 10, 10, 13]
    assert len(watch.growth) == 3


def test_a_folder_that_is_not_there_yet_holds_nothing(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "out")
    watch.look()

    assert watch.tuples == 0
