from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.spark.class_archive import SWITCH, archive_options, archive_path, is_complete
from penstock.spark.java import Java

COMPLETE = (0xF00BABA8).to_bytes(4, "little") + b"\0" * 1000
JAVA = Java(Path("/usr/lib/jvm/seventeen/bin/java"), 17, 'openjdk version "17.0.15" build 6')


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "cache"


def written(content: bytes) -> Path:
    path = archive_path(JAVA)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.draft")


def test_without_an_archive_the_jvm_makes_one(cache: Path) -> None:
    options = archive_options(JAVA)
    path = archive_path(JAVA)
    assert f"-XX:ArchiveClassesAtExit={draft_of(path)}" in options
    assert not any("SharedArchiveFile" in option for option in options)
    assert archive_options(JAVA, make=False) == []
    # The JVM makes the file, but not its folder.
    assert path.parent.is_dir()
    assert path.is_relative_to(cache)


def test_a_complete_archive_is_used_and_left_alone() -> None:
    path = written(COMPLETE)
    options = archive_options(JAVA)
    assert f"-XX:SharedArchiveFile={path}" in options
    assert not any("ArchiveClassesAtExit" in option for option in options)
    assert path.read_bytes() == COMPLETE


@pytest.mark.parametrize("content", [b"", b"\0" * 1000, COMPLETE[:3]])
def test_an_archive_that_a_killed_jvm_left_half_written_is_made_again(content: bytes) -> None:
    path = written(content)
    assert not is_complete(path)
    assert f"-XX:ArchiveClassesAtExit={draft_of(path)}" in archive_options(JAVA)
    assert not path.exists()


def test_what_a_jvm_has_finished_is_taken_and_what_another_writes_is_left_alone() -> None:
    path = written(b"")
    mine = draft_of(path)
    others, abandoned = (path.with_name(f"{path.name}.{process}.draft") for process in (7, 8))
    others.write_bytes(b"half")
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (1, 1))
    archive_options(JAVA)
    assert (others.exists(), abandoned.exists()) == (True, False)
    mine.write_bytes(COMPLETE)
    assert f"-XX:SharedArchiveFile={path}" in archive_options(JAVA, make=False)
    assert (path.read_bytes(), mine.exists()) == (COMPLETE, False)


@pytest.mark.parametrize("content", [None, COMPLETE])
def test_the_jvm_says_nothing_about_it_on_the_terminal(content: bytes | None) -> None:
    if content:
        written(content)
    assert {"-Xlog:cds=off", "-Xlog:cds+dynamic=off"} <= set(archive_options(JAVA))


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert archive_options(JAVA) == []
    assert not cache.exists()
    written(COMPLETE)
    assert archive_options(JAVA) == []


def test_a_cache_that_cannot_be_written_to_is_done_without(cache: Path) -> None:
    # A file where a folder is needed: no user may write there, not even root.
    cache.write_text("")
    assert archive_options(JAVA) == []


def test_an_archive_serves_one_build_of_java_in_one_place() -> None:
    others = [
        replace(JAVA, build='openjdk version "17.0.16" build 8'),
        replace(JAVA, path=Path("/opt/java/bin/java")),
        replace(JAVA, version=21),
    ]
    assert len({archive_path(java) for java in (JAVA, *others)}) == 4
    assert archive_path(replace(JAVA)) == archive_path(JAVA)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    jar = tmp_path / "pyspark" / "jars" / "spark-core.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"classes")
    monkeypatch.setattr("pyspark.__file__", str(tmp_path / "pyspark" / "__init__.py"))
    return jar


def test_spark_installed_again_in_the_same_place_has_an_archive_of_its_own(installed: Path) -> None:
    before = written(COMPLETE)
    os.utime(installed, ns=(1, 1))
    options = archive_options(JAVA)
    assert archive_path(JAVA) != before
    assert f"-XX:ArchiveClassesAtExit={draft_of(archive_path(JAVA))}" in options
    # The JVM would pass over the old one without a word: it only takes up room.
    assert not before.exists()


def test_archives_of_other_places_are_left_alone(installed: Path, cache: Path) -> None:
    archive_options(JAVA)
    other = archive_path(replace(JAVA, path=Path("/opt/java/bin/java")))
    other.write_bytes(COMPLETE)
    archive_options(JAVA)
    assert other.exists()


def test_a_link_to_java_is_the_java_it_leads_to(tmp_path: Path) -> None:
    real = tmp_path / "java-17"
    real.write_text("")
    link = tmp_path / "java"
    link.symlink_to(real)
    assert archive_path(replace(JAVA, path=link)) == archive_path(replace(JAVA, path=real))


def test_another_version_of_spark_has_another_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive_path(JAVA)
    monkeypatch.setattr("pyspark.__version__", "4.9.9")
    assert archive_path(JAVA) != before


def test_the_home_folder_has_the_cache_when_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert archive_path(JAVA).parent == tmp_path / ".cache" / "penstock"


def test_only_a_file_can_be_an_archive(tmp_path: Path) -> None:
    assert not is_complete(tmp_path)
    assert not is_complete(tmp_path / "none")
