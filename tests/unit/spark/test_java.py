from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import MachineError
from penstock.spark.java import Java, check_java, java_version


def fake_java(folder: Path, said: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('openjdk version "25"', 25)],
)
def test_the_major_version_is_read(said: str, version: int) -> None:
    assert java_version(said) == version


def test_the_java_of_java_home_is_taken(tmp_path: Path) -> None:
    java = fake_java(tmp_path, 'openjdk version "21.0.1"')
    assert check_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) == Java(java, 21, 'openjdk version "21.0.1"')


def test_options_that_java_takes_from_the_environment_are_not_what_it_is(tmp_path: Path) -> None:
    java = fake_java(tmp_path, 'Picked up JAVA_TOOL_OPTIONS: -Xint\nopenjdk version "21.0.1"')
    assert check_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) == Java(java, 21, 'openjdk version "21.0.1"')


def test_too_old_a_java_is_refused_with_what_to_do(tmp_path: Path) -> None:
    fake_java(tmp_path, 'java version "1.8.0_402"')
    with pytest.raises(MachineError, match=r"is Java 8, and Spark 4\.3 needs 17 or later: install"):
        check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_no_java_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="no Java was found: install a Java runtime of version 17"):
        check_java({"PATH": str(tmp_path)})


def test_a_wrong_java_home_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="there is no bin/java in it: correct JAVA_HOME"):
        check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_which_compilers_it_uses_does_not_make_it_another(tmp_path: Path) -> None:
    said = 'openjdk version "17.0.15"\nOpenJDK 64-Bit Server VM (build 17.0.15+6, mixed mode{})'
    builds = {check_java({"PATH": str(fake_java(tmp_path / name, said.format(more)).parent)}).build
              for name, more in (("one", ", sharing"), ("two", ", emulated-client, sharing"))}  # fmt: skip
    assert builds == {'openjdk version "17.0.15"\nOpenJDK 64-Bit Server VM (build 17.0.15+6)'}
