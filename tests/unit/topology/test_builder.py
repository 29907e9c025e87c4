from __future__ import annotations

import inspect
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import TopologyError
from penstock.topology.builder import Stream, merge, source, stream
from penstock.topology.model import Delivery, Route, RouteKind, StreamRef, Topology


def followers_of(tup: Any) -> Any:
    return tup


class Splitter:
    def process(self, tup: Any) -> Any:
        return tup


def tweets(topology: Topology | None = None) -> Stream:
    return source(
        topology or Topology("t"), "tweets", file="tweets.csv", schema="id int, user string, url string"
    )


def test_the_example_in_python_equals_the_example_in_yaml(read: Any, url_reach: str) -> None:
    built = (
        source(Topology("url-reach"), "tweets", file="tweets.csv", schema="id int, user string, url string")
        .filter("url = 'www.tecnico.ulisboa.pt'", name="mentions")
        .custom(
            "reach:followers_of", emits="follower string", parallelism=2, route="shuffle", name="followers"
        )
        .uniq("follower", name="unique")
        .count(name="reach")
        .sink("out", file="out/reach.jsonl")
    )
    topology, _ = read(url_reach)
    assert built == topology


def test_every_operator_equals_its_yaml(read: Any) -> None:
    start = source(Topology("t"), "a", generator={"x": ("id", 1)}, rate=5)
    chosen = start.select("x, y", "z + 1 as z", w="upper(y)", name="s", route="fields(x)")
    words = chosen.explode("split(y, ',')", as_="word", name="e")
    counted = words.count("x", "word", emit="each", name="c")
    split = counted.dup(name="d").custom(
        "m:f", emits={"good": "x int", "bad": "x int"}, with_={"n": (1, 2)}, timeout=5, name="p"
    )
    built = split.port("good").union(split.port("bad"), name="u").sink("o", console=True, limit=3)
    topology, problems = read("""\
topology: t
sources:
  a: {rate: 5, generator: {x: [id, 1]}}
operators:
  s: {from: a, select: "x, y, z + 1 as z, upper(y) as w", route: hash(x)}
  e: {from: s, explode: "split(y, ',')", as: word}
  c: {from: e, count: [x, word], emit: each}
  d: {from: c, dup: }
  p: {from: d, custom: m:f, emits: {good: x int, bad: x int}, with: {n: [1, 2]}, timeout: 5}
  u: {from: [p.good, p.bad], union: }
sinks:
  o: {from: u, console: , limit: 3}
""")
    assert problems == []
    assert built == topology


def test_a_step_leaves_the_earlier_topology_as_it_was() -> None:
    before = tweets()
    after = before.filter("id > 1")
    assert before.topology.operators == ()
    assert [operator.name for operator in after.topology.operators] == ["filter"]


def test_operators_without_a_name_are_numbered_by_kind() -> None:
    built = tweets().filter("id > 1").filter("id > 2").dup().filter("id > 3")
    assert [operator.name for operator in built.topology.operators] == [
        "filter",
        "filter-2",
        "dup",
        "filter-3",
    ]
    assert built.ref == StreamRef("filter-3")


def test_every_node_remembers_the_line_that_wrote_it() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno
    built = (
        tweets()
        .filter("id > 1")  # each call of a chain stands for itself
        .sink("out", memory=True)
    )
    assert [(Path(node.where.file), node.where.line) for node in (*built.operators, *built.sinks)] == [
        (Path(__file__), line + 3),
        (Path(__file__), line + 4),
    ]


def test_code_given_as_an_object_is_named_and_sets_the_folder() -> None:
    built = (
        tweets().custom(followers_of, emits="f string").custom(Splitter.process, emits="f string").topology
    )
    module = __name__
    assert [operator.code for operator in built.operators] == [
        f"{module}:followers_of",
        f"{module}:Splitter.process",
    ]
    assert built.folder == Path(__file__).resolve().parents[module.count(".")]


RUN = """
from penstock.topology.builder import source
from penstock.topology.model import Topology

def keep(tup):
    return tup

topology = source(Topology("t"), "a", file="a.csv").custom(keep, emits="x int").topology
"""


def test_code_in_the_file_that_is_run_is_named_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "reach.py").write_text(RUN)
    for run_name in ("__main__", "<run_path>"):
        built = runpy.run_path(str(tmp_path / "reach.py"), run_name=run_name)["topology"]
        assert built.operators[0].code == "reach:keep"
        assert built.folder == tmp_path.resolve()


