"""A topology's files in one piece: packed where it is submitted, checked by digest, unpacked where it runs."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from penstock.errors import BundleError

Fetch = Callable[[str], bytes]
"""The bundle with a digest."""
MAX_BYTES = 50_000_000
MAX_FILES = 2_000

_LEFT_OUT = frozenset({"out", "__pycache__", "node_modules", "venv"})
_MANIFEST = ".bundle.json"
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The same files give the same bytes, whenever they were written."""


def pack(folder: Path) -> bytes:
    """All files of a topology's folder but hidden ones and output; raises BundleError when there are too many."""
    files = {name: path.read_bytes() for name, path in _files(folder)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _FIRST_DAY), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def contents(packed: bytes) -> dict[str, bytes]:
    """The files of a bundle by name; raises BundleError for anything but plain files inside of one folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            return _read(archive)
    # NotImplementedError: a way of packing that Python does not know; RuntimeError: a password.
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError,
            ValueError) as error:  # fmt: skip
        raise BundleError(f"it is not a bundle that `penstock submit` has made: {error}") from error


def digest_of(files: Mapping[str, bytes]) -> str:
    """Another one for other files, and the same for the same, however they were packed."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{len(name)} {name} {len(files[name])} ".encode())
        digest.update(files[name])
    return digest.hexdigest()


def check_bundle(packed: bytes, digest: str) -> bytes:
    """The same bytes, if they are the bundle with this digest; raises BundleError."""
    if digest_of(contents(packed)) != digest:
        raise BundleError("its files are not those that were submitted")
    return packed


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Put the files into a folder; those of an earlier bundle that are gone are removed, and nothing else is."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / _MANIFEST
    before = _listed(manifest)
    # What is about to be there is written down first: whoever is interrupted leaves nothing unknown.
    _list(manifest, {*before, *files})
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        draft.write_bytes(content)
        draft.replace(path)
    for name in before:
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    _list(manifest, files)


def _listed(manifest: Path) -> list[str]:
    try:
        found: list[str] = json.loads(manifest.read_text())
    except (FileNotFoundError, ValueError):
        return []
    return found


def _list(manifest: Path, names: Iterable[str]) -> None:
    draft = manifest.with_name(f"{manifest.name}.draft")
    draft.write_text(json.dumps(sorted(names)))
    draft.replace(manifest)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    found, size = 0, 0
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_symlink() or not path.is_file() or any(part.startswith(".") or part in _LEFT_OUT for part in parts):
            continue
        found, size = found + 1, size + path.stat().st_size
        if found > MAX_FILES or size > MAX_BYTES:
            raise BundleError(
                f"{folder} holds more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB, and all of it would be "
                "sent: put the topology and its code into a folder of their own, and name data by absolute paths"
            )
        yield "/".join(parts), path


def _read(archive: zipfile.ZipFile) -> dict[str, bytes]:
    items = [item for item in archive.infolist() if not item.is_dir()]
    if len(items) > MAX_FILES or sum(item.file_size for item in items) > MAX_BYTES:
        raise BundleError(f"it holds more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB")
    files: dict[str, bytes] = {}
    for item in items:
        _check_name(item)
        with archive.open(item) as file:
            # What an archive says of its sizes need not be so.
            content = file.read(item.file_size + 1)
        if len(content) != item.file_size:
            raise BundleError(f"'{item.filename}' is longer than the bundle says")
        files[item.filename] = content
    return files


def _check_name(item: zipfile.ZipInfo) -> None:
    path = PurePosixPath(item.filename)
    inside = not path.is_absolute() and path.parts and all(part not in ("..", "") for part in path.parts)
    plain = stat.S_IFMT(item.external_attr >> 16) in (0, stat.S_IFREG)
    hidden = any(part.startswith(".") for part in path.parts)
    if not inside or not plain or hidden or "\\" in item.filename or "\0" in item.filename:
        raise BundleError(f"'{item.filename}' is not the name of a plain file inside the topology's folder")
