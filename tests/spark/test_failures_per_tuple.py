"""Custom code that fails for single tuples: what becomes of these, and that nothing happens to the others."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from penstock import DeliveryError
from penstock.runtime.buried import Graveyard
from penstock.runtime.run import Outcome
from penstock.runtime.state_folder import StateFolder
from penstock.testing import run_on
from penstock.topology.model import Topology

OWN = """
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.compute as pc

    from penstock import Bolt, Fail

    def poison(tup):
        if tup.number % 100 == 7:
            raise ValueError(f"{tup.number} is poison")
        return tup.number, tup.number % 3

    class Poison(Bolt):
        def process(self, tup):
            self.emit(tup.number, 0)
            if tup.number % 100 == 7:
                self.fail(tup, reason="bad luck")
            self.emit(tup.number, 1)

    def poison_batch(batch: pa.RecordBatch):
        if pc.any(pc.equal(pc.bit_wise_and(batch["number"], 63), 7)).as_py():
            raise Fail("a poisoned batch")
        return pa.RecordBatch.from_arrays([batch["number"], batch["number"]], names=["number", "third"])

    def fails_so_often(tup, times, every=10):
        # How often it was called is kept in files: a worker has no memory that lasts.
        if tup.number % every == 7:
            calls = Path("calls") / str(tup.number)
            calls.parent.mkdir(exist_ok=True)
            before = len(calls.read_bytes()) if calls.exists() else 0
            with calls.open("ab") as file:
                file.write(b".")
            if before < times:
                raise ConnectionError(f"no answer for {tup.number}")
        return tup.number, tup.number % 3
    """


def numbers(count: int) -> str:
    rows = ", ".join(f"[{number}]" for number in range(count))
    return f'{{rows: [{rows}], schema: "number bigint"}}'


def failing(project: Any, code: str, on_error: str, count: int = 400, **more: str) -> Outcome:
    """Run numbers through one operator, with its output and a count of it in files."""
    project.write("own.py", OWN)
    options = "".join(f", {key}: {value}" for key, value in more.items() if key != "epoch")
    topology = project.topology(f"""
        topology: failing
        epoch: {more.get("epoch", "{max_tuples: 100}")}
        dead_letters: out/dead.jsonl
        sources:
          numbers: {numbers(count)}
        operators:
          own:
            {{from: numbers, custom: "own:{code}", emits: "number bigint, third bigint", on_error: {on_error}{options}}}
          thirds: {{from: own, count: third}}
          total: {{from: numbers, count: }}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
          raw: {{from: numbers, file: out/raw.jsonl}}
          thirds: {{from: thirds, file: out/thirds.jsonl}}
          total: {{from: total, file: out/total.jsonl}}
        """)
    outcome: Outcome = project.run(topology)
    assert outcome.ended
    return outcome


def received(project: Any, name: str = "out") -> list[int]:
    return sorted(row["number"] for row in project.json_lines(f"out/{name}.jsonl"))


def newest(project: Any, name: str, key: str) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for row in project.json_lines(f"out/{name}.jsonl"):
        counts[row.get(key)] = max(row["count"], counts.get(row.get(key), 0))
    return counts


GOOD = [number for number in range(400) if number % 100 != 7]


def test_failed_tuples_are_buried_or_dropped_and_everything_else_arrives(project: Any) -> None:
    """What a bolt emitted for a tuple that it fails is discarded; a batch is divided until the poison stands alone."""
    project.write("own.py", OWN)
    codes = {"function": "poison", "bolt": "Poison", "batch": "poison_batch", "dropping": "poison"}
    on_error = {name: "drop" if name == "dropping" else "dead-letter" for name in codes}
    operators = "\n".join(
        f'  {name}: {{from: numbers, custom: "own:{code}", emits: "number bigint, third bigint", '
        f"on_error: {on_error[name]}}}" for name, code in codes.items())
    sinks = "\n".join(f"  {name}: {{from: {name}, file: out/{name}.jsonl}}" for name in (*codes, "thirds"))
    outcome = project.run(project.topology(
        f"topology: failing\nepoch: {{max_tuples: 100}}\ndead_letters: out/dead.jsonl\n"
        f"sources:\n  numbers: {numbers(400)}\n"
        f"operators:\n{operators}\n  thirds: {{from: function, count: third}}\nsinks:\n{sinks}\n"))
    poison = [7, 107, 207, 307]
    of_batches = [number for number in range(400) if number % 64 == 7]
    assert received(project, "function") == received(project, "dropping") == GOOD
    assert received(project, "bolt") == sorted(2 * GOOD)
    assert received(project, "batch") == [number for number in range(400) if number not in of_batches]
    assert newest(project, "thirds", "third") == Counter(number % 3 for number in GOOD)
    letters = project.json_lines("out/dead.jsonl")
    buried = {name: sorted(letter["tuple"]["number"] for letter in letters if letter["operator"] == name)
              for name in codes}
    assert buried == {"function": poison, "bolt": poison, "batch": of_batches, "dropping": []}
    assert {letter["error"] for letter in letters if letter["operator"] == "bolt"} == {"bad luck"}
    letter = next(letter for letter in letters if (letter["operator"], letter["tuple"]) == (
        "function", {"number": 207}))
    begin, end, slices = letter.pop("span")
    assert (begin != end, slices > 0) == (True, True)
    assert letter == {"epoch": 3, "operator": "function", "error": "ValueError: 207 is poison", "at": "own.py:10",
                      "tuple": {"number": 207}, "attempts": 1, "source": "numbers", "read_in_epoch": 3, "position": 7}
    assert outcome.progress.failed == {"function": 4, "bolt": 4, "batch": len(of_batches), "dropping": 4}
    assert not list((project.state / "failures").iterdir())


def test_a_tuple_that_succeeds_when_it_is_replayed_arrives_once_everywhere(project: Any) -> None:
    """It fails twice, upstream of one count and beside another: no sink and no state sees it before it succeeds."""
    outcome = failing(project, "fails_so_often", "retry(3)", **{"with": "{times: 2}"})
    everything = list(range(400))
    assert received(project) == everything
    assert received(project, "raw") == everything
    assert newest(project, "thirds", "third") == Counter(number % 3 for number in everything)
    assert newest(project, "total", "nothing") == {None: 400}
    assert outcome.progress.failed == {}
    assert outcome.progress.retried == 80
    assert not (project.folder / "out/dead.jsonl").exists() or project.json_lines("out/dead.jsonl") == []
    first = project.json_lines("out/total.jsonl")[0]
    assert first == {"count": 90}, "the first epoch does without the ten that failed"


def test_a_tuple_that_goes_on_failing_ends_among_the_dead_letters(project: Any) -> None:
    """In the end it is as with `dead-letter`: what other branches make of the tuple arrives, once."""
    outcome = failing(project, "fails_so_often", "retry(2)", count=100, **{"with": "{times: 1000, every: 50}"})
    assert received(project) == [number for number in range(100) if number % 50 != 7]
    assert received(project, "raw") == list(range(100))
    assert newest(project, "total", "nothing") == {None: 100}
    letters = project.json_lines("out/dead.jsonl")
    assert sorted(letter["tuple"]["number"] for letter in letters) == [7, 57]
    for letter in letters:
        assert letter["attempts"] == 3
        assert (letter["read_in_epoch"], letter["epoch"]) == (1, 1 + 1 + 2)
        assert letter["position"] == letter["tuple"]["number"]
        assert letter["error"].startswith("ConnectionError: no answer")
    assert outcome.progress.failed == {"own": 2}
    assert outcome.progress.retried == 4
    assert project.epochs()[-1].last


def test_code_that_fails_by_chance_is_called_again(project: Any) -> None:
    project.write("own.py", """
        import random

        def by_chance(tup):
            if random.random() < 0.05:
                raise TimeoutError("the service is slow")
            return tup.number, tup.number % 3
        """)
    topology = project.topology(f"""
        topology: by-chance
        epoch: {{max_tuples: 200}}
        sources:
          numbers: {numbers(400)}
        operators:
          own: {{from: numbers, custom: "own:by_chance", emits: "number bigint, third bigint", on_error: retry(9)}}
          total: {{from: own, count: }}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
          total: {{from: total, file: out/total.jsonl}}
        """)
    assert project.run(topology).ended
    assert received(project) == list(range(400))
    assert project.json_lines("out/total.jsonl")[-1] == {"count": 400}


def test_code_that_fails_for_another_tuple_each_time_ends_the_run(project: Any) -> None:
    project.write("own.py", """
        from pathlib import Path

        def moody(tup):
            run = len(list(Path().glob("run-*")))
            if tup.number == 1:
                Path(f"run-{run}").touch()
            if tup.number == 10 + run:
                raise ValueError("not today")
            return tup.number
        """)
    topology = project.topology(f"""
        topology: moody
        sources:
          numbers: {numbers(100)}
        operators:
          own: {{from: numbers, custom: "own:moody", emits: "number bigint", on_error: retry(3), parallelism: 1}}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
        """)
    with pytest.raises(DeliveryError, match="each time other ones failed") as caught:
        project.run(topology)
    assert "operator 'own': ValueError: not today" in str(caught.value)


def test_a_test_sees_the_dead_letters_and_leaves_the_real_ones_alone(project: Any) -> None:
    project.write("own.py", OWN)
    project.write("dead-letters/tested.jsonl", "kept\n")
    stream = Topology("tested").source("numbers", rows=[], schema="number bigint")
    own = stream.custom("own:poison", emits="number bigint, third bigint", on_error="dead-letter")
    result = run_on(own.sink("out", memory=True).with_folder(project.folder), numbers=[[6], [7]])
    assert result["out"] == [{"number": 6, "third": 0}]
    assert [(letter["tuple"], letter["error"]) for letter in result.dead_letters] == [
        ({"number": 7}, "ValueError: 7 is poison")]
    assert (project.folder / "dead-letters/tested.jsonl").read_text() == "kept\n"


def test_two_sources_keep_their_tuples_apart(project: Any) -> None:
    """The same positions fail in one source and not in the other: only its own tuples are put off."""
    project.write("own.py", OWN)
    topology = project.topology(f"""
        topology: two
        epoch: {{max_tuples: 50}}
        sources:
          left: {numbers(100)}
          right: {numbers(100)}
        operators:
          tried: {{from: right, custom: "own:fails_so_often", emits: "number bigint, third bigint", on_error: retry(3),
                   with: {{times: 1}}}}
          total: {{from: left, count: }}
        sinks:
          left: {{from: left, file: out/left.jsonl}}
          right: {{from: tried, file: out/right.jsonl}}
          total: {{from: total, file: out/total.jsonl}}
        """)
    outcome = project.run(topology)
    assert received(project, "left") == received(project, "right") == list(range(100))
    assert project.json_lines("out/total.jsonl") == [{"count": 50}, {"count": 100}]
    assert outcome.progress.retried == 10


def failing_so_often(times: int, on_error: str) -> str:
    """A topology of 200 numbers, of which every tenth fails so often."""
    return f"""
        topology: failing
        epoch: {{max_tuples: 50}}
        sources:
          numbers: {numbers(200)}
        operators:
          own: {{from: numbers, custom: "own:fails_so_often", with: {{times: {times}}}, on_error: {on_error},
                 emits: "number bigint, third bigint"}}
          total: {{from: own, count: }}
        sinks:
          out: {{from: own, file: out/out.jsonl}}
          total: {{from: total, file: out/total.jsonl}}
        """


def stopped_while_it_owes(project: Any, times: int) -> Topology:
    """The topology of a run that was stopped when some tuples had failed and were to be tried again."""
    project.write("own.py", OWN)
    topology: Topology = project.topology(failing_so_often(times, "retry(5)"))
    run = project.started(topology)
    outcome = run.wait(lambda snapshot: run.stop() if snapshot.epoch >= 2 else None)
    assert not outcome.ended
    assert len(received(project)) < 200
    return topology


def test_an_interrupted_run_goes_on_with_what_it_owes(project: Any) -> None:
    """A crash between the commit of the sinks and the replay loses nothing: what is postponed is in the log."""
    topology = stopped_while_it_owes(project, times=3)
    # The last committed epoch is done once more, as after a crash before Spark's commit log.
    commits = [path for path in (project.state / "checkpoint/commits").iterdir() if path.name.isdigit()]
    max(commits, key=lambda path: int(path.name)).unlink()
    assert project.run(topology).ended
    assert received(project) == list(range(200))
    assert project.json_lines("out/total.jsonl")[-1] == {"count": 200}
    assert json.loads((project.state / "committed").read_text())["ended"]


def test_what_is_owed_is_replayed_even_if_nothing_is_to_be_retried_any_more(project: Any) -> None:
    stopped_while_it_owes(project, times=1000)
    (project.folder / "calls").rename(project.folder / "old-calls")
    assert project.run(project.topology(failing_so_often(0, "fail"))).ended
    assert received(project) == list(range(200))


def test_dead_letters_are_replayed_once_the_code_is_corrected(project: Any) -> None:
    project.write("own.py", OWN)
    topology: Topology = project.topology(failing_so_often(1000, "dead-letter"))
    run = project.started(topology)
    outcome = run.wait(lambda snapshot: run.stop() if snapshot.epoch >= 2 else None)
    assert not outcome.ended
    graveyard, state = Graveyard(topology), StateFolder(project.state)
    letters = graveyard.letters()
    gone = sorted(letter.fields["tuple"]["number"] for letter in letters)
    assert gone == [number for number in range(50 * outcome.progress.epoch) if number % 10 == 7]
    kept, replayed = letters[0], letters[1:]
    assert graveyard.replay(replayed, state, state.coordinator) == len(replayed)
    assert graveyard.letters() == [kept]

    assert project.run(project.topology(failing_so_often(0, "dead-letter"))).ended
    assert received(project) == [number for number in range(200) if number != kept.fields["tuple"]["number"]]
    assert project.json_lines("out/total.jsonl")[-1] == {"count": 199}
    assert graveyard.letters() == [kept]
