"""Every kind of state is divided anew while the topology runs, and can be read before and afterwards."""

from __future__ import annotations

import os
from typing import Any

from penstock.runtime.progress import Snapshot
from penstock.runtime.rescale_request import RescaleRequest, ask, reply_to
from penstock.runtime.restore import RestoreSettings, look_at, restore
from penstock.runtime.run import Run
from penstock.runtime.snapshots import take_snapshot
from penstock.runtime.state_view import opened_state
from penstock.topology.model import Topology

EVERY_KIND = """
    topology: kinds
    epoch: {max_tuples: 15}
    sources:
      clicks: {generator: {id: sequence, user: "int(0, 7)", at: "timestamp(2026-01-01, 1s)"}, count: 180}
      orders: {generator: {number: sequence, ordered_at: "timestamp(2026-01-01, 1s)"}, count: 180}
    operators:
      first:    {from: clicks, uniq: user}
      minutes:  {from: clicks, window: tumbling(1 minute), on: at, by: user, compute: count() as clicks}
      visits:   {from: clicks, window: session(5s), on: at, by: user, compute: count() as clicks}
      totals:   {from: clicks, custom: "own:Total", key: user, emits: "user int, total bigint"}
      matched:
        from: {clicks: clicks, orders: orders}
        join: clicks.id = orders.number
        within: 1 minute
        on: {clicks: at, orders: ordered_at}
    sinks:
      first:    {from: first, file: out/first.jsonl}
      minutes:  {from: minutes, file: out/minutes.jsonl}
      visits:   {from: visits, file: out/visits.jsonl}
      totals:   {from: totals, file: out/totals.jsonl}
      matched:  {from: matched, file: out/matched.jsonl}
    """
OWN = """
    from penstock import Bolt

    class Total(Bolt):
        def process(self, tup):
            total = self.context.state.value("total", 0)
            total.set(total.get() + tup.id)
            self.emit(tup.user, total.get())
    """
STATEFUL = ("first", "minutes", "visits", "totals", "matched")


def outputs(project: Any, folder: str = "out") -> dict[str, list[str]]:
    return {path.stem: sorted(path.read_text().splitlines()) for path in (project.folder / folder).glob("*.jsonl")}


def rescaled_on_the_way(run: Run, wanted: dict[int, int]) -> list[RescaleRequest]:
    """Ask for so many instances when an epoch is done, by epoch; run to the end of the input."""
    asked: dict[int, RescaleRequest] = {}

    def look(snapshot: Snapshot) -> None:
        for epoch, instances in wanted.items():
            if snapshot.epoch >= epoch and epoch not in asked:
                asked[epoch] = ask(run.state, os.getpid(), "first", instances)

    assert run.wait(look).ended
    return list(asked.values())


def readable_rows(project: Any, topology: Topology) -> dict[str, list[int]]:
    """By operator, the instances of all its keys."""
    found = {}
    for name in STATEFUL:
        with opened_state(topology, name, settings=project.settings()) as state:
            found[name] = [row["instance"] for row in state.rows.collect()]
    return found


def test_every_kind_of_state_is_divided_anew_while_it_runs(project: Any) -> None:
    project.write("own.py", OWN)
    topology = project.topology(EVERY_KIND)
    assert project.run(topology).ended
    undisturbed = outputs(project)
    assert all(undisturbed.values())
    run = project.started(topology)
    requests = rescaled_on_the_way(run, {2: 5, 6: 3})
    done = [found.done for found in (reply_to(run.state, request) for request in requests) if found is not None]
    assert [(each["before"], each["after"], each["went_on"]) for each in done if each is not None] == [
        (2, 5, True), (5, 3, True)]
    assert outputs(project) == undisturbed
    assert all(set(instances) <= {0, 1, 2} for instances in readable_rows(project, topology).values())


def test_every_kind_of_state_is_restored_on_more_instances(project: Any) -> None:
    project.write("own.py", OWN)
    topology = project.topology(EVERY_KIND)
    run = project.started(topology)

    def look(snapshot: Snapshot) -> None:
        if snapshot.epoch >= 4:
            run.stop()

    run.wait(look)
    before = readable_rows(project, topology)
    assert all(before.values())
    take_snapshot(run.state, topology.name, run.state.coordinator, "early")
    assert project.started(topology).wait().ended
    undisturbed = outputs(project)
    settings = RestoreSettings(run.state.snapshots / "early", instances=5, replace=True)
    restore(look_at(topology, settings, project.settings()), project.settings())
    after = readable_rows(project, topology)
    assert {name: len(rows) for name, rows in after.items()} == {name: len(rows) for name, rows in before.items()}
    assert max(after["totals"]) > 1
    again = project.started(topology)
    assert again.resumed_from >= 4
    assert again.wait().ended
    # The sinks have all of it already, and skip what is done again.
    assert outputs(project) == undisturbed
