from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.topology.model import Custom, FrozenOptions, StreamRef, Topology
from penstock.topology.schema import parse_schema
from penstock.topology.window import Window, parse_span
from penstock.validation.custom_code import check_custom_code
from penstock.validation.schemas import stream_schemas

COLUMNS = parse_schema("user string, amount int")

CODE = '''
import abc

from penstock.topology.bolt import Bolt

NUMBER = 5


def plain(tup): return tup
def no_argument(): return []
def with_argument(tup, limit): return tup
def with_default(tup, limit=3): return tup
def keyword_only(tup, *, limit): return tup
def anything(*arguments, **options): return arguments
def two_tuples(tup, other): return tup
async def later(tup): return tup
def yields(tup): yield tup
def of_columns(user, amount): return user
def of_one_column(amount, rate, context, user="me"): return amount
def of_a_misspelt_column(user, amout): return user


class Splitter(Bolt):
    def initialize(self, separator=" "): pass
    def process(self, tup): self.emit(tup)


class Plain(Bolt):
    def process(self, tup): pass


class Duck:
    def process(self, tup): pass


class Idle(Bolt): pass
class NotABolt: pass


class Greedy(Bolt):
    def initialize(self, path): pass
    def process(self, tup, extra): pass


class NeedsArguments(Bolt):
    def __init__(self, path): pass
    def process(self, tup): pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def missing(self): ...
    def process(self, tup): pass


class Library:
    def method(self, tup): return []
    def nothing(self): return []
    @staticmethod
    def static(tup): return []
    @classmethod
    def of_class(cls, tup): return []


class Closed:
    def __init__(self, key): pass
    def method(self, tup): return []
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "usercode.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return tmp_path


@pytest.mark.parametrize(("name", "arguments", "said"), [
    ("two_tuples", {}, []),
    ("anything", {"a": 1}, []),
    ("plain", {}, ["'usercode:plain' takes 1 argument, and is called with the window and its tuples"]),
    ("no_argument", {}, ["'usercode:no_argument' takes no argument, and is called with the window and its tuples"]),
    ("Splitter", {}, ["'usercode:Splitter' is a class, not a function"]),
])
def test_a_function_of_a_window_is_called_with_the_window_and_its_tuples(
    folder: Path, name: str, arguments: dict[str, Any], said: list[str]
) -> None:
    window = Window("w", (StreamRef("in"),), span=parse_span("tumbling(9 tuples)"), code=f"usercode:{name}",
                    emits=(("", parse_schema("x int")),), arguments=FrozenOptions(arguments))
    problems = check_custom_code(Topology("t", operators=(window,), folder=folder), {})
    assert [problem.message.removeprefix("operator 'w': ") for problem in problems] == said


def messages(folder: Path, code: str, emits: bool = True, **arguments: Any) -> list[str]:
    schema = (("", parse_schema("x int")),) if emits else ()
    operator = Custom("o", (StreamRef("in"),), code=code, emits=schema, arguments=FrozenOptions(arguments))
    problems = check_custom_code(Topology("t", operators=(operator,), folder=folder), {StreamRef("in"): COLUMNS})
    return [problem.message.removeprefix("operator 'o': ") for problem in problems]


@pytest.mark.parametrize(("name", "arguments"), [
    ("plain", {}), ("yields", {}), ("with_default", {}), ("with_default", {"limit": 1}),
    ("with_argument", {"limit": 1}), ("keyword_only", {"limit": 1}), ("anything", {"a": 1}),
    ("of_columns", {}), ("of_one_column", {"rate": 2}), ("of_columns", {"amount": 1}),
    ("Splitter", {}), ("Splitter", {"separator": ","}), ("Plain", {"any": 1}), ("Duck", {}),
    ("Library.method", {}), ("Library.static", {}), ("Library.of_class", {})])
def test_code_that_fits_has_no_problems(folder: Path, name: str, arguments: dict[str, Any]) -> None:
    assert messages(folder, f"usercode:{name}", **arguments) == []


@pytest.mark.parametrize(("name", "said"), [
    ("no_argument", "'usercode:no_argument' takes no argument, and is called with the tuple"),
    ("with_argument", "'usercode:with_argument' needs 'limit'"),
    ("keyword_only", "'usercode:keyword_only' needs 'limit'"),
    ("two_tuples", "'usercode:two_tuples' needs 'other'"),
    ("of_one_column", "'usercode:of_one_column' needs 'rate'"),
    ("of_a_misspelt_column", "'usercode:of_a_misspelt_column' needs 'amout'"),
    ("later", "'usercode:later' is async"),
    ("NUMBER", "'usercode:NUMBER' is an int, not a function or a class"),
    ("Idle", "class 'Idle' has no process(self, tup)"),
    ("NotABolt", "class 'NotABolt' has no process(self, tup)"),
    ("NeedsArguments", "class 'NeedsArguments' cannot be made without arguments: it needs 'path'"),
    ("Abstract", "class 'Abstract' is abstract: it lacks 'missing'"),
    ("Library.nothing", "'usercode:Library.nothing' takes no argument, and is called with the tuple"),
    ("Closed.method", "class 'Closed' cannot be made without arguments: it needs 'key'"),
])
def test_code_that_does_not_fit_is_a_problem(folder: Path, name: str, said: str) -> None:
    assert messages(folder, f"usercode:{name}") == [said]


def test_everything_wrong_with_a_bolt_is_reported_at_once(folder: Path) -> None:
    assert messages(folder, "usercode:Greedy") == [
        "'Greedy.process' needs 'extra'", "'Greedy.initialize' needs 'path'"]


def test_an_argument_that_nothing_takes_is_a_problem(folder: Path) -> None:
    assert messages(folder, "usercode:plain", limit=1) == [
        "'usercode:plain' has no argument 'limit', which `with` gives"]
    assert messages(folder, "usercode:Duck", limit=1) == ["class 'Duck' has no initialize to take 'limit'"]


def test_a_misspelt_argument_is_one_problem_with_a_suggestion(folder: Path) -> None:
    assert messages(folder, "usercode:with_argument", limt=1) == [
        "'usercode:with_argument' has no argument 'limt', which `with` gives: did you mean 'limit'?"]


def test_a_parameter_that_is_nearly_a_column_is_one_problem_with_a_suggestion(folder: Path) -> None:
    operator = Custom("o", (StreamRef("in"),), code="usercode:of_a_misspelt_column",
                      emits=(("", parse_schema("x int")),))
    topology = Topology("t", operators=(operator,), folder=folder)
    (problem,) = check_custom_code(topology, {StreamRef("in"): COLUMNS})
    assert problem.hint == "did you mean 'amount'?"


def test_where_columns_are_not_known_any_parameter_may_be_one(folder: Path) -> None:
    def messages_of(name: str, **arguments: Any) -> list[str]:
        operator = Custom("o", (StreamRef("in"),), code=f"usercode:{name}", emits=(("", parse_schema("x int")),),
                          arguments=FrozenOptions(arguments))
        return [each.message for each in check_custom_code(Topology("t", operators=(operator,), folder=folder), {})]

    assert messages_of("of_a_misspelt_column") == []
    assert messages_of("no_argument") != []
    assert messages_of("plain", limit=3) != []


def test_code_that_cannot_be_imported_is_a_problem(folder: Path) -> None:
    for code in ("nowhere:f", "usercode:plane", "broken:f", "usercode"):
        assert len(messages(folder, code)) == 1
    assert "did you mean 'plain'?" in messages(folder, "usercode:plane")[0]
    assert "division by zero" in messages(folder, "broken:f")[0]


def test_what_is_emitted_must_be_said(folder: Path) -> None:
    assert messages(folder, "usercode:plain", emits=False) == ["what it emits is missing"]


def test_code_must_be_named() -> None:
    assert messages(Path(), "") == ["its code is missing"]


def test_a_function_may_ask_for_the_context_that_penstock_gives(tmp_path: Path) -> None:
    (tmp_path / "placed.py").write_text("def where(tup, context):\n    return (context.instance,)\n")
    topology = (
        Topology("t", folder=tmp_path)
        .source("s", file="a.txt")
        .custom("placed:where", emits="instance int")
        .sink("out", console=True)
    )
    assert [str(problem) for problem in check_custom_code(topology, stream_schemas(topology))] == []
