"""Built-in operators become native Spark expressions: only custom code is a Python node in the plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Topology
from penstock.spark.arrow_stage import BYTES_IN_BATCH
from penstock.topology.builder import Stream
from penstock.topology.model import OPERATOR_KINDS, Custom

PYTHON_NODE = re.compile(r"^[\s:+\-*()\d]*(\w*(?:Python|InArrow|InPandas|Pandas)\w*)", re.MULTILINE)
STAGING = ["MapInArrow"]
"""The one stage of every topology that hands rows to the sinks."""

BUILT_IN: dict[str, Callable[[Stream], Stream]] = {
    "filter": lambda stream: stream.filter("page > 1 and user like 'a%'"),
    "select": lambda stream: stream.select("upper(user) as user", "page + 1 as page"),
    "explode": lambda stream: stream.explode("split(user, ' ')", "word"),
    "dup": lambda stream: stream.dup(route="shuffle"),
    "uniq": lambda stream: stream.uniq("user"),
    "count": lambda stream: stream.count("user").union(stream.count("user", emit="each", name="each")),
    "window": lambda stream: stream.window("sliding(1 minute, 10s)", by="user", compute=[
        "count() as n", "sum(page) as total", "avg(page) as mean", "min(page) as least", "max(page) as most",
        "stddev(page) as spread", "percentile(page, 0.9) as p90", "approx_distinct(page) as pages",
        "first(page) as entry", "last(page) as exit", "collect(page) as all", "top(3, page) as best"]),
    "union": lambda stream: stream.union(stream.filter("page > 1")),
    "join": lambda stream: stream.join(
        stream.filter("page > 1"), "visits.user = far.user", within="1 minute", ports=("visits", "far")),
    "enrich": lambda stream: stream.enrich("pages.csv", by="page", schema="page int, title string"),
}


def python_nodes(plan: str) -> list[str]:
    return PYTHON_NODE.findall(plan)


def visits() -> Stream:
    return Topology("native").source("visits", rows=[], schema="user string, page int")


def test_every_built_in_operator_is_looked_at() -> None:
    assert set(BUILT_IN) == {kind.keyword for kind in OPERATOR_KINDS if kind is not Custom}


@pytest.mark.parametrize("keyword", BUILT_IN)
def test_a_built_in_operator_never_enters_python(keyword: str, project: Any) -> None:
    project.write("pages.csv", "1,home\n")
    plan = project.plan(BUILT_IN[keyword](visits()).sink("out", memory=True).with_folder(project.folder))
    assert python_nodes(plan) == STAGING


def test_batches_are_limited_by_bytes_unless_all_rows_are_short(project: Any) -> None:
    project.write("own.py", "def same(tup):\n    return tup\n")
    project.plan(visits().select("page").custom("own:same", emits="page int").sink("out", file="out.csv")
                 .with_folder(project.folder))  # fmt: skip
    assert project.spark.conf.get(BYTES_IN_BATCH) == str(2**31 - 1)
    project.plan(visits().custom("own:same", emits="user string, page int").select("page").sink("out", file="out.csv")
                 .with_folder(project.folder))  # fmt: skip
    assert project.spark.conf.get(BYTES_IN_BATCH) == str(64 << 20)
    project.plan(visits().sink("out", file="out.csv").with_folder(project.folder))
    assert project.spark.conf.get(BYTES_IN_BATCH) == str(64 << 20)


@pytest.mark.parametrize("options", [{"file": "out.jsonl"}, {"file": "out.csv"}, {"file": "out.parquet"},
                                     {"console": True}])
def test_every_sink_is_fed_by_the_one_staging_stage(options: dict[str, Any], project: Any) -> None:
    topology = visits().sink("out", **options).stream("visits").filter("page > 1").sink("other", **{
        kind: f"other-{value}" if kind == "file" else value for kind, value in options.items()})
    assert python_nodes(project.plan(topology.with_folder(project.folder))) == STAGING


def test_a_custom_operator_is_exactly_one_python_node(project: Any) -> None:
    project.write("own.py", "def same(tup):\n    return tup\n")
    stream = visits().filter("page > 1").custom("own:same", emits="user string, page int").select("user")
    plan = project.plan(stream.sink("out", memory=True).with_folder(project.folder))
    assert python_nodes(plan) == [*STAGING, "MapInArrow"]


@pytest.mark.parametrize(("emits", "options", "nodes"), [
    ("user string, page int", {"file": "out.jsonl"}, 1),
    ("page int", {"file": "out.csv"}, 1),
    ("user string, page int", {"memory": True}, 1),
    # Spark has its own way to write these.
    ("user string, page int", {"file": "out.csv"}, 2),
    ("page double", {"file": "out.jsonl"}, 2),
])
def test_code_and_the_only_sink_behind_it_are_one_python_node(
    emits: str, options: dict[str, Any], nodes: int, project: Any
) -> None:
    project.write("own.py", "def same(tup):\n    return tup\n")
    topology = visits().custom("own:same", emits=emits).sink("out", **options).with_folder(project.folder)
    assert python_nodes(project.plan(topology)) == ["MapInArrow"] * nodes


TEXTS = r"""
    TEXTS = ["plain", "", None, 'say "hi"', "back\\slash", "two\nlines", "tab\tand \x01", "ümläut €", "\x7f/"]

    def words(tup):
        for place, text in enumerate(TEXTS):
            yield None if place == 3 else tup.id, text, None if place == 5 else place % 2 == 0
    """


def test_what_code_gives_to_a_sink_is_written_as_spark_writes_it(project: Any) -> None:
    project.write("own.py", TEXTS)
    given = Topology("texts").source("n", generator={"id": "sequence"}, count=3)
    words = given.custom("own:words", emits="id bigint, text string, even boolean")
    project.run(words.sink("out", file="direct.jsonl").with_folder(project.folder), fresh=True)
    project.run(words.select("*").filter("id is null or id >= 0").sink("out", file="spark.jsonl")
                .with_folder(project.folder), fresh=True)  # fmt: skip
    direct, through_spark = (sorted((project.folder / name).read_text().splitlines())
                             for name in ("direct.jsonl", "spark.jsonl"))  # fmt: skip
    assert len(direct) == 27
    assert [line.lower() for line in direct] == [line.lower() for line in through_spark]
