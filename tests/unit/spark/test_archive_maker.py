"""When an archive of classes is made beside replicas; that it serves is in tests/system/test_starting.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import MachineError
from penstock.spark import archive_maker
from penstock.spark.archive_maker import is_wanted
from penstock.spark.class_archive import SWITCH, archive_path
from penstock.spark.java import Java
from penstock.spark.plain_files import plain_files_jar

JAVA = Java(Path("/usr/lib/jvm/seventeen/bin/java"), 17, "some build")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(archive_maker, "check_java", lambda: JAVA)


def test_it_is_wanted_until_it_is_there() -> None:
    assert is_wanted()
    own = plain_files_jar()
    assert own is not None
    archive_path(JAVA, [own]).write_bytes((0xF00BABA8).to_bytes(4, "little"))
    assert not is_wanted()


def test_it_is_not_wanted_where_it_is_switched_off_or_there_is_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Java:
        raise MachineError("no Java was found")

    with monkeypatch.context() as without:
        without.setattr(archive_maker, "check_java", no_java)
        assert not is_wanted()
    monkeypatch.setenv(SWITCH, "off")
    assert not is_wanted()
