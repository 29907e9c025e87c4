"""Commands that tell a topology what is wanted of it, as a user types them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.runtime.state_folder import StateFolder

from .typed import enter_project, penstock

GOOD = """\
topology: pages
sources:
  visits: {file: visits.csv, schema: "user string, page string"}
operators:
  home: {from: visits, filter: "page = '/home'"}
sinks:
  out: {from: home, file: out/visits.jsonl}
"""
REPLICATED = GOOD.replace("topology: pages\n", "topology: pages\nreplicas: 2\ncells: any\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, GOOD, visits="ann,/home\n")
    return tmp_path


@pytest.fixture
def replicated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, REPLICATED, visits="ann,/home\n")
    (tmp_path / ".penstock/pages").mkdir(parents=True)
    return tmp_path


@contextmanager
def orders(project: Path) -> Iterator[Orders]:
    coordinator = open_coordinator(StateFolder(project / ".penstock/pages").coordinator)
    yield Orders(coordinator)
    coordinator.close()


def test_one_replica_is_frozen_and_goes_on(replicated: Path) -> None:
    result = penstock("freeze", ".", "--replica", "2")
    assert (result.exit_code, result.stdout) == (0, "replica 2 is frozen\n")
    with orders(replicated) as found:
        assert (found.frozen("1"), found.frozen("2")) == ((), ("*",))
    assert penstock("freeze", ".", "--replica", "2").stdout == "replica 2 was frozen already\n"
    assert penstock("unfreeze", ".").stdout == "replica 1 was not frozen\nreplica 2 goes on\n"
    with orders(replicated) as found:
        assert found.frozen("2") == ()


def test_one_operator_of_a_replica_is_frozen(replicated: Path) -> None:
    assert penstock("freeze", ".", "--replica", "1", "--operator", "home").stdout == "home of replica 1 is frozen\n"
    with orders(replicated) as found:
        assert found.frozen("1") == ("home",)


@pytest.mark.parametrize(("arguments", "said"), [
    (("freeze", ".", "--replica", "3"), "no replica '3': there are 1, 2"),
    (("run", ".", "--replica", "3"), "no replica '3': there are 1, 2"),
    (("run", ".", "--replica", "../1"), "no replica '../1': there are 1, 2"),
    (("freeze", ".", "--operator", "hom"), "no operator 'hom'"),
    (("interval", ".", "soon"), "'soon'"),
    (("interval", ".", "1s", "--operator", "hom"), "no operator 'hom'"),
    (("crash", ".", "--replica", "1"), "chaos: allowed"),
])
def test_what_is_not_there_is_said(replicated: Path, arguments: tuple[str, ...], said: str) -> None:
    result = penstock(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_without_replicas_there_is_none_to_name(project: Path) -> None:
    result = penstock("freeze", ".", "--replica", "1")
    assert result.exit_code == 2 or "has not run yet" in result.stderr


@pytest.mark.parametrize("command", ["stop", "kill"])
def test_what_does_not_run_cannot_be_ended(replicated: Path, command: str) -> None:
    result = penstock(command, ".")
    assert result.exit_code == 1
    assert "topology 'pages' does not run" in result.stderr


def test_orders_for_a_topology_that_never_ran_are_refused(project: Path) -> None:
    result = penstock("freeze", ".")
    assert result.exit_code == 1
    assert "has not run yet" in result.stderr
    assert not (project / ".penstock").exists()


def test_another_interval_holds_until_the_topologys_own_is_wanted_again(replicated: Path) -> None:
    assert penstock("interval", ".", "250ms", "--operator", "home").stdout == "pages: an epoch every 0.25 s\n"
    assert penstock("interval", ".", "500ms").stdout == "pages: an epoch every 0.5 s\n"
    with orders(replicated) as found:
        assert found.interval() == 0.5
    assert penstock("interval", ".", "default").exit_code == 0
    with orders(replicated) as found:
        assert found.interval() is None
