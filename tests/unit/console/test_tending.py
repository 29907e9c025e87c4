"""What a node does about a topology, and what it says of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.console.commands import Command, Verb, new_goal
from penstock.console.desired import Goal, Wanted
from penstock.console.events import events_between
from penstock.console.home import Begun
from penstock.console.placing import load_of, place
from penstock.console.seen import merged
from penstock.console.tending import MOST_FAILURES, Act, How, There, decide, how_it_is, pause_after
from penstock.console.topology_log import last_lines, last_progress, last_words, shorten
from penstock.console.watching import Watched, Watching
from penstock.coordination.memory import MemoryCoordinator

from .running_console import view

WANTED = Wanted("count", "d1", "topology.yaml")
BEGUN = Begun("d1", "topology.yaml")
STOPPED = replace(WANTED, goal=Goal.STOP)
RUNNING = There(BEGUN, alive=True, epoch=3)


@pytest.mark.parametrize(("wanted", "there", "act", "how"), [
    (WANTED, There(), Act.START, How.STARTING),
    (WANTED, RUNNING, Act.NOTHING, How.RUNNING),
    (WANTED, replace(RUNNING, epoch=0), Act.NOTHING, How.STARTING),
    (replace(WANTED, digest="d2"), RUNNING, Act.RENEW, How.RUNNING),
    (replace(WANTED, sets=("a=1",)), RUNNING, Act.STOP, How.RUNNING),
    (replace(WANTED, fresh=1), RUNNING, Act.STOP, How.RUNNING),
    (replace(WANTED, fresh=1), There(BEGUN), Act.START, How.STARTING),
    (STOPPED, RUNNING, Act.STOP, How.STOPPING),
    (STOPPED, replace(RUNNING, stopping=True), Act.NOTHING, How.STOPPING),
    (STOPPED, There(BEGUN), Act.NOTHING, How.STOPPED),
    # Whoever watched its replicas was killed, and they go on.
    (STOPPED, There(BEGUN, unwatched=True), Act.STOP, How.STOPPING),
    (STOPPED, There(BEGUN, unwatched=True, ended=True), Act.STOP, How.STOPPING),
    (WANTED, There(BEGUN, unwatched=True, epoch=3), Act.START, How.STARTING),
    (WANTED, There(BEGUN, ended=True), Act.NOTHING, How.ENDED),
    (replace(WANTED, digest="d2"), There(BEGUN, ended=True), Act.START, How.STARTING),
    (WANTED, There(BEGUN, failures=1, failed_at=99.5), Act.NOTHING, How.STARTING),
    (WANTED, There(BEGUN, failures=1, failed_at=90), Act.START, How.STARTING),
    (WANTED, There(BEGUN, failures=MOST_FAILURES), Act.NOTHING, How.FAILED),
    (WANTED, There(BEGUN, refused=True), Act.NOTHING, How.FAILED),
])  # fmt: skip
def test_what_is_done_next(wanted: Wanted, there: There, act: Act, how: How) -> None:
    assert decide(wanted, there, now=100.0) is act
    assert how_it_is(wanted, there) is how


def test_pauses_grow_but_not_without_end() -> None:
    assert [pause_after(failures) for failures in (0, 1, 2, 3)] == [0.0, 1.0, 2.0, 4.0]
    assert pause_after(50) == 60.0


def test_a_topology_goes_to_the_node_that_has_least_and_stays_there() -> None:
    assert place(replace(WANTED, replicas=2), ["a", "b"], {"a": 3, "b": 1}) == {"1": "b", "2": "b"}
    there = replace(WANTED, replicas=2, nodes={"1": "b"})
    assert place(there, ["a"], {}) == {"1": "b", "2": "b"}
    assert place(replace(WANTED, nodes={"1": "b"}), ["a"], {}) is None
    assert place(WANTED, [], {}) is None
    assert load_of([there, replace(WANTED, nodes={"1": "a"})]) == {"b": 1, "a": 1}


def test_each_on_a_node_of_its_own() -> None:
    spread = replace(WANTED, replicas=3, spread=True)
    assert place(spread, ["a", "b"], {"a": 3}) == {"1": "b", "2": "a"}
    there = replace(spread, nodes={"1": "b", "2": "a"})
    assert place(there, ["a", "b"], {}) is None
    assert place(there, ["a", "b", "c"], {}) == {"1": "b", "2": "a", "3": "c"}
    whole = replace(spread, nodes={"1": "b", "2": "a", "3": "c"})
    # A node that is away keeps its replica while that runs, and while there is no other place for it.
    assert place(whole, ["a", "c", "d"], {}) is None
    assert place(whole, ["a", "c"], {}, lost={"1"}) is None
    assert place(whole, ["a", "c", "d"], {}, lost={"1", "2"}) == {"1": "d", "2": "a", "3": "c"}


def test_who_watches_other_replicas_than_before_is_exchanged_and_they_go_on() -> None:
    spread = replace(WANTED, replicas=2, spread=True, nodes={"1": "a", "2": "b"})
    assert (spread.on("a"), spread.on("c")) == (("1",), ())
    there = There(replace(BEGUN, here=("1",)), alive=True)
    assert decide(spread, there, 100.0, ("1",)) is Act.NOTHING
    assert decide(spread, there, 100.0, ("1", "2")) is Act.REHOME
    assert decide(replace(spread, digest="other"), there, 100.0, ("1",)) is Act.RENEW
    assert decide(replace(spread, fresh=1), there, 100.0, ("1",)) is Act.STOP


def test_what_nodes_see_is_put_together_and_what_is_old_is_forgotten() -> None:
    def saw(how: str, epoch: int, **phases: str) -> dict[str, object]:
        return {"at": -float(epoch), "how": how, "why": how, "progress": {"epoch": epoch},
                "replicas": [{"name": name.removeprefix("r"), "phase": phase} for name, phase in phases.items()]}

    found = merged({"a": saw("running", 9, r1="safe", r2="down"), "b": saw("starting", 1, r2="starting"),
                    "gone": saw("running", 900, r3="safe")}, {"a": 100.0, "b": 100.4, "gone": 50.0})  # fmt: skip
    assert found is not None
    assert (found["how"], found["why"], found["progress"]) == ("running", "running", {"epoch": 9})
    assert (found["heard"], found["at"], found["teller"], found["told"]) == (100.4, -1.0, "a", -9.0)
    assert [(each["name"], each["phase"]) for each in found["replicas"]] == [("1", "safe"), ("2", "starting")]
    assert merged({}, {}) is None


def test_a_replica_that_does_not_run_is_lost_with_its_node_whether_it_is_down_or_parked() -> None:
    wanted = replace(WANTED, replicas=3, spread=True, nodes={"1": "a", "2": "b", "3": "c"})
    watching = Watching(MemoryCoordinator())
    replicas = [view("1"), view("2", "down"), view("3", "parked")]
    watching._watched["count"] = Watched(wanted, {"heard": time.monotonic(), "replicas": replicas})
    assert watching.lost(wanted) == {"2", "3"}


def test_one_that_had_failed_is_tried_again_when_somebody_says_so() -> None:
    failed = There(BEGUN, failures=MOST_FAILURES)
    assert decide(WANTED, failed, 100.0) is Act.NOTHING
    assert decide(new_goal(Command(verb=Verb.START), WANTED), failed, 100.0) is Act.START


# What is told of it.

def seen(how: str = "running", *replicas: object, why: str = "") -> dict[str, object]:
    return {"how": how, "why": why, "at": 0.0, "replicas": list(replicas)}


def words(before: dict[str, object] | None, after: dict[str, object] | None) -> list[str]:
    return [event.words for event in events_between("count", before, after, 0.0)]


def test_events_are_in_plain_words() -> None:
    both = seen("running", view("1"), view("2"))
    one_down = seen("running", view("1", "down", process=None, host=""), view("2"))
    assert words(None, seen("starting")) == ["is starting"]
    assert words(seen("starting"), both) == ["runs", "2/2 safe: any one of them may fail now"]
    assert words(both, both) == []
    assert words(both, one_down) == ["replica 1 on node-b is gone; the others go on"]
    back = seen("running", view("1", "recovering", behind=340), view("2"))
    assert words(one_down, back) == ["replica 1 on node-b is back and 340 epochs behind"]
    parked = seen("running", view("1", "parked", why="the disk is full"), view("2"))
    assert words(one_down, parked) == ["replica 1 is parked: the disk is full"]
    assert words(parked, parked) == []
    assert words(back, both) == ["replica 1 on node-b has caught up", "2/2 safe: any one of them may fail now"]
    assert words(both, seen("failed", why="no space\nleft on it")) == [
        "has failed and is not started again: left on it"
    ]
    assert words(both, None) == ["was removed"]


def test_replicas_that_differ_are_told_once() -> None:
    both = seen("running", view("1"), view("2"))
    differing = both | {"divergence": "replicas 1 and 2 differ in epoch 7"}
    assert words(both, differing) == ["replicas 1 and 2 differ in epoch 7"]
    assert words(differing, differing) == []


def test_without_a_sibling_a_death_is_felt() -> None:
    assert words(seen("running", view("1")), seen("running", view("1", "down"))) == [
        "replica 1 on node-b is gone; output pauses until it is back"
    ]
    returning = view("2", "recovering", behind=3)
    assert words(seen("running", view("1"), returning), seen("running", view("1", "down"), returning)) == [
        "replica 1 on node-b is gone; output goes on when replica 2 has caught up"
    ]


# What it has said itself.

def test_the_newest_progress_is_read_from_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert last_progress(log) is None
    told = [{"event": "progress", "epoch": epoch, "lag": 0, "late": 0, "tuples": {}, "delivered": {}, "failed": {}}
            for epoch in (1, 2)]
    log.write_text("\n".join(["x" * 100_000, *map(json.dumps, told), "words", '{"eve']))
    assert last_progress(log) == told[-1]
    assert last_words(log).endswith("words")
    assert last_lines(log, 20)[-1] == "words"


def test_a_log_is_cut_when_it_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.console.topology_log._LONGEST_LOG", 1000)
    log = tmp_path / "run.log"
    with log.open("a") as writer:
        writer.write("line\n" * 300)
        writer.flush()
        shorten(log)
        writer.write("next\n")
        writer.flush()
    assert log.read_text() == "next\n"
    assert (tmp_path / "run.log.1").read_text().startswith("line\nline")
