"""DADSTORM configurations: every spelling met in real files, and every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.topology.dadstorm import read_dadstorm
from penstock.topology.model import (
    Command,
    Delivery,
    Dup,
    Filter,
    Route,
    RouteKind,
    StreamRef,
    Uniq,
)

from .visits import ONCE, OP1, OP1_DOES, errors, only_operator, read, read_well


def warnings(folder: Path, text: str) -> list[str]:
    """The warnings of a text that can be read all the same."""
    topology, problems = read(folder, text)
    assert topology is not None, [str(problem) for problem in problems]
    return [str(problem) for problem in problems]


# Spellings


@pytest.mark.parametrize("spelling", ["input_ops", "input ops", "INPUT_OPS", "Input Ops", "inputOps"])
def test_input_ops_is_taken_in_every_spelling(folder: Path, spelling: str) -> None:
    operator = only_operator(folder, f"OP1 {spelling} visits.dat {ONCE} DUP")
    assert operator.inputs == (StreamRef("visits"),)


@pytest.mark.parametrize("spelling", ["rep_fact", "rep fact", "REP_FACT", "Rep Fact"])
def test_rep_fact_is_taken_in_every_spelling(folder: Path, spelling: str) -> None:
    operator = only_operator(
        folder, f"OP1 input_ops visits.dat {spelling} 3 routing random operator_spec DUP"
    )
    assert operator.parallelism == 3


@pytest.mark.parametrize("spelling", ["operator_spec", "operator spec", "OPERATOR_SPEC", "Operator Spec"])
def test_operator_spec_is_taken_in_every_spelling(folder: Path, spelling: str) -> None:
    operator = only_operator(folder, f"OP1 input_ops visits.dat rep_fact 1 ROUTING Random {spelling} Uniq 1")
    assert operator == Uniq(
        "OP1", (StreamRef("visits"),), keys=("f1",), parallelism=1, route=Route(RouteKind.HASH, ("f1",))
    )


@pytest.mark.parametrize(
    "layout",
    [
        "OP1 input_ops visits.dat\n  rep_fact 2 routing hashing(1)\n  address tcp://a:1/op,tcp://a:2/op\n"
        "  operator_spec FILTER 2,=,shop",
        "OP1\ninput_ops\nvisits.dat\nrep_fact\n2\nrouting\nhashing\n(1)\naddress\ntcp://a:1/op,\ntcp://a:2/op\n"
        "operator_spec\nFILTER\n2,\n=,\nshop",
        "OP1 input_ops visits.dat rep_fact 2\n\n% the machines\n\naddress tcp://a:1/op\n        tcp://a:2/op\n"
        "routing hashing(1) % by visitor\noperator_spec FILTER 2\n,=,shop",
        "OP1 operator_spec FILTER 2,=,shop routing hashing(1) rep_fact 2 input_ops visits.dat",
        "OP1 input_ops visits.dat\r\nrep_fact 2 routing hashing(1)\r\noperator_spec FILTER 2,=,shop\r\n",
    ],
)
def test_an_operator_may_be_spread_over_lines(folder: Path, layout: str) -> None:
    assert only_operator(folder, layout) == Filter(
        "OP1",
        (StreamRef("visits"),),
        condition="f2 = 'shop'",
        parallelism=2,
        route=Route(RouteKind.HASH, ("f1",)),
    )


@pytest.mark.parametrize(
    "parameters", ['2,=,"shop"', "2,=,shop", '"2","=","shop"', "2, = , 'shop'", "2 = shop", "2,=,“shop”"]
)
def test_parameters_may_be_quoted_or_bare(folder: Path, parameters: str) -> None:
    operator = only_operator(folder, f"{OP1_DOES} FILTER {parameters}")
    assert isinstance(operator, Filter)
    assert operator.condition == "f2 = 'shop'"


def test_a_quoted_value_keeps_its_commas_blanks_percents_and_keywords(folder: Path) -> None:
    operator = only_operator(folder, f'{OP1_DOES} FILTER 2,=,"a, b % routing address c"')
    assert isinstance(operator, Filter)
    assert operator.condition == "f2 = 'a, b % routing address c'"


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        ("two words", "f2 = 'two words'"),
        ("routing", "f2 = 'routing'"),
        ("www.a.org/%20x", "f2 = 'www.a.org/%20x'"),
        ("50%", "f2 = '50%'"),
        ('""', "f2 = ''"),
    ],
)
def test_bare_values_are_taken_as_written(folder: Path, value: str, condition: str) -> None:
    operator = only_operator(folder, f"{OP1_DOES} FILTER 2,=,{value}")
    assert isinstance(operator, Filter)
    assert operator.condition == condition


@pytest.mark.parametrize("routing", ["hashing(2)", "hashing (2)", "hashing 2", "HASHING ( 2 )"])
def test_hashing_names_its_field_with_and_without_brackets(folder: Path, routing: str) -> None:
    operator = only_operator(
        folder, f"OP1 input_ops visits.dat rep_fact 1 routing {routing} operator_spec DUP"
    )
    assert operator.route == Route(RouteKind.HASH, ("f2",))


@pytest.mark.parametrize("separator", [",", ", ", " ", " , "])
def test_addresses_are_separated_by_commas_or_blanks(folder: Path, separator: str) -> None:
    addresses = separator.join(["tcp://a:1/op", "tcp://a:2/op"])
    topology = read_well(
        folder,
        f"OP1 input_ops visits.dat rep_fact 2 routing random address {addresses} "
        "operator_spec DUP\nCrash tcp://a:2/op",
    )
    assert topology.commands == (Command("Crash", ("OP1", "1")),)


@pytest.mark.parametrize("identifier", ["OP1", "1", "OP4STDOUT"])
def test_ids_of_every_kind_name_their_operator(folder: Path, identifier: str) -> None:
    topology = read_well(
        folder,
        f"{identifier} input_ops visits.dat {ONCE} DUP\n"
        f"LAST input_ops {identifier} rep_fact 1 routing primary operator_spec COUNT\n"
        f"Start {identifier}",
    )
    assert topology.operators[0].name == identifier
    assert topology.operators[1].inputs == (StreamRef(identifier),)
    assert topology.commands == (Command("Start", (identifier,)),)


def test_an_id_that_cannot_be_a_name_is_made_one_everywhere(folder: Path) -> None:
    topology = read_well(
        folder,
        "OP.1 input_ops visits.dat rep_fact 1 routing random address tcp://a:1/op "
        "operator_spec DUP\nStart OP.1\nCrash tcp://a:1/op",
    )
    assert topology.operators[0].name == "OP-1"
    assert topology.commands == (Command("Start", ("OP-1",)), Command("Crash", ("OP-1", "0")))


def test_ids_may_be_spelled_in_another_case_where_they_are_used(folder: Path) -> None:
    topology = read_well(
        folder, OP1 + "OP2 input_ops op1 rep_fact 1 routing primary operator_spec COUNT\nStart op2"
    )
    assert topology.operators[1].inputs == (StreamRef("OP1"),)
    assert topology.commands == (Command("Start", ("OP2",)),)


@pytest.mark.parametrize("comment", ["% one\n", "%% two\n", "   %indented\n", "%\n", "%% Crash OP1 0\n"])
def test_comment_lines_say_nothing(folder: Path, comment: str) -> None:
    assert read_well(folder, comment + OP1).commands == ()


@pytest.mark.parametrize("ending", [" % the end", " %% the end", "%% the end", " %the end", "% the end"])
def test_a_comment_may_follow_a_statement(folder: Path, ending: str) -> None:
    text = OP1.rstrip() + ending + "\nSemantics at-most-once" + ending + "\nStart OP1" + ending
    topology = read_well(folder, text)
    assert isinstance(topology.operators[0], Dup)
    assert topology.delivery is Delivery.AT_MOST_ONCE
    assert topology.commands == (Command("Start", ("OP1",)),)


SETTINGS = "Semantics at-least-once\nLoggingLevel full\n"


@pytest.mark.parametrize(
    "text",
    [
        SETTINGS + OP1,
        OP1 + SETTINGS,
        OP1 + "SEMANTICS At-Least-Once\nlogging_level FULL",
        "Semantics at least once\nLogging Level full\n" + OP1,
    ],
)
def test_settings_stand_anywhere_in_any_spelling(folder: Path, text: str) -> None:
    topology = read_well(folder, text)
    assert (topology.delivery, topology.logging) == (Delivery.AT_LEAST_ONCE, "full")


def test_without_settings_delivery_is_exactly_once_and_logging_light(folder: Path) -> None:
    topology = read_well(folder, OP1)
    assert (topology.delivery, topology.logging) == (Delivery.EXACTLY_ONCE, "light")


def test_a_setting_given_twice_is_doubtful_and_the_last_one_counts(folder: Path) -> None:
    topology, problems = read(folder, "Semantics at-most-once\nSemantics exactly-once\n" + OP1)
    assert topology is not None and topology.delivery is Delivery.EXACTLY_ONCE
    assert [problem.where.line for problem in problems] == [2]


# Lines that fit nothing


@pytest.mark.parametrize(
    "wrapped",
    [
        "before the next command is read.",
        "Wait is over when it wakes up",
        "Semantics of the whole system",
        "address of every machine",
        "the routing of tuples and their address",
        "don't forget it",
        "again",
        'and "so on',
    ],
)
def test_the_second_line_of_a_wrapped_comment_is_a_warning_with_its_line(folder: Path, wrapped: str) -> None:
    text = f"%% This comment is long and goes on\n{wrapped}\n" + OP1 + "Start OP1"
    (warning,) = warnings(folder, text)
    assert warning.startswith("visits.config:2: ")
    assert "begin it with %" in warning


def test_an_unknown_line_is_a_warning_that_says_what_it_might_have_been(folder: Path) -> None:
    (warning,) = warnings(folder, OP1 + "\nStrat OP1\n")
    assert warning.startswith("visits.config:3: 'Strat OP1' is no operator, setting or command; ignored")
    assert "did you mean 'Start'?" in warning


# Mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"OP1 input_ops visitz.csv {ONCE} DUP",
            ":1: operator OP1 reads 'visitz.csv', which is neither an operator nor a file "
            "(did you mean 'visits.dat'?)",
        ),
        (
            OP1 + f"OP2 input_ops OPP1 {ONCE} DUP",
            ":2: operator OP2 reads 'OPP1', which is neither an operator nor a file (did you mean 'OP1'?)",
        ),
        (f"{OP1_DOES} FILTER 0,=,x", ":1: operator OP1: FILTER names field 0 (fields count from 1)"),
        (f"{OP1_DOES} UNIQ 0", ":1: operator OP1: UNIQ names field 0 (fields count from 1)"),
        (
            "OP1 input_ops visits.dat rep_fact 1 routing hashing(0) operator_spec DUP",
            ":1: operator OP1: hashing names field 0 (fields count from 1)",
        ),
        (
            f"{OP1_DOES} UNIQ name",
            ":1: operator OP1: UNIQ needs the number of a field, not 'name' (fields count from 1)",
        ),
        (
            f"{OP1_DOES} UNIQ 4",
            ":1: operator OP1 looks at field 4, but its tuples have 3 fields (use 1 to 3)",
        ),
        (
            "OP1 input_ops visits.dat rep_fact 1 routing random",
            ":1: operator OP1: operator_spec is missing (add for example: operator_spec UNIQ 1)",
        ),
        (f"OP1 {ONCE} DUP", ":1: operator OP1: input_ops is missing (say which operators or files it reads)"),
        (
            "OP1 input_ops visits.dat\nrep_fact two\nrouting random operator_spec DUP",
            ":2: operator OP1: rep_fact must be a whole number of at least 1, not 'two' "
            "(write for example rep_fact 2)",
        ),
        (
            "OP1 input_ops visits.dat rep_fact 0 routing random operator_spec DUP",
            ":1: operator OP1: rep_fact must be a whole number of at least 1, not '0' "
            "(write for example rep_fact 2)",
        ),
        (
            "OP1 input_ops visits.dat rep_fact 1 routing randm operator_spec DUP",
            ":1: operator OP1: unknown routing 'randm' (did you mean 'random'?)",
        ),
        (
            "OP1 input_ops visits.dat rep_fact 1 routing hashing operator_spec DUP",
            ":1: operator OP1: routing 'hashing' names no field (write hashing(1) for the first field)",
        ),
        (
            f"{OP1_DOES} FILTR 1,=,x",
            ":1: operator OP1: unknown operator type 'FILTR' (did you mean 'FILTER'?)",
        ),
        (
            f"{OP1_DOES} FILTER 1,=",
            ":1: operator OP1: FILTER takes field,condition,value, not 1,= "
            "(put quotes round a value that contains commas)",
        ),
        (f"{OP1_DOES} FILTER 1,<=,5", ":1: operator OP1: FILTER cannot compare with '<=' (use <, > or =)"),
        (
            f"{OP1_DOES} CUSTOM my-lib.dll,Reach,of",
            ":1: operator OP1: CUSTOM: 'my-lib' cannot be the name of a Python module "
            "(write CUSTOM library,class,method)",
        ),
        (f'{OP1_DOES} FILTER 2,=,"shop', ':1: operator OP1: a quote is never closed (write "shop")'),
        (OP1 + OP1, ":2: operator OP1 is described twice (the first is in line 1; give this one another id)"),
        (
            "OP1 input_ops visits.dat routing random rep_fact 1 routing primary operator_spec DUP",
            ":1: operator OP1: routing is given twice (keep one of them)",
        ),
        (
            f"OP1 input_opps visits.dat {ONCE} DUP",
            ":1: operator OP1: 'input_opps' where input_ops belongs (did you mean 'input_ops'?)",
        ),
        (
            "rep_fact 2\n\n" + OP1,
            ":1: 'rep_fact' stands outside an operator (begin the operator with its id: OP1 input_ops …)",
        ),
        (
            "Semantics exactly-onze\n" + OP1,
            ":1: Semantics takes one of at-most-once, at-least-once, exactly-once, not 'exactly-onze' "
            "(did you mean 'exactly-once'?)",
        ),
        (OP1 + "Freeze OP1", ":2: 'Freeze OP1' is not a command (write: Freeze OPERATOR REPLICA)"),
        (OP1 + "Wait long", ":2: 'Wait long' is not a command (write: Wait MILLISECONDS)"),
        (OP1 + "Start OPP1", ":2: Start OPP1: there is no operator 'OPP1' (did you mean 'OP1'? there are: OP1)"),
        (OP1 + "Crash OP1 2", ":2: Crash OP1 2: OP1 has no replica 2 (replicas count from 0: use 0 to 1)"),
        (
            OP1 + "Crash tcp://a:3/op",
            ":2: Crash tcp://a:3/op: no replica has this address (did you mean 'tcp://a:2/op'?)",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_a_way_out(folder: Path, text: str, expected: str) -> None:
    assert errors(folder, text) == [f"visits.config{expected}"]


def test_a_cycle_is_shown_from_its_first_operator(folder: Path) -> None:
    text = (
        f"OP1 input_ops visits.dat,OP3 {ONCE} DUP\n"
        f"OP2 input_ops OP1 {ONCE} DUP\n"
        f"OP3 input_ops OP2 {ONCE} DUP\n"
    )
    (error,) = errors(folder, text)
    assert error.startswith("visits.config:1: the operators form a cycle: OP1 → OP2 → OP3 → OP1")


def test_an_operator_that_reads_itself_is_a_cycle(folder: Path) -> None:
    (error,) = errors(folder, f"OP1 input_ops OP1 {ONCE} DUP")
    assert "OP1 → OP1" in error


def test_all_mistakes_are_reported_at_once_in_the_order_of_lines(folder: Path) -> None:
    text = (
        "Semantics never\n"
        "OP1 input_ops gone.dat rep_fact x routing nowhere operator_spec UNIQ 0\n"
        f"OP2 input_ops OP1,lost {ONCE} DUP\n"
        "Crash OP9 0\n"
    )
    topology, problems = read(folder, text)
    assert topology is None
    assert [problem.where.line for problem in problems] == [1, 2, 2, 2, 3, 4]


def test_a_broken_operator_does_not_make_its_readers_wrong(folder: Path) -> None:
    text = f"{OP1_DOES} UNIQ\n\nOP2 input_ops OP1 {ONCE} DUP\nStart OP1\nCrash OP1 5\n"
    assert len(errors(folder, text)) == 1


def test_a_file_without_operators_is_an_error(folder: Path) -> None:
    (error,) = errors(folder, "% nothing yet\n")
    assert "no operator" in error


def test_other_addresses_than_rep_fact_are_a_warning(folder: Path) -> None:
    (warning,) = warnings(
        folder, "OP1 input_ops visits.dat rep_fact 3 routing random address tcp://a:1/op operator_spec DUP"
    )
    assert warning.startswith("visits.config:1: operator OP1: rep_fact is 3, but there are 1 addresses")


def test_missing_rep_fact_and_routing_are_warnings(folder: Path) -> None:
    topology, problems = read(
        folder, "OP1 input_ops visits.dat address tcp://a:1/op tcp://a:2/op operator_spec DUP"
    )
    assert [problem.severity for problem in problems] == ["warning", "warning"]
    assert topology is not None
    assert topology.operators[0].parallelism == 2
    assert topology.operators[0].route == Route(RouteKind.SHUFFLE)


WORDS = [
    *("OP1", "OP2", "1", "input_ops", "input", "ops", "rep_fact", "rep", "fact", "routing", "address"),
    *("operator_spec", "FILTER", "UNIQ", "COUNT", "CUSTOM", "visits.dat", "visits.data", ",", '"', "'", "%"),
    *(
        "%%",
        "2",
        "0",
        "hashing(1)",
        "hashing",
        "(",
        ")",
        "random",
        "tcp://a:1/op",
        "Start",
        "Status",
        "Crash",
    ),
    *("Wait", "Semantics", "exactly-once", "LoggingLevel", "=", "<", "\\", "é", "\n", f"\n{OP1}"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=40))
def test_no_text_makes_the_reader_raise(folder: Path, words: list[str]) -> None:
    topology, problems = read(folder, " ".join(words))
    assert (topology is None) == any(problem.severity == "error" for problem in problems)
    assert [problem.where.line for problem in problems] == sorted(problem.where.line for problem in problems)


# Files


def test_a_file_gives_its_name_and_folder(folder: Path) -> None:
    (folder / "my visits 2.config").write_text(OP1)
    topology, problems = read_dadstorm(folder / "my visits 2.config")
    assert problems == []
    assert topology is not None
    assert (topology.name, topology.folder) == ("my-visits-2", folder)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_files_of_old_editors_are_read(folder: Path, encoding: str) -> None:
    (folder / "v.config").write_bytes((OP1.replace("DUP", 'FILTER 2,=,"café"')).encode(encoding))
    topology, _ = read_dadstorm(folder / "v.config")
    assert topology is not None
    operator = topology.operators[0]
    assert isinstance(operator, Filter)
    assert operator.condition == "f2 = 'café'"


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    topology, problems = read_dadstorm(tmp_path / "none.config")
    assert topology is None
    assert str(problems[0]) == f"{tmp_path / 'none.config'}: no such file"
