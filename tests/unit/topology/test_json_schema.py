from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from penstock.topology.catalogue import Catalogue
from penstock.topology.json_schema import json_schema


@pytest.fixture(scope="module")
def validator(catalogue: Catalogue) -> Draft202012Validator:
    schema = json_schema(catalogue)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_example_fits(validator: Draft202012Validator, url_reach: str) -> None:
    validator.validate(yaml.safe_load(url_reach))


@pytest.mark.parametrize("line", [
    "sources: {a: {custom: 'm:C', whatever: 1}}",
    "sources: {a: {generator: {x: id}, rate: 5, on_malformed: drop}}",
    "sources: {a: {file: f, header: '${env:HEADER}', poll: 500ms}}",
    "sinks: {o: {from: a.bad, console: }}",
    "sinks: {o: {from: a, memory: true}}",
    "operators: {f: {from: [a, b], union: , parallelism: '${env:N:-2}', route: 'hash(x)'}}",
    "operators: {f: {from: a, select: {x: y + 1}}}",
    "operators: {f: {from: a, custom: 'm:f', emits: {good: x int}, with: {n: 1}, route: primary}}",
    "epoch: {interval: 2s, max_tuples: 10}",
    "tests: [{name: one, given: {a: [{x: 1}]}, expect: {o: }}]",
    "tests: {one: {given: {a: }}}",
    "commands: [Status]",
])
def test_what_the_reader_reads_fits(validator: Draft202012Validator, read: Any, line: str) -> None:
    text = f"topology: t\n{line}\n"
    _, problems = read(text, {"HEADER": "true"})
    assert problems == []
    validator.validate(yaml.safe_load(text))


@pytest.mark.parametrize("line", [
    "suorces: {}",
    "sources: {a: {file: f, fromat: csv}}",
    "sources: {a: {file: f, format: xml}}",
    "sources: {a: {file: f, generator: {}, rate: 1}}",
    "sources: {a: {generator: {x: id}}}",
    "sources: {a: {generator: {x: id}, rate: -1}}",
    "sources: {a b: {file: f}}",
    "sinks: {o: {file: f}}",
    "sinks: {o: {from: a, console: 5}}",
    "operators: {f: {from: a, filter: }}",
    "operators: {f: {filter: x}}",
    "operators: {f: {from: a, filter: x, parallelism: 0}}",
    "operators: {f: {from: a, count: , emit: never}}",
    "operators: {f: {from: a, filter: x, emits: y int}}",
    "epoch: {interval: soon}",
    "delivery: sometimes",
    "tests: [{given: {}}]",
])
def test_what_the_reader_refuses_does_not_fit(validator: Draft202012Validator, read: Any, line: str) -> None:
    text = f"topology: t\n{line}\n"
    _, problems = read(text)
    assert problems != []
    assert not validator.is_valid(yaml.safe_load(text))


def test_every_kind_and_option_says_what_it_is(catalogue: Catalogue) -> None:
    definitions = json_schema(catalogue)["$defs"]
    for kind in catalogue.kinds:
        described = definitions[f"{kind.role}.{kind.name}"]
        assert described["description"] == kind.doc
        for option in kind.options:
            assert described["properties"][option.name]["description"] == option.doc
