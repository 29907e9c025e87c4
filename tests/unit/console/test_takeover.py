"""A command that is given once more, to the master that leads by then, is carried out once."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.console import once_per_key
from penstock.console.desired import Desired, Goal
from penstock.coordination.memory import MemoryStore

from ...waiting import wait_until
from .several_masters import OneMaster, one_master


@pytest.fixture
def masters(tmp_path: Path) -> Iterator[tuple[OneMaster, OneMaster]]:
    """One that leads, and a standby; with a topology `t`."""
    store = MemoryStore()
    with one_master(tmp_path / "one", store) as one:
        wait_until(lambda: one.master.leading)
        with one_master(tmp_path / "two", store) as two:
            one.take("t")
            one.master.watching.look()
            yield one, two


def give(to: OneMaster, key: str, verb: str, name: str = "t") -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{to.url}/api/topologies/{name}/commands", json.dumps({"verb": verb}).encode(),
        {"Content-Type": "application/json", "Idempotency-Key": key})  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def take_over(one: OneMaster, two: OneMaster) -> None:
    one.master.stop()
    wait_until(lambda: two.master.leading)


def wanted(at: OneMaster) -> tuple[Goal, int]:
    found = Desired(at.coordinator).get("t")
    assert found is not None
    return found.goal, found.generation


def test_what_the_first_master_has_done_the_second_does_not_do_again(masters: tuple[OneMaster, OneMaster]) -> None:
    one, two = masters
    answer = give(one, "k1", "stop")
    assert answer[0] == 200
    take_over(one, two)
    assert give(two, "k2", "start")[0] == 200
    after = wanted(two)
    # Whoever has not heard the first answer gets it now, and nothing is stopped by it.
    assert give(two, "k1", "stop") == answer
    assert wanted(two) == after
    assert after[0] is Goal.RUN


def test_what_the_first_master_refused_is_refused_in_its_words(masters: tuple[OneMaster, OneMaster]) -> None:
    one, two = masters
    refused = give(one, "k1", "stop", "later")
    assert refused[0] == 404
    take_over(one, two)
    two.take("later")
    assert give(two, "k1", "stop", "later") == refused


def test_what_a_master_died_over_is_not_tried_by_the_next(masters: tuple[OneMaster, OneMaster],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    one, two = masters

    def dies(*_: Any) -> None:
        raise SystemError("killed in the midst of it")

    with monkeypatch.context() as patched:
        patched.setattr(Desired, "change", dies)
        assert _is_cut_off(one)
    take_over(one, two)
    before = wanted(two)
    code, said = give(two, "k1", "stop")
    assert (code, said["done"]) == (200, False)
    assert "its outcome is not known" in said["said"]
    assert wanted(two) == before


def _is_cut_off(one: OneMaster) -> bool:
    try:
        code, _ = give(one, "k1", "stop")
    except (OSError, ValueError):
        return True
    return code == 500


def test_a_second_master_whose_clock_is_hours_ahead_knows_what_was_done(
    masters: tuple[OneMaster, OneMaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = masters
    answer = give(one, "k1", "stop")
    take_over(one, two)
    monkeypatch.setattr(once_per_key, "time", clocks(wall=10_000.0))
    before = wanted(two)
    assert give(two, "k1", "stop") == answer
    assert wanted(two) == before


def test_answers_are_forgotten_after_an_hour(
    masters: tuple[OneMaster, OneMaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = masters
    give(one, "k1", "stop")
    give(one, "k2", "stop")
    monkeypatch.setattr(once_per_key, "time", clocks(monotonic=3601.0))
    give(one, "k3", "stop")
    kept = {key.rpartition("/")[2] for key in one.coordinator.list("console/commands/")}
    assert kept == {"k2", "k3"}


def clocks(wall: float = 0.0, monotonic: float = 0.0) -> SimpleNamespace:
    """Clocks that are ahead."""
    return SimpleNamespace(time=lambda: time.time() + wall, monotonic=lambda: time.monotonic() + monotonic,
                           sleep=time.sleep)  # fmt: skip
