"""Windows give what a batch query over the whole input gives, whatever the order, the epochs and the restarts."""

from __future__ import annotations

import random
import textwrap
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run, RunSettings
from penstock.testing import run_on
from penstock.topology.builder import Stream
from penstock.topology.model import Topology

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
INPUTS = 200
LATENESS_SECONDS = 30
SPANS = {
    "tumbling": ("tumbling(1 minute)", "window(at, '1 minute')"),
    "sliding": ("sliding(1 minute, 20 seconds)", "window(at, '1 minute', '20 seconds')"),
    "session": ("session(10 seconds)", "session_window(at, '10 seconds')"),
}
COMPUTED = {
    "count() as n": "count(*)",
    "sum(amount) as total": "sum(amount)",
    "min(amount) as least": "min(amount)",
    "first(amount) as began": "min_by(amount, place)",
    "last(amount) as ended": "max_by(amount, place)",
    "collect(amount) as all": "transform(array_sort(collect_list(struct(place, amount))), each -> each.amount)",
    "top(2, amount) as best":
        "slice(transform(array_sort(collect_list(struct(-amount, place, struct(input, at, amount, place)))), "
        "each -> each.col3), 1, 2)",
}


def at(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


def disordered_input() -> list[dict[str, Any]]:
    """The tuples of 200 random inputs in one stream, none further behind the latest time than the lateness."""
    chance = random.Random(4)
    arrivals = []
    for number in range(INPUTS):
        for _ in range(chance.randint(1, 25)):
            time = round(chance.uniform(0, 600), chance.choice((0, 3)))
            row = {"input": number, "at": at(time), "amount": chance.randint(-5, 5)}
            arrivals.append((time + chance.uniform(0, LATENESS_SECONDS), row))
    arrivals.sort(key=lambda pair: pair[0])
    return [{**row, "place": place} for place, (_, row) in enumerate(arrivals)]


def batch_result(spark: SparkSession, rows: list[dict[str, Any]], window: str) -> Counter[str]:
    frame = spark.createDataFrame(rows, "input int, at string, amount int, place int")
    frame.selectExpr("input", "cast(at as timestamp) as at", "amount", "place").createOrReplaceTempView("arrived")
    computed = ", ".join(f"{sql} as `{text.split()[-1]}`" for text, sql in COMPUTED.items())
    grouped = f"SELECT input, {window} as w, {computed} FROM arrived GROUP BY input, {window}"
    bounds = "w.start as window_start, w.end as window_end"
    result = spark.sql(f"SELECT input, {bounds}, * EXCEPT (input, w) FROM ({grouped})")
    return Counter(row[0] for row in result.selectExpr("to_json(struct(*))").collect())


def batch_result_by_number(spark: SparkSession, length: int) -> Counter[str]:
    """Over the view that `batch_result` leaves."""
    computed = ", ".join(f"{sql} as `{text.split()[-1]}`" for text, sql in COMPUTED.items())
    number = f"(row_number() OVER (PARTITION BY input ORDER BY place) - 1) div {length}"
    result = spark.sql(
        f"SELECT input, w * {length} + 1 as window_first, w * {length} + {length} as window_last, {computed} "
        f"FROM (SELECT *, {number} as w FROM arrived) GROUP BY input, w HAVING count(*) = {length}")
    return Counter(row[0] for row in result.selectExpr("to_json(struct(*))").collect())


def test_windows_over_disordered_input_equal_a_batch_query_over_the_whole_input(project: Any) -> None:
    """The 200 inputs are 200 keys of one run, so they share its epochs and its watermark, which spares 199 runs."""
    rows = disordered_input()
    stream = Topology("property").source("arrived", rows=rows, schema="input int, at timestamp, amount int, place int")
    topology = stream.topology
    for name, (span, _) in SPANS.items():
        window = topology.stream("arrived").window(
            span, on="at", lateness=LATENESS_SECONDS, by="input", compute=list(COMPUTED), name=name)
        topology = window.sink(name, file=f"{name}.jsonl")
    counting = topology.stream("arrived").window("tumbling(4 tuples)", by="input", compute=list(COMPUTED), name="fours")
    topology = counting.sink("fours", file="fours.jsonl")
    cut = Topology("property", epoch=type(topology.epoch)(max_tuples=len(rows) // 5))
    project.run(cut.merge(topology).with_folder(project.folder))
    assert len(project.epochs()) >= 6
    for name, (_, window) in SPANS.items():
        received = Counter((project.folder / f"{name}.jsonl").read_text().splitlines())
        assert received == batch_result(project.spark, rows, window)
    received = Counter((project.folder / "fours.jsonl").read_text().splitlines())
    assert received == batch_result_by_number(project.spark, 4)


CLICKS = """
    topology: clicks
    epoch: {{max_tuples: 1}}
    sources:
      clicks: {{rows: {rows}, schema: "user string, at timestamp"}}
    operators:
      per_minute: {{from: clicks, window: tumbling(1 minute), on: at, by: user, compute: count() as n{more}}}
    sinks:
      out: {{from: per_minute, file: out.jsonl}}
    """


def clicks(project: Any, times: list[str | None], more: str = "") -> Topology:
    rows = ", ".join(f'[ann, {"null" if time is None else f"{time!r}"}]' for time in times)
    topology: Topology = project.topology(CLICKS.format(rows=f"[{rows}]", more=more))
    return topology


def minutes(project: Any) -> list[tuple[str, int]]:
    """Each row as the minute in which its window begins, and its count; in the order they were written."""
    return [(row["window_start"][11:16], row["n"]) for row in project.json_lines("out.jsonl")]


def test_a_tuple_that_comes_after_its_window_is_closed_is_dropped_and_counted(project: Any) -> None:
    topology = clicks(project, [at(0), at(300), at(30), at(45), at(310)])
    run = Run(topology, RunSettings(state=project.state))
    run.start(project.spark)
    outcome = run.wait()
    # The third is in time: what the second closed goes when the third epoch is through.
    assert minutes(project) == [("12:00", 2), ("12:05", 2)]
    assert outcome.progress.late == 1


LATE = """
    topology: late
    epoch: {{max_tuples: 2}}
    sources:
      clicks: {{rows: {rows}, schema: "user string, at timestamp"}}
    operators:
      tumbling: {{from: clicks, window: tumbling(20s), on: at, by: user, compute: count() as n, late: {late}}}
      sliding:  {{from: clicks, window: "sliding(40s, 20s)", on: at, by: user, compute: count() as n, late: {late}}}
      session:  {{from: clicks, window: session(7s), on: at, by: user, compute: count() as n, late: {late}}}
    sinks:
      tumbling: {{from: tumbling, file: tumbling.jsonl}}
      sliding:  {{from: sliding, file: sliding.jsonl}}
      session:  {{from: session, file: session.jsonl}}
    """
ENDS = {
    "tumbling": lambda time: time // 20 * 20 + 20, "sliding": lambda time: time // 20 * 20 + 40,
    "session": lambda time: time + 7,
}
ARRIVALS = [0, 100, 101, 102, 42, 42, 80, 93, 99, 60, None, 79, 103, 104]
"""Seconds, two an epoch. What is late goes by the latest time of the epochs before the last."""


def late_by_rule(end_of_last_window: Any) -> list[int | None]:
    found = []
    for place, time in enumerate(ARRIVALS):
        seen = [each for each in ARRIVALS[: place // 2 * 2 - 2] if each is not None] if place >= 4 else []
        if time is None or (seen and end_of_last_window(time) <= max(seen)):
            found.append(time)
    return sorted(found, key=str)


def test_late_tuples_are_counted_one_by_one_and_buried_when_asked(project: Any) -> None:
    rows = ", ".join(f"[ann, {'null' if time is None else repr(at(time))}]" for time in ARRIVALS)
    given = {}
    for kind in ("drop", "dead-letter"):
        topology = project.topology(LATE.format(rows=f"[{rows}]", late=kind))
        run = Run(topology, RunSettings(state=project.state, fresh=True))
        run.start(project.spark)
        late = run.wait().progress.late
        given[kind] = late, [sorted(project.json_lines(f"{name}.jsonl"), key=str) for name in ENDS]
    assert given["drop"] == given["dead-letter"]
    expected = {name: late_by_rule(end) for name, end in ENDS.items()}
    assert given["drop"][0] == sum(map(len, expected.values()))
    letters = project.json_lines("dead-letters/late.jsonl")
    assert all(letter["error"].startswith("too late: ") for letter in letters)
    buried: dict[str, list[Any]] = {name: [] for name in ENDS}
    for letter in letters:
        time = letter["tuple"]["at"]
        buried[letter["operator"]].append(time and (datetime.fromisoformat(time) - NOON).seconds)
    assert {name: sorted(times, key=str) for name, times in buried.items()} == expected
    counted = {name: sum(row["n"] for row in rows) for name, rows in zip(ENDS, given["drop"][1], strict=True)}
    assert counted["tumbling"] == len(ARRIVALS) - len(expected["tumbling"])
    assert counted["session"] == len(ARRIVALS) - len(expected["session"])


COUNTED = """
    topology: counted
    epoch: {{max_tuples: {epoch}}}
    sources:
      words: {{rows: {rows}, schema: "word string, place int"}}
    operators:
      tens:
        from: words
        window: tumbling(10 tuples)
        by: word
        compute: "count() as n, sum(place) as total, collect(place) as places, top(2, place) as best,
          percentile(place, 0.5) as middle, first(place) as began"
      last: {{from: words, window: "sliding(7 tuples, 3 tuples)", compute: collect(place) as places}}
    sinks:
      tens: {{from: tens, file: tens.jsonl}}
      last: {{from: last, file: last.jsonl}}
    """


OWN_FUNCTION = """
    def visits(window, tuples, least, context):
        if len(tuples) >= least:
            yield window.key, window.start, [tup.page for tup in tuples], context.epoch > 0


    def pairs(window, tuples):
        return window.first, window.last, window.key is None, "".join(tup["page"] for tup in tuples)
    """


def test_a_function_is_called_once_with_each_window_and_its_tuples(project: Any) -> None:
    project.write("own.py", textwrap.dedent(OWN_FUNCTION))
    rows = [["ann", at(0), "a"], ["bob", at(1), "b"], ["ann", at(2), "c"], ["ann", at(61), "d"], ["ann", at(3), "e"]]
    clicks = Topology("own", epoch=type(Topology("t").epoch)(max_tuples=2)).source(
        "clicks", rows=rows, schema="user string, at timestamp, page string")
    visits = clicks.window("tumbling(1 minute)", on="at", lateness=60, by="user", custom="own:visits",
                           emits="user string, began timestamp, pages array<string>, running boolean",
                           with_={"least": 2}, name="visits").sink("visits", file="visits.jsonl")
    both = visits.stream("clicks").window(
        "tumbling(2 tuples)", custom="own:pairs", emits="first int, last int, keyless boolean, pages string",
        name="pairs").sink("pairs", file="pairs.jsonl")
    project.run(both.with_folder(project.folder))
    assert project.json_lines("visits.jsonl") == [
        {"user": "ann", "began": "2026-03-01T12:00:00.000Z", "pages": ["a", "c", "e"], "running": True}]
    assert [tuple(row.values()) for row in project.json_lines("pairs.jsonl")] == [
        (1, 2, True, "ab"), (3, 4, True, "cd")]


def test_windows_of_so_many_tuples_are_exact_over_epochs_and_restarts(project: Any) -> None:
    chance = random.Random(7)
    words = [chance.choice(["a", "b", None]) for _ in range(100)]
    rows = ", ".join(f"[{word or 'null'}, {place}]" for place, word in enumerate(words))
    topology = project.topology(COUNTED.format(rows=f"[{rows}]", epoch=17))
    run = project.started(topology)
    run.wait(lambda snapshot: run.stop() if snapshot.epoch >= 2 else None)
    assert run.progress.snapshot().epoch < 6
    project.run(topology)
    tens = {(row["word"], row["window_first"]): row for row in project.json_lines("tens.jsonl")}
    expected = {}
    for word in ("a", "b", None):
        places = [place for place, each in enumerate(words) if each == word]
        for first in range(0, len(places) - 9, 10):
            expected[word, first + 1] = places[first : first + 10]
    assert {key: row["places"] for key, row in tens.items()} == expected
    for key, places in expected.items():
        row = tens[key]
        assert (row["n"], row["total"], row["began"], row["window_last"]) == (10, sum(places), places[0], key[1] + 9)
        assert [best["place"] for best in row["best"]] == sorted(places)[:-3:-1]
        assert row["middle"] == sum(sorted(places)[4:6]) / 2
    last = {row["window_first"]: row["places"] for row in project.json_lines("last.jsonl")}
    assert last == {first + 1: list(range(first, first + 7)) for first in range(0, 94, 3)}


def test_lateness_keeps_windows_open(project: Any) -> None:
    project.run(clicks(project, [at(0), at(300), at(30), at(45), at(310)], ", lateness: 10 minutes"))
    assert sorted(minutes(project)) == [("12:00", 3), ("12:05", 2)]


def test_a_time_that_is_missing_or_in_the_future_harms_no_other_tuple(project: Any) -> None:
    topology = clicks(project, [at(0), None, "2900-01-01", at(30), at(45), None])
    run = Run(topology, RunSettings(state=project.state))
    run.start(project.spark)
    outcome = run.wait()
    assert sorted(minutes(project)) == [("00:00", 1), ("12:00", 3)]
    assert outcome.progress.late == 2


def test_early_results_tell_of_every_window_that_changed(project: Any) -> None:
    project.run(clicks(project, [at(0), at(1), at(300), at(2), at(3), at(4)], ", emit: changes"))
    assert minutes(project) == [("12:00", 1), ("12:00", 2), ("12:05", 1), ("12:00", 3)]


def test_early_results_appear_in_every_third_epoch_and_at_the_end(project: Any) -> None:
    topology = clicks(project, [at(0), at(1), at(300), at(2), at(3), at(301), at(302)], ", emit: every 3 epochs")
    project.run(topology)
    # One tuple an epoch; the one at the third second is late.
    found = minutes(project)
    assert [sorted(found[:2]), sorted(found[2:4]), found[4:]] == [
        [("12:00", 2), ("12:05", 1)], [("12:00", 3), ("12:05", 2)], [("12:05", 3)]]


def test_with_late_update_no_window_is_ever_closed(project: Any) -> None:
    project.run(clicks(project, [at(0), at(300), at(301), at(1), at(2)], ", emit: changes, late: update"))
    assert minutes(project) == [("12:00", 1), ("12:05", 1), ("12:05", 2), ("12:00", 2), ("12:00", 3)]


def test_windows_close_without_waiting_for_more_input(project: Any) -> None:
    project.write("clicks.csv", f"ann,{at(0)}\nann,{at(70)}\n")
    topology = project.topology("""
        topology: followed
        sources:
          clicks: {file: clicks.csv, schema: "user string, at timestamp", header: false, follow: true}
        operators:
          per_minute: {from: clicks, window: tumbling(1 minute), on: at, by: user, compute: count() as n}
        sinks:
          out: {from: per_minute, file: out.jsonl}
        """)
    run = project.started(topology)

    def look(snapshot: Snapshot) -> None:
        if (project.folder / "out.jsonl").exists() and minutes(project):
            run.stop()

    run.wait(look)
    assert minutes(project) == [("12:00", 1)]
    assert [sum(record.tuples.values()) for record in project.epochs()] == [2, 0]


def test_open_windows_survive_a_restart(project: Any) -> None:
    topology = clicks(project, [at(0), at(61), at(2), at(62), at(300), at(63), at(301)], ", lateness: 2 minutes")
    run = project.started(topology)
    run.wait(lambda snapshot: run.stop() if snapshot.epoch >= 3 else None)
    assert run.progress.snapshot().epoch < 8
    project.run(topology)
    assert sorted(minutes(project)) == [("12:00", 2), ("12:01", 3), ("12:05", 2)]


def test_the_time_of_epochs_is_the_time_they_were_cut(project: Any) -> None:
    project.write("own.py", "def same(tup):\n    return tup\n")
    topology = project.topology("""
        topology: of-epochs
        epoch: {max_tuples: 2}
        sources:
          words: {rows: [[a], [b], [c], [d], [e]], schema: "word string"}
        operators:
          same: {from: words, custom: "own:same", emits: "word string"}
          upper: {from: same, select: upper(word) as word}
          seconds: {from: upper, window: tumbling(1ms), compute: collect(word) as words}
        sinks:
          out: {from: seconds, file: out.jsonl}
        """)
    project.run(topology)
    rows = {row["window_start"]: row["words"] for row in project.json_lines("out.jsonl")}
    cut: dict[str, list[str]] = {}
    for record, words in zip(project.epochs(), (["A", "B"], ["C", "D"], ["E"]), strict=False):
        time = datetime.fromtimestamp(record.time_ms / 1000, UTC)
        cut.setdefault(f"{time:%Y-%m-%dT%H:%M:%S}.{record.time_ms % 1000:03d}Z", []).extend(words)
    assert rows == cut


def test_a_window_over_windows_closes_with_them(project: Any) -> None:
    topology = project.topology(CLICKS.format(
        rows=", ".join(f"[{user}, '{at(time)}']" for user, time in (
            ("ann", 0), ("bob", 1), ("ann", 61), ("ann", 20), ("bob", 130), ("ann", 3700))).join("[]"),
        more="}\n      busiest: {from: per_minute, window: tumbling(1 hour), on: window_end, "
             'compute: ["sum(n) as n", "top(1, n) as best"]',
    ).replace("out: {from: per_minute", "out: {from: busiest"))
    project.run(topology)
    rows = [(row["window_start"][11:16], row["n"], [(one["user"], one["n"]) for one in row["best"]])
            for row in project.json_lines("out.jsonl")]
    assert rows == [("12:00", 5, [("ann", 2)]), ("13:00", 1, [("ann", 1)])]


def test_a_filter_behind_a_window_does_not_keep_it_from_closing(project: Any) -> None:
    topology = clicks(project, [at(0), at(70), at(71)])
    kept = topology.stream("per_minute").filter("user = 'ann' and window_start is not null")
    filtered = kept.sink("busy", file="b.jsonl")
    project.run(replace(filtered, sinks=filtered.sinks[1:]))
    assert [row["n"] for row in project.json_lines("b.jsonl")] == [1, 2]


def test_every_reader_of_a_window_gets_it(project: Any) -> None:
    topology = clicks(project, [at(0), at(70), at(71)])
    more = topology.stream("per_minute").filter("n > 1").sink("busy", file="busy.jsonl")
    project.run(more)
    assert minutes(project) == [("12:00", 1), ("12:01", 2)]
    assert [row["n"] for row in project.json_lines("busy.jsonl")] == [2]


def test_sources_that_end_at_different_times_close_all_windows_at_the_end(spark: SparkSession) -> None:
    schema = "user string, at timestamp"
    first = Topology("two", epoch=type(Topology("t").epoch)(max_tuples=1)).source("few", rows=[], schema=schema).window(
        "tumbling(1 minute)", on="at", compute="count() as n", name="few_counted").sink("few", memory=True)
    both = first.source("many", rows=[], schema=schema).window(
        "tumbling(1 minute)", on="at", by="user", compute="count() as n", name="many_counted").sink("many", memory=True)
    result = run_on(both, spark=spark, few=[["ann", at(0)]], many=[["bob", at(each * 60)] for each in range(4)])
    assert [row["n"] for row in result["few"]] == [1]
    assert [row["n"] for row in result["many"]] == [1, 1, 1, 1]


def clicked(**options: Any) -> Stream:
    return Topology("nulls").source("clicks", rows=[], schema="user string, at timestamp").window(
        "tumbling(1 minute)", on="at", **options)


@pytest.mark.parametrize(("keys", "expected"), [
    (("user",), [(None, 2), ("ann", 1)]), ((), [("-", 3)])])
def test_tuples_without_a_key_have_a_window_of_their_own(
    keys: tuple[str, ...], expected: list[Any], spark: SparkSession
) -> None:
    topology = clicked(by=list(keys), compute="count() as n").sink("out", memory=True)
    result = run_on(topology, spark=spark, clicks=[["ann", at(0)], [None, at(1)], [None, at(2)]])
    rows = [(row.get("user", "-"), row["n"]) for row in result["out"]]
    assert sorted(rows, key=str) == sorted(expected, key=str)
