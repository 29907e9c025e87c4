from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.chaos.schedule import Act, Disturbance, schedule
from penstock.chaos.small_disk import ordinary_disk, small_disk
from penstock.chaos.trial import Outcome, Scene, Step, Strike, Trial, next_step
from penstock.epochs.moments import Moment

from ...own_mounts import with_own_mounts
from .fake_ways import fake_ways


def disturbed(folder: Path, *disturbances: Disturbance, arguments: tuple[str, ...] = ("12",)) -> Outcome:
    return Trial(fake_ways(folder, *arguments), ordinary_disk(folder / "disk"), folder).run(disturbances)


def rows(folder: Path) -> list[int]:
    return [json.loads(line)["epoch"] for line in (folder / "disk/out/rows.jsonl").read_text().splitlines()]


def test_an_undisturbed_run_is_started_once(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path)
    assert (outcome.ended, outcome.epochs, outcome.starts) == (True, 12, 1)
    assert (outcome.strikes, outcome.troubles, outcome.notes) == ((), (), ())
    assert rows(tmp_path) == list(range(1, 13))


@pytest.mark.parametrize("act", [Act.KILL_ALL, Act.KILL_DRIVER, Act.KILL_JVM, Act.KILL_WORKER, Act.RESTART])
def test_a_run_that_dies_is_started_again_and_comes_to_its_end(act: Act, tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, act, 4))
    assert (outcome.ended, outcome.starts, outcome.troubles) == (True, 2, ())
    assert outcome.strikes[0].epoch >= 5
    assert rows(tmp_path) == list(range(1, 13))


@pytest.mark.parametrize(("moment", "act"), [
    *((moment, Act.KILL_DRIVER) for moment in Moment),
    (Moment.AFTER_OFFSETS, Act.KILL_JVM),
    (Moment.DURING_TASK, Act.KILL_WORKER),
])  # fmt: skip
def test_a_run_dies_at_the_moment_it_was_told_to(moment: Moment, act: Act, tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, act, 6, moment))
    assert (outcome.ended, outcome.starts, outcome.troubles) == (True, 2, ())
    assert [strike.epoch for strike in outcome.strikes] == [6]
    assert rows(tmp_path) == list(range(1, 13))


def test_a_freeze_kills_nothing_and_makes_a_pause(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.FREEZE, 4, seconds=0.5))
    assert (outcome.ended, outcome.starts) == (True, 1)
    assert outcome.longest_pause >= 0.5
    assert outcome.paused_after >= 4


def test_a_whole_schedule_is_carried_out(tmp_path: Path) -> None:
    planned = schedule(4, 3, 30)
    scenes: list[Scene] = []
    told: list[Strike] = []
    watched = fake_ways(tmp_path, "30", look=scenes.append, tell=told.append)
    outcome = Trial(watched, ordinary_disk(tmp_path / "disk"), tmp_path).run(planned)
    assert outcome.ended
    assert sorted(strike.disturbance.number for strike in outcome.strikes) == [one.number for one in planned]
    assert all(strike.seconds is not None for strike in outcome.strikes)
    assert len(told) == len(planned)
    assert scenes[-1] == Scene(30, outcome.starts, len(planned))
    assert rows(tmp_path) == list(range(1, 31))


def test_a_sink_that_ignores_the_epoch_doubles(tmp_path: Path) -> None:
    killed = Disturbance(1, Act.KILL_DRIVER, 4, Moment.BETWEEN_SINKS)
    assert disturbed(tmp_path, killed, arguments=("12", "doubling")).ended
    assert rows(tmp_path) == [1, 2, 3, 4, *range(4, 13)]


def test_what_comes_too_late_is_told(tmp_path: Path) -> None:
    late = Disturbance(1, Act.KILL_ALL, 50), Disturbance(2, Act.KILL_JVM, 50, Moment.DURING_TASK)
    outcome = disturbed(tmp_path, *late)
    assert [(strike.seconds, strike.outcome) for strike in outcome.strikes] == [(None, "not reached")] * 2


def test_a_run_that_never_works_is_given_up_with_its_words(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.KILL_ALL, 3), arguments=("12", "failing"))
    assert (outcome.ended, outcome.starts) == (False, 2)
    assert "ended with 1, though nothing was done to it: this never works" in outcome.troubles[0]


def test_undisturbed_it_fails_only_once(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, arguments=("12", "failing"))
    assert (outcome.ended, outcome.starts) == (False, 1)


def test_a_run_that_hangs_is_killed_and_told(tmp_path: Path) -> None:
    ways = fake_ways(tmp_path, "12", "hanging", patience=0.3)
    outcome = Trial(ways, ordinary_disk(tmp_path / "disk"), tmp_path).run()
    assert not outcome.ended
    assert "the run did nothing for 0 s, and had to be killed" in outcome.troubles[0]


