"""`penstock script --commands FILE`, as a user types it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.runtime.state_folder import StateFolder

from .typed import penstock

CONFIG = """\
OP1 input_ops v.dat rep_fact 2 routing random address tcp://a:1/op, tcp://a:2/op operator_spec DUP
OP2 input_ops OP1 rep_fact 1 routing random address tcp://a:3/op operator_spec COUNT
Freeze OP1 1
"""
YAML = """\
topology: pages
sources:
  visits: {file: v.dat, format: csv, schema: "user string, page string"}
operators:
  home: {from: visits, filter: "page = '/home'"}
sinks:
  out: {from: home, file: out/visits.jsonl}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of two replicas, and a topology in YAML, as if both ran."""
    (tmp_path / "v.dat").write_text("ann,/home\n")
    (tmp_path / "pair.config").write_text(CONFIG)
    (tmp_path / "topology.yaml").write_text(YAML)
    for name in ("pair", "pages"):
        (tmp_path / ".penstock" / name).mkdir(parents=True)
    monkeypatch.delenv("PENSTOCK_COORDINATOR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("penstock.cli.script.running_topology", lambda *_: None)
    return tmp_path


def run_script(file: str, commands: str) -> tuple[int, list[str], str]:
    Path("go.txt").write_text(commands)
    result = penstock("script", file, "--commands", "go.txt")
    return result.exit_code, [line.split("  ")[0] for line in result.stdout.splitlines()], result.stderr


def frozen(project: Path, name: str = "pair") -> Sequence[tuple[str, ...]]:
    coordinator = open_coordinator(StateFolder(project / ".penstock" / name).coordinator)
    try:
        return [Orders(coordinator).frozen(replica) for replica in ("1", "2")]
    finally:
        coordinator.close()


def test_an_operator_that_is_not_there_is_refused_before_anything_is_done(project: Path) -> None:
    code, said, why = run_script("pair.config", "Freeze OP1 0\nWait 1\nFreeze OPX 0\nStart OP9\n")
    assert (code, said) == (2, [])
    assert "go.txt:3: Freeze OPX 0: there is no operator 'OPX' (did you mean 'OP2'? there are: OP1, OP2)" in why
    assert "go.txt:4: Start OP9" in why
    assert "go.txt: nothing was carried out" in why
    assert frozen(project) == [(), ()]


def test_operators_are_meant_however_they_are_spelled(project: Path) -> None:
    code, said, _ = run_script("pair.config", "freeze op1 0\nFreeze Op2 1\n")
    assert (code, said) == (0, ["Freeze OP1 0", "Freeze OP2 1"])
    assert frozen(project) == [("OP1",), ("OP2",)]
    run_script("pair.config", "Unfreeze OP1 0\nunfreeze oP2 1\n")
    assert frozen(project) == [(), ()]


def test_a_replica_is_found_by_the_address_that_the_configuration_gives_it(project: Path) -> None:
    code, said, _ = run_script("pair.config", "Freeze tcp://a:2/op\n")
    assert (code, said) == (0, ["Freeze OP1 1"])
    assert frozen(project) == [(), ("OP1",)]
    code, _, why = run_script("pair.config", "Freeze tcp://a:9/op\n")
    assert (code, "go.txt:1: Freeze tcp://a:9/op: no replica has this address" in why) == (2, True)


def test_a_topology_in_yaml_is_checked_alike_and_has_no_addresses(project: Path) -> None:
    code, said, _ = run_script("topology.yaml", "Freeze HOME 0\n")
    assert (code, said, frozen(project, "pages")[0]) == (0, ["Freeze home 0"], ("home",))
    code, said, why = run_script("topology.yaml", "Crash tcp://a:1/op\nFreeze visits 0\n")
    assert (code, said) == (2, [])
    assert "addresses are known only with a DADSTORM file: write OPERATOR REPLICA" in why
    assert "there is no operator 'visits' (there are: home)" in why
