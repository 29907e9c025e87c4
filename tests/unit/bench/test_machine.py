from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from penstock.bench.machine import Machine, commit_of, kernel, processor_in, this_machine


def test_the_model_of_the_processor_is_read_where_there_is_one() -> None:
    listing = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some(R)  CPU @ 2.60GHz\nmodel name\t: Other\n"
    assert processor_in(listing) == "Some(R) CPU @ 2.60GHz"
    assert processor_in("processor : 0\nFeatures : fp\n") == platform.machine()


@pytest.mark.parametrize(("name", "release", "said"), [
    ("Linux", "6.1.0-18-cloud-amd64", "Linux 6.1"), ("Darwin", "23.4.0", "Darwin 23.4"), ("Linux", "", "Linux"),
])
def test_a_kernel_is_told_without_what_others_add_to_its_version(name: str, release: str, said: str) -> None:
    assert kernel(name, release) == said


def test_a_machine_is_told_in_words() -> None:
    machine = Machine(2, "A CPU", 7.84, "Linux 6.1", "3.11.7", "Java 17", "4.3.0", "0.1.0")
    assert str(machine) == (
        "2 cores (A CPU), 7.8 GB of memory, Linux 6.1, Python 3.11.7, Java 17, Spark 4.3.0, Penstock 0.1.0")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=me", "-c", "user.email=me@here", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_is_that_of_the_checkout_and_marked_where_code_has_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "src").mkdir()
    (tmp_path / "docs").mkdir()
    code, page, other = tmp_path / "src" / "code.py", tmp_path / "docs" / "page.md", tmp_path / "src" / "other.py"
    for file in (code, page, other):
        file.write_text("before")
    git(tmp_path, "add", "src/code.py", "docs")
    git(tmp_path, "commit", "--quiet", "-m", "Begin")
    commit = git(tmp_path, "rev-parse", "--short", "HEAD")
    page.write_text("what the benchmark has written")
    assert commit_of.__wrapped__(code) == commit
    code.write_text("after")
    assert commit_of.__wrapped__(code) == f"{commit}+"
    assert commit_of.__wrapped__(other) == "", "it lies in a checkout, and is none of its files"
    assert commit_of.__wrapped__(tmp_path / "nowhere" / "code.py") == ""


def test_the_commit_stands_behind_the_version() -> None:
    machine = Machine(1, "A CPU", 1.0, "Linux 6.1", "3.11.7", "Java 17", "4.3.0", "0.1.0", "abc1234+")
    assert str(machine).endswith("Spark 4.3.0, Penstock 0.1.0 (abc1234+)")


def test_this_machine_is_described_by_what_it_has() -> None:
    found = this_machine()
    assert found.cores == os.cpu_count()
    assert found.memory_gb > 0.1
    assert found.system.startswith(platform.system())
    assert platform.node() not in str(found)