def test_a_damaged_file_that_is_refused_is_put_back(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.CORRUPT_OFFSETS, 4))
    assert (outcome.ended, outcome.starts, outcome.troubles) == (True, 3, ())
    assert outcome.strikes[0].outcome == "refused, and put back: the offset log is damaged: put it back"
    assert rows(tmp_path) == list(range(1, 13))


def test_nothing_more_is_done_until_it_is_clear_what_came_of_the_damage(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.CORRUPT_OFFSETS, 4), Disturbance(2, Act.CORRUPT_OFFSETS, 4))
    assert outcome.ended
    assert [strike.outcome.partition(",")[0] for strike in outcome.strikes] == ["refused", "refused"]
    assert rows(tmp_path) == list(range(1, 13))


def test_a_rescale_is_asked_of_the_run_which_goes_on(tmp_path: Path) -> None:
    wanted = (Disturbance(1, Act.RESCALE, 3, operator="counts", instances=5),
              Disturbance(2, Act.RESCALE, 6, operator="counts", instances=3))
    outcome = disturbed(tmp_path, *wanted)
    assert (outcome.ended, outcome.starts, outcome.troubles) == (True, 1, ())
    assert [strike.outcome.partition(" after")[0] for strike in outcome.strikes] == [
        "2 instances became 5", "2 instances became 3"]
    assert rows(tmp_path) == list(range(1, 13))


def test_a_run_that_dies_before_it_has_rescaled_leaves_that_to_the_command(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.RESCALE, 3, operator="counts", instances=5),
                        Disturbance(2, Act.KILL_DRIVER, 6, Moment.BETWEEN_SINKS), arguments=("12", "deaf"))
    assert (outcome.ended, outcome.starts, outcome.troubles) == (True, 2, ())
    assert "done by the command, because the run had died before" in [strike.outcome for strike in outcome.strikes]
    assert (tmp_path / "disk/state/rescaled").read_text() == "counts=5"
    assert not list((tmp_path / "disk/state").glob("rescale-*"))


@pytest.mark.parametrize(("arguments", "instances", "why"), [
    (("12",), 100, "not done: so many cannot be"),
    (("12", "deaf", "refusing"), 5, "not done: the command ended with 1: it cannot be"),
])
def test_a_rescale_that_fails_is_trouble(
    arguments: tuple[str, ...], instances: int, why: str, tmp_path: Path
) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.RESCALE, 3, operator="counts", instances=instances),
                        Disturbance(2, Act.KILL_DRIVER, 6, Moment.BETWEEN_SINKS), arguments=arguments)
    assert outcome.ended
    assert outcome.troubles == (f"rescale counts={instances}: {why}",)


def test_a_rescale_at_the_end_of_the_input_comes_too_late(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.RESCALE, 3, operator="counts", instances=5),
                        arguments=("12", "deaf"))
    assert (outcome.ended, outcome.troubles) == (True, ())
    assert outcome.strikes[0].outcome == "not done: the input had come to its end"


def test_damage_that_cannot_be_done_is_told(tmp_path: Path) -> None:
    outcome = disturbed(tmp_path, Disturbance(1, Act.CORRUPT_STATE, 4), Disturbance(2, Act.FILL_DISK, 6))
    assert outcome.ended
    assert [strike.outcome.partition(":")[0] for strike in outcome.strikes] == ["not done", "not done"]


@with_own_mounts
def test_a_run_whose_disk_is_full_must_say_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        outcome = Trial(fake_ways(tmp_path, "12"), disk, tmp_path).run([Disturbance(1, Act.FILL_DISK, 4)])
    assert outcome.ended
    assert rows(tmp_path) == list(range(1, 13))
    if disk.refused:
        assert (outcome.strikes[0].outcome, outcome.starts) == (f"not done: {disk.refused}", 1)
        assert outcome.troubles == ()
    else:
        # The stand-in only leaves a stack trace.
        assert "with its disk full the run ended without a clear error" in outcome.troubles[0]
        assert "No space left on device" in outcome.troubles[0]


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    def interrupt(scene: Scene) -> None:
        if scene.epoch >= 3:
            raise KeyboardInterrupt

    trial = Trial(fake_ways(tmp_path, "100000", look=interrupt), ordinary_disk(tmp_path / "disk"), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        trial.run()
    assert [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and names(entry, tmp_path)] == []


def names(process: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize(("code", "ended", "stirred", "damaged", "fruitless", "step"), [
    (0, True, True, False, 0, Step.FINISH),
    (-9, True, True, False, 0, Step.FINISH),
    (-9, False, True, False, 1, Step.RESTART),
    (1, False, False, False, 0, Step.RESTART),
    (1, False, False, False, 1, Step.GIVE_UP),
    (1, False, False, True, 0, Step.PUT_BACK),
    (1, False, True, True, 0, Step.RESTART),
    (2, False, False, True, 0, Step.GIVE_UP),
])  # fmt: skip
def test_what_follows_a_death(
    code: int, ended: bool, stirred: bool, damaged: bool, fruitless: int, step: Step
) -> None:
    assert next_step(code, ended, stirred, damaged, fruitless) is step
