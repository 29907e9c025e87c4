"""The recipe for several machines in docs/console.md: homes of their own, tokens, TLS, and masters that are lost."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
import trustme

from penstock.console.home import ConsoleHome
from penstock.errors import ConsoleError

from ..servers.zookeeper import ZookeeperServer
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, run_penstock
from .readings import TICKS
from .running_console import Console, Supervisor, kill_topologies

pytestmark = pytest.mark.by_itself

BOUNDED = (TICKS.replace("topology: readings", "topology: bounded").replace("rate: 50", "count: 100")
           + "  ids: {from: ticks, file: out/ids.jsonl}\n")  # fmt: skip
HOST = socket.gethostname()


def test_code_that_one_master_took_runs_on_a_machine_that_comes_after_its_loss(
    tmp_path: Path, zookeeper: ZookeeperServer
) -> None:
    coordinator = f"zookeeper://127.0.0.1:{zookeeper.port}/several"
    token = run_penstock("token", "create", "--role", "operator", "--coordinator", coordinator).stdout.strip()
    authority = trustme.CA()
    issued = authority.issue_cert(HOST)
    certificate, key, trusted = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    believes = ("--token", token, "--authority", str(trusted))
    masters = first, second = [
        Console(tmp_path / home, "--coordinator", coordinator, "--host", "0.0.0.0", "--certificate", str(certificate),
                "--key", str(key), *believes, command="master", authority=trusted, token=token, name=HOST)
        for home in ("m1", "m2")
    ]  # fmt: skip
    node = Supervisor(tmp_path / "n1", "n1", "--join", coordinator, *believes)
    try:
        for each in masters:
            each.start()
        wait_until(lambda: len(first.client.get("/api/console")["masters"]) == 2)
        assert first.client.get("/api/console")["leader"]["url"] == first.url
        folder = tmp_path / "bounded"
        folder.mkdir()
        (folder / "topology.yaml").write_text(BOUNDED)
        nobody = run_penstock("submit", str(folder), "--at", first.url, "--authority", str(trusted))
        assert (nobody.returncode, "a token is needed" in nobody.stderr) == (1, True)
        submitted = run_penstock("submit", str(folder), "--at", first.url, *believes)
        assert (submitted.returncode, submitted.stderr) == (0, "")
        # With its disk.
        first.kill()
        shutil.rmtree(first.home)
        node.start()
        wait_until(lambda: how(second) == "ended", PATIENCE_SECONDS, alive=node.is_alive)
        rows = (ConsoleHome(tmp_path / "n1").topology("bounded", "n1").work / "out/ids.jsonl").read_text().splitlines()
        assert sorted(json.loads(row)["id"] for row in rows) == list(range(100))
        stopped = run_penstock("stop", "bounded", "--at", second.url, *believes)
        assert stopped.returncode == 0, stopped.stderr
    finally:
        for part in (*masters, node):
            part.stop()
        kill_topologies(tmp_path / "n1")


def how(console: Console) -> str:
    try:
        return console.how("bounded")
    except ConsoleError:
        return ""


def test_a_master_that_others_cannot_reach_says_so(tmp_path: Path, zookeeper: ZookeeperServer) -> None:
    coordinator = f"zookeeper://127.0.0.1:{zookeeper.port}/cut-off"
    master = Console(tmp_path / "home", "--coordinator", coordinator, command="master")
    try:
        master.start()
        said = (tmp_path / f"console-{master.port}.log").read_text()
        assert f"the console is at {master.url}, for this machine only" in said
        assert "give --host" in said
    finally:
        master.stop()


@pytest.mark.parametrize("command", ["up", "master"])
def test_an_authority_that_is_no_certificate_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "none.pem").write_text("nothing\n")
    refused = run_penstock(command, "--home", str(tmp_path / "home"), "--authority", str(tmp_path / "none.pem"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "none.pem cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr
