from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import TopologyError
from penstock.topology.model import (
    Case,
    Command,
    Count,
    Custom,
    Delivery,
    Dup,
    EpochSettings,
    Explode,
    Filter,
    FrozenOptions,
    Route,
    RouteKind,
    Select,
    Sink,
    Source,
    StreamRef,
    Topology,
    Union,
    Uniq,
)
from penstock.topology.schema import Field, Schema
from penstock.topology.yaml_writer import replace_expected, write_topology

names = st.text("abcXYZ019-_", min_size=1, max_size=6) | st.sampled_from(["null", "on", "1", "-", "1e5"])
columns = st.from_regex(r"[a-z_][a-z0-9]{0,5}", fullmatch=True).filter(
    lambda name: not name.startswith("__")
) | st.sampled_from(["two words", "a,b", "π", "true"])
keys = st.lists(columns, min_size=1, max_size=3, unique=True).map(tuple)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
stripped = texts.map(str.strip).filter(bool).filter(lambda text: "${env" not in text)
free_texts = texts.filter(lambda text: "${env" not in text)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | free_texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(free_texts, inner, max_size=3),
    max_leaves=6,
)
options = st.dictionaries(free_texts, values, max_size=3)
types = st.sampled_from(["int", "string", "array<string>", "decimal(10,2)", "map<string,int>"])
schemas = (
    st.lists(columns, min_size=1, max_size=3, unique=True)
    .flatmap(lambda named: st.tuples(*(st.builds(Field, st.just(name), types) for name in named)))
    .map(Schema)
)
routes = st.sampled_from([Route(kind) for kind in RouteKind if kind is not RouteKind.HASH]) | st.builds(
    Route, st.just(RouteKind.HASH), keys
)
streams = st.builds(StreamRef, names, st.just("") | names)
common = {"parallelism": st.none() | st.integers(1, 99), "route": st.none() | routes}
inputs = st.lists(streams, min_size=1, max_size=3).map(tuple)
emits = (
    st.just(())
    | schemas.map(lambda schema: (("", schema),))
    | st.dictionaries(names, schemas, min_size=1, max_size=2).map(lambda ports: tuple(ports.items()))
)
operators = st.one_of(
    st.builds(Filter, names, inputs, condition=stripped, **common),
    st.builds(Select, names, inputs, columns=st.lists(stripped, min_size=1, max_size=3).map(tuple), **common),
    st.builds(Explode, names, inputs, expression=stripped, alias=columns, **common),
    st.builds(Dup, names, inputs, **common),
    st.builds(Uniq, names, inputs, keys=keys, **common),
    st.builds(
        Count, names, inputs, keys=keys | st.just(()), emit=st.sampled_from(["changes", "each"]), **common
    ),
    st.builds(Union, names, inputs, **common),
    st.builds(
        Custom,
        names,
        inputs,
        code=st.just("m.n:A.b"),
        emits=emits,
        arguments=options.map(FrozenOptions),
        timeout=st.floats(0.1, 1e6),
        **common,
    ),
)
own_options = st.dictionaries(
    free_texts.filter(lambda key: key not in ("schema", "on_malformed", "from", "<<")), values, max_size=3
)
rows = st.dictionaries(names, st.lists(options, max_size=2).map(tuple), max_size=2)


def unique(nodes: Any) -> Any:
    return st.lists(nodes, max_size=3, unique_by=lambda node: node.name).map(tuple)


def with_code(given: dict[str, Any]) -> FrozenOptions:
    return FrozenOptions({**given, "custom": "m:C"})


sources = st.builds(
    Source,
    names,
    st.just("custom"),
    own_options.map(with_code),
    st.none() | schemas,
    st.sampled_from(["fail", "drop", "dead-letter"]),
)
sinks = (
    st.builds(Sink, names, streams, st.just("custom"), own_options.map(with_code))
    | st.builds(Sink, names, streams, st.just("file"), stripped.map(lambda path: FrozenOptions(file=path)))
    | st.builds(Sink, names, streams, st.just("console"), st.just(FrozenOptions(console=None)))
)
words = st.text("abcOP12", min_size=1, max_size=5)
topologies = st.builds(
    Topology,
    names,
    st.sampled_from(Delivery),
    unique(sources),
    unique(operators),
    unique(sinks),
    st.builds(EpochSettings, interval=st.floats(0, 1e6), max_tuples=st.integers(1, 10**9)),
    st.none() | stripped,
    st.sampled_from(["light", "full"]),
    st.lists(st.builds(Command, words, st.lists(words, max_size=2).map(tuple)), max_size=2).map(tuple),
    unique(st.builds(Case, stripped, rows, rows)),
    st.booleans(),
    st.floats(0, 1e6),
)


@settings(max_examples=60, deadline=None)
@given(topology=topologies)
def test_what_is_written_reads_back_the_same(read: Any, topology: Topology) -> None:
    written = write_topology(topology)
    again, problems = read(written)
    assert problems == []
    assert again == topology


