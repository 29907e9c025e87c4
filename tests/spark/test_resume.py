"""A run that was stopped or failed goes on where it was, and input that grows is followed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from penstock import OperatorError
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Outcome, Run
from penstock.topology.model import Topology

PATIENCE_SECONDS = 60
COUNTS = """
    topology: counts
    epoch: {max_tuples: 5}
    sources:
      words: {file: words.txt}
    operators:
      known: {from: words, custom: "own:checked", emits: "value string"}
      first: {from: known, uniq: value}
      counts: {from: known, count: value}
    sinks:
      first: {from: first, file: out/first.jsonl}
      counts: {from: counts, file: out/counts.jsonl}
    """
CHECKED = """
    from pathlib import Path

    def checked(tup):
        if tup.value == "word 14" and Path("strict").exists():
            raise ValueError("not this one")
        return tup
    """


def expected() -> dict[str, list[str]]:
    """What a run without any trouble writes: every epoch brings five words, the later ones a second time."""
    first = [{"value": f"word {number}"} for number in range(15)]
    counts = [{"value": f"word {number}", "count": count} for count in (1, 2) for number in range(15)]
    return {name: sorted(json.dumps(row, separators=(",", ":")) for row in rows)
            for name, rows in (("first.jsonl", first), ("counts.jsonl", counts))}


def outputs(project: Any) -> dict[str, list[str]]:
    return {name: sorted((project.folder / "out" / name).read_text().splitlines()) for name in expected()}


def counting(project: Any) -> Topology:
    project.write("words.txt", "".join(f"word {number % 15}\n" for number in range(30)))
    project.write("own.py", CHECKED)
    topology: Topology = project.topology(COUNTS)
    return topology


def stopped_after(run: Run, epochs: int) -> Outcome:
    def look(snapshot: Snapshot) -> None:
        if snapshot.epoch >= epochs:
            run.stop()

    return run.wait(look)


def test_a_stopped_run_goes_on_from_its_last_epoch(project: Any) -> None:
    topology = counting(project)
    outcome = stopped_after(project.started(topology), 2)
    assert not outcome.ended
    assert 2 <= outcome.progress.epoch < 6
    so_far = (project.folder / "out/counts.jsonl").read_text()
    assert len(so_far.splitlines()) == 5 * outcome.progress.epoch

    again: Run = project.started(topology)
    assert again.resumed_from == outcome.progress.epoch
    assert again.wait().ended
    assert outputs(project) == expected()
    assert (project.folder / "out/counts.jsonl").read_text().startswith(so_far)
    assert project.epochs()[-1].last


def test_a_failed_run_goes_on_once_the_cause_is_gone(project: Any) -> None:
    topology = counting(project)
    project.write("strict", "")
    with pytest.raises(OperatorError, match="not this one"):
        project.run(topology)
    assert len(outputs(project)["counts.jsonl"]) == 10
    (project.folder / "strict").unlink()
    assert project.run(topology).ended
    assert outputs(project) == expected()


def test_fresh_forgets_a_stopped_run(project: Any) -> None:
    topology = counting(project)
    stopped_after(project.started(topology), 1)
    assert project.run(topology, fresh=True).ended
    assert outputs(project) == expected()


def test_lines_and_files_that_come_later_are_picked_up(project: Any) -> None:
    project.write("logs/a.txt", "one\ntwo\n")
    topology = project.topology("""
        topology: following
        sources: {lines: {file: logs, follow: true}}
        operators: {total: {from: lines, count: }}
        sinks:
          out: {from: lines, file: out.jsonl}
          total: {from: total, file: total.jsonl}
        """)
    run: Run = project.started(topology)
    deadline = time.monotonic() + PATIENCE_SECONDS
    steps = iter([(2, "logs/a.txt", "three\nfo"), (3, "logs/a.txt", "ur\n"), (4, "logs/b.txt", "five\n")])
    following = [next(steps)]

    def look(snapshot: Snapshot) -> None:
        assert time.monotonic() < deadline, snapshot
        seen = snapshot.tuples.get("lines", 0)
        if following and seen == following[0][0]:
            _, name, text = following.pop()
            with (project.folder / name).open("a") as file:
                file.write(text)
            following.extend([step] if (step := next(steps, None)) else [])
        elif not following and seen == 5:
            run.stop()

    outcome = run.wait(look)
    assert not outcome.ended
    rows = [row["value"] for row in project.json_lines("out.jsonl")]
    assert (sorted(rows[:2]), rows[2:]) == (["one", "two"], ["three", "four", "five"])
    assert project.json_lines("total.jsonl")[-1] == {"count": 5}

    with (project.folder / "logs/b.txt").open("a") as file:
        file.write("six\n")
    again: Run = project.started(topology)
    deadline = time.monotonic() + PATIENCE_SECONDS

    def look_again(snapshot: Snapshot) -> None:
        assert time.monotonic() < deadline, snapshot
        if snapshot.tuples.get("lines", 0) == 1:
            again.stop()

    again.wait(look_again)
    assert [row["value"] for row in project.json_lines("out.jsonl")][5:] == ["six"]
    assert project.json_lines("total.jsonl")[-1] == {"count": 6}
