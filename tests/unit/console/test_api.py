"""The console over HTTP: what it tells, what it does, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute
from typer.testing import CliRunner

from penstock.cli import topologies
from penstock.cli.main import app
from penstock.console import api, master, service, task_giving, watching
from penstock.console import audit as audit_file
from penstock.console.bundle import pack
from penstock.console.client import Client
from penstock.console.desired import Desired, Goal, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, Nodes, Task
from penstock.console.tokens import Person, Role, Tokens
from penstock.console.watching import RECENT_SECONDS
from penstock.coordination.memory import MemoryCoordinator
from penstock.errors import CommandRefused, ConsoleError, CoordinationError

from ...waiting import wait_until
from ..cli.typed import penstock
from .running_console import RunningConsole, running_console, view

TOPOLOGY = """\
topology: count
chaos: {chaos}
sources:
  ticks: {{generator: {{id: sequence}}, count: 10}}
operators:
  kept: {{from: ticks, filter: id >= 0}}
sinks:
  out: {{from: kept, file: {place}}}
"""


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RunningConsole]:
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        yield console


@pytest.fixture
def packed(tmp_path: Path) -> bytes:
    return bundle(tmp_path)


def bundle(folder: Path, chaos: str = "refused", place: str = "out/rows.jsonl") -> bytes:
    own = folder / "own"
    own.mkdir(exist_ok=True)
    (own / "topology.yaml").write_text(TOPOLOGY.format(chaos=chaos, place=place))
    return pack(own)


def submit(console: RunningConsole, packed: bytes, replace: bool = False, fresh: bool = False) -> dict[str, Any]:
    return console.client.submit(packed, "topology.yaml", (), replace, fresh)


def raw(
    console: RunningConsole, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, Any]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(console.url + path, body, names, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_what_was_submitted_is_listed_and_drawn(console: RunningConsole, packed: bytes) -> None:
    answer = submit(console, packed)
    wait_until(lambda: console.client.get("/api/topologies"))
    listed = console.client.get("/api/topologies")
    assert [one["name"] for one in listed] == ["count"]
    assert listed[0]["how"] == "waiting for a node"
    graph = console.client.get("/api/topologies/count")["graph"]
    assert {node["id"] for node in graph["nodes"]} == {"ticks", "kept", "sink:out"}
    assert console.home.bundle(answer["digest"]).read_bytes() == packed


def test_a_topology_has_the_node_that_is_there(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    desired = Desired(console.coordinator)
    wait_until(lambda: (wanted := desired.get("count")) and wanted.nodes == {"1": "a"})


def test_the_same_name_twice_is_refused_and_replaced_when_asked(console: RunningConsole, tmp_path: Path) -> None:
    first = submit(console, bundle(tmp_path))
    for other in (bundle(tmp_path), bundle(tmp_path, "allowed")):
        with pytest.raises(ConsoleError, match="--replace"):
            submit(console, other)
    second = submit(console, bundle(tmp_path, "allowed"), replace=True)
    assert first["digest"] != second["digest"]
    wanted = Desired(console.coordinator).get("count")
    assert wanted is not None
    assert (wanted.digest, wanted.chaos, wanted.fresh) == (second["digest"], True, 0)


def test_files_of_versions_that_nobody_wants_are_removed_after_a_day(console: RunningConsole, packed: bytes) -> None:
    for digest, age in (("a" * 64, 100_000), ("b" * 64, 100)):
        console.home.keep_bundle(digest, b"")
        os.utime(console.home.bundle(digest), (time.time() - age,) * 2)
    digest = submit(console, packed)["digest"]
    os.utime(console.home.bundle(digest), (0, 0))
    submit(console, packed, replace=True)
    there = {path.stem for path in (console.home.path / "bundles").iterdir()}
    assert there == {"b" * 64, digest}


def test_a_topology_that_is_wrong_is_refused_with_all_that_is_wrong(console: RunningConsole, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "topology.yaml").write_text("topology: wrong\nsinks: {out: {from: nothing, file: x}}\n")
    with pytest.raises(ConsoleError, match="nothing"):
        submit(console, pack(own))
    assert Desired(console.coordinator).names() == []


def test_what_is_no_bundle_is_refused(console: RunningConsole) -> None:
    with pytest.raises(ConsoleError, match="not a bundle"):
        submit(console, b"no archive")
    with pytest.raises(ConsoleError, match=r"no file 'topology\.yaml'"):
        submit(console, pack(console.home.path))


def test_too_much_is_not_taken(console: RunningConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_BYTES", 1000)
    code, said = raw(console, "/api/topologies", "POST", b"x" * 2000)
    assert code == 413
    assert "at most" in said


def test_stop_and_start_are_goals(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    desired = Desired(console.coordinator)
    assert console.client.command("count", "stop")["done"]
    assert (wanted := desired.get("count")) is not None
    assert wanted.goal is Goal.STOP
    console.client.command("count", "start")
    assert (wanted := desired.get("count")) is not None
    assert wanted.goal is Goal.RUN


def test_the_same_command_twice_is_carried_out_once(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    body = json.dumps({"verb": "stop"}).encode()
    before = (Desired(console.coordinator).get("count") or pytest.fail("it is not there")).generation
    answers = [raw(console, "/api/topologies/count/commands", "POST", body, Idempotency_Key="k1",
                   Content_Type="application/json") for _ in range(2)]  # fmt: skip
    assert answers[0] == answers[1]
    assert answers[0][0] == 200
    after = (Desired(console.coordinator).get("count") or pytest.fail("it is not there")).generation
    assert after == before + 1


def test_a_key_is_of_one_command_only(console: RunningConsole, packed: bytes) -> None:
    first, second = ({"Penstock_Sets": json.dumps([f"dead_letters={value}"])} for value in ("one", "two"))
    assert raw(console, "/api/topologies", "POST", packed, Idempotency_Key="k0", **first)[0] == 201
    again = raw(console, "/api/topologies", "POST", packed, Idempotency_Key="k0", **second)
    assert (again[0], "another command was given with the key 'k0'" in again[1]) == (422, True)
    assert give_raw(console, "stop", Idempotency_Key="k1")[0] == 200
    for code, said in (give_raw(console, "start", Idempotency_Key="k1"),
                       raw(console, "/api/topologies/count", "DELETE", Idempotency_Key="k1")):  # fmt: skip
        assert (code, "and this one was not done" in said) == (422, True)
    wanted = Desired(console.coordinator).get("count")
    assert wanted is not None
    assert (wanted.goal, wanted.sets) == (Goal.STOP, ("dead_letters=one",))


@pytest.mark.parametrize(("path", "command", "code", "words"), [
    ("sum", {"verb": "stop"}, 404, "there is no topology 'sum'"),
    ("count", {"verb": "freeze", "replica": "7"}, 404, "has no replica '7'"),
    ("count", {"verb": "freeze", "operator": "nobody"}, 404, "no operator 'nobody': its operators are kept"),
    ("count", {"verb": "freeze", "operator": "ticks"}, 404, "has no operator 'ticks'"),
    ("count", {"verb": "rescale", "operator": "nobody", "instances": 2}, 404, "has no operator 'nobody'"),
    ("count", {"verb": "freeze", "operator": "kept"}, 409, "has no node yet"),
    ("count", {"verb": "crash"}, 409, "chaos: allowed"),
    ("count", {"verb": "freeze"}, 409, "has no node yet"),
    ("count", {"verb": "kill"}, 409, "has no node yet"),
    ("count", {"verb": "restore", "name": "old"}, 409, "has no node yet"),
    ("count", {"verb": "dance"}, 422, "verb"),
    ("count", {"verb": "interval"}, 422, "interval needs interval"),
    ("count", {"verb": "checkpoint", "name": "a", "delete": "b"}, 422, "takes name or delete"),
    ("count", {"verb": "checkpoint", "delete": "../../x"}, 422, "delete"),
    ("count", {"verb": "restore", "name": "a", "delete": "b"}, 422, "takes no delete"),
    ("count", {"verb": "stop", "replica": "1"}, 422, "takes no replica"),
    ("count", {"verb": "interval", "interval": "--help"}, 422, "interval"),
    ("count", {"verb": "checkpoint", "name": "../../x"}, 422, "name"),
    ("..%2f..%2fetc", {"verb": "stop"}, 404, ""),
])  # fmt: skip
def test_a_command_that_makes_no_sense_says_why(
    console: RunningConsole, packed: bytes, path: str, command: dict[str, Any], code: int, words: str
) -> None:
    submit(console, packed)
    given = json.dumps(command).encode()
    found, said = raw(console, f"/api/topologies/{path}/commands", "POST", given, Content_Type="application/json")
    assert found == code, said
    assert words in said
    wanted = Desired(console.coordinator).get("count")
    assert wanted is not None
    # Nothing has changed.
    assert (wanted.goal, wanted.generation) == (Goal.RUN, 0)


@pytest.mark.parametrize(("spread", "verb"), [
    (False, "kill"), (False, "restart"), (False, "restore"), (True, "restart"), (True, "crash"),
])  # fmt: skip
def test_while_a_node_is_away_what_it_should_do_is_refused_and_changes_nothing(
    console: RunningConsole, packed: bytes, spread: bool, verb: str
) -> None:
    submit(console, packed)
    nodes = {"1": "here", "2": "away"} if spread else {"1": "away"}
    before = Desired(console.coordinator).change("count", lambda now: replace(
        now, replicas=len(nodes), spread=spread, nodes=nodes, chaos=True, goal=Goal.STOP if spread else Goal.RUN))
    console.node("here")
    with pytest.raises(ConsoleError, match="the node 'away' of 'count' is away"):
        console.client.command("count", verb, name="old" if verb == "restore" else None)
    assert Desired(console.coordinator).get("count") == before
    assert console.nodes.tasks("here") == []


def test_a_kill_that_its_node_refuses_says_what_is_wanted_from_now_on(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)

    def refuse() -> bool:
        for task in console.nodes.tasks("a"):
            console.nodes.finish(task, False, "topology 'count' does not run")
            return True
        return False

    refusing = threading.Thread(target=lambda: wait_until(refuse))
    refusing.start()
    with pytest.raises(ConsoleError, match="does not run\nit is to end all the same, and is not started before"):
        console.client.command("count", "kill")
    refusing.join()
    wanted = Desired(console.coordinator).get("count")
    assert wanted is not None
    assert wanted.goal is Goal.STOP


def test_a_node_does_it_and_its_answer_is_told(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)

    def do_it() -> bool:
        for task in console.nodes.tasks("a"):
            assert (task.verb, list(task.arguments["words"])) == ("interval", ["2s"])
            console.nodes.finish(task, True, "an epoch every 2 s")
            return True
        return False

    threading.Thread(target=lambda: wait_until(do_it)).start()
    assert console.client.command("count", "interval", interval="2s")["said"] == "an epoch every 2 s"


def test_where_replicas_have_nodes_of_their_own_each_node_does_it_to_its_own(
    console: RunningConsole, packed: bytes
) -> None:
    submit(console, packed)
    Desired(console.coordinator).change("count", lambda now: replace(now, replicas=2, spread=True))
    for name in ("a", "b"):
        console.node(name)
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and len(wanted.nodes) == 2)
    given = []

    def do_it() -> bool:
        for name in ("a", "b"):
            for task in console.nodes.tasks(name):
                given.append((name, task.verb))
                console.nodes.finish(task, True, "done")
        return len(given) == 4

    doing = threading.Thread(target=lambda: wait_until(do_it))
    doing.start()
    assert console.client.command("count", "restart")["said"] == "node a: done\nnode b: done"
    console.client.command("count", "kill")
    doing.join()
    assert sorted(given) == [("a", "kill"), ("a", "restart"), ("b", "kill"), ("b", "restart")]

def test_a_restore_of_one_on_several_nodes_is_one_at_a_time(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    Desired(console.coordinator).change("count", lambda now: replace(now, replicas=2, spread=True))
    for name in ("a", "b"):
        console.node(name)
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and len(wanted.nodes) == 2)
    for name in ("a", "b"):
        console.see("count", name, how="stopped")
    refused = []

    def do_it() -> bool:
        for task in console.nodes.tasks("a"):
            assert (task.verb, list(task.arguments["words"])) == ("restore", ["old", "--replace"])
            with pytest.raises(ConsoleError) as second:
                console.client.command("count", "restore", name="older")
            refused.append(str(second.value))
            console.nodes.finish(task, True, "it goes back")
            return True
        return False

    doing = threading.Thread(target=lambda: wait_until(do_it))
    doing.start()
    said = console.client.command("count", "restore", name="old")["said"]
    doing.join()
    assert said == "it goes back\nit was stopped for it, and starts again"
    assert refused == ["something else is being done to 'count', which was stopped for it: look at its events, and try "
                       "again when it runs"]  # fmt: skip
    after = Desired(console.coordinator).get("count")
    assert after is not None
    assert after.goal is Goal.RUN


def test_another_number_of_replicas_is_for_one_that_does_not_run(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a version says is read in a process of its own, which takes its time.
    monkeypatch.setattr(watching, "SILENT_SECONDS", 600.0)
    submit(console, packed)
    Desired(console.coordinator).change("count", lambda now: replace(now, replicas=2))
    console.see("count", how="running")
    with pytest.raises(ConsoleError, match="running with replicas: 2, and this version says 1: stop it first"):
        submit(console, packed, replace=True)
    console.see("count", how="stopped")
    submit(console, packed, replace=True)


def test_what_a_topology_says_of_itself_is_passed_on(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
    asked = []

    def answer() -> bool:
        for task in console.nodes.tasks("a"):
            asked.append([task.verb, *task.arguments["words"]])
            console.nodes.finish(task, True, 'a note\n{"id": "1"}\n{"id": "2"}')
        return len(asked) == 4

    answering = threading.Thread(target=lambda: wait_until(answer))
    answering.start()
    paths = ("dead-letters?operator=own&last=5", "checkpoints", "state", "state?operator=counts&limit=7")
    for path in paths:
        assert console.client.get(f"/api/topologies/count/{path}") == [{"id": "1"}, {"id": "2"}]
    answering.join()
    assert asked == [["dead-letters", "--json", "--last", "5", "--operator", "own"], ["checkpoint", "--json", "--list"],
                     ["state", "--json"], ["state", "--json", "counts", "--limit", "7"]]  # fmt: skip


def test_a_log_comes_from_the_machine_where_it_is(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    with pytest.raises(ConsoleError, match="'count' has no node yet"):
        console.client.text("/api/topologies/count/log")
    # A node with a home of its own, as on another machine.
    elsewhere = ConsoleHome(console.home.path.parent / "elsewhere")
    place = elsewhere.topology("count", "a")
    place.path.mkdir(parents=True)
    place.log.write_text("it runs\n")
    replica = place.state.replica("1").logs
    replica.mkdir(parents=True)
    (replica / "replica.log").write_text("epoch 1\nepoch 2\n")
    Desired(console.coordinator).change("count", lambda now: replace(now, goal=Goal.STOP))
    with joined(console, NodeSupervisor(Node("a", "here", 1, "0"), elsewhere, console.coordinator, lambda _: b"")):
        wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
        assert console.client.text("/api/topologies/count/log") == "it runs\n"
        assert console.client.text("/api/topologies/count/log", replica="1") == "epoch 1\nepoch 2\n"
        with pytest.raises(ConsoleError, match="no replica '7': its replicas are 1"):
            console.client.text("/api/topologies/count/log", replica="7")
        with pytest.raises(ConsoleError, match="not on a node 'z': it is on a"):
            console.client.text("/api/topologies/count/log", node="z")
    # What was asked is not kept.
    assert console.coordinator.list("console/results/") == []
    console.coordinator.delete("console/nodes/a")
    with pytest.raises(ConsoleError, match="the node 'a' of 'count' is away"):
        console.client.text("/api/topologies/count/log")
    # Where the node's home is here too, nobody needs to be asked.
    here = console.home.topology("count", "a")
    here.path.mkdir(parents=True)
    here.log.write_text("it ran\n")
    assert console.client.text("/api/topologies/count/log") == "it ran\n"


@contextmanager
def joined(console: RunningConsole, node: NodeSupervisor) -> Iterator[None]:
    """While a node looks after what it is given."""
    node.join()
    thread = threading.Thread(target=node.run)
    thread.start()
    try:
        yield
    finally:
        node.stop()
        thread.join()


def test_with_several_nodes_the_logs_of_all_are_shown(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    Desired(console.coordinator).change("count", lambda now: replace(
        now, replicas=3, spread=True, nodes={"1": "a", "2": "b", "3": "c"}))
    for node in ("a", "b"):
        place = console.home.topology("count", node)
        place.path.mkdir(parents=True)
        place.log.write_text(f"here is {node}\nall is well\n")
    assert console.client.text("/api/topologies/count/log").splitlines() == [
        "a: here is a", "a: all is well", "b: here is b", "b: all is well",
        "c: the node 'c' of 'count' is away: nobody there can do it now"]  # fmt: skip
    assert console.client.text("/api/topologies/count/log", node="b") == "here is b\nall is well\n"
    wait_until(lambda: console.client.get("/api/topologies/count")["nodes"] == ["a", "b", "c"])
    shown = CliRunner().invoke(app, ["logs", "count", "--at", console.url])
    assert shown.stdout.splitlines() == ["a: here is a", "a: all is well", "b: here is b", "b: all is well"]
    assert "c: the node 'c' of 'count' is away" in shown.stderr


def test_a_log_that_is_followed_goes_on_with_what_is_new(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(console, packed)
    Desired(console.coordinator).change("count", lambda now: replace(
        now, replicas=2, spread=True, nodes={"1": "a", "2": "b"}))
    wait_until(lambda: console.client.get("/api/topologies/count")["nodes"] == ["a", "b"])
    logs = {node: console.home.topology("count", node).log for node in ("a", "b")}
    for node, log in logs.items():
        log.parent.mkdir(parents=True)
        log.write_text(f"here is {node}\n")

    def write(node: str, text: str) -> None:
        with logs[node].open("a") as log:
            log.write(text)

    # What happens while it waits for more; then Ctrl-C.
    meanwhile = [lambda: write("a", "one\ntw"), lambda: write("a", "o\n"), lambda: None, lambda: write("b", "three\n")]

    def wait(_: float) -> None:
        if not meanwhile:
            raise KeyboardInterrupt
        meanwhile.pop(0)()

    monkeypatch.setattr(topologies, "time", SimpleNamespace(sleep=wait))
    shown = CliRunner().invoke(app, ["logs", "count", "-f", "--at", console.url])
    assert shown.stdout.splitlines() == ["a: here is a", "b: here is b", "a: one", "a: two", "b: three"]
    # Of one node, as it stands there.
    meanwhile.append(lambda: write("b", "four\n"))
    shown = CliRunner().invoke(app, ["logs", "count", "--follow", "--node", "b", "--at", console.url])
    assert shown.stdout.splitlines() == ["here is b", "three", "four"]
    # More at once than the end of it that is shown.
    meanwhile.append(lambda: logs["b"].write_text("much later\n"))
    shown = CliRunner().invoke(app, ["logs", "count", "--follow", "--node", "b", "--at", console.url])
    assert shown.stdout.splitlines()[-2:] == ["… lines are left out: more was said at once than is shown", "much later"]


def test_it_is_stopped_for_what_cannot_be_done_while_it_runs(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
    console.see("count", how="running")
    goals = []

    def do_it() -> bool:
        wanted = Desired(console.coordinator).get("count")
        assert wanted is not None
        if wanted.goal is Goal.PAUSE and not goals:
            goals.append(wanted.goal)
            console.see("count", how="stopped")
        for task in console.nodes.tasks("a"):
            goals.append(wanted.goal)
            assert (task.verb, list(task.arguments["words"])) == ("dead-letters", ["--replay", "--operator", "own"])
            console.nodes.finish(task, True, "2 source tuples are read again")
            return True
        return False

    doing = threading.Thread(target=lambda: wait_until(do_it))
    doing.start()
    said = console.client.command("count", "dead-letters", action="replay", operator="own")["said"]
    doing.join()
    assert said == "2 source tuples are read again\nit was stopped for it, and starts again"
    assert goals == [Goal.PAUSE, Goal.PAUSE]
    after = Desired(console.coordinator).get("count")
    assert after is not None
    assert after.goal is Goal.RUN


def test_a_running_topology_is_not_removed(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.see("count", how="running")
    with pytest.raises(ConsoleError, match="stop it first"):
        console.client.remove("count")
    console.see("count", how="stopped")
    console.client.remove("count")
    assert Desired(console.coordinator).names() == []


def test_one_whose_node_is_lost_for_good_can_be_removed(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(console, packed)
    console.see("count", how="running")
    monkeypatch.setattr(watching, "SILENT_SECONDS", -1.0)
    assert "it ends when its node is back" in console.client.remove("count")["said"]
    assert Desired(console.coordinator).names() == []


def test_one_that_was_removed_begins_anew_where_that_is_asked(console: RunningConsole, packed: bytes) -> None:
    for fresh, times in ((False, 0), (True, 1), (False, 1), (True, 2)):
        submit(console, packed, fresh=fresh)
        wanted = Desired(console.coordinator).get("count")
        assert wanted is not None
        assert wanted.fresh == times
        console.see("count", how="stopped")
        console.client.remove("count")


def test_whoever_asks_is_told_what_is_so_now(tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    # By itself the master looks once.
    monkeypatch.setattr(master, "LOOK_SECONDS", 600.0)
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        submit(console, packed)
        for epoch, path in ((7, "/api/topologies"), (8, "/api/topologies/count")):
            console.nodes.tell("a", "count", {"how": "running", "why": "", "epoch": epoch, "at": time.time() + epoch,
                                              "replicas": [], "progress": None})  # fmt: skip
            wait_until(lambda path=path, epoch=epoch: f'"epoch":{epoch},' in raw(console, path)[1])  # type: ignore[misc]


def test_an_open_page_is_told_each_look_once(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(master, "LOOK_SECONDS", 600.0)
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        submit(console, packed)
        began = time.monotonic()
        with urllib.request.urlopen(f"{console.url}/api/stream?topology=count", timeout=10) as stream:
            told = (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))
            assert [next(told)["epoch"] for _ in range(5)] == [0] * 5
            # The first comes at once, and each further one after a look.
            assert time.monotonic() - began >= 4 * RECENT_SECONDS
            console.nodes.tell("a", "count", {"how": "running", "why": "", "epoch": 7, "at": time.time(),
                                              "replicas": [], "progress": None})  # fmt: skip
            assert next(one for one in told if one["epoch"])["epoch"] == 7


def test_rates_events_and_figures_come_from_what_nodes_see(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    progress = {"tuples": {"ticks": 100}, "delivered": {"out": 90}, "lag": 10, "epoch_ms": 50.0,
                "age_ms": 550.0, "late": 0, "failed": {}}  # fmt: skip
    console.see("count", at=1000.0, replicas=[view("1"), view("2")], progress=progress, epoch=5)
    later = progress | {"tuples": {"ticks": 300}, "delivered": {"out": 190}}
    console.see("count", at=1002.0, replicas=[view("1", "down", process=None), view("2")], progress=later, epoch=9)
    found = console.client.get("/api/topologies/count")
    assert found["rates"] == {"ticks": 100.0, "sink:out": 50.0}
    assert found["points"][-1]["in"] == 100.0
    assert (found["points"][-1]["epoch_ms"], found["points"][-1]["latency_ms"]) == (50.0, 550.0)
    assert (found["epoch_ms"], found["latency_ms"]) == (50.0, 550.0)
    said = [event["words"] for event in console.client.get("/api/events", topology="count")]
    assert "replica 1 on node-b is gone; the others go on" in said
    figures = console.client.text("/metrics")
    assert 'penstock_tuples_total{topology="count",node="sink:out"} 190.0' in figures
    assert 'penstock_replicas_safe{topology="count"} 1.0' in figures


def test_health_is_told_to_everybody(console: RunningConsole) -> None:
    assert raw(console, "/healthz") == (200, "alive\n")
    assert raw(console, "/readyz") == (200, "ready\n")


@contextmanager
def many_asking(console: RunningConsole, number: int, method: str, path: str, body: bytes | None = None
                ) -> Iterator[list[Future[tuple[int, Any]]]]:  # fmt: skip
    with ThreadPoolExecutor(number) as asking:
        yield [asking.submit(raw, console, path, method, body, Content_Type="application/json") for _ in range(number)]


def test_commands_that_wait_for_their_nodes_keep_nobody_from_looking(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than the server has threads for everything else."""
    over, waiting = threading.Event(), []

    def command(*_: Any) -> dict[str, Any]:
        waiting.append(None)
        over.wait(30)
        return {"done": True, "said": "done"}

    monkeypatch.setattr(service.Service, "command", command)
    with many_asking(console, 45, "POST", "/api/topologies/count/commands", b'{"verb": "restart"}') as given:
        try:
            wait_until(lambda: len(waiting) >= 40)
            for path in ("/healthz", "/readyz", "/metrics", "/api/topologies"):
                assert raw(console, path)[0] == 200
        finally:
            over.set()
        assert {each.result()[0] for each in given} == {200}


