"""The commands together, from a new project to a run that is interrupted and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_a_new_project_passes_its_test_and_runs(penstock: Any, tmp_path: Path) -> None:
    made = penstock("init", "demo")
    assert made.returncode == 0, made.stderr
    tested = penstock("test", cwd=tmp_path / "demo")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed, 0 failed" in tested.stdout
    done = penstock("run", cwd=tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    views = [json.loads(line) for line in (tmp_path / "demo/out/views.jsonl").read_text().splitlines()]
    assert sorted((row["page"], row["count"]) for row in views) == [("/home", 3), ("/prices", 2)]


DADSTORM = """\
%% Everything that files of this format do differently from one another.
OP1 input ops links.data rep fact 2 routing hashing (1)
    address tcp://1.2.3.4:11000/op, tcp://1.2.3.5:11000/op
    operator spec FILTER 3,=,"www.tecnico.ulisboa.pt"

2 INPUT_OPS OP1 REP_FACT 2 ROUTING random
  ADDRESS tcp://1.2.3.6:11000/op tcp://1.2.3.6:11001/op OPERATOR_SPEC CUSTOM mylib.dll, Followers, of_user
OP3 input_ops 2 rep_fact 3 routing hashing 1 address tcp://1.2.3.8:11000/op operator_spec UNIQ 1
OP4STDOUT input_ops OP3 rep_fact 1 routing primary address tcp://1.2.3.10:11000/op operator_spec COUNT
%% A comment that somebody's editor has
wrapped onto a second line.
Interval OP1 500
Start OP1
Crash OP3 0
Wait 10
Semantics exactly-once
LoggingLevel full
"""
MYLIB = """\
class Followers:
    def __init__(self):
        self.lists = {}
        with open("followers.dat") as lines:
            for line in lines:
                if not line.startswith("%"):
                    user, *names = (part.strip() for part in line.split(","))
                    self.lists.setdefault(user, []).extend(names)

    def of_user(self, fields):
        return [[follower] for follower in self.lists.get(fields[1], [])]
"""


def test_a_dadstorm_configuration_runs_to_its_count(penstock: Any, tmp_path: Path) -> None:
    (tmp_path / "reach.config").write_text(DADSTORM)
    (tmp_path / "mylib.py").write_text(MYLIB)
    (tmp_path / "links.dat").write_text(
        '%% id, user, url\n1, ann, "www.tecnico.ulisboa.pt"\n2, bob, www.elsewhere.pt\n'
        '3, cy, www.tecnico.ulisboa.pt\n4, "ann", "www.tecnico.ulisboa.pt"\n')
    (tmp_path / "followers.dat").write_text("%% user, followers\nann, dee, eve\nbob, fay\ncy, eve, gus\nann, hal\n")
    done = penstock("run", "reach.config")
    assert done.returncode == 0, done.stderr
    counts = [json.loads(line)["count"] for line in done.stdout.splitlines()]
    assert counts == [1, 2, 3, 4]
    assert "reach.config:11" in done.stderr, "the wrapped comment is warned of with its line"


def test_ctrl_c_ends_a_following_run_cleanly_and_a_second_start_goes_on(following: Any, tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text("""\
topology: follow
sources: {lines: {file: app.log, format: text, follow: true}}
operators: {total: {from: lines, count: }}
sinks:
  shown: {from: total, console: }
  saved: {from: lines, file: out.jsonl}
""")
    log = tmp_path / "app.log"
    log.write_text("one\ntwo\nthree\n")
    with following() as run:
        assert run.rows(1) == [{"count": 3}]
        with log.open("a") as file:
            file.write("four\n")
        assert run.rows(1) == [{"count": 4}]
        code, events = run.interrupt()
    assert code == 0
    assert events[-1]["event"] == "end"
    assert "goes on from here" in events[-1]["how"]

    with log.open("a") as file:
        file.write("five\n")
    with following() as run:
        assert run.rows(1) == [{"count": 5}]
        code, _ = run.interrupt()
    assert code == 0
    saved = [json.loads(line)["value"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(saved[:3]) == ["one", "three", "two"]
    assert saved[3:] == ["four", "five"]
