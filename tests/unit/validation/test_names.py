from __future__ import annotations

from penstock.topology.model import Dup, FrozenOptions, Location, Sink, Source, StreamRef, Topology
from penstock.validation.names import check_names


def source(name: str, line: int = 1) -> Source:
    return Source(name, "memory", FrozenOptions(), where=Location("t.yaml", line))


def dup(name: str, line: int = 2) -> Dup:
    return Dup(name, (StreamRef("a"),), where=Location("t.yaml", line))


def sink(name: str, line: int = 3) -> Sink:
    return Sink(name, StreamRef("a"), "console", FrozenOptions(), where=Location("t.yaml", line))


def messages(topology: Topology) -> list[str]:
    return [str(problem) for problem in check_names(topology)]


def test_an_operator_may_not_have_the_name_of_a_source() -> None:
    found = messages(Topology("t", sources=(source("a"),), operators=(dup("a"),)))
    assert found == [
        "t.yaml:2: operator 'a': the source at t.yaml:1 has that name already (rename one of them)"]


def test_a_sink_may_have_the_name_of_an_operator_but_not_of_another_sink() -> None:
    topology = Topology("t", sources=(source("a"),), operators=(dup("b"),), sinks=(sink("b"), sink("b", 4)))
    assert [problem.where.line for problem in check_names(topology)] == [4]


def test_names_with_blanks_or_dots_are_refused_wherever_they_stand() -> None:
    found = messages(Topology("my topology", sources=(source("a.b"),), operators=(dup("c d"),),
                              sinks=(sink("e/f"),)))
    assert len(found) == 4
    assert all("use letters, digits" in message for message in found)


def test_letters_digits_hyphens_and_underscores_are_fine() -> None:
    assert messages(Topology("url-reach_2", sources=(source("OP1"),), sinks=(sink("1"),))) == []