def test_more_commands_at_once_than_there_are_places_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    monkeypatch.setattr(api, "_COMMANDS_AT_ONCE", 2)
    begun: list[None] = []
    monkeypatch.setattr(service.Service, "command",
                        lambda *_: {"done": begun.append(None) or over.wait(30), "said": "done"})  # fmt: skip
    with running_console(tmp_path / "home") as console:
        path, body = "/api/topologies/count/commands", b'{"verb": "restart"}'
        with many_asking(console, 3, "POST", path, body) as given:
            try:
                wait_until(lambda: any(each.done() for each in given))
                code, said = next(each for each in given if each.done()).result()
                assert (code, "2 commands are being carried out, and this one was not" in said) == (429, True)
            finally:
                over.set()
        assert sorted(each.result()[0] for each in given) == [200, 200, 429]
        over.clear()
        with many_asking(console, 2, "POST", path, body) as given:
            try:
                wait_until(lambda: len(begun) == 4)
                # Whoever submits is one of them.
                assert raw(console, "/api/topologies", "POST", b"no bundle")[0] == 429
            finally:
                over.set()
        # Who is done makes room.
        assert raw(console, path, "POST", body, Content_Type="application/json")[0] == 200


def test_a_master_is_alive_also_while_all_its_threads_wait(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, waiting = threading.Event(), []

    def overview(_: Any) -> list[dict[str, Any]]:
        waiting.append(None)
        over.wait(30)
        return []

    monkeypatch.setattr(service.Service, "overview", overview)
    with many_asking(console, 41, "GET", "/api/topologies"):
        try:
            wait_until(lambda: len(waiting) >= 40)
            assert raw(console, "/healthz") == (200, "alive\n")
        finally:
            over.set()


def test_before_its_first_look_a_master_does_not_say_that_nothing_is_there(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    Desired(coordinator).add(Wanted("count", "0" * 64, "topology.yaml"))
    just_started = master.Master(coordinator, master.Candidate("m", "http://m", "0", 1))
    asked = service.Service(just_started, ConsoleHome(tmp_path), coordinator)
    for ask in (lambda: asked.details("count"), asked.overview):
        with pytest.raises(CoordinationError, match="has just started"):
            ask()
    just_started.watching.look()
    assert asked.details("count")["name"] == "count"
    with pytest.raises(CommandRefused, match="there is no topology 'other'"):
        asked.details("other")


def test_a_page_that_comes_before_the_first_look_stays_and_goes_on_by_itself(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    Desired(coordinator).add(Wanted("count", "0" * 64, "topology.yaml"))
    just_started = master.Master(coordinator, master.Candidate("m", "http://m", "0", 1))
    asked = service.Service(just_started, ConsoleHome(tmp_path), coordinator)
    anybody = api.Access(Tokens(coordinator), True, frozenset())

    async def connected() -> bool:
        return False

    async def told() -> list[str]:
        page: Any = SimpleNamespace(headers={}, cookies={}, is_disconnected=connected)
        looks = api._looks(page, asked, "count", anybody)
        first = await anext(looks)
        just_started.watching.look()
        return [first, await anext(looks)]

    before, after = asyncio.run(told())
    assert before.startswith("event: trouble") and "has just started" in before
    assert after.startswith("data: {") and '"name": "count"' in after


def test_who_sees_no_coordinator_or_no_leader_is_not_ready(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    with running_console(tmp_path, coordinator) as console:
        wait_until(lambda: raw(console, "/readyz") == (200, "ready\n"))
        coordinator.store.go_away()
        wait_until(lambda: raw(console, "/readyz") == (503, "the coordinator does not answer\n"))
        assert raw(console, "/healthz") == (200, "alive\n")
        coordinator.store.come_back()
        wait_until(lambda: raw(console, "/readyz") == (200, "ready\n"))
        # Nobody is left who could lead.
        console.master._election.resign()
        assert raw(console, "/readyz") == (503, "no master leads yet\n")


def first_look(console: RunningConsole, topology: str = "count") -> dict[str, Any]:
    """What a page is told first that comes, or comes back."""
    with urllib.request.urlopen(f"{console.url}/api/stream?topology={topology}", timeout=10) as stream:
        told: dict[str, Any] = json.loads(stream.readline().decode().removeprefix("data: "))
        return told


def test_a_page_that_leaves_and_comes_back_is_told_how_everything_is_now(
    console: RunningConsole, packed: bytes
) -> None:
    submit(console, packed)
    console.see("count", how="starting")
    assert first_look(console)["how"] == "starting"
    console.see("count", how="running", epoch=9)
    again = first_look(console)
    assert (again["how"], again["epoch"], again["graph"]["nodes"][0]["id"]) == ("running", 9, "ticks")


def test_pages_that_have_left_do_not_stand_in_the_way_of_others(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_LISTENERS", ThreadPoolExecutor(2))
    submit(console, packed)
    for _ in range(6):
        assert first_look(console)["name"] == "count"


def test_a_page_says_that_the_coordinator_is_away_and_what_was_known_before(tmp_path: Path, packed: bytes) -> None:
    coordinator = MemoryCoordinator()
    with running_console(tmp_path / "home", coordinator) as console:
        wait_until(lambda: console.master.leading)
        submit(console, packed)
        with urllib.request.urlopen(f"{console.url}/api/stream", timeout=10) as stream:
            lines = (line.decode().rstrip() for line in stream)
            assert next(lines).startswith("data: [")
            coordinator.store.go_away()
            wait_until(lambda: next(lines) == "event: trouble")
            told = json.loads(next(lines).removeprefix("data: "))
            assert told["error"] == console.master.watching.trouble != ""
            assert [each["name"] for each in told["known"]] == ["count"]
            coordinator.store.come_back()
            wait_until(lambda: next(lines).startswith("data: ["))


def test_the_load_is_of_one_that_runs(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    progress = {"tuples": {"ticks": 100, "kept": 90}, "delivered": {"out": 90}, "lag": 10, "epoch_ms": 50.0, "late": 0,
                "failed": {}, "at_work": 0.35}  # fmt: skip
    console.see("count", progress=progress)
    found = console.client.get("/api/topologies/count")["load"]
    assert (found["at_work"], found["behind"], set(found["nodes"])) == (0.35, False, {"ticks", "kept", "sink:out"})
    assert 'penstock_at_work{topology="count"} 0.35' in console.client.text("/metrics")
    console.see("count", progress=progress, how="stopped")
    assert console.client.get("/api/topologies/count")["load"] == {"at_work": 0.0, "behind": False, "nodes": {}}


# Who may come in.

@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RunningConsole]:
    with running_console(tmp_path / "home", open_to_all=False) as console:
        wait_until(lambda: console.master.leading)
        yield console


OPEN = {("GET", "/"), ("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/api/session"), ("DELETE", "/api/session")}
"""The page has nothing in it, whether it is alive is told to everybody, and who gives a token has none yet."""
PLACES = {"{name}": "count", "{digest}": "0" * 64}


def routes(console: RunningConsole) -> list[tuple[str, str, bool]]:
    """All that can be asked: how, where, and whether it is for operators only."""
    found = [(method, route.path, "command" in route.tags) for route in console.app.routes
             if isinstance(route, APIRoute) for method in route.methods]  # fmt: skip
    assert {(method, path) for method, path, _ in found} >= {
        *OPEN, ("GET", "/metrics"), ("GET", "/api/stream"), ("POST", "/api/topologies/{name}/commands"),
        ("DELETE", "/api/topologies/{name}"), ("GET", "/api/bundles/{digest}")}  # fmt: skip
    return [each for each in found if each[:2] not in OPEN]


def code_for(console: RunningConsole, method: str, path: str, token: str = "") -> tuple[int, str]:
    """What is answered to somebody with a token; of what does not end, only that it begins."""
    for name, value in PLACES.items():
        path = path.replace(name, value)
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    body = {"data": b'{"verb": "stop"}', "headers": {"Content-Type": "application/json", **bearer}}
    request = urllib.request.Request(console.url + path, method=method, **(
        body if method == "POST" else {"headers": bearer}))  # type: ignore[arg-type]
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_without_a_token_nothing_is_told_and_nothing_done(guarded: RunningConsole) -> None:
    for method, path, _ in routes(guarded):
        code, said = code_for(guarded, method, path)
        assert (code, "a token is needed" in said) == (401, True), f"{method} {path}"
    assert not guarded.home.audit.exists()


def test_each_command_takes_an_operators_token_and_a_viewers_is_enough_to_look(guarded: RunningConsole) -> None:
    viewer, operator = (guarded.tokens.create("ann", role) for role in (Role.VIEWER, Role.OPERATOR))
    for method, path, commands in routes(guarded):
        # What is not a question is a command, and so are the files of a topology.
        assert commands == (method != "GET" or "bundles" in path), path
        code, said = code_for(guarded, method, path, viewer)
        assert ("may look but not command" in said) == (code == 403) == commands, f"{method} {path}: {code} {said}"
        assert code_for(guarded, method, path, operator)[0] not in (401, 403), f"{method} {path}"


def test_a_wrong_token_and_an_expired_one_are_told_apart(guarded: RunningConsole) -> None:
    right = guarded.tokens.create("ann", Role.VIEWER)
    assert raw(guarded, "/api/topologies", Authorization=f"Bearer {right}")[0] == 200
    code, said = raw(guarded, "/api/topologies", Authorization=f"Bearer {right[:-1]}x")
    assert (code, "the token is wrong" in said) == (401, True)
    old = guarded.tokens.create("ann", Role.VIEWER, seconds=-1)
    code, said = raw(guarded, "/api/topologies", Authorization=f"Bearer {old}")
    assert (code, "has expired" in said) == (401, True)
    guarded.tokens.revoke(right.split("_")[1])
    assert raw(guarded, "/api/topologies", Authorization=f"Bearer {right}")[0] == 401


def test_an_open_page_ends_when_its_token_is_revoked(guarded: RunningConsole) -> None:
    token = guarded.tokens.create("ann", Role.VIEWER)
    request = urllib.request.Request(f"{guarded.url}/api/stream", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as stream:
        lines = (line.decode().rstrip() for line in stream)
        assert next(lines).startswith("data: [")
        guarded.tokens.revoke(token.split("_")[1])
        # What was being sent still comes; then why there is no more, and the end.
        *_, kind, why, empty = islice(lines, 100)
    assert (kind, empty) == ("event: gone", "")
    assert "the token is wrong" in json.loads(why.removeprefix("data: "))["error"]


def test_who_may_look_may_not_command(guarded: RunningConsole, packed: bytes) -> None:
    viewer = Client(guarded.url, guarded.tokens.create("ann", Role.VIEWER))
    operator = Client(guarded.url, guarded.tokens.create("bob", Role.OPERATOR))
    with pytest.raises(ConsoleError, match="ann may look but not command"):
        viewer.submit(packed, "topology.yaml", (), False, False)
    digest = operator.submit(packed, "topology.yaml", (), False, False)["digest"]
    for ask in (lambda: viewer.command("count", "stop"), lambda: viewer.remove("count"),
                lambda: viewer.text(f"/api/bundles/{digest}")):  # fmt: skip
        with pytest.raises(ConsoleError, match="may look but not command"):
            ask()
    operator.command("count", "stop")
    noted = [(line["who"], line["role"], line["command"], line["topology"], line.get("outcome"))
             for line in (*audit(guarded, "refusals.jsonl"), *audit(guarded))]  # fmt: skip
    assert noted == [
        ("ann", "viewer", "POST /api/topologies", None, "refused"),
        ("ann", "viewer", "POST /api/topologies/count/commands", "count", "refused"),
        ("ann", "viewer", "DELETE /api/topologies/count", "count", "refused"),
        ("bob", "operator", "submit", None, None),
        ("bob", "operator", "submit", "count", "done"),
        ("bob", "operator", "stop", "count", None),
        ("bob", "operator", "stop", "count", "done"),
    ]


def test_who_may_only_look_cannot_push_commands_out_of_the_audit(guarded: RunningConsole) -> None:
    viewer = guarded.tokens.create("ann", Role.VIEWER)
    for _ in range(70):
        assert code_for(guarded, "POST", f"/api/topologies/{'x' * 5000}/commands", viewer)[0] == 403
    assert not guarded.home.audit.exists()
    refusals = guarded.home.audit.with_name("refusals.jsonl")
    assert len(refusals.read_text().splitlines()) == 60
    assert refusals.stat().st_size < 60 * 1000


def test_what_was_commanded_is_never_overwritten_and_refusals_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "_LONGEST", 0)
    kept = audit_file.Audit(tmp_path / "audit.jsonl")
    ann, bob = Person("ann", Role.VIEWER), Person("bob", Role.OPERATOR)
    for topology in "abcd":
        kept.note(bob, "", "stop", topology)
        kept.refused(ann, "", "POST", topology, "ann may look but not command")
    found = {path.name: [json.loads(line)["topology"] for line in path.read_text().splitlines()]
             for path in tmp_path.iterdir()}  # fmt: skip
    assert found == {"audit.1.jsonl": ["a"], "audit.2.jsonl": ["b"], "audit.3.jsonl": ["c"], "audit.jsonl": ["d"],
                     "refusals.1.jsonl": ["c"], "refusals.jsonl": ["d"]}  # fmt: skip


def test_a_submission_that_is_no_bundle_is_in_the_audit(console: RunningConsole) -> None:
    with pytest.raises(ConsoleError):
        console.client.submit(b"no archive", "topology.yaml", (), False, False)
    (line,) = audit(console)
    assert (line["command"], line["outcome"]) == ("submit", "refused")


def audit(console: RunningConsole, name: str = "audit.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in console.home.audit.with_name(name).read_text().splitlines()]


def test_what_came_of_a_command_is_written_down_with_it(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    for verb in ("freeze", "crash"):
        with pytest.raises(ConsoleError):
            console.client.command("count", verb)
    with pytest.raises(ConsoleError):
        console.client.command("sum", "stop")
    lines = audit(console)
    # Each before it is carried out, and again when it is known what came of it.
    assert [line["id"] for line in lines[::2]] == [line["id"] for line in lines[1::2]]
    assert len({line["id"] for line in lines}) == 4
    assert [(line["command"], line["outcome"], line["said"].partition(":")[0]) for line in lines[1::2]] == [
        ("submit", "done", "'count' was submitted"),
        ("freeze", "refused", "'count' has no node yet"),
        ("crash", "refused", "'count' may not be crashed on purpose"),
        ("stop", "refused", "there is no topology 'sum'; the topologies are"),
    ]  # fmt: skip


def test_a_command_that_nobody_has_answered_yet_is_pending_and_one_that_broke_has_failed(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
    monkeypatch.setattr(task_giving, "ANSWER_SECONDS", 0.0)
    given = Nodes.give

    def begun(self: Nodes, task: Task) -> None:
        given(self, task)
        self.begin(task, "a start of the node's supervisor")

    monkeypatch.setattr(Nodes, "give", begun)
    assert not console.client.command("count", "freeze")["done"]

    def away(self: Nodes, task: Task) -> None:
        raise CoordinationError("the coordinator does not answer")

    monkeypatch.setattr(Nodes, "give", away)
    code, said = give_raw(console, "freeze")
    assert code == 504 and "the outcome is not known (CoordinationError: the coordinator does not answer)" in said
    pending, failed = audit(console)[3::2]
    assert (pending["outcome"], failed["outcome"]) == ("pending", "failed")
    assert failed["said"] == "CoordinationError: the coordinator does not answer"


def give_raw(console: RunningConsole, verb: str, **headers: str) -> tuple[int, Any]:
    body = json.dumps({"verb": verb}).encode()
    return raw(console, "/api/topologies/count/commands", "POST", body, Content_Type="application/json", **headers)


@pytest.mark.parametrize("trouble", [CoordinationError("the coordinator does not answer"), OSError("disk full")])
def test_of_what_was_given_to_a_node_nobody_says_that_it_was_not_done(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)

    def away(self: Nodes, task: str) -> None:
        raise trouble

    monkeypatch.setattr(Nodes, "result", away)
    code, said = give_raw(console, "checkpoint", Idempotency_Key="once")
    assert (code, "it may have been done" in said) == (504, True)
    assert [task.verb for task in console.nodes.tasks("a")] == ["checkpoint"]
    # With its key it is not given a second time.
    code, said = give_raw(console, "checkpoint", Idempotency_Key="once")
    assert (code, "its outcome is not known" in said) == (200, True)
    assert len(console.nodes.tasks("a")) == 1


@pytest.mark.parametrize(("verb", "answer"), [("stop", (200, "it stops after its epoch")),
                                              ("crash", (409, "may not be crashed"))])  # fmt: skip
def test_what_came_of_a_command_is_told_although_it_could_not_be_kept(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch, verb: str, answer: tuple[int, str]
) -> None:
    submit(console, packed)
    put = MemoryCoordinator.put

    def away(self: MemoryCoordinator, key: str, value: str) -> None:
        if key.startswith("console/commands/"):
            raise CoordinationError("the coordinator does not answer")
        put(self, key, value)

    monkeypatch.setattr(MemoryCoordinator, "put", away)
    code, said = give_raw(console, verb, Idempotency_Key="once")
    assert (code, answer[1] in said) == (answer[0], True)


def test_a_command_that_no_node_has_begun_is_refused_and_is_not_done_later(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
    monkeypatch.setattr(task_giving, "ANSWER_SECONDS", 0.0)
    seen: list[Task] = []
    given = Nodes.give

    def noted(self: Nodes, task: Task) -> None:
        given(self, task)
        seen.append(task)

    monkeypatch.setattr(Nodes, "give", noted)
    with pytest.raises(ConsoleError, match="node a does not answer, and nothing was done"):
        console.client.command("count", "freeze")
    assert console.nodes.tasks("a") == []
    # Also where the node has read it just before.
    assert not console.nodes.begin(seen[0], "a start of the node's supervisor")


def test_a_token_is_kept_as_a_digest_only(guarded: RunningConsole) -> None:
    token = guarded.tokens.create("ann", Role.VIEWER)
    kept = [guarded.coordinator.get(key) or "" for key in guarded.coordinator.list("console/tokens/")]
    assert kept
    assert not any(token.split("_", 2)[2] in text for text in kept)


def test_a_browser_keeps_its_token_where_pages_cannot_read_it(guarded: RunningConsole) -> None:
    token = guarded.tokens.create("ann", Role.VIEWER)
    request = urllib.request.Request(f"{guarded.url}/api/session", json.dumps({"token": token}).encode(),
                                     {"Content-Type": "application/json"}, method="POST")  # fmt: skip
    with urllib.request.urlopen(request, timeout=10) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert raw(guarded, "/api/topologies", Cookie=cookie.partition(";")[0])[0] == 200


def test_two_consoles_of_one_machine_do_not_share_their_cookie(
    guarded: RunningConsole, tmp_path: Path
) -> None:
    token = guarded.tokens.create("ann", Role.VIEWER)
    port = guarded.url.rpartition(":")[2]
    # A browser sends all that it has for this host.
    both = f"penstock-1=something; penstock-{port}={token}"
    assert raw(guarded, "/api/topologies", Cookie=both)[0] == 200
    assert raw(guarded, "/api/topologies", Cookie=f"penstock-1={token}")[0] == 401
    assert raw(guarded, "/api/session", "DELETE")[0] == 204


def test_where_no_token_is_needed_a_wrong_cookie_keeps_nobody_out(console: RunningConsole) -> None:
    cookie = f"penstock-{console.url.rpartition(':')[2]}=penstock_abc_left-over"
    assert raw(console, "/api/topologies", Cookie=cookie)[0] == 200
    # Who gives a token by hand means it.
    code, said = raw(console, "/api/topologies", Cookie=cookie, Authorization="Bearer penstock_abc_wrong")
    assert (code, "the token is wrong" in said) == (401, True)


def test_a_command_is_bounded_before_anybody_looks_at_it(console: RunningConsole) -> None:
    long = b"x" * 200_000
    assert raw(console, "/api/session", "POST", long, Content_Type="application/json")[0] == 413
    assert raw(console, "/api/topologies/t/commands", "POST", long, Content_Type="application/json")[0] == 413


def test_pages_from_elsewhere_may_not_ask_either(console: RunningConsole) -> None:
    assert raw(console, "/api/topologies", Sec_Fetch_Site="cross-site")[0] == 403
    assert raw(console, "/api/topologies", Sec_Fetch_Site="same-origin")[0] == 200


def test_values_of_sets_are_not_in_the_audit(console: RunningConsole, packed: bytes) -> None:
    console.client.submit(packed, "topology.yaml", ("dead_letters=secret",), False, False)
    assert audit(console)[0]["sets"] == ["dead_letters"]
    with pytest.raises(ConsoleError):
        console.client.submit(packed, "topology.yaml", ("sinks.out.nonsense=secret",), False, False)
    assert audit(console)[-1]["outcome"] == "refused"
    assert "nonsense" in audit(console)[-1]["said"]
    assert "secret" not in console.home.audit.read_text()


def test_values_of_sets_are_not_told(console: RunningConsole, packed: bytes) -> None:
    console.client.submit(packed, "topology.yaml", ("sinks.out.file=out/hunter22.jsonl",), False, False)
    told = [console.client.text(path) for path in ("/api/topologies", "/api/topologies/count", "/api/events")]
    assert "file …" in json.loads(told[1])["graph"]["nodes"][-1]["brief"]
    assert [text for text in told if "hunter22" in text] == []


def test_what_stands_for_a_variable_is_not_told(
    console: RunningConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_PLACE", "hunter22")
    packed = bundle(tmp_path, place='"out/${env:PENSTOCK_TEST_PLACE}.jsonl"')
    submit(console, packed)
    graph = console.client.get("/api/topologies/count")["graph"]
    assert graph["nodes"][-1]["brief"] == "file out/….jsonl"
    assert (Desired(console.coordinator).get("count") or pytest.fail("gone")).variables == ("PENSTOCK_TEST_PLACE",)


def test_a_refusal_does_not_repeat_what_was_set(console: RunningConsole, packed: bytes) -> None:
    with pytest.raises(ConsoleError, match="'…' is not a whole number"):
        console.client.submit(packed, "topology.yaml", ("replicas=hunter22",), False, False)
    kept = [console.coordinator.get(key) or "" for key in console.coordinator.list("console/commands/")]
    assert ["refused" in text for text in kept] == [True]
    assert not any("hunter22" in text for text in kept)


def test_what_is_set_is_not_in_the_address(console: RunningConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[urllib.request.Request] = []

    def urlopen(request: urllib.request.Request, **_: Any) -> Any:
        asked.append(request)
        raise OSError("nobody is there")

    with monkeypatch.context() as instead, pytest.raises(ConsoleError):
        instead.setattr(urllib.request, "urlopen", urlopen)
        console.client.submit(b"", "topology.yaml", ("a=hünter22",), False, False)
    assert "nter22" not in asked[0].full_url
    assert json.loads(asked[0].headers["Penstock-sets"]) == ["a=hünter22"]
    code, said = raw(console, "/api/topologies?set=a%3Dhunter22", "POST", b"")
    assert (code, "the header Penstock-Sets" in said, "hunter22" in said) == (422, True, False)


@pytest.mark.parametrize("sets", ["hunter22", '{"a": "hunter22"}', '["hunter22"]', "[22]", '["=hunter22"]',
                                  json.dumps(["a=hunter22"] * 101), json.dumps([f"a={'hunter22' * 300}"])])  # fmt: skip
def test_what_cannot_be_set_is_refused_and_not_repeated(console: RunningConsole, sets: str) -> None:
    code, said = raw(console, "/api/topologies", "POST", b"", Penstock_Sets=sets)
    assert (code, "of at most 100 texts KEY=VALUE" in said, "hunter22" in said) == (422, True, False)


def test_more_is_set_than_a_header_holds(console: RunningConsole) -> None:
    sets = [f"a{number}={'x' * 1000}" for number in range(60)]
    with pytest.raises(ConsoleError, match="put it into the topology's file"):
        console.client.submit(b"", "topology.yaml", sets, False, False)
    assert raw(console, "/api/topologies", "POST", b"", Penstock_Sets=json.dumps(sets)[:55_000])[0] == 422


def test_one_question_about_a_topology_at_a_time(console: RunningConsole, packed: bytes) -> None:
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)
    first = threading.Thread(target=lambda: raw(console, "/api/topologies/count/state"))
    first.start()
    wait_until(lambda: console.nodes.tasks("a"))
    code, said = raw(console, "/api/topologies/count/state")
    assert (code, "try again" in said) == (429, True)
    (task,) = console.nodes.tasks("a")
    console.nodes.finish(task, True, '{"a": 1}\n{no json\n')
    first.join()


def submit_to_node(console: RunningConsole, packed: bytes) -> None:
    """A topology that has a node."""
    submit(console, packed)
    console.node("a")
    wait_until(lambda: (wanted := Desired(console.coordinator).get("count")) and wanted.nodes)


@pytest.mark.parametrize(("verb", "how", "code", "words"), [
    ("restart", "stopping", 200, "its epoch takes longer than 0 s: it stops after that, and starts again"),
    ("restart", "running", 409, "the node of 'count' has not begun to stop it within 0 s"),
    ("restart", "failed", 200, "it was stopped after its epoch"),
    ("dead-letters", "stopping", 409, "the epoch of 'count' takes longer than 0 s, and nothing was done"),
    ("dead-letters", "running", 409, "the node of 'count' has not begun to stop it within 0 s"),
])  # fmt: skip
def test_of_what_does_not_stop_in_time_it_is_not_said_that_it_has(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch, verb: str, how: str, code: int, words: str
) -> None:
    monkeypatch.setattr(service, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(task_giving, "ANSWER_SECONDS", 0.0)
    submit_to_node(console, packed)
    console.see("count", how=how)
    command = {"verb": verb} | ({"action": "replay"} if verb == "dead-letters" else {})
    found, said = raw(console, "/api/topologies/count/commands", "POST", json.dumps(command).encode(),
                      Content_Type="application/json")  # fmt: skip
    assert (found, words in said) == (code, True), said
    if code == 200:
        assert json.loads(said)["done"] == (how == "failed")
    wanted = Desired(console.coordinator).get("count")
    assert wanted is not None
    assert wanted.goal is Goal.RUN
    assert console.nodes.tasks("a") == []


def test_a_command_that_waits_for_another_one_is_refused_with_that(
    console: RunningConsole, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_giving, "ANSWER_SECONDS", 0.0)
    submit_to_node(console, packed)
    console.see("count", busy=True)
    with pytest.raises(ConsoleError, match="something else is being done to 'count' on node a, and nothing was done"):
        console.client.command("count", "checkpoint")
    assert console.nodes.tasks("a") == []


def test_a_stop_that_is_given_during_a_restart_holds(console: RunningConsole, packed: bytes) -> None:
    submit_to_node(console, packed)
    console.see("count", how="running")
    restarting = threading.Thread(target=lambda: console.client.command("count", "restart"))
    restarting.start()

    def goal() -> Goal | None:
        wanted = Desired(console.coordinator).get("count")
        return None if wanted is None else wanted.goal

    wait_until(lambda: goal() is Goal.PAUSE)
    console.client.command("count", "stop")
    console.see("count", how="stopped")
    restarting.join()
    assert goal() is Goal.STOP


def test_a_page_from_elsewhere_is_turned_away(console: RunningConsole) -> None:
    assert raw(console, "/api/topologies", "POST", b"", Origin="http://evil.example")[0] == 403
    assert raw(console, "/api/topologies", Host="evil.example")[0] == 403


def test_where_the_audit_cannot_be_written_it_is_said(
    console: RunningConsole, packed: bytes, tmp_path: Path
) -> None:
    submit(console, packed)
    console.home.audit.unlink()
    console.home.audit.mkdir()
    assert "could not be written" in console.client.command("count", "stop")["warning"]
    own = str(tmp_path / "own")
    for words in (("start", "count"), ("submit", own, "--replace"), ("submit", own, "--replace", "--json"),
                  ("remove", "count")):  # fmt: skip
        said = penstock(*words, "--at", console.url)
        assert said.exit_code == 0, said.output
        told = said.stdout if "--json" in words else said.stderr
        assert f"it could not be written to {console.home.audit}: Is a directory" in told, words


# Several masters.

def test_a_standby_shows_the_same_refuses_commands_and_takes_over(tmp_path: Path, packed: bytes) -> None:
    coordinator = MemoryCoordinator()
    with running_console(tmp_path / "one", coordinator, "one") as one:
        wait_until(lambda: one.master.leading)
        submit(one, packed)
        with running_console(tmp_path / "two", coordinator, "two") as two:
            wait_until(lambda: two.client.get("/api/topologies"))
            with pytest.raises(ConsoleError, match="give it to http://one"):
                two.client.command("count", "stop")
            (line,) = audit(two)
            assert (line["command"], line["topology"], line["outcome"]) == ("stop", "count", "refused")
            assert "give it to http://one" in line["said"]
            one.master.stop()
            wait_until(lambda: two.master.leading)
            assert two.client.command("count", "stop")["done"]
            assert two.client.get("/api/console")["leading"]


def test_no_console_says_how_to_start_one() -> None:
    with pytest.raises(ConsoleError, match="penstock up"):
        Client("http://127.0.0.1:9").get("/api/topologies")