def test_code_in_a_file_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "url-reach.py").write_text(RUN)
    with pytest.raises(TopologyError, match=r"keep is in url-reach\.py, which cannot be imported"):
        runpy.run_path(str(tmp_path / "url-reach.py"))


def test_code_of_an_installed_module_leaves_the_folder_alone() -> None:
    built = tweets().custom(json.loads, emits="f string").topology
    assert built.operators[0].code == "json:loads"
    assert built.folder == Path()


def test_a_folder_that_is_set_is_kept(tmp_path: Path) -> None:
    built = tweets(Topology("t").with_folder(tmp_path)).custom(followers_of, emits="f string").topology
    assert built.folder == tmp_path


def test_branches_of_one_stream_come_together_in_a_union() -> None:
    start = tweets()
    joined = start.filter("id > 1", name="big").union(
        start.filter("id < 0", name="small"), route=Route(RouteKind.ALL)
    )
    assert [operator.name for operator in joined.topology.operators] == ["big", "small", "union"]
    assert joined.topology.operators[-1].inputs == (StreamRef("big"), StreamRef("small"))
    assert len(joined.topology.sources) == 1


def test_merging_keeps_the_settings_of_either(tmp_path: Path) -> None:
    first = tweets(Topology("t", delivery=Delivery.AT_LEAST_ONCE)).sink("a", memory=True)
    second = tweets(Topology("other", logging="full").with_folder(tmp_path)).sink("b", memory=True)
    merged = merge(first, second)
    assert (merged.name, merged.delivery, merged.logging, merged.folder) == (
        "t",
        Delivery.AT_LEAST_ONCE,
        "full",
        tmp_path,
    )
    assert [sink.name for sink in merged.sinks] == ["a", "b"]


def test_a_stream_is_found_by_name_and_port() -> None:
    built = tweets().custom("m:f", emits={"good": "x int", "bad": "x int"}, name="p").topology
    assert stream(built, "p.bad").ref == StreamRef("p", "bad")
    assert stream(built, "tweets").ref == StreamRef("tweets")


MISTAKES: dict[str, tuple[Any, str]] = {
    "name taken": (
        lambda: source(tweets().topology, "tweets", file="x"),
        "the name 'tweets' is taken already",
    ),
    "operator named as source": (lambda: tweets().dup(name="tweets"), "the name 'tweets' is taken already"),
    "sink name taken": (
        lambda: stream(tweets().sink("o", file="x"), "tweets").sink("o", file="y"),
        "the name 'o' is taken already",
    ),
    "bad name": (lambda: tweets().dup(name="a b"), "dup 'a b': 'a b' cannot be a name"),
    "bad schema": (
        lambda: source(Topology("t"), "a", file="x", schema="id in"),
        "source 'a': unknown type 'in'",
    ),
    "bad choice": (lambda: tweets().count(emit="all"), "count: 'all' is not one of changes, each"),
    "bad on_malformed": (
        lambda: source(Topology("t"), "a", file="x", on_malformed="skip"),
        "is not one of fail",
    ),
    "no kind": (lambda: tweets().sink("o"), "sink 'o': it has no kind"),
    "no keys": (lambda: tweets().uniq(), "uniq: no value is given"),
    "bad route": (lambda: tweets().dup(route="hsah(x)"), "did you mean 'hash'?"),
    "bad parallelism": (lambda: tweets().dup(parallelism=0), "at least 1"),
    "no columns": (lambda: tweets().select(), "an empty expression"),
    "unknown stream": (
        lambda: stream(tweets().topology, "twets"),
        "no stream 'twets' did you mean 'tweets'?",
    ),
    "unknown port": (
        lambda: tweets().custom("m:f", emits={"good": "x int"}, name="p").port("god"),
        "no stream 'p.god' did you mean 'p.good'?",
    ),
    "lambda": (lambda: tweets().custom(lambda tup: tup), "define it at the top level of a module"),
    "differing nodes": (
        lambda: tweets().filter("id > 1").union(tweets().filter("id > 2")),
        "'filter' means two things",
    ),
    "differing roles": (
        lambda: merge(tweets().dup(name="x").topology, source(Topology("t"), "x", file="f").topology),
        "'x' is a source here and an operator there",
    ),
    "differing settings": (
        lambda: merge(Topology("t", dead_letters="a"), Topology("t", dead_letters="b")),
        "'dead_letters' is a here and b there",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_with_the_users_line(mistake: str) -> None:
    build, message = MISTAKES[mistake]
    with pytest.raises(TopologyError) as caught:
        build()
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{__file__}:")
    assert len(caught.value.problems) == 1
