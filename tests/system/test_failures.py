"""What a user sees, and the exit code, when something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

COPY = """\
topology: copy
sources: {people: {file: people.csv, schema: "id int, name string"}}
operators: {own: {from: people, custom: "own:code", emits: "id int"}}
sinks: {out: {from: own, file: OUT}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "topology.yaml").write_text(COPY.replace("OUT", "out.jsonl"))
    (tmp_path / "people.csv").write_text("1,ann\n2,bob\n")
    (tmp_path / "own.py").write_text("def code(tup):\n    print('noise')\n    return tup.id // (tup.id - 2)\n")
    return tmp_path


def test_code_that_raises_ends_with_1_and_names_its_line(penstock: Any, project: Path) -> None:
    done = penstock("run")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "operator 'own'" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert f"{project / 'own.py'}:3" in done.stderr
    assert "id=2, name='bob'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "py4j" not in done.stderr


def test_a_wrong_topology_ends_with_2_and_lists_every_problem(penstock: Any, project: Path) -> None:
    wrong = COPY.replace("from: people", "from: peple").replace("own:code", "own:cod").replace("id int,", "id innt,")
    (project / "topology.yaml").write_text(wrong)
    done = penstock("run")
    assert done.returncode == 2
    assert done.stdout == ""
    for said in ("topology.yaml:2", "innt", "topology.yaml:3", "'peple'", "did you mean 'people'", "'cod'"):
        assert said in done.stderr


def test_a_file_that_is_not_there_ends_with_2(penstock: Any) -> None:
    done = penstock("run", "nothing.yaml")
    assert done.returncode == 2
    assert "nothing.yaml: no such file" in done.stderr


def test_missing_input_ends_with_1_before_spark_starts(penstock: Any, project: Path) -> None:
    (project / "people.csv").unlink()
    done = penstock("run")
    assert done.returncode == 1
    assert "people.csv" in done.stderr
    assert "starting Spark" not in done.stderr


@pytest.mark.parametrize(("out", "said"), [
    ("people.csv/out.jsonl", "people.csv"),
    ("own.py", "own.py exists and was not written by this topology"),
])
def test_output_that_cannot_be_written_ends_with_1_before_spark_starts(
    penstock: Any, project: Path, out: str, said: str
) -> None:
    (project / "topology.yaml").write_text(COPY.replace("OUT", f"{out}, format: json"))
    before = (project / "own.py").read_text()
    done = penstock("run")
    assert done.returncode == 1
    assert said in done.stderr
    assert "starting Spark" not in done.stderr
    assert (project / "own.py").read_text() == before


def test_a_machine_without_java_is_told_how_to_get_one(penstock: Any, project: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    in_path = penstock("run", env={"PATH": str(nothing), "JAVA_HOME": ""})
    assert in_path.returncode == 1
    assert "no Java was found" in in_path.stderr
    assert "version 17 or later" in in_path.stderr
    in_home = penstock("run", env={"JAVA_HOME": str(nothing)})
    assert in_home.returncode == 1
    assert f"JAVA_HOME is {nothing}" in in_home.stderr


def test_too_old_a_java_is_told_apart(penstock: Any, project: Path, tmp_path: Path) -> None:
    java = tmp_path / "jre/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho \'openjdk version "1.8.0_392"\' >&2\n')
    java.chmod(0o755)
    done = penstock("run", env={"JAVA_HOME": str(tmp_path / "jre")})
    assert done.returncode == 1
    assert "Java 8" in done.stderr
    assert "17 or later" in done.stderr
