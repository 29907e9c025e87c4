from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from penstock.chaos.small_disk import Disk, small_disk

from ...own_mounts import with_own_mounts


@pytest.fixture
def cannot_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = tmp_path / "bin/mount"
    mount.parent.mkdir()
    mount.write_text("#!/bin/sh\necho 'must be superuser' >&2\nexit 1\n")
    mount.chmod(0o755)
    monkeypatch.setenv("PATH", str(mount.parent), prepend=os.pathsep)


@with_own_mounts
def test_a_full_disk_takes_nothing_until_it_is_freed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        assert os.path.ismount(disk.folder) == (not disk.refused)
        (disk.folder / "before").write_text("kept")
        if disk.refused:
            assert "run it as root" in disk.refused
        else:
            disk.fill()
            with pytest.raises(OSError) as caught, (disk.folder / "more").open("w") as more:
                more.write("x" * 5000)
            assert caught.value.errno == errno.ENOSPC
            disk.free()
        (disk.folder / "after").write_text("x" * 5000)
    assert not os.path.ismount(tmp_path / "disk")
    assert [path.name for path in tmp_path.iterdir()] == ["disk"]
    assert (tmp_path / "disk/before").read_text() == "kept"
    assert (tmp_path / "disk/after").stat().st_size == 5000


@with_own_mounts
def test_a_failure_inside_leaves_no_mount_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), small_disk(tmp_path / "disk", 1):
        raise KeyboardInterrupt
    assert not os.path.ismount(tmp_path / "disk")


def test_a_folder_that_is_no_disk_of_its_own_is_not_filled_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.chaos.small_disk._write_until_full", lambda *_: pytest.fail("it was filled up"))
    with pytest.raises(RuntimeError, match="is no disk of its own"):
        Disk(tmp_path).fill()
    # A `mount` that does nothing.
    (tmp_path / "mount").write_text("#!/bin/sh\n")
    (tmp_path / "mount").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with small_disk(tmp_path / "disk", 1) as disk:
        assert "nothing was mounted" in disk.refused


def test_who_may_not_mount_gets_an_ordinary_folder_and_the_reason(tmp_path: Path, cannot_mount: None) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        assert "must be superuser" in disk.refused
        (disk.folder / "file").write_text("works")
    assert (tmp_path / "disk/file").read_text() == "works"
