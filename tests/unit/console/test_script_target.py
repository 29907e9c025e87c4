"""`penstock script NAME`: puppet-master commands for a topology of a console."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.console.client import AnswerLost, Client
from penstock.console.desired import Desired, Wanted

from ...waiting import wait_until
from ..cli.typed import penstock
from .running_console import RunningConsole, running_console, view


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningConsole]:
    """With a topology `pair` of two replicas that runs on a node."""
    monkeypatch.chdir(tmp_path)
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        console.node("a")
        Desired(console.coordinator).add(
            Wanted("pair", "0" * 64, "topology.yaml", replicas=2, chaos=True, nodes={"1": "a", "2": "a"}))
        console.see("pair", replicas=[view("1"), view("2", "starting")], safety="1/2 safe")
        yield console


@contextmanager
def answering(console: RunningConsole, refuses: str = "") -> Iterator[list[str]]:
    """While a node does what it is told; what that was, in its order."""
    done: list[str] = []
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            for task in console.nodes.tasks("a"):
                words = " ".join([task.verb, *task.arguments["words"]])
                done.append(words)
                console.nodes.finish(task, task.verb != refuses, "it was done")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def run_script(console: RunningConsole, text: str, *more: str) -> tuple[int, list[str], str]:
    Path("commands.txt").write_text(text)
    result = penstock("script", "pair", "--commands", "commands.txt", "--at", console.url, *more)
    lines = [line.split("  ")[0] for line in result.stdout.splitlines()]
    return result.exit_code, lines, result.stderr + str(result.exception or "")


def test_commands_are_given_to_a_topology_of_a_console(console: RunningConsole) -> None:
    with answering(console) as done:
        code, said, _ = run_script(console, "Start OP1\nInterval OP1 500\nInterval OP2 200\nFreeze OP1 0\nWait 1\n"
                                            "Unfreeze OP1 0\nCrash OP2 1\nStatus\n")  # fmt: skip
    assert code == 0
    assert done == ["unfreeze --operator OP1", "interval 0.500s --operator OP1", "interval 0.200s --operator OP2",
                    "freeze --replica 1 --operator OP1", "unfreeze --replica 1 --operator OP1",
                    "crash --replica 2"]  # fmt: skip
    assert said == ["Start OP1", "Interval OP1 500", "Interval OP2 200", "Freeze OP1 0", "Wait 1", "Unfreeze OP1 0",
                    "Crash OP2 1", "Status", "% pair: 1/2 safe", "% replica 0: safe, epoch 5",
                    "% replica 1: starting, epoch 5"]  # fmt: skip


def test_operators_that_are_not_there_are_refused_before_anything_is_done(console: RunningConsole) -> None:
    nodes = [{"id": name, "name": name, "role": role} for name, role in
             (("in", "source"), ("OP1", "filter"), ("OP2", "count"), ("out", "sink"))]  # fmt: skip
    console.coordinator.put("console/graphs/pair", json.dumps({"nodes": nodes, "edges": []}))
    with answering(console) as done:
        code, said, why = run_script(console, "Freeze OP1 0\nFreeze in 0\nCrash tcp://a:1/op\n")
        assert (code, said, done) == (2, [], [])
        assert "commands.txt:2: Freeze in 0: there is no operator 'in' (there are: OP1, OP2)" in why
        assert "commands.txt:3: Crash tcp://a:1/op: no replica has this address" in why
        code, said, _ = run_script(console, "freeze op1 0\n")
    assert (code, said, done) == (0, ["Freeze OP1 0"], ["freeze --replica 1 --operator OP1"])


def test_nobody_waits_for_what_comes_of_a_command(console: RunningConsole) -> None:
    """What is next is said while the node has not answered yet."""
    Path("commands.txt").write_text("Freeze OP1 0\nWait 1\nStatus\nUnfreeze OP1 0\n")
    said: list[str] = []
    run = threading.Thread(target=lambda: said.extend(run_script(console, Path("commands.txt").read_text())[1]))
    run.start()
    wait_until(lambda: console.nodes.tasks("a"))
    assert [task.verb for task in console.nodes.tasks("a")] == ["freeze"]
    with answering(console) as done:
        run.join()
    assert [words.split()[0] for words in done] == ["freeze", "unfreeze"]
    assert said[-1] == "Unfreeze OP1 0"


def test_what_could_not_be_done_is_said_and_counted(console: RunningConsole) -> None:
    with answering(console, refuses="crash") as done:
        code, said, why = run_script(console, "Crash OP1 0\nCrash OP1 2\nFreeze OP1 1\n")
    assert (code, "2 of 3 commands could not be carried out" in why) == (1, True)
    assert "% not done: there is no replica 2: the topology has 2, counted from 0" in said
    assert "% not done: crash 1: it was done" in said
    assert done == ["crash --replica 1", "freeze --replica 2 --operator OP1"]


@pytest.mark.parametrize(("error", "said"), [
    (AnswerLost("its answer was lost"), "% perhaps done: crash 1: its answer was lost"),
    (RuntimeError("something unforeseen"), "% not done: crash 1: something unforeseen"),
])  # fmt: skip
def test_no_command_is_lost_without_a_word(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def command(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Client, "command", command)
    code, lines, why = run_script(console, "Crash OP1 0\nWait 1\n")
    assert (code, "1 of 2 commands could not be carried out" in why) == (1, True)
    assert said in lines


def test_what_makes_no_sense_is_refused(console: RunningConsole) -> None:
    assert "give --commands FILE" in penstock("script", "pair", "--at", console.url).stderr
    code, _, why = run_script(console, "Wait 1\n", "--set", "x=1")
    assert (code, "a console takes no --set for script" in why) == (2, True)
    missing = penstock("script", "pair", "--commands", "nowhere.txt", "--at", console.url)
    assert (missing.exit_code, "nowhere.txt cannot be read: No such file" in missing.stderr) == (2, True)
    nobody = penstock("script", "nobody", "--commands", "commands.txt", "--at", console.url)
    assert "there is no topology 'nobody'" in str(nobody.exception)
    Desired(console.coordinator).change("pair", lambda now: replace(now, starts=1))
    console.see("pair", how="stopped")
    _, said, why = run_script(console, "Wait 1\n")
    assert (said, "topology 'pair' does not run: it is stopped" in why) == ([], True)
