"""How old a page is, and how soon commands take effect, from what was seen."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import console_age
from penstock.bench.console import leading
from penstock.bench.console_age import (
    Effect,
    Reached,
    frozen_after,
    measure_commands,
    slowed_after,
    worse,
    worst_age,
)
from penstock.cli.bench_console import commands_table
from penstock.console.client import Client
from penstock.console.private_files import write_private
from penstock.errors import ConsoleError, DeliveryError
from penstock.runtime.state_folder import StateFolder

REACHED = [(10.0, 1), (11.0, 2), (12.0, 3), (13.0, 4)]


def test_a_page_is_as_old_as_the_first_epoch_that_it_does_not_show() -> None:
    # Epoch 2 is shown 0.3 s late; then 3 is missed, and only 4 is shown, 1.5 s after 3 was done.
    assert worst_age(REACHED, [(10.1, 1), (11.3, 2), (13.5, 4), (13.6, 4)]) == 1.5


def test_a_page_that_is_told_the_same_again_grows_old() -> None:
    assert worst_age(REACHED, [(10.1, 1), (10.9, 1), (11.2, 1), (11.75, 2)]) == 0.75


def test_a_page_that_shows_the_newest_is_not_old() -> None:
    assert worst_age(REACHED, [(13.1, 4), (90.0, 4)]) == 0.0


def test_what_is_done_after_a_freeze_counts() -> None:
    assert frozen_after(REACHED, 11.5) == Effect(1.5, 2)
    assert frozen_after(REACHED, 13.0) == Effect(0.0, 0)
    assert worse(Effect(1.0, 2), Effect(2.0, 1)) == Effect(2.0, 2)


def test_one_that_does_not_freeze_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    # An epoch that is never older than two intervals, whenever one looks.
    reached = Reached(StateFolder(tmp_path), [(time.time() + 3600.0, 7)])
    with pytest.raises(DeliveryError, match=r"told to freeze, and still does epochs 0\.05 s later: the last is 7"):
        reached.await_stillness(0.05)
    reached.moments.append((time.time() - 3600.0, 8))
    reached.await_stillness(0.05)


class Told(Client):
    """A master that says one thing after the other, and then the last again."""

    answers: list[bool | None]

    def get(self, path: str, **query: Any) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ConsoleError("no console answers")
        return {"leading": answer}


def masters(*answers: list[bool | None]) -> list[Client]:
    made = [Told() for _ in answers]
    for each, told in zip(made, answers, strict=True):
        object.__setattr__(each, "answers", told)
    return list(made)


def test_nothing_is_measured_before_one_master_leads() -> None:
    assert leading(masters([False], [True])) == 1
    # One that is about to hand over, and one that does not answer yet.
    assert leading(masters([True, False], [True, None, False, True])) == 1
    with pytest.raises(DeliveryError, match=r"not one of the masters led within 0\.2 s"):
        leading(masters([False], [None]), 0.2)


@pytest.mark.parametrize(("pace", "effect"), [
    ([0.1, 0.6, 2.6, 4.6], Effect(0.6, 2)),
    ([0.1, 2.1], Effect(0.1, 1)),
    # Until a pause is over, nobody knows how long it is.
    ([0.1, 0.6, 1.1], None),
    ([], None),
])  # fmt: skip
def test_a_longer_interval_holds_after_the_last_epoch_at_the_old_pace(pace: list[float], effect: Effect | None) -> None:
    moments = [(99.5, 1), *((100 + when, number) for number, when in enumerate(pace, start=2))]
    found = slowed_after(moments, 100.0)
    assert (found is None) == (effect is None)
    if found is not None and effect is not None:
        assert (found.seconds, found.epochs) == (pytest.approx(effect.seconds), effect.epochs)


class MadeUpTopology(Client):
    """Does what it is told after one more epoch, and notes its epochs as a real one does."""

    def __init__(self, state: StateFolder) -> None:
        super().__init__()
        self.told: list[str] = []
        self._state = state
        self._pace: float | None = console_age.INTERVAL
        self._over = threading.Event()

    def command(self, name: str, verb: str, /, **arguments: Any) -> dict[str, Any]:
        self.told.append(verb)
        wanted = arguments.get("interval", "default")
        match verb:
            case "freeze":
                self._pace = None
            case "stop":
                self._over.set()
            case _:
                self._pace = console_age.INTERVAL if wanted == "default" else float(wanted.removesuffix("s"))
        return {}

    def run(self) -> None:
        epoch = 0
        while not self._over.is_set():
            if (pace := self._pace) is None:
                time.sleep(0.005)
                continue
            epoch += 1
            self._state.path.mkdir(exist_ok=True)
            write_private(self._state.path / "committed", json.dumps({"epoch": epoch}).encode())
            time.sleep(pace)


def test_each_command_is_measured_and_it_is_stopped_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("INTERVAL", 0.05), ("_SLOW", 0.4), ("_STILL_SECONDS", 0.3), ("_COMMANDS", 2)):
        monkeypatch.setattr(console_age, name, value)
    state = StateFolder(tmp_path / "state")
    topology, reached = MadeUpTopology(state), Reached(state)
    running = threading.Thread(target=topology.run)
    monkeypatch.setattr(StateFolder, "running", lambda _: os.getpid() if running.is_alive() else None)
    running.start()
    reached.start()
    try:
        reached.await_epoch(1)
        found = measure_commands(topology, reached)
    finally:
        topology.command("", "stop")
        running.join()
        reached.stop()
    assert topology.told[:-1] == ["freeze", "unfreeze", "interval", "interval"] * 2 + ["stop"]
    assert list(found) == ["freeze", "unfreeze", "interval", "stop"]
    assert all(effect.seconds >= 0 for effect in found.values())
    assert found["unfreeze"].epochs == 0
    # It begins one more epoch at most before it is slower; on a busy machine an epoch may be seen late.
    assert 1 <= found["interval"].epochs <= 3
    rows = commands_table(found).rows
    assert [row[0] for row in rows] == list(found)


def test_a_topology_that_does_not_end_is_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_age, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(StateFolder, "running", lambda _: os.getpid())
    with pytest.raises(DeliveryError, match="has not ended"):
        Reached(StateFolder(tmp_path), [(1.0, 1)]).await_end()
