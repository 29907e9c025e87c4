"""A console that runs topologies, and dies while they go on."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from penstock.cli.stopping import INTERRUPTED
from penstock.console.bundle import pack
from penstock.console.desired import Desired
from penstock.console.home import ConsoleHome
from penstock.coordination.opening import open_coordinator
from penstock.errors import ConsoleError
from penstock.replication.roster import Roster
from penstock.replication.views import all_safe
from penstock.runtime.state_folder import StateFolder

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK, run_penstock
from .readings import TICKS
from .running_console import Console, Supervisor, console, kill_topologies

pytestmark = pytest.mark.by_itself

STREAM = TICKS.replace("topology: readings", "topology: stream") + "  ids: {from: ticks, file: out/ids.jsonl}\n"
BOUNDED = STREAM.replace("topology: stream", "topology: bounded").replace("rate: 50", "count: 100")
END = '"event": "end"'
"""What a topology says last."""
TAKEOVER_SECONDS = 5.0
QUIET_SECONDS = 6.0
"""Longer than a standby takes to lead."""
NOTICED_SECONDS = 1.5
"""A pause that a busy machine does not explain: nobody leads for longer than that."""


def submit(at: Console, folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "topology.yaml").write_text(text)
    at.client.submit(pack(folder), "topology.yaml", (), False, False)


def test_topologies_outlive_the_console_which_finds_them_again(tmp_path: Path) -> None:
    with console(tmp_path) as running:
        submit(running, tmp_path / "stream", STREAM)
        submit(running, tmp_path / "bounded", BOUNDED)
        state = running.state("stream")
        wait_until(lambda: running.how("stream") == "running", PATIENCE_SECONDS)
        wait_until(lambda: running.how("bounded") == "ended", PATIENCE_SECONDS)
        process, before = state.running(), state.furthest().committed().epoch
        running.kill()
        # Nobody watches, and results go on.
        wait_until(lambda: state.furthest().committed().epoch > before + 5, PATIENCE_SECONDS)
        running.start()
        wait_until(lambda: running.how("stream") == "running")
        assert state.running() == process
        wait_until(lambda: running.client.get("/api/topologies/stream")["rates"].get("ticks", 0) > 10)
        assert 'penstock_up{topology="stream"} 1.0' in running.client.text("/metrics")
        wait_until(lambda: running.client.get("/api/console")["leading"])
        running.client.command("stream", "interval", interval="30s")
        with followed(running, "stream", tmp_path / "followed") as log:
            wait_until(log.read_text, PATIENCE_SECONDS)
            assert END not in log.read_text()
            running.client.command("stream", "stop")
            wait_until(lambda: running.how("stream") == "stopped", PATIENCE_SECONDS)
            wait_until(lambda: END in log.read_text())
        assert_whole(rows(running))
        assert len(rows(running)) > 50


@contextmanager
def followed(at: Console, topology: str, shown: Path) -> Iterator[Path]:
    """While somebody follows its log, until Ctrl-C; the file has what is shown."""
    with shown.open("wb") as out:
        # Tests that run in the background of a script ignore Ctrl-C, and so would what they start.
        process = subprocess.Popen([PENSTOCK, "logs", topology, "-f", "--at", at.url], stdout=out,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip
    try:
        yield shown
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == INTERRUPTED
    finally:
        process.kill()
        process.wait()


def test_a_standby_takes_over_from_a_master_that_was_killed_and_nobody_waits(tmp_path: Path) -> None:
    home = tmp_path / "home"
    masters = first, second = Console(home, command="master"), Console(home, command="master")
    node = Supervisor(home)
    try:
        for each in (*masters, node):
            each.start()
        submit(first, tmp_path / "stream", STREAM)
        wait_until(lambda: second.client.get("/api/topologies"))
        with pytest.raises(ConsoleError, match="give it to"):
            second.client.command("stream", "stop")
        wait_until(lambda: second.how("stream") == "running", PATIENCE_SECONDS)
        before = longest_pause(second.state("stream"), QUIET_SECONDS)
        already = len(rows(second))
        first.kill()
        taken_over = Future[float]()
        threading.Thread(target=tell_takeover, args=(second, time.monotonic(), taken_over)).start()
        pause = longest_pause(second.state("stream"), QUIET_SECONDS)
        assert pause <= max(before, NOTICED_SECONDS)
        assert taken_over.result(PATIENCE_SECONDS) <= TAKEOVER_SECONDS
        # What the page of the standby is drawn from.
        told = second.client.get("/api/topologies/stream")
        assert (told["how"], [each["id"] for each in told["graph"]["nodes"]][:1]) == ("running", ["ticks"])
        assert told["rates"]["ticks"] > 0
        assert len(rows(second)) > already
        second.client.command("stream", "stop")
        wait_until(lambda: second.how("stream") == "stopped", PATIENCE_SECONDS)
        assert_whole(rows(second))
    finally:
        for one in (*masters, node):
            one.stop()
        kill_topologies(home)


def rows(at: Console) -> list[str]:
    return (at.work("stream") / "out/ids.jsonl").read_text().splitlines()


def assert_whole(output: list[str]) -> None:
    """Of a stream that has stopped: nothing is lost, nothing doubled, and nothing left out in between."""
    ids = sorted(json.loads(row)["id"] for row in output)
    assert ids == list(range(len(ids)))


def tell_takeover(standby: Console, killed: float, seconds: Future[float]) -> None:
    """How long after the leader was killed the standby leads."""
    try:
        wait_until(lambda: standby.client.get("/api/console")["leading"])
        seconds.set_result(time.monotonic() - killed)
    except BaseException as error:
        seconds.set_exception(error)


def longest_pause(state: StateFolder, seconds: float) -> float:
    """The longest that no epoch came, of so many seconds from now."""
    end, longest = time.monotonic() + seconds, 0.0
    last, since = state.furthest().committed().epoch, time.monotonic()

    def has_looked_long_enough() -> bool:
        nonlocal last, since, longest
        epoch = state.furthest().committed().epoch
        if epoch != last:
            longest = max(longest, time.monotonic() - since)
            last, since = epoch, time.monotonic()
        return time.monotonic() >= end

    wait_until(has_looked_long_enough)
    return max(longest, time.monotonic() - since)


def test_a_console_speaks_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key, trusted = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    console = Console(tmp_path / "home", "--certificate", str(certificate), "--key", str(key), command="master",
                      authority=trusted)  # fmt: skip
    console.start()
    try:
        assert console.url.startswith("https:")
        assert console.client.get("/api/topologies") == []
        listed = run_penstock("list", "--at", console.url, "--authority", str(trusted))
        assert (listed.returncode, "no topologies yet" in listed.stdout) == (0, True), listed.stderr
        untrusted = run_penstock("list", "--at", console.url)
        assert (untrusted.returncode, "certificate verify failed" in untrusted.stderr) == (1, True)
    finally:
        console.stop()


def test_replicas_on_nodes_of_their_own_outlive_a_node(tmp_path: Path) -> None:
    home = tmp_path / "home"
    master = Console(home, command="master")
    nodes = one, two, three = [Supervisor(home, name) for name in ("n1", "n2", "n3")]
    rows = tmp_path / "ids.jsonl"
    spread = STREAM.replace("epoch:", "replicas: 2\ncells: any\nepoch:").replace("200ms", "500ms")

    def nodes_of() -> dict[str, str]:
        wanted = Desired(open_coordinator(ConsoleHome(home).coordinator)).get("stream")
        return {} if wanted is None else wanted.nodes

    def is_safe() -> bool:
        return bool(master.client.get("/api/topologies/stream")["safety"] == "2/2 safe")

    try:
        for each in (master, one, two):
            each.start()
        wait_until(lambda: len(master.client.get("/api/console")["nodes"]) == 2)
        folder = tmp_path / "stream"
        folder.mkdir()
        (folder / "topology.yaml").write_text(spread)
        with pytest.raises(ConsoleError, match=r"ids: out/ids\.jsonl"):
            master.client.submit(pack(folder), "topology.yaml", (), False, False, True)
        (folder / "topology.yaml").write_text(spread.replace("out/", f"{tmp_path}/"))
        master.client.submit(pack(folder), "topology.yaml", (), False, False, True)
        wait_until(is_safe, PATIENCE_SECONDS)
        assert nodes_of() == {"1": "n1", "2": "n2"}
        assert [sorted(each.state("stream").replicas()) for each in (one, two)] == [["1"], ["2"]]
        three.start()
        before = two.state("stream").furthest().committed().epoch
        one.fall("stream")
        # The other one goes on, and the lost one comes back where there is room.
        wait_until(lambda: two.state("stream").furthest().committed().epoch > before + 3, PATIENCE_SECONDS)
        wait_until(lambda: nodes_of() == {"1": "n3", "2": "n2"}, PATIENCE_SECONDS)
        wait_until(is_safe, PATIENCE_SECONDS)
        # From its sibling's checkpoint, on another node, and not from the beginning.
        assert "going on from a sibling's checkpoint" in (
            three.state("stream").replica("1").logs / "replica.log").read_text()
        # Another version, put in place on one node after the other.
        coordinator = open_coordinator(f"sqlite:{home}/spread/stream.sqlite")
        roster = Roster(coordinator)
        before_it = {member.run for member in roster.members().values()}
        (folder / "topology.yaml").write_text(spread.replace("out/", f"{tmp_path}/").replace("500ms", "400ms"))
        master.client.submit(pack(folder), "topology.yaml", (), True, False, True)

        def is_renewed() -> bool:
            members = roster.members()
            new = not before_it & {member.run for member in members.values()}
            return new and all_safe(("1", "2"), members, roster.told(), 0)

        wait_until(is_renewed, PATIENCE_SECONDS)
        wait_until(lambda: not master.client.get("/api/topologies/stream")["busy"], PATIENCE_SECONDS)
        # Back to a checkpoint, on both nodes: the sinks skip what they have.
        master.client.command("stream", "checkpoint", name="kept")
        (kept,) = master.client.get("/api/topologies/stream/checkpoints")
        assert kept["node"] == "n2"
        later = kept["epoch"] + 4
        wait_until(lambda: three.state("stream").furthest().committed().epoch > later, PATIENCE_SECONDS)
        before_it = {member.run for member in roster.members().values()}
        said = master.client.command("stream", "restore", name="kept")["said"]
        assert said.startswith(f"'stream' goes back to epoch {kept['epoch']}, on all nodes, when it starts")
        wait_until(is_renewed, PATIENCE_SECONDS)
        for node in (two, three):
            (replica,) = node.state("stream").replicas().values()
            assert "going on from a sibling's checkpoint" in (replica.logs / "replica.log").read_text()
            assert node.state("stream").history() == 1
        reached = max(node.state("stream").furthest().committed().epoch for node in (two, three))
        wait_until(lambda: all(node.state("stream").furthest().committed().epoch > max(reached, later) + 3
                               for node in (two, three)), PATIENCE_SECONDS)  # fmt: skip
        coordinator.close()
        master.client.command("stream", "kill")
        wait_until(lambda: master.how("stream") == "stopped", PATIENCE_SECONDS)
        ids = sorted(json.loads(row)["id"] for row in rows.read_text().splitlines())
        assert ids == list(range(len(ids)))
    finally:
        for part in (master, *nodes):
            part.stop()
        kill_topologies(home)
