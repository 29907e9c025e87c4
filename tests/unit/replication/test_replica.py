"""A replica that is refused before Spark is started, and one that differs from a sibling; both without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import Topology
from penstock.coordination.sqlite import SqliteCoordinator
from penstock.epochs.log import EpochLog
from penstock.errors import CoordinationError, DeliveryError, TopologyError
from penstock.replication.history import note_history
from penstock.replication.replica import Replica, ReplicaPlace, opened_roster
from penstock.replication.roster import CHANGING, FAILED, RUNNING, STOPPED, Member, Roster, Told
from penstock.replication.sibling import WORTH_COPYING
from penstock.replication.version import version_of
from penstock.replication.views import all_safe
from penstock.runtime.progress import Progress, Snapshot
from penstock.runtime.run import Outcome, RunSettings
from penstock.runtime.state_folder import Committed, StateFolder, UnusableState
from penstock.topology.model import Delivery

from ...waiting import wait_until

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
        with pytest.raises(CoordinationError, match="replica 1 of 'pair' is in cell spark://a:7077 already"):
            Replica(own, "2", place, RunSettings(), "spark://a:7077").start()
        assert roster.members() == {"1": sibling}


def test_of_two_that_are_started_in_one_cell_at_the_same_moment_one_stays(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = replace(topology(tmp_path), cells=("spark://a:7077", "spark://b:7077"))
    place.home.path.mkdir()
    with opened_roster(place.home.coordinator) as roster:

        def started(name: str, other: str) -> None:
            replica = Replica(own, name, place, RunSettings(), "spark://a:7077")
            monkeypatch.setattr(replica.run, "start", lambda *_, **__: None)
            join = replica._joins

            def joins() -> bool:
                roster.join(Member(other, "spark://a:7077", "elsewhere", 7, "b"))
                return join()

            monkeypatch.setattr(replica, "_joins", joins)
            try:
                replica.start()
            finally:
                roster.leave(other)
            roster.leave(name)
            replica._coordinator.close()

        started("1", "2")
        with pytest.raises(CoordinationError, match="replica 1 of 'pair' is in cell spark://a:7077 already"):
            started("2", "1")
        assert roster.members() == {}


def test_another_penstock_or_spark_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = version_of(topology(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr("penstock.replication.version.__version__", "0.0.9")
        assert version_of(topology(tmp_path)) != own
    monkeypatch.setattr("penstock.replication.version.version", lambda _: "4.2.0")
    assert version_of(topology(tmp_path)) != own


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


def test_the_log_keeps_what_comes_after_the_epoch_at_which_one_begins(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EpochLog(roster._coordinator)
    replica = Replica(topology(tmp_path), "2", place, RunSettings())
    monkeypatch.setattr(replica.run, "start", lambda *_, before_query, **__: before_query())
    seen: list[dict[str, int]] = []

    def copied(*_: object) -> int:
        seen.append(log.progress())
        return 30

    monkeypatch.setattr("penstock.replication.replica.begin_from_sibling", copied)
    replica.start()
    replica._coordinator.close()
    assert (seen, log.progress()) == ([{"2": 0}], {"2": 30})


class Unlike:
    """Two replicas that have differed, and how those begin that are started since; without Spark."""

    def __init__(self, place: ReplicaPlace, roster: Roster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._place, self._roster, self._folder, self._monkeypatch = place, roster, folder, monkeypatch
        self.begun: list[str] = []
        self.can_copy = True
        self.reach(("1", 30), ("2", 32))
        monkeypatch.setattr(
            "penstock.replication.replica.begin_from_sibling", lambda *_: self.begun.append("as it was")
        )
        monkeypatch.setattr("penstock.replication.replica.begin_as", self._begin_as)
        for name in ("1", "2"):
            roster.compare(name, "v", 29, {"a": "a"}, {"a": f"0:{name}"})

    def reach(self, *epochs: tuple[str, int]) -> None:
        for name, epoch in epochs:
            self._place.state_of(name).path.mkdir(parents=True, exist_ok=True)
            self._place.state_of(name).record(Committed(epoch))

    def start(self, *names: str) -> list[str]:
        """How they begin, one after the other."""
        self.begun.clear()
        for name in names:
            replica = Replica(topology(self._folder), name, self._place, RunSettings())
            self._monkeypatch.setattr(replica.run, "start", lambda *_, before_query, **__: before_query())
            self._roster.leave(name)
            known = len(self.begun)
            replica.start()
            if len(self.begun) == known:
                self.begun.append("own")
            replica._coordinator.close()
        return list(self.begun)

    def _begin_as(self, state: StateFolder, like: StateFolder, *_: str) -> int | None:
        self.begun.append(like.path.name)
        if not self.can_copy:
            return None
        state.record(like.committed())
        return like.committed().epoch


@pytest.fixture
def unlike(place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Unlike:
    return Unlike(place, roster, tmp_path, monkeypatch)


def test_where_replicas_have_differed_one_begins_as_the_first_does(unlike: Unlike, roster: Roster) -> None:
    assert unlike.start("2") == ["1"]
    assert EpochLog(roster._coordinator).progress()["2"] == 30
    # What it goes on with is the same, by now.
    assert unlike.start("1", "2") == ["2", "1"]
    roster.note_alike()
    assert unlike.start("1", "2") == ["as it was", "as it was"]


def test_the_first_goes_on_with_what_it_has(unlike: Unlike) -> None:
    assert unlike.start("1", "2", "1") == ["own", "1", "own"]


def test_nobody_begins_as_one_that_still_runs_the_code_that_differs(unlike: Unlike) -> None:
    # The first takes so long to start that the other is far ahead: it is to be like that one.
    unlike.reach(("1", 30), ("2", 32 + WORTH_COPYING))
    assert unlike.start("1") == ["2"]
    # Which goes on as it was. As long as nobody else has begun, nothing is lost by taking its state once more.
    unlike.reach(("1", 45), ("2", 60), ("3", 60))
    assert unlike.start("1") == ["2"]
    unlike.reach(("1", 45))
    assert unlike.start("2", "3", "1") == ["1", "1", "own"]


def test_where_nothing_can_be_copied_one_begins_as_it_would_otherwise(
    unlike: Unlike, roster: Roster, tmp_path: Path
) -> None:
    unlike.can_copy = False
    assert unlike.start("2") == ["1", "as it was"]
    assert roster.begun(version_of(topology(tmp_path))) == set()


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


QUIET = SimpleNamespace(is_frozen=False, is_idle=False, first=0, new_digests=lambda: iter(()))
"""A run of which only what was seen is asked."""


class Away:
    """A replica whose coordinator is a file that is taken away for longer than its session lasts."""

    def __init__(self, place: ReplicaPlace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = folder / "c.sqlite"
        self.stopped: list[bool] = []
        self.asked: list[threading.Thread] = []
        """Once for each try to sign in again, by whom."""
        coordinator = SqliteCoordinator(self._file, ttl=0.2, wait_seconds=0.1)
        monkeypatch.setattr("penstock.replication.replica.open_coordinator", lambda _: coordinator)
        monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.02)
        self.replica = Replica(topology(folder), "2", place, RunSettings())
        monkeypatch.setattr(self.replica.run, "start", lambda *_, **__: None)
        monkeypatch.setattr(self.replica.run, "stop", lambda: self.stopped.append(True))
        self.replica.start()
        really = self.replica._joins_again

        def again() -> bool:
            self.asked.append(threading.current_thread())
            return really()

        monkeypatch.setattr(self.replica, "_joins_again", again)
        self._file.rename(folder / "away")

    def comes_back(self) -> None:
        (self._file.parent / "away").rename(self._file)

    def members(self) -> list[str]:
        other = SqliteCoordinator(self._file)
        try:
            return list(Roster(other).members())
        finally:
            other.close()


def test_one_whose_coordinator_is_away_for_longer_than_its_session_signs_in_when_that_is_back(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(place, tmp_path, monkeypatch)
    wait_until(lambda: len(away.asked) > 3)
    away.comes_back()
    wait_until(lambda: away.members() == ["2"])
    assert away.stopped == []
    away.replica._coordinator.close()


def test_one_that_ends_while_its_coordinator_is_away_asks_no_more(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(place, tmp_path, monkeypatch)
    wait_until(lambda: away.asked)
    away.replica._leave(STOPPED, "")
    wait_until(lambda: not away.asked[0].is_alive())
    away.comes_back()
    assert away.members() == []


def test_one_that_ends_does_not_sign_out_who_has_taken_its_place(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(topology(tmp_path), "2", place, RunSettings())
    monkeypatch.setattr(replica.run, "start", lambda *_, **__: None)
    replica.start()
    # Frozen for longer than its session lasts, and not yet told so.
    roster.leave("2")
    successor = Member("2", "any", "here", 42, "b")
    roster.join(successor)
    roster.tell("2", Told("b", 9))
    replica._leave(STOPPED, "")
    assert roster.members()["2"] == successor
    assert roster.told()["2"] == Told("b", 9)


class MadeUpRun:
    """A run that gives an epoch at each look, until it is stopped or its input ends."""

    def __init__(self, state: StateFolder, digests: list[dict[str, str]]) -> None:
        self.state = state
        self.first = 0
        self.is_frozen = False
        self.is_idle = False
        self.epoch = 0
        self._digests = digests
        self._stopped = False

    def wait(self, look: Callable[[Snapshot], None]) -> Outcome:
        while not self._stopped and self._digests:
            self.epoch += 1
            look(replace(Progress().snapshot(), epoch=self.epoch))
        return Outcome(not self._digests, Progress().snapshot())

    def new_digests(self) -> Iterator[tuple[int, dict[str, str]]]:
        if self._digests:
            yield self.epoch, self._digests.pop(0)

    def stop(self) -> None:
        self._stopped = True


def beside_one_that_differs(
    place: ReplicaPlace, folder: Path, monkeypatch: pytest.MonkeyPatch, on_divergence: str
) -> tuple[Replica, MadeUpRun]:
    """A replica that differs from its sibling in the second of five epochs, and whom nobody watches."""
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    own = replace(topology(folder), on_divergence=on_divergence)
    place.home.path.mkdir(exist_ok=True)
    replica = Replica(own, "2", place, RunSettings())
    run = MadeUpRun(place.state_of("2"), [{"out": f"1:{epoch}"} for epoch in range(5)])
    monkeypatch.setattr(replica, "run", run)
    monkeypatch.setattr(run, "start", lambda *_, **__: None, raising=False)
    with opened_roster(place.home.coordinator) as roster:
        for epoch in range(1, 6):
            digests = {"out": "1:0" if epoch == 1 else "1:ff"}
            roster.compare("1", version_of(own), epoch, replica._compared, digests)
    replica.start()
    return replica, run


def test_one_that_differs_from_a_sibling_ends_where_that_is_wanted_though_nobody_watches(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, run = beside_one_that_differs(place, tmp_path, monkeypatch, "stop")
    with pytest.raises(DeliveryError, match="replicas 1 and 2 differ in epoch 2, first in 'custom'"):
        replica.wait()
    assert run.epoch == 2
    with opened_roster(place.home.coordinator) as roster:
        assert roster.told()["2"].how == FAILED
        assert roster.told()["2"].why.startswith("replicas 1 and 2 differ in epoch 2")


def test_one_that_differs_from_a_sibling_goes_on_where_it_is_only_told(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, run = beside_one_that_differs(place, tmp_path, monkeypatch, "warn")
    assert replica.wait().ended
    assert run.epoch == 5
    with opened_roster(place.home.coordinator) as roster:
        found = roster.divergence()
    assert found is not None
    assert (found.epoch, found.replicas) == (2, ("1", "2"))


def test_one_that_has_nothing_to_do_any_more_tells_so_without_another_epoch(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    one = Replica(topology(tmp_path), "2", place, RunSettings())
    # Spark is not started, and nothing is compared.
    monkeypatch.setattr(one, "run", QUIET)
    one._roster = roster
    seen = replace(Progress().snapshot(), epoch=7, at_work=0.85)
    for share in (0.85, 0.4, 0.0):
        one._tell(replace(seen, at_work=share))
        assert roster.told()["2"].progress["at_work"] == share


def test_one_that_has_had_nothing_to_do_for_a_while_tells_after_which_epoch(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    now = [1000.0]
    monkeypatch.setattr("penstock.replication.replica.time", SimpleNamespace(monotonic=lambda: now[0]))
    place.state_of("2").path.mkdir(parents=True)
    place.state_of("2").record(Committed(30))
    one = Replica(topology(tmp_path), "2", place, RunSettings())
    run = SimpleNamespace(is_frozen=False, first=0, new_digests=lambda: iter(()), state=one.run.state, is_idle=True)
    monkeypatch.setattr(one, "run", run)
    one._roster = roster
    monkeypatch.setattr(one, "_catch_up_again", lambda *_: None)

    def tells(seconds: float, epoch: int = 0, waiting: str | None = None, is_idle: bool = True) -> int | None:
        now[0] += seconds
        run.is_idle = is_idle
        one._tell(replace(Progress().snapshot(), epoch=epoch, waiting=waiting))
        return roster.told()["2"].idle

    assert [tells(5.0), tells(5.0), tells(5.0)] == [None, None, 30]
    assert tells(1.0, is_idle=False) is None
    assert [tells(1.0, epoch=31), tells(9.0, epoch=31), tells(2.0, epoch=31)] == [None, None, 31]
    # What it cannot know it does not say.
    assert [tells(1.0, epoch=31, waiting="the coordinator is away"), tells(9.0, epoch=31)] == [None, None]


def test_one_that_changes_its_state_says_so_before_until_it_goes_on(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    one = Replica(topology(tmp_path), "2", place, RunSettings())
    one._roster = roster
    seen = replace(Progress().snapshot(), epoch=7)
    # Both a rescale and another checkpoint: the run tells so before it stops the query.
    before_change = one.run.before_change
    monkeypatch.setattr(one, "run", QUIET)
    one._tell(seen)
    before_change()
    told = roster.told()["2"]
    assert (told.how, told.epoch) == (CHANGING, 7)
    assert not all_safe(["2"], {"2": one._member}, {"2": told}, 6)
    one._tell(seen)
    assert roster.told()["2"].how == RUNNING


def test_one_is_warm_when_all_of_the_time_of_four_epochs_abreast_is_short(
    place: ReplicaPlace, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.replication.replica._SECONDS_BETWEEN_WORDS", 0.0)
    own = topology(tmp_path)
    one = Replica(replace(own, epoch=replace(own.epoch, interval=1.0)), "2", place, RunSettings())
    monkeypatch.setattr(one, "run", QUIET)
    one._roster = roster

    def tells(epoch: int, head: int, *wholes: float) -> tuple[bool, bool, float]:
        roster.tell("1", Told("a", head))
        # What Spark does before is not in it: by this one, it has long been quick.
        one._tell(replace(Progress().snapshot(), epoch=epoch, last_epoch_ms=100.0, wholes_ms=wholes))
        told = roster.told()["2"]
        return told.cold, told.caught_up, told.whole

    assert tells(50, 80, 300.0, 300.0, 300.0, 300.0) == (True, False, 0.3)
    assert tells(80, 81, 300.0, 300.0, 300.0, 300.0) == (True, False, 0.3)
    assert tells(84, 84, 300.0, 1800.0, 300.0, 300.0) == (True, False, 0.3)
    assert tells(86, 86, 300.0, 300.0, 300.0, 600.0) == (False, True, 0.6)
    # Not two behind, while it could not make up for it.
    assert tells(87, 88, 300.0, 300.0, 600.0, 700.0) == (False, False, 0.7)


@pytest.mark.parametrize("damage", ["unreadable", "broken"])
def test_one_goes_on_while_the_disk_of_a_sibling_fails(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    replica, run = beside_one_that_differs(place, tmp_path, monkeypatch, "warn")
    sick = place.state_of("1").path / "committed"
    if damage == "unreadable":
        sick.mkdir(parents=True)
    else:
        sick.parent.mkdir(parents=True)
        sick.write_text('{"epoch": 7, "en')
    assert replica.wait().ended
    assert run.epoch == 5


def test_one_whose_own_disk_fails_tells_why(
    place: ReplicaPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.state_of("2").path / "committed").mkdir(parents=True)
    replica = Replica(topology(tmp_path), "2", place, RunSettings())
    with pytest.raises(UnusableState, match="cannot be read"):
        replica.start()
    with opened_roster(place.home.coordinator) as roster:
        told = roster.told()["2"]
    assert told.how == FAILED
    assert "replicas/2/committed says how far its run has come, and cannot be read (Is a directory)" in told.why
