"""What a console is told of a topology by a process in which its author's code has run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.console.inspection import inspect
from penstock.errors import CommandRefused

TOPOLOGY = """\
import atexit, os
from penstock import Topology

atexit.register(print, '{"name": "../../evil", "replicas": 1, "chaos": true, "graph": {}}')
name = "count" if "PENSTOCK_TOKEN" not in os.environ else "knows-the-token"
topology = Topology(name).source("n", generator={"n": "sequence"}, count=3).sink("out", console=None)
print("3")
"""
GOOD: dict[str, Any] = {
    "name": "count", "replicas": 2, "chaos": False, "private": ["out: rows.csv"],
    "graph": {"width": 1, "height": 2.5, "nodes": [{"id": "a", "name": "a", "role": "source", "brief": "",
                                                    "stateful": False, "x": 0, "y": 0, "width": 1, "height": 1}],
              "edges": [{"from": "a", "to": "a", "port": "", "points": [[0, 1], [2, 3.5]]}]},
}  # fmt: skip


def test_what_its_code_prints_is_no_answer_and_the_consoles_token_is_not_its_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topology.py").write_text(TOPOLOGY)
    monkeypatch.setenv("PENSTOCK_TOKEN", "penstock_secret")
    found = inspect(tmp_path / "topology.py", ())
    assert (found.name, found.chaos) == ("count", False)


def told(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> None:
    """Have a process answer so."""

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        if answer is not None:
            Path(command[-1]).write_text(answer)
        return SimpleNamespace(stderr="")

    monkeypatch.setattr(subprocess, "run", run)


def test_an_answer_is_what_we_say_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, json.dumps(GOOD))
    assert inspect(Path("t.py"), ()).graph.model_dump(by_alias=True)["edges"][0]["points"] == [(0, 1), (2, 3.5)]
    told(monkeypatch, json.dumps({"problems": ["this", "and that"]}))
    with pytest.raises(CommandRefused, match="the topology is wrong:\nthis\nand that"):
        inspect(Path("t.py"), ())


@pytest.mark.parametrize("answer", [
    None, "", "3", "[]", "null", "no JSON", '{"x": 1}', '{"problems": 3}', '{"problems": [{}]}',
    *(json.dumps(GOOD | wrong) for wrong in (
        {"name": "../../evil"}, {"name": ""}, {"name": "x" * 101}, {"name": "a\n"}, {"name": 7}, {"x": 1},
        {"replicas": 10**9}, {"replicas": 0}, {"replicas": "2"}, {"chaos": 1}, {"private": "out"}, {"graph": {}},
        {"graph": GOOD["graph"] | {"width": float("nan")}}, {"graph": GOOD["graph"] | {"nodes": [{"id": "a"}]}},
    )),
])  # fmt: skip
def test_any_other_answer_is_refused(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> None:
    told(monkeypatch, answer)
    with pytest.raises(CommandRefused, match=r"'t\.py' cannot be read: what was found out about it"):
        inspect(Path("t.py"), ())
