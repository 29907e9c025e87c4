"""A replica that is refused before Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock import Topology
from penstock.errors import CoordinationError, TopologyError
from penstock.replication.history import note_history
from penstock.replication.replica import Replica, ReplicaPlace, opened_roster
from penstock.replication.roster import FAILED, Member, Roster, Told
from penstock.replication.version import version_of
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


def test_one_that_is_started_in_the_cell_of_a_sibling_is_refused(place: ReplicaPlace, tmp_path: Path) -> None:
    own = replace(topology(tmp_path), cells=("spark://a:7077", "spark://b:7077"))
    sibling = replace(SIBLING, cell="spark://a:7077")
    place.home.path.mkdir()
    with opened_roster(place.home.coordinator) as roster:
        roster.join(sibling)
        with pytest.raises(TopologyError, match="replica 1 of 'pair' is in cell spark://a:7077 already"):
            Replica(own, "2", place, RunSettings(), "spark://a:7077").start()
        assert roster.members() == {"1": sibling}


def test_one_that_is_refused_says_nothing_in_the_name_of_one_that_runs(
    place: ReplicaPlace, roster: Roster, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("def words(tup):\n    return tup.word.upper()\n")
    with pytest.raises(TopologyError, match="another version"):
        Replica(topology(tmp_path), "1", place, RunSettings()).start()
    assert roster.members() == {"1": SIBLING}
    assert roster.told()["1"] == Told("a", 7)


def test_one_whose_node_missed_that_all_began_anew_is_refused(
    place: ReplicaPlace, roster: Roster, tmp_path: Path
) -> None:
    place.home.note_history(1)
    note_history(roster._coordinator, 2)
    with pytest.raises(CoordinationError, match="replica 2 has state of history 1 of 'pair', and 2 was begun else"):
        Replica(topology(tmp_path), "2", place, RunSettings()).start()
    assert roster.members() == {"1": SIBLING}


def test_one_that_comes_back_when_all_have_begun_anew_ends(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(topology(tmp_path), "2", place, RunSettings())
    stopped: list[bool] = []
    monkeypatch.setattr(replica.run, "start", lambda *_, **__: None)
    monkeypatch.setattr(replica.run, "stop", lambda: stopped.append(True))
    replica.start()
    roster.leave("2")
    replica._join_again()
    assert (stopped, sorted(roster.members())) == ([], ["1", "2"])
    roster.leave("2")
    note_history(roster._coordinator, 1)
    replica._join_again()
    assert (stopped, sorted(roster.members())) == ([True], ["1"])
    replica._coordinator.close()
