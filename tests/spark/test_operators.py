"""What each operator gives, over one epoch and over several."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Topology
from penstock.testing import Result, run_on
from penstock.topology.builder import Stream
from penstock.topology.model import EpochSettings

ONE_EPOCH = EpochSettings()
SMALL_EPOCHS = EpochSettings(max_tuples=2)
VISITS = [["ann", 1], ["bob", 2], ["ann", 3], ["cy", 4], ["bob", 5], ["ann", 6], ["ann", 7]]


def visits(epoch: EpochSettings = ONE_EPOCH) -> Stream:
    topology = Topology("operators", epoch=epoch)
    return topology.source("visits", rows=[], schema="user string, page int")


def received(stream: Stream, **sources: Any) -> list[dict[str, Any]]:
    return run_on(stream.sink("out", memory=True), **sources)["out"]


def ordered(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows)


TYPES = ("i int, l bigint, d double, b boolean, s string, t timestamp, day date, money decimal(10,2), "
         "tags array<string>, by map<string,int>, at struct<x:int,y:int>")
EVERY_TYPE = {"i": -1, "l": 2**40, "d": 0.25, "b": True, "s": "ä", "t": "2026-03-01T08:00:00Z", "day": "2026-03-01",
              "money": "12.50", "tags": ["a", "b"], "by": {"k": 1}, "at": {"x": 1, "y": 2}}


@pytest.fixture(scope="module")
def stateless() -> Result:
    """One run of every operator that remembers nothing."""
    topology = Topology("operators")
    for name, schema in (("visits", "user string, page int"), ("more", "page int, user string"),
                         ("lines", "number int, words array<string>"), ("all", TYPES)):
        topology = topology.source(name, rows=[], schema=schema).topology
    topology = topology.stream("visits").filter("page > 1 and user <> 'dee'").sink("filtered", memory=True)
    selected = topology.stream("visits").select("page * 2 as twice", "upper(user) as user", "user = 'ann' as is_ann")
    topology = selected.sink("selected", memory=True)
    topology = topology.stream("lines").explode("words", "word", name="beside").sink("exploded", memory=True)
    topology = topology.stream("lines").explode("words", "words", name="instead").sink("replaced", memory=True)
    topology = topology.stream("all").dup().sink("doubled", memory=True)
    turned = topology.stream("more").select("page", "user", name="turned")
    topology = turned.topology.stream("visits").union(turned).sink("united", memory=True)
    return run_on(
        topology, visits=[["ann", 1], ["bob", None], ["cy", 3], [None, 4]], more=[[2, "dee"]], all=[EVERY_TYPE],
        lines=[[1, ["a", "b"]], [2, []], [3, None], [4, ["c"]]])


def test_filter_keeps_the_tuples_for_which_the_condition_is_true(stateless: Result) -> None:
    assert stateless["filtered"] == [{"user": "cy", "page": 3}]


def test_select_gives_the_computed_columns_in_the_order_written(stateless: Result) -> None:
    out = stateless["selected"]
    assert {"twice": 2, "user": "ANN", "is_ann": True} in out
    assert {"twice": 6, "user": "CY", "is_ann": False} in out
    assert {tuple(row) for row in out} == {("twice", "user", "is_ann")}


def test_explode_gives_a_tuple_for_every_element_and_none_for_an_empty_array(stateless: Result) -> None:
    assert sorted((row["number"], row["word"]) for row in stateless["exploded"]) == [(1, "a"), (1, "b"), (4, "c")]


def test_explode_may_replace_the_column_that_it_explodes(stateless: Result) -> None:
    assert sorted((row["number"], row["words"]) for row in stateless["replaced"]) == [(1, "a"), (1, "b"), (4, "c")]
    assert {tuple(row) for row in stateless["replaced"]} == {("number", "words")}


def test_union_merges_streams_by_the_names_of_their_columns(stateless: Result) -> None:
    assert sorted((row["user"] or "", row["page"] or 0) for row in stateless["united"]) == [
        ("", 4), ("ann", 1), ("bob", 0), ("cy", 3), ("dee", 2)]


def test_every_type_survives_the_way_from_source_to_sink(stateless: Result) -> None:
    [out] = stateless["doubled"]
    for name in ("i", "l", "d", "b", "s", "day", "tags", "by", "at"):
        assert out[name] == EVERY_TYPE[name]
    assert out["t"].startswith("2026-03-01T08:00:00")
    assert str(out["money"]) == "12.50"


def test_dup_passes_every_tuple_on_unchanged() -> None:
    out = received(visits().dup(), visits=VISITS)
    assert [list(row.values()) for row in out] == VISITS


def test_uniq_keeps_the_first_tuple_of_every_key_in_source_order() -> None:
    out = received(visits().uniq("user"), visits=VISITS)
    assert ordered(out) == [("ann", 1), ("bob", 2), ("cy", 4)]


def test_uniq_keeps_the_first_of_many_tuples_after_a_shuffle() -> None:
    rows = [[f"user {number % 5}", number] for number in range(2000)]
    out = received(visits().dup(route="shuffle", parallelism=4).uniq("user"), visits=rows)
    assert ordered(out) == [(f"user {number}", number) for number in range(5)]


def test_uniq_remembers_keys_from_earlier_epochs() -> None:
    out = received(visits(SMALL_EPOCHS).uniq("user"), visits=VISITS)
    assert [tuple(row.values()) for row in out] == [("ann", 1), ("bob", 2), ("cy", 4)]


def test_uniq_takes_several_columns_as_the_key() -> None:
    out = received(visits().uniq("user", "page"), visits=[["ann", 1], ["ann", 2], ["ann", 1]])
    assert ordered(out) == [("ann", 1), ("ann", 2)]


def test_uniq_takes_null_as_a_key_of_its_own() -> None:
    out = received(visits().uniq("user"), visits=[[None, 1], ["ann", 2], [None, 3]])
    assert [(row["user"], row["page"]) for row in sorted(out, key=lambda row: row["page"])] == [(None, 1), ("ann", 2)]


def test_count_gives_the_new_total_once_an_epoch() -> None:
    out = received(visits(SMALL_EPOCHS).count(), visits=VISITS)
    assert out == [{"count": 2}, {"count": 4}, {"count": 6}, {"count": 7}]


def test_count_per_key_gives_only_the_counts_that_changed() -> None:
    result = run_on(visits(SMALL_EPOCHS).count("user").sink("out", memory=True), visits=VISITS)
    expected = [("ann", 1), ("bob", 1), ("ann", 2), ("cy", 1), ("bob", 2), ("ann", 3), ("ann", 4)]
    assert result.same("out", [{"user": user, "count": count} for user, count in expected])


def test_count_each_gives_every_number_counted_through_across_epochs() -> None:
    out = received(visits(SMALL_EPOCHS).count(emit="each"), visits=VISITS)
    assert out == [{"count": number} for number in range(1, 8)]


def test_count_each_per_key_numbers_every_key_for_itself() -> None:
    rows = [*VISITS, ["ann", 8]]
    out = received(visits(EpochSettings(max_tuples=5)).count("user", emit="each"), visits=rows)
    numbers = {user: [row["count"] for row in out if row["user"] == user] for user in ("ann", "bob", "cy")}
    assert numbers == {"ann": [1, 2, 3, 4, 5], "bob": [1, 2], "cy": [1]}


@pytest.mark.parametrize("emit", ["changes", "each"])
def test_a_count_is_silent_in_epochs_that_bring_it_nothing(emit: str) -> None:
    rows = [["ann", 9], ["ann", 1], ["bob", 2], ["bob", 3], ["cy", 9]]
    stream = visits(EpochSettings(max_tuples=1)).filter("page = 9").count(emit=emit)
    assert received(stream, visits=rows) == [{"count": 1}, {"count": 2}]


def test_an_operator_reads_several_streams_as_one() -> None:
    stream = visits()
    young, old = stream.filter("page < 3", name="young"), stream.filter("page > 5", name="old")
    out = received(young.union(old).count(), visits=VISITS)
    assert out == [{"count": 4}]


def test_a_stream_united_with_itself_counts_twice() -> None:
    stream = visits()
    out = received(stream.union(stream.dup()).count("user"), visits=[["ann", 1], ["bob", 2]])
    assert ordered(out) == [("ann", 2), ("bob", 2)]


def test_operators_follow_one_another_over_epochs() -> None:
    chain = visits(SMALL_EPOCHS).filter("page <> 3").select("user").uniq("user").count()
    assert received(chain, visits=VISITS)[-1] == {"count": 3}


def test_columns_with_odd_names_pass_through_every_operator() -> None:
    source = Topology("operators").source("odd", rows=[], schema="`a b` string, `select` int, `größe` double")
    stream = source.filter("`select` > 0").uniq("a b").select("`a b`", "`größe`")
    assert received(stream, odd=[["x", 1, 0.5], ["x", 2, 1.5], ["y", 0, 1.0]]) == [{"a b": "x", "größe": 0.5}]
