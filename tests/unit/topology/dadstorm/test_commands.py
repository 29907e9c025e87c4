"""Puppet-master commands, in a configuration and in a script of their own."""

from __future__ import annotations

from pathlib import Path

from penstock.topology.dadstorm import parse_commands, read_dadstorm_text
from penstock.topology.model import Command

OP1 = "OP1 input_ops v.dat rep_fact 2 routing random address tcp://a:1/op, tcp://a:2/op operator_spec DUP\n"


def test_commands_are_kept_in_order_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "v.dat").write_text("ann, home\n")
    topology, problems = read_dadstorm_text(
        OP1 + "INTERVAL OP1 500 ms\nstatus\nStart OP1\nfreeze OP1 1\nWait 100ms\n"
        "Unfreeze tcp://a:2/op\nCrash OP1 0\n",
        "v.config",
        tmp_path,
    )
    assert problems == []
    assert topology is not None
    assert [str(command) for command in topology.commands] == [
        "Interval OP1 500",
        "Status",
        "Start OP1",
        "Freeze OP1 1",
        "Wait 100",
        "Unfreeze OP1 1",
        "Crash OP1 0",
    ]
    assert [command.where.line for command in topology.commands] == [2, 3, 4, 5, 6, 7, 8]


def test_a_script_of_commands_is_read_by_itself() -> None:
    commands, problems = parse_commands(
        "% go\nStart OP1\nCrash tcp://a:1/op % by address\nWait 5\nWiat 5\n", "go.txt"
    )
    assert commands == (
        Command("Start", ("OP1",)),
        Command("Crash", ("tcp://a:1/op",)),
        Command("Wait", ("5",)),
    )
    (problem,) = problems
    assert str(problem.where) == "go.txt:5"
    assert "did you mean 'Wait'?" in problem.hint
