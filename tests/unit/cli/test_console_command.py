"""Options where they mean nothing: for a topology of a console those of a file, and for a file those of a console."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from penstock.cli.console_command import OF_A_CONSOLE, TAKEN, TopologyCommand
from penstock.cli.main import app
from penstock.console.bundle import pack
from penstock.console.desired import Desired

from ...waiting import wait_until
from ..console.running_console import RunningConsole, running_console
from .typed import enter_project, penstock

NOBODY = "http://127.0.0.1:9"
TOPOLOGY = """\
topology: count
sources: {ticks: {generator: {id: sequence}, count: 10}}
operators: {counts: {from: ticks, count: id}}
sinks: {out: {from: counts, file: out/rows.jsonl}}
"""
WORDS = {"interval": ["count", "2s"], "rescale": ["count", "counts=2"], "restore": ["old", "count"],
         "state": ["count", "counts"]}  # fmt: skip


def commands() -> Iterator[tuple[str, TopologyCommand]]:
    found: Any = typer.main.get_command(app)
    yield from ((name, each) for name, each in found.commands.items() if isinstance(each, TopologyCommand))


def refused() -> Iterator[tuple[str, list[str]]]:
    """Every option of every command that a console does not carry out."""
    for name, command in commands():
        for each in command.params:
            if each.param_type_name == "option" and each.name not in {*TAKEN[name], *OF_A_CONSOLE, "help"}:
                yield name, [each.opts[0]] if getattr(each, "is_flag", False) else [each.opts[0], "1"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    enter_project(tmp_path / "here", monkeypatch, TOPOLOGY)
    return tmp_path / "here"


def test_all_commands_that_know_a_console_are_looked_at() -> None:
    found: Any = typer.main.get_command(app)
    options = {name: {one.name for one in each.params} for name, each in found.commands.items()}
    both = {name for name, own in options.items() if {"at", "file", "sets"} <= own}
    assert both - {"submit"} == set(TAKEN) == {name for name, _ in commands()}
    for name, command in commands():
        assert TAKEN[name] <= {each.name for each in command.params}, name


def test_what_was_once_passed_over_is_among_what_is_refused() -> None:
    every = {(name, words[0]) for name, words in refused()}
    assert {("restore", "--dry-run"), ("restore", "--parallelism"), ("restore", "--as"), ("restore", "--run"),
            ("restore", "--set"), ("state", "--export"), ("stop", "--patience")} <= every  # fmt: skip


@pytest.mark.parametrize(("name", "option"), list(refused()))
def test_a_console_is_not_asked_with_an_option_it_does_not_take(project: Path, name: str, option: list[str]) -> None:
    shown = penstock(name, *WORDS.get(name, ["count"]), *option, "--at", NOBODY)
    assert shown.exit_code == 2, shown.output
    assert f"a console takes no {option[0]} for {name}" in shown.stderr


def test_what_the_environment_says_is_for_many_commands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_COORDINATOR", "zookeeper://zk:2181/other")
    monkeypatch.setenv("PENSTOCK_CONSOLE", NOBODY)
    shown = penstock("stop", "count")
    assert (shown.exit_code, "no console answers" in str(shown.exception)) == (1, True)
    monkeypatch.delenv("PENSTOCK_COORDINATOR")
    assert "does not run" in penstock("stop", "topology.yaml").stderr


@pytest.mark.parametrize("words", [["stop", "topology.yaml"], ["stop", "folder"], ["status"]])
def test_a_file_is_not_taken_for_a_topology_of_a_console(project: Path, words: list[str]) -> None:
    (project / "folder").mkdir()
    for option in ("--at", "--token"):
        shown = penstock(*words, option, NOBODY)
        assert shown.exit_code == 2
        assert f"{option} is for a topology of a console" in shown.stderr


@pytest.mark.parametrize("words", [["state", "count", "counts", "--limit", "201"],
                                   ["dead-letters", "count", "--last", "201"]])  # fmt: skip
def test_more_than_a_console_shows_is_refused(project: Path, words: list[str]) -> None:
    shown = penstock(*words, "--at", NOBODY)
    assert (shown.exit_code, "at most 200" in shown.stderr) == (2, True)


def test_no_keys_without_an_operator(project: Path) -> None:
    for file in ("count", "topology.yaml"):
        assert "name the operator" in penstock("state", file, "--key", "1").stderr


@pytest.fixture
def console(tmp_path: Path, project: Path) -> Iterator[RunningConsole]:
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        console.client.submit(pack(project), "topology.yaml", (), False, False)
        console.node("a")
        wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
        yield console


@pytest.mark.parametrize(("words", "given"), [
    (["kill", "count"], ["kill"]),
    (["rescale", "count", "counts=2"], ["rescale", "counts=2"]),
    (["checkpoint", "count", "--name", "old"], ["checkpoint", "--name", "old"]),
    (["checkpoint", "count", "--delete", "old"], ["checkpoint", "--delete", "old"]),
    (["restore", "old", "count", "--replace", "--fresh-sinks"], ["restore", "old", "--replace", "--fresh-sinks"]),
    (["dead-letters", "count", "--discard"], ["dead-letters", "--discard"]),
])  # fmt: skip
def test_what_was_done_is_told_to_programs_too(console: RunningConsole, words: list[str], given: list[str]) -> None:
    def do_it() -> bool:
        tasks = console.nodes.tasks("a")
        for task in tasks:
            assert [task.verb, *task.arguments["words"]] == given
            console.nodes.finish(task, True, "so it is")
        return bool(tasks)

    doing = threading.Thread(target=lambda: wait_until(do_it))
    doing.start()
    shown = penstock(*words, "--json", "--at", console.url)
    doing.join()
    told = json.loads(shown.stdout)
    assert (told["topology"], told["done"], told["said"].splitlines()[0]) == ("count", True, "so it is")


def test_a_goal_is_told_to_programs_too(console: RunningConsole) -> None:
    told = json.loads(penstock("stop", "count", "--json", "--at", console.url).stdout)
    assert told == {"topology": "count", "done": True, "said": "it stops after its epoch"}


def test_only_the_keys_that_are_asked_for_are_shown(console: RunningConsole) -> None:
    asked = []

    def answer() -> bool:
        for task in console.nodes.tasks("a"):
            asked.append([task.verb, *task.arguments["words"]])
            console.nodes.finish(task, True, '{"id": 7, "count": 1}')
        return bool(asked)

    answering = threading.Thread(target=lambda: wait_until(answer))
    answering.start()
    shown = penstock("state", "count", "counts", "--key", "id=7", "--key=--help", "--json", "--at", console.url)
    answering.join()
    assert json.loads(shown.stdout) == {"id": 7, "count": 1}
    assert asked == [["state", "--json", "counts", "--limit", "20", "--key=id=7", "--key=--help"]]