@pytest.mark.parametrize(
    "text", ["a\x85\\", "a\u2028\"b", "a\r\n'b", "\ufeff", "😀", "yes", "0o7", "${x}", "a\tb"]
)
def test_odd_text_reads_back_the_same(read: Any, text: str) -> None:
    case = Case("odd", {"a": ({text: text},)}, {})
    topology, problems = read(write_topology(Topology("t", tests=(case,))))
    assert problems == []
    assert topology.tests == (case,)


def test_a_topology_is_written_one_node_a_line_with_aligned_names(read: Any, url_reach: str) -> None:
    topology, _ = read(url_reach)
    assert write_topology(topology, comment="Made by hand.").splitlines() == [
        "# Made by hand.",
        "topology: url-reach",
        "delivery: exactly-once",
        "sources:",
        '  tweets: {file: tweets.csv, schema: "id int, user string, url string"}',
        "operators:",
        "  mentions:  {from: tweets, filter: url = 'www.tecnico.ulisboa.pt'}",
        '  followers: {from: mentions, custom: "reach:followers_of", emits: follower string, parallelism: 2, '
        "route: shuffle}",
        "  unique:    {from: followers, uniq: follower}",
        "  reach:     {from: unique, count: null}",
        "sinks:",
        "  out: {from: reach, file: out/reach.jsonl}",
    ]


ROWS = {"out": [{"n": 1, "s": "a: b"}, {"n": None, "s": ""}], "none": []}
HEAD = "topology: t  # a name\ntests:\n"
TAIL = "  # the end\n\nlogging:   full # as it was\n"


@pytest.mark.parametrize(
    "case",
    [
        "  - name: one\n    given: {a: [{x: 1}]}  # rows\n",
        "  - name: one\n    given: {a: [{x: 1}]}\n    expect:  # filled\n",
        "  - name: one\n    expect: {}  # filled\n    given: {a: [{x: 1}]}\n",
        "  - name: one\n    expect:  # filled\n      # these\n      out:\n        - {n: 7}\n"
        "    given: {a: [{x: 1}]}\n",
        "  - name: one\n    expect: {out: [\n      {n: 7}]}\n    given: {a: [{x: 1}]}\n",
        "  - {name: one, given: {a: [{x: 1}]}}\n",
        "  - {name: one, expect: {out: [{n: 7}]}, given: {a: [{x: 1}]}}\n",
        "  - {name: one, given: {a: [{x: 1}]}, expect: }\n",
        "  one:\n    given:\n      a:\n      - x: 1\n",
        "  one: {given: {a: [{x: 1}]}}\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_expected_rows_are_put_into_the_text_and_the_rest_stays(read: Any, case: str, newline: str) -> None:
    other = (
        "  - {name: two, given: {}, expect: {out: [{n: 9}]}}\n"
        if "- " in case[:5]
        else "  two: {given: {}, expect: {out: [{n: 9}]}}\n"
    )
    text = (HEAD + case + other + TAIL).replace("\n", newline)
    changed = replace_expected(text, "one", ROWS)
    topology, problems = read(changed)
    assert problems == []
    one, two = topology.tests
    assert one.expect == {name: tuple(of_name) for name, of_name in ROWS.items()}
    assert one.given == {"a": ({"x": 1},)}
    assert two.expect == {"out": ({"n": 9},)}
    assert changed.startswith(HEAD.replace("\n", newline))
    assert changed.endswith((other + TAIL).replace("\n", newline))
    assert changed.count("#") == text.count("#")
    assert changed.count("\n") == changed.count(newline)
    assert replace_expected(changed, "one", ROWS) == changed


def test_expected_rows_are_written_at_the_end_of_a_file_without_newline(read: Any) -> None:
    changed = replace_expected("topology: t\ntests:\n  - name: one\n    given: {a: []}", "one", ROWS)
    assert changed.endswith(
        '      out:\n        - {n: 1, s: "a: b"}\n        - {n: null, s: ""}\n      none: []\n'
    )


def test_values_without_a_form_in_yaml_are_written_as_text(read: Any) -> None:
    row = {"d": datetime.date(2024, 1, 2), "n": Decimal("1.50"), "b": b"\x01", "t": datetime.time(1, 2)}
    changed = replace_expected("topology: t\ntests: {one: {given: {}}}\n", "one", {"out": [row]})
    topology, _ = read(changed)
    assert topology.tests[0].expect["out"] == ({"d": "2024-01-02", "n": "1.50", "b": "01", "t": "01:02:00"},)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology: t\ntests: [{name: once, given: {}}]\n", "no test is called 'one' did you mean 'once'?"),
        ("topology: t\n", "no test is called 'one'"),
        (
            "topology: t\ntests:\n  zero: {given: &g {}}\n  one:\n    given: {}\n    expect: *g\n",
            "are an alias",
        ),
    ],
)
def test_rows_of_a_case_that_is_not_there_are_refused(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        replace_expected(text, "one", ROWS)
    assert message in str(caught.value)
