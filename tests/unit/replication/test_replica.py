"""A replica that is refused before Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import Topology
from penstock.errors import TopologyError
from penstock.replication.replica import Replica, ReplicaPlace, opened_roster
from penstock.replication.roster import FAILED, Member, Roster, Told
from penstock.replication.version import version_of
from penstock.runtime.progress import Progress
from penstock.runtime.run import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.topology.model import Delivery

SIBLING = Member("1", "local", "here", 41, "a")


@pytest.fixture
def place(tmp_path: Path) -> ReplicaPlace:
    return ReplicaPlace(StateFolder(tmp_path / "state"))


@pytest.fixture
def roster(place: ReplicaPlace, tmp_path: Path) -> Iterator[Roster]:
    """Where a sibling runs the topology as it was."""
    place.home.path.mkdir()
    with opened_roster(place.home.coordinator) as opened:
        opened.agree_on(version_of(topology(tmp_path)))
        opened.join(SIBLING)
        opened.tell("1", Told("a", 7))
        yield opened


def topology(folder: Path) -> Topology:
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    return made.custom("own:words", emits="word string").sink("out", file="out.jsonl").with_folder(folder)


@pytest.mark.parametrize("changed", ["code", "file"])
def test_one_with_another_version_than_its_siblings_is_refused(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, changed: str
) -> None:
    own = topology(tmp_path)
    if changed == "code":
        (tmp_path / "own.py").write_text("def words(tup):\n    return tup.word.upper()\n")
    else:
        own = replace(own, delivery=Delivery.AT_LEAST_ONCE)
    with pytest.raises(TopologyError, match=r"replica 2 has another version of 'pair' than its siblings"):
        Replica(own, "2", place, RunSettings()).start()
    assert roster.members() == {"1": SIBLING}
    assert roster.told()["2"].how == FAILED


def test_one_that_is_refused_says_nothing_in_the_name_of_one_that_runs(
    place: ReplicaPlace, roster: Roster, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("def words(tup):\n    return tup.word.upper()\n")
    with pytest.raises(TopologyError, match="another version"):
        Replica(topology(tmp_path), "1", place, RunSettings()).start()
    assert roster.members() == {"1": SIBLING}
    assert roster.told()["1"] == Told("a", 7)


def test_one_that_has_nothing_to_do_any_more_tells_so_without_another_epoch(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    one = Replica(topology(tmp_path), "2", place, RunSettings())
    # Spark is not started, and nothing is compared.
    monkeypatch.setattr(one, "run", SimpleNamespace(is_frozen=False, first=0, new_digests=lambda: iter(())))
    one._roster = roster
    seen = replace(Progress().snapshot(), epoch=7, at_work=0.85)
    for share in (0.85, 0.4, 0.0):
        one._tell(replace(seen, at_work=share))
        assert roster.told()["2"].progress["at_work"] == share
