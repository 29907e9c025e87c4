"""The jar with the file system; what its classes do is tried in `tests/spark/test_plain_files.py`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from penstock.spark.plain_files import plain_files_jar


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_written_once() -> None:
    jar = plain_files_jar()
    assert jar is not None
    written = jar.stat()
    assert plain_files_jar() == jar
    # A class archive is of the very file: another one of the same bytes would not do.
    assert (jar.stat().st_ino, jar.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]


def test_it_holds_classes() -> None:
    jar = plain_files_jar()
    assert jar is not None
    with zipfile.ZipFile(jar) as file:
        assert set(file.namelist()) == {"penstock/PlainFiles.class", "penstock/LocalFiles.class"}
        assert all(file.read(name)[:4] == bytes.fromhex("CAFEBABE") for name in file.namelist())


def test_where_it_cannot_be_written_there_is_none(cache: Path) -> None:
    cache.write_text("no folder")
    assert plain_files_jar() is None
