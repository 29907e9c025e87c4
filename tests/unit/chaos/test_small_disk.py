from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from penstock.chaos.small_disk import small_disk


@pytest.fixture
def cannot_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = tmp_path / "bin/mount"
    mount.parent.mkdir()
    mount.write_text("#!/bin/sh\necho 'must be superuser' >&2\nexit 1\n")
    mount.chmod(0o755)
    monkeypatch.setenv("PATH", str(mount.parent), prepend=os.pathsep)


def test_a_full_disk_takes_nothing_until_it_is_freed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        if disk.refused:
            pytest.skip(disk.refused)
        (disk.folder / "before").write_text("kept")
        disk.fill()
        with pytest.raises(OSError) as caught, (disk.folder / "more").open("w") as more:
            more.write("x" * 5000)
        assert caught.value.errno == errno.ENOSPC
        disk.free()
        (disk.folder / "after").write_text("x" * 5000)
    assert not os.path.ismount(tmp_path / "disk")
    assert (tmp_path / "disk/before").read_text() == "kept"
    assert (tmp_path / "disk/after").stat().st_size == 5000


def test_a_failure_inside_leaves_no_mount_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), small_disk(tmp_path / "disk", 1):
        raise KeyboardInterrupt
    assert not os.path.ismount(tmp_path / "disk")


def test_who_may_not_mount_gets_an_ordinary_folder_and_the_reason(tmp_path: Path, cannot_mount: None) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        assert "must be superuser" in disk.refused
        (disk.folder / "file").write_text("works")
    assert (tmp_path / "disk/file").read_text() == "works"
