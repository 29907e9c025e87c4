"""Every command that talks to a console can be told who vouches for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from penstock.cli.main import app
from penstock.coordination.memory import MemoryStore

from ..console.several_masters import Certificate, OneMaster, one_master
from .typed import penstock

WORDS = {"dead-letters": ["t"], "interval": ["t", "1s"], "rescale": ["t", "a=2"], "restore": ["checkpoint", "t"],
         "list": [], "events": [], "submit": ["topology.yaml"],
         "script": ["t", "--commands", "commands.txt"]}  # fmt: skip
"""What stands behind the command where that is not the name of a topology only."""


def talking() -> list[str]:
    """The commands that talk to a console."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return sorted(name for name, command in commands.items() if any(each.name == "at" for each in command.params))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.made_in(tmp_path_factory.mktemp("certificate"), "127.0.0.1")


@pytest.fixture(scope="module")
def console(certificate: Certificate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneMaster]:
    with one_master(tmp_path_factory.mktemp("home"), MemoryStore(), certificate=certificate) as one:
        yield one


def test_all_commands_that_talk_to_a_console_are_known() -> None:
    assert {"stop", "kill", "freeze", "unfreeze", "status", "start", "script", "list", "submit", *WORDS} <= {*talking()}


@pytest.mark.parametrize("name", talking())
def test_a_console_is_believed_whom_the_authority_vouches_for(
    name: str, console: OneMaster, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_AUTHORITY", raising=False)
    (tmp_path / "commands.txt").write_text("Status\n")
    (tmp_path / "topology.yaml").write_text("topology: x\nsources:\n  s: {generator: {id: sequence}}\n"
                                            "sinks:\n  o: {from: s, file: out/x.jsonl}\n")  # fmt: skip
    words = [name, *WORDS.get(name, ["t"]), "--at", console.url]
    unknown = penstock(*words)
    assert "certificate verify failed" in str(unknown.exception)
    known = penstock(*words, "--authority", str(certificate.authority))
    # It has answered, whatever it has answered.
    assert "certificate" not in f"{known.exception} {known.stderr}", known.output
    wrong = penstock(*words, "--authority", "commands.txt")
    assert "--authority commands.txt cannot be used" in str(wrong.exception)


def test_an_authority_that_is_none_is_refused_where_a_console_is_started(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate\n")
    for command in ("up", "master", "supervisor"):
        refused = penstock(command, "--home", str(tmp_path / "home"), "--authority", str(tmp_path / "none.pem"))
        assert "none.pem cannot be used" in str(refused.exception), refused.output
