"""What DADSTORM operators mean: their sources, columns, routes and sinks in the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot

from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Filter,
    Route,
    RouteKind,
    Select,
    StreamRef,
)
from penstock.topology.schema import parse_schema

from .visits import ONCE, OP1, OP1_DOES, VISITS, errors, only_operator, read, read_well

# Sources


def test_a_file_becomes_a_source_of_strings_as_wide_as_its_first_tuple(folder: Path) -> None:
    (source,) = read_well(folder, OP1).sources
    assert (source.name, source.kind, source.on_malformed) == ("visits", "file", "dead-letter")
    assert source.options == {"file": "visits.dat", "format": "csv", "comment": "%"}
    assert source.schema == parse_schema("f1 string, f2 string, f3 string")
    assert str(source.where) == "visits.config:1"


def test_commas_in_quotes_do_not_divide_a_tuple(folder: Path) -> None:
    (folder / "visits.dat").write_text('\n%% c\n "a, b", c\n')
    (source,) = read_well(folder, OP1).sources
    assert source.schema == parse_schema("f1 string, f2 string")


def test_two_operators_that_read_one_file_share_its_source(folder: Path) -> None:
    topology = read_well(
        folder, OP1 + "OP2 input_ops ./visits.dat rep_fact 1 routing primary operator_spec COUNT"
    )
    assert len(topology.sources) == 1
    assert [operator.inputs for operator in topology.operators] == [(StreamRef("visits"),)] * 2


def test_sources_get_names_that_nothing_else_has(folder: Path) -> None:
    (folder / "old").mkdir()
    for name in ("old/visits.dat", "OP1.dat"):
        (folder / name).write_text(VISITS)
    topology = read_well(
        folder,
        "OP1 input_ops visits.dat, old/visits.dat, OP1.dat rep_fact 1 routing random operator_spec DUP",
    )
    assert [source.name for source in topology.sources] == ["visits", "visits-2", "OP1-2"]


@pytest.mark.parametrize("written", ["visits.data", "Visits.dat", "visits", ".\\visits.data"])
def test_a_file_shipped_under_a_like_name_is_read_with_a_warning(folder: Path, written: str) -> None:
    (folder / "visits.config").write_text("not data")
    topology, problems = read(folder, OP1.replace("visits.dat", written))
    assert topology is not None
    assert topology.sources[0].options["file"] == "visits.dat"
    (problem,) = problems
    assert problem.severity == "warning"
    assert f"there is no file '{written}'" in problem.message


def test_a_windows_path_is_found(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "v.dat").write_text(VISITS)
    topology = read_well(folder, OP1.replace("visits.dat", "in\\v.dat"))
    assert topology.sources[0].options["file"] == "in/v.dat"


def test_an_empty_file_is_as_wide_as_its_readers_need(folder: Path) -> None:
    (folder / "visits.dat").write_text("% nothing yet\n")
    topology, problems = read(folder, OP1 + f"OP2 input_ops OP1 {ONCE} UNIQ 2")
    assert topology is not None
    assert topology.sources[0].schema == parse_schema("f1 string, f2 string")
    assert [problem.severity for problem in problems] == ["warning"]


# Operators


def filtered(folder: Path, parameters: str) -> str:
    operator = only_operator(folder, f"{OP1_DOES} FILTER {parameters}")
    assert isinstance(operator, Filter)
    return operator.condition


@pytest.mark.parametrize(
    ("parameters", "condition"),
    [
        ("3,>,5", "coalesce(try_cast(f3 as decimal(38,12)) > 5, f3 > '5')"),
        ('3,<,"-2.50"', "coalesce(try_cast(f3 as decimal(38,12)) < -2.5, f3 < '-2.50')"),
        ("3,=,1e3", "coalesce(try_cast(f3 as decimal(38,12)) = 1000, f3 = '1e3')"),
        ("3,=,00", "coalesce(try_cast(f3 as decimal(38,12)) = 0, f3 = '00')"),
        ("3,=,1e30", "coalesce(try_cast(f3 as double) = 1e+30D, f3 = '1e30')"),
        ("3,<,1e999", "f3 < '1e999'"),
        ("1,>,ann", "f1 > 'ann'"),
        ("1,=,1.2.3", "f1 = '1.2.3'"),
        ("1,=,nan", "f1 = 'nan'"),
        ('1,=,"it\'s a \\ b"', r"f1 = 'it\'s a \\ b'"),
    ],
)
def test_a_filter_compares_numbers_as_numbers_and_all_else_as_text(
    folder: Path, parameters: str, condition: str
) -> None:
    assert filtered(folder, parameters) == condition
    sqlglot.parse_one(condition, dialect="spark")


def test_quotes_in_a_value_cannot_leave_the_literal(folder: Path) -> None:
    condition = filtered(folder, "1,=,\"x' or '1' = '1\\\"")
    parsed = sqlglot.parse_one(condition, dialect="spark")
    assert isinstance(parsed, sqlglot.exp.EQ)
    assert parsed.expression.this == "x' or '1' = '1\\"


def test_count_counts_every_tuple_in_one_place(folder: Path) -> None:
    operator = only_operator(folder, "OP1 input_ops visits.dat rep_fact 2 routing random operator_spec COUNT")
    assert operator == Count(
        "OP1", (StreamRef("visits"),), keys=(), emit="each", parallelism=1, route=Route(RouteKind.GLOBAL)
    )


def test_after_count_field_1_is_the_number(folder: Path) -> None:
    topology = read_well(
        folder,
        "OP1 input_ops visits.dat rep_fact 1 routing primary operator_spec COUNT\n"
        "OP2 input_ops OP1 rep_fact 2 routing hashing(1) operator_spec FILTER 1,>,10\n"
        f"OP3 input_ops OP1 {ONCE} FILTER 1,=,many\n",
    )
    _, above, text = topology.operators
    assert above == Filter(
        "OP2",
        (StreamRef("OP1"),),
        condition="`count` > 10",
        parallelism=2,
        route=Route(RouteKind.HASH, ("count",)),
    )
    assert isinstance(text, Filter)
    assert text.condition == "cast(`count` as string) = 'many'"


def test_after_count_there_is_no_field_2(folder: Path) -> None:
    (error,) = errors(
        folder,
        "OP1 input_ops visits.dat rep_fact 1 routing primary operator_spec COUNT\n"
        f"OP2 input_ops OP1 {ONCE} UNIQ 2\n",
    )
    assert error == "visits.config:2: operator OP2 looks at field 2, but its tuples have 1 field (use 1)"


@pytest.mark.parametrize("routing", ["random", "primary", "hashing(2)", "hashing(1)"])
def test_uniq_is_always_routed_by_its_field(folder: Path, routing: str) -> None:
    operator = only_operator(
        folder, f"OP1 input_ops visits.dat rep_fact 2 routing {routing} operator_spec UNIQ 1"
    )
    assert operator.route == Route(RouteKind.HASH, ("f1",))


def test_all_uniq_operators_share_the_largest_rep_fact(folder: Path) -> None:
    topology = read_well(
        folder,
        "OP1 input_ops visits.dat rep_fact 2 routing hashing(1) operator_spec UNIQ 1\n"
        "OP2 input_ops OP1 rep_fact 3 routing hashing(2) operator_spec UNIQ 2\n"
        "OP3 input_ops OP2 rep_fact 5 routing random operator_spec DUP\n",
    )
    assert [operator.parallelism for operator in topology.operators] == [3, 3, 5]


@pytest.mark.parametrize(
    ("routing", "route", "instances"),
    [
        ("primary", Route(RouteKind.GLOBAL), 1),
        ("random", Route(RouteKind.SHUFFLE), 2),
        ("hashing(3)", Route(RouteKind.HASH, ("f3",)), 2),
    ],
)
def test_routings_become_routes_and_only_the_primary_works(
    folder: Path, routing: str, route: Route, instances: int
) -> None:
    operator = only_operator(
        folder, f"OP1 input_ops visits.dat rep_fact 2 routing {routing} operator_spec DUP"
    )
    assert operator == Dup("OP1", (StreamRef("visits"),), parallelism=instances, route=route)


@pytest.mark.parametrize(
    "library", ["reach.dll", "reach", "reach.DLL", "reach.py", "..\\bin\\reach.dll", '"lib/reach.dll"']
)
def test_custom_names_a_method_of_a_class_in_a_module(folder: Path, library: str) -> None:
    operator = only_operator(
        folder,
        "OP1 input_ops visits.dat rep_fact 1 routing random "
        f"operator_spec CUSTOM {library}, My.Space.Reach, followersOf",
    )
    assert operator == Custom(
        "OP1",
        (StreamRef("visits"),),
        code="reach:Reach.followersOf",
        parallelism=1,
        route=Route(RouteKind.SHUFFLE),
        emits=(("", parse_schema("f1 string")),),
    )


@pytest.mark.parametrize(
    "after",
    [
        f"OP2 input_ops OP1 {ONCE} UNIQ 3",
        f"OP2 input_ops OP1 {ONCE} FILTER 3,=,x",
        "OP2 input_ops OP1 rep_fact 1 routing hashing(3) operator_spec COUNT",
        f"OP2 input_ops OP1 {ONCE} DUP\nOP3 input_ops OP2 {ONCE} UNIQ 3",
        f"OP2 input_ops OP1, visits.dat {ONCE} DUP",
    ],
)
def test_custom_emits_as_many_fields_as_are_used_after_it(folder: Path, after: str) -> None:
    topology = read_well(
        folder,
        f"OP1 input_ops visits.dat rep_fact 1 routing random operator_spec CUSTOM lib.dll,C,m\n{after}\n",
    )
    custom = topology.operators[0]
    assert isinstance(custom, Custom)
    assert custom.schema_of("") == parse_schema("f1 string, f2 string, f3 string")


def test_fields_used_behind_another_custom_do_not_count(folder: Path) -> None:
    topology = read_well(
        folder,
        f"{OP1_DOES} CUSTOM l,C,m\nOP2 input_ops OP1 {ONCE} CUSTOM l,C,m\nOP3 input_ops OP2 {ONCE} UNIQ 2\n",
    )
    first, second, _ = topology.operators
    assert isinstance(first, Custom) and isinstance(second, Custom)
    assert first.schema_of("") == parse_schema("f1 string")
    assert second.schema_of("") == parse_schema("f1 string, f2 string")


def test_operators_and_files_are_read_together(folder: Path) -> None:
    topology = read_well(folder, OP1 + f"OP2 input_ops OP1, visits.dat {ONCE} UNIQ 1")
    assert topology.operators[1].inputs == (StreamRef("OP1"), StreamRef("visits"))


def test_streams_of_other_columns_are_fitted_before_they_are_merged(folder: Path) -> None:
    topology, problems = read(
        folder,
        "OP1 input_ops visits.dat rep_fact 1 routing primary operator_spec COUNT\n"
        f"OP2 input_ops OP1, visits.dat {ONCE} UNIQ 1\n",
    )
    assert topology is not None
    _, fitted, merged = topology.operators
    assert fitted == Select(
        "OP1-for-OP2",
        (StreamRef("OP1"),),
        columns=("cast(`count` as string) as f1", "cast(null as string) as f2", "cast(null as string) as f3"),
    )
    assert merged.inputs == (StreamRef("OP1-for-OP2"), StreamRef("visits"))
    (problem,) = problems
    assert (problem.severity, problem.where.line) == ("warning", 2)
    assert "1 from OP1, 3 from visits" in problem.message


def test_operators_that_nobody_reads_are_shown_on_the_console(folder: Path) -> None:
    topology = read_well(
        folder,
        OP1 + "OP2 input_ops OP1 rep_fact 1 routing primary operator_spec COUNT\n"
        f"OP3 input_ops OP1 {ONCE} DUP\n"
        f"OP2-out input_ops OP1 {ONCE} DUP\n",
    )
    assert [(sink.name, sink.input.node) for sink in topology.sinks] == [
        ("OP2-out-2", "OP2"),
        ("OP3-out", "OP3"),
        ("OP2-out-out", "OP2-out"),
    ]
    assert {(sink.kind, sink.options["console"]) for sink in topology.sinks} == {("console", None)}


def test_every_operator_remembers_its_line(folder: Path) -> None:
    topology = read_well(folder, "% first\n\n" + OP1)
    assert str(topology.operators[0].where) == "visits.config:3"
