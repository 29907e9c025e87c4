"""`on_error` as it is written, in YAML and in Python, and read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from penstock.errors import TopologyError
from penstock.topology.catalogue import Catalogue
from penstock.topology.json_schema import json_schema
from penstock.topology.model import Custom, ErrorKind, OnError, Topology
from penstock.topology.on_error import parse_on_error
from penstock.topology.yaml_writer import write_topology

Read = Callable[..., tuple[Topology, list[str]]]

TEXT = """\
topology: t
sources: {{s: {{file: s.csv, schema: "a int"}}}}
operators:
  own: {{from: s, custom: "own:code", emits: "a int", on_error: {written}}}
sinks: {{o: {{from: own, console: }}}}
"""


def operator_of(topology: Topology) -> Custom:
    (operator,) = topology.operators
    assert isinstance(operator, Custom)
    return operator


@pytest.mark.parametrize(("written", "meant"), [
    ("fail", OnError()),
    ("drop", OnError(ErrorKind.DROP)),
    ("dead-letter", OnError(ErrorKind.DEAD_LETTER)),
    ("retry(3)", OnError(ErrorKind.RETRY, 3)),
    (" retry ( 12 ) ", OnError(ErrorKind.RETRY, 12)),
])
def test_every_way_to_write_it_is_read_and_reads_back(written: str, meant: OnError) -> None:
    assert parse_on_error(written) == meant
    assert parse_on_error(str(meant)) == meant


@pytest.mark.parametrize(("written", "said"), [
    ("retry", "write for example retry(3)"),
    ("retry(0)", "retry 1 to 100 times"),
    ("retry(1000)", "retry 1 to 100 times"),
    ("retry(-1)", "retry 1 to 100 times"),
    ("retry(many)", "is not one of fail, drop, dead-letter, retry(n)"),
    ("drop(3)", "drop takes no number"),
    ("dead_letter", "did you mean 'dead-letter'"),
    ("ignore", "is not one of fail, drop, dead-letter, retry(n)"),
])
def test_what_it_cannot_be_is_refused_with_what_it_can_be(written: str, said: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_on_error(written)
    assert said in str(caught.value)


def test_a_topology_with_it_reads_back_as_itself(read: Read) -> None:
    topology, problems = read(TEXT.format(written="retry(4)"))
    assert problems == []
    assert operator_of(topology).on_error == OnError(ErrorKind.RETRY, 4)
    assert topology.retries
    assert read(write_topology(topology)) == (topology, [])


def test_nothing_said_means_that_the_run_fails(read: Read) -> None:
    topology, _ = read(TEXT.format(written="fail"))
    assert not operator_of(topology).tolerates
    assert not topology.retries
    assert "on_error" not in write_topology(topology)


def test_a_mistake_is_reported_with_its_line(read: Read) -> None:
    _, problems = read(TEXT.format(written="retri(3)"))
    assert problems == ["t.yaml:4: on_error: 'retri(3)' is not one of fail, drop, dead-letter, retry(n): "
                        "did you mean 'retry'?"]


def test_operators_that_spark_evaluates_do_not_take_it(read: Read) -> None:
    _, problems = read(TEXT.format(written="drop").replace('custom: "own:code", emits: "a int"', 'filter: "a > 1"'))
    assert len(problems) == 1
    assert "unknown key 'on_error' in operator 'own'" in problems[0]


def test_it_is_given_in_python_as_in_yaml() -> None:
    stream = Topology("t").source("s", rows=[], schema="a int")
    topology = stream.custom("own:code", emits="a int", on_error="retry(2)").sink("o", console=None)
    assert operator_of(topology).on_error == OnError(ErrorKind.RETRY, 2)
    with pytest.raises(TopologyError, match="is not one of"):
        stream.custom("own:code", emits="a int", on_error="again")


def test_the_schema_for_editors_knows_it(catalogue: Catalogue) -> None:
    validator = Draft202012Validator(json_schema(catalogue))

    def check(written: str) -> Any:
        validator.validate(yaml.safe_load(TEXT.format(written=written)))

    for written in ("fail", "drop", "dead-letter", "retry(7)", "'${env:ON_ERROR}'"):
        check(written)
    with pytest.raises(ValidationError):
        check("retry")
