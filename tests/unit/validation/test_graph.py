from __future__ import annotations

from penstock.topology.model import (
    Custom,
    Dup,
    FrozenOptions,
    Location,
    Operator,
    Sink,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.schema import parse_schema
from penstock.validation.graph import check_graph, operators_in_order

TWEETS = Source("tweets", "memory", FrozenOptions(), where=Location("t.yaml", 1))
WORDS = parse_schema("word string")


def dup(name: str, *inputs: str) -> Dup:
    return Dup(name, tuple(_ref(text) for text in inputs))


def split(name: str = "split") -> Custom:
    return Custom(name, (StreamRef("tweets"),), code="m:f", emits=(("good", WORDS), ("bad", WORDS)))


def _ref(text: str) -> StreamRef:
    node, _, port = text.partition(".")
    return StreamRef(node, port)


def topology(*operators: Operator, sinks: tuple[str, ...]) -> Topology:
    written = tuple(Sink(f"out{i}", _ref(text), "console", FrozenOptions()) for i, text in enumerate(sinks))
    return Topology("t", sources=(TWEETS,), operators=operators, sinks=written)


def messages(checked: Topology) -> list[str]:
    return [problem.message for problem in check_graph(checked)]


def test_a_misspelt_stream_is_suggested_and_the_meant_one_is_not_called_unused() -> None:
    assert messages(topology(dup("a", "twets"), sinks=("a",))) == [
        "operator 'a': no stream 'twets': did you mean 'tweets'?"]


def test_a_stream_like_no_other_lists_what_there_is() -> None:
    problems = list(check_graph(topology(dup("a", "tweets"), dup("b", "xyzzy"), sinks=("a", "b"))))
    assert [str(problem) for problem in problems] == ["operator 'b': no stream 'xyzzy' (there are tweets, a)"]


def test_an_operator_with_several_ports_must_be_read_by_port() -> None:
    problems = list(check_graph(topology(split(), sinks=("split",))))
    assert [str(problem) for problem in problems] == [
        "sink 'out0': 'split' has named ports: say which to read (write split.good or split.bad)"]


def test_an_unknown_port_is_suggested() -> None:
    assert messages(topology(split(), sinks=("split.god", "split.bad"))) == [
        "sink 'out0': 'split' has no port 'god': did you mean 'good'?"]


def test_a_port_of_an_operator_that_has_none_is_a_problem() -> None:
    assert messages(topology(dup("a", "tweets"), sinks=("a.good",))) == [
        "sink 'out0': 'a' has no port 'good', only one output"]


def test_a_cycle_is_named_all_the_way_round_once() -> None:
    checked = topology(dup("a", "tweets", "c"), dup("b", "a"), dup("c", "b"), sinks=("c",))
    assert messages(checked) == ["a cycle: a → b → c → a"]


def test_an_operator_that_reads_itself_is_a_cycle() -> None:
    assert messages(topology(dup("a", "tweets", "a"), sinks=("a",))) == ["a cycle: a → a"]


def test_unused_sources_operators_and_ports_are_warnings() -> None:
    idle = Source("idle", "memory", FrozenOptions())
    checked = topology(split(), dup("loose", "tweets"), sinks=("split.good",))
    checked = Topology("t", sources=(TWEETS, idle), operators=checked.operators, sinks=checked.sinks)
    problems = list(check_graph(checked))
    assert {problem.severity for problem in problems} == {"warning"}
    assert [problem.message for problem in problems] == [
        "nobody reads source 'idle'", "nobody reads port 'bad' of operator 'split'",
        "nobody reads operator 'loose'"]


def test_a_topology_without_sinks_is_one_error_and_no_warnings() -> None:
    problems = list(check_graph(topology(dup("a", "tweets"), sinks=())))
    assert [(problem.severity, problem.message) for problem in problems] == [
        ("error", "topology 't' has no sinks, so its results go nowhere")]


def test_a_topology_without_sources_is_an_error() -> None:
    assert "topology 't' has no sources" in messages(Topology("t"))


def test_reading_a_stream_twice_or_none_at_all_is_a_problem() -> None:
    assert messages(topology(dup("a", "tweets", "tweets"), dup("b"), sinks=("a", "b"))) == [
        "operator 'a' reads 'tweets' twice", "operator 'b' reads nothing"]


def test_reading_a_sink_is_explained() -> None:
    checked = topology(dup("a", "out0"), sinks=("tweets", "a"))
    assert messages(checked) == ["operator 'a' reads 'out0', which is a sink"]


def test_operators_are_ordered_by_what_they_read_and_cycles_are_left_out() -> None:
    checked = topology(dup("late", "early"), dup("early", "tweets"), dup("x", "y"), dup("y", "x"),
                       dup("behind", "x"), sinks=("late",))
    assert [op.name for op in operators_in_order(checked)] == ["early", "late"]
