"""Custom code with a key on real Spark: its state, its timers, and what becomes of both in trouble."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import pytest

from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run
from penstock.topology.model import Topology

OWN = """
    from datetime import timedelta
    from pathlib import Path

    from penstock import Bolt

    class Numbered(Bolt):
        "Numbers the tuples of a key, and says at the end how many there were."

        def process(self, tup):
            seen = self.context.state.value("seen", 0)
            seen.set(seen.get() + 1)
            if tup.id % 1000 == 77:
                raise ValueError("poison")
            self.emit(tup.user, seen.get(), tup.id)
            self.context.timers.set(timedelta(hours=1), "end")

        def on_timer(self, name):
            self.emit(self.context.key, -self.context.state.value("seen").get(), None)
            self.context.state.clear()

    class Pause(Bolt):
        "Says when half a second of the epochs' time has passed since a tuple."

        def process(self, tup):
            at = self.context.time + timedelta(seconds=0.5)
            self.context.timers.set(at, "pause")
            self.context.state.value("due").set(at.isoformat())

        def on_timer(self, name):
            due = self.context.state.value("due")
            self.emit(self.context.key, due.get(), self.context.time.isoformat(), self.context.epoch)
            due.clear()

    def fails_once(tup, context):
        seen = context.state.map("seen")
        seen[tup.id] = len(seen)
        if tup.id % 1000 == 77:
            mark = Path(f"mark-{tup.id}")
            if not mark.exists():
                mark.touch()
                raise ConnectionError("no answer")
        return tup.user, len(seen), tup.id
    """


def numbered(
    project: Any, users: int, count: int, epoch: int, code: str = "Numbered", on_error: str = "drop"
) -> Topology:
    project.write("own.py", OWN)
    topology: Topology = project.topology(f"""
        topology: numbered
        epoch: {{max_tuples: {epoch}}}
        dead_letters: out/dead.jsonl
        sources:
          ids: {{generator: {{id: sequence}}, count: {count}}}
        operators:
          users: {{from: ids, select: ["id", "concat('u', id * 7919 % {users}) as user"]}}
          own: {{from: users, custom: "own:{code}", key: user, emits: "user string, n bigint, id bigint",
                 on_error: {on_error}}}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
        """)
    return topology


def by_user(project: Any) -> dict[str, list[tuple[int, int | None]]]:
    """What each user's tuples gave, in the order written."""
    found: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for row in project.json_lines("out/out.jsonl"):
        found[row["user"]].append((row["n"], row.get("id")))
    return found


def right(users: int, count: int) -> dict[str, list[tuple[int, int | None]]]:
    expected: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for number in (number for number in range(count) if number % 1000 != 77):
        own = expected[f"u{number * 7919 % users}"]
        own.append((len(own) + 1, number))
    for own in expected.values():
        own.append((-len(own), None))
    return expected


def test_ten_thousand_keys_have_their_state_and_their_order_and_a_failed_tuple_leaves_no_trace(project: Any) -> None:
    assert project.run(numbered(project, 10_000, 60_000, 25_000)).ended
    assert by_user(project) == right(10_000, 60_000)


def test_state_and_timers_survive_a_restart(project: Any) -> None:
    topology = numbered(project, 50, 3_000, 500, on_error="dead-letter")
    first: Run = project.started(topology)

    def look(snapshot: Snapshot) -> None:
        if snapshot.epoch >= 2:
            first.stop()

    assert not first.wait(look).ended
    again: Run = project.started(topology)
    assert again.resumed_from >= 2
    assert again.wait().ended
    assert by_user(project) == right(50, 3_000)
    assert sorted(letter["tuple"]["id"] for letter in project.json_lines("out/dead.jsonl")) == [77, 1077, 2077]


def test_a_retried_tuple_changes_the_state_once_and_in_the_epoch_in_which_it_succeeds(project: Any) -> None:
    assert project.run(numbered(project, 10, 2_000, 500, "fails_once", "retry(3)")).ended
    rows = by_user(project)
    assert {user: [n for n, _ in own] for user, own in rows.items()} == {
        f"u{number}": list(range(1, 201)) for number in range(10)
    }
    assert sorted(number for own in rows.values() for _, number in own if number is not None) == list(range(2_000))


@pytest.mark.parametrize("late", ["at the end", "in an epoch without tuples"])
def test_timers_go_by_the_time_of_epochs(project: Any, late: str) -> None:
    project.write("own.py", OWN)
    ends = late == "at the end"
    source = "rows: [[1], [2], [null]]" if ends else "file: ids.jsonl, follow: true"
    topology = project.topology(f"""
        topology: pauses
        epoch: {{tick: 200ms}}
        sources:
          ids: {{{source}, schema: "id bigint"}}
        operators:
          own: {{from: ids, custom: "own:Pause", key: id, emits: "id bigint, due string, at string, epoch bigint"}}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
        """)
    project.write("ids.jsonl", '{"id": 1}\n{"id": 2}\n{"id": null}\n')
    run: Run = project.started(topology)
    written = project.folder / "out/out.jsonl"

    def look(snapshot: Snapshot) -> None:
        if not ends and written.exists() and written.stat().st_size:
            run.stop()

    assert run.wait(look).ended is ends
    rows = project.json_lines("out/out.jsonl")
    assert [row["id"] for row in sorted(rows, key=str)] == [1, 2, None]
    records = {record.epoch: record for record in project.epochs()}
    for row in rows:
        record = records[row["epoch"]]
        at, due = datetime.fromisoformat(row["at"]), datetime.fromisoformat(row["due"])
        assert round(at.timestamp() * 1000) == record.time_ms
        assert at < due if ends else at >= due
        assert ends or sum(record.tuples.values()) == 0


KEYS = """
    from penstock import Bolt

    class Names(Bolt):
        def process(self, tup):
            self.context.timers.set(1, "later")
            self.context.state.value("seen").set(self.context.key)
            self.emit("process", repr(self.context.key))

        def on_timer(self, name):
            assert self.context.state.value("seen").get() == self.context.key
            self.emit(name, repr(self.context.key))
    """


def test_a_key_is_the_same_to_tuples_and_to_timers_whatever_its_types(project: Any) -> None:
    project.write("own.py", KEYS)
    topology = project.topology("""
        topology: keys
        sources:
          rows:
            rows:
              - {at: "2024-02-29T12:34:56.789Z", day: 2024-02-29, price: "1.50", flag: true, text: "é", small: 7}
              - {at: null, day: 1969-12-31, price: "-0.01", flag: false, text: "", small: -1}
              - {}
            schema: "at timestamp, day date, price decimal(10,2), flag boolean, text string, small smallint"
        operators:
          own:
            from: rows
            custom: "own:Names"
            key: [at, day, price, flag, text, small]
            emits: "what string, key string"
        sinks:
          out: {from: own, file: out/out.jsonl}
        """)
    assert project.run(topology).ended
    rows = project.json_lines("out/out.jsonl")
    given, fired = ({row["key"] for row in rows if row["what"] == what} for what in ("process", "later"))
    assert len(given) == 3
    assert fired == given
    assert any("datetime.datetime(2024, 2, 29, 12, 34, 56, 789000" in key for key in given)
