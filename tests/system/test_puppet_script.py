"""A DADSTORM configuration with a script that crashes replicas: the count is as if nothing had happened."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .replicated import owner

pytestmark = pytest.mark.by_itself

COMMANDS = """\
Interval OP1 200
Status
Start OP1
Start OP2
Start OP3
Start OP4
Wait 8000
Crash OP3 0
Wait 1000
Crash OP3 1
Status
"""
CONFIG = f"""\
%% How many people have seen a page: whoever follows somebody who has shared it.
LoggingLevel full
Semantics exactly-once
OP1 input_ops shared.dat rep_fact 2 routing hashing(2) address tcp://10.0.0.1:9000/op, tcp://10.0.0.2:9000/op
    operator_spec FILTER 3,=,"www.penstock.example"
OP2 input_ops OP1 rep_fact 2 routing random address tcp://10.0.0.3:9000/op, tcp://10.0.0.4:9000/op
    operator_spec CUSTOM people.dll,Circles,seen_by
OP3 input_ops OP2 rep_fact 2 routing random address tcp://10.0.0.5:9000/op, tcp://10.0.0.6:9000/op
    operator_spec UNIQ 1
OP4 input_ops OP3 rep_fact 1 routing primary address tcp://10.0.0.7:9000/op
    operator_spec COUNT
{COMMANDS}"""
PEOPLE = """\
class Circles:
    circles = {"ann": ["dee", "eve", "gil"], "bob": ["eve", "fay"], "cat": ["hal", "dee", "ida", "joe"]}

    def seen_by(self, fields):
        return [[follower] for follower in self.circles.get(fields[1], [])]
"""
SHARED = """\
%% number, who, page
1, ann, "www.penstock.example"
2, cat, www.elsewhere.example
3, bob, "www.penstock.example"
4, cat, "www.penstock.example"
5, ann, "www.penstock.example"
"""
SEEN_BY = ["dee", "eve", "fay", "gil", "hal", "ida", "joe"]


def test_a_run_whose_script_crashes_every_replica_ends_with_the_right_count(
    penstock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "circles.config").write_text(CONFIG)
    (tmp_path / "people.py").write_text(PEOPLE)
    (tmp_path / "shared.dat").write_text(SHARED)
    with owner(monkeypatch):
        done = penstock("run", "circles.config")
    assert done.returncode == 0, done.stderr
    assert [json.loads(row)["count"] for row in done.stdout.splitlines()] == list(range(1, len(SEEN_BY) + 1))
    said = done.stderr.splitlines()
    # In time order, as the script writes them; also those that come when the input has long ended.
    assert [line for line in said if line in COMMANDS.splitlines()] == COMMANDS.splitlines()
    assert not [line for line in said if line.startswith("% not done") or "left out" in line]
    for replica in ("1", "2"):
        assert f"replica {replica} has ended: it was killed by signal 9 …" in said
    assert sum(line.startswith("% circles: ") for line in said) == 2
    tuples = Counter(line for line in said if line.startswith("tuple "))
    assert [number for line, number in tuples.items() if line.startswith("tuple OP1, ")] == [1] * 4
    assert {line: tuples[line] for line in tuples if line.startswith("tuple OP3, ")} == dict.fromkeys(
        (f"tuple OP3, {name}" for name in SEEN_BY), 1)
    # Before it was counted once, a name came as often as somebody whom it follows has shared the page.
    assert tuples["tuple OP2, eve"] == 3
    # Also of the operator that a console shows.
    assert [line for line in said if line.startswith("tuple OP4, ")] == [
        f"tuple OP4, {number}" for number in range(1, len(SEEN_BY) + 1)]  # fmt: skip
