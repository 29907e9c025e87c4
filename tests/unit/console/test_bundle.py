"""What is submitted arrives as it was, and nothing else does."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest

from penstock.console import bundle
from penstock.console.bundle import contents, digest_of, pack, unpack
from penstock.errors import BundleError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    for name in ("topology.yaml", "own.py", "lib/more.py", "out/rows.jsonl", ".penstock/x", "__pycache__/own.pyc"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def archive(*items: tuple[str, bytes], mode: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, content in items:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            file.writestr(info, content)
    return packed.getvalue()


def test_files_arrive_without_output_and_hidden_ones(folder: Path, tmp_path: Path) -> None:
    files = contents(pack(folder))
    assert sorted(files) == ["lib/more.py", "own.py", "topology.yaml"]
    unpack(files, tmp_path / "there")
    assert (tmp_path / "there/lib/more.py").read_text() == "lib/more.py"


def test_the_digest_is_that_of_the_files(folder: Path) -> None:
    before = digest_of(contents(pack(folder)))
    (folder / "topology.yaml").touch()
    assert digest_of(contents(pack(folder))) == before
    (folder / "own.py").write_text("other")
    assert digest_of(contents(pack(folder))) != before


def test_one_name_cannot_pass_for_another() -> None:
    assert digest_of({"a": b"bc"}) != digest_of({"ab": b"c"})


def test_a_new_version_removes_its_own_old_files_and_no_others(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    unpack(contents(pack(folder)), there)
    (there / "out").mkdir()
    (there / "out/rows.jsonl").write_text("written meanwhile")
    (folder / "lib/more.py").unlink()
    unpack(contents(pack(folder)), there)
    assert not (there / "lib/more.py").exists()
    assert (there / "out/rows.jsonl").read_text() == "written meanwhile"


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/../../b", ".hidden", "a/.b/c", "a\\b"])
def test_a_crafted_name_is_refused(name: str) -> None:
    with pytest.raises(BundleError, match="not the name of a plain file"):
        contents(archive((name, b"x")))


def test_a_link_is_refused() -> None:
    with pytest.raises(BundleError, match="plain file"):
        contents(archive(("link", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777))


@pytest.mark.parametrize("damaged", [b"", b"no archive", archive(("a", b"x"))[:-5]])
def test_what_is_no_bundle_is_told_so(damaged: bytes) -> None:
    with pytest.raises(BundleError, match="not a bundle"):
        contents(damaged)


def test_more_than_is_allowed_is_neither_sent_nor_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(folder)
    monkeypatch.setattr(bundle, "MAX_BYTES", 10)
    with pytest.raises(BundleError, match="into a folder of their own"):
        pack(folder)
    with pytest.raises(BundleError, match="more than"):
        contents(packed)


def test_an_archive_that_lies_about_its_size_is_refused() -> None:
    packed = bytearray(archive(("a", b"x" * 1000)))
    # The size stands before the name, in the header and in the directory at the end.
    at = packed.index(b"PK\x01\x02") + 24
    packed[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(BundleError):
        contents(bytes(packed))
