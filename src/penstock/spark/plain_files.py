"""A file system for Spark's checkpoints on a local disk that leaves the permissions of files alone.

Without a library in C, Hadoop starts a process (`chmod`) for every file it makes, which takes ten times as long as the
file: for the offset log, the commit log, and the changes of every part of the state. Files have the permissions that
the user wants without that. Hadoop's own class with that one method left out is two classes of a few bytes; they are
put together here, since Penstock comes without a Java compiler:

    class PlainFiles extends RawLocalFileSystem { void setPermission(Path file, FsPermission permission) {} }
    class LocalFiles extends LocalFileSystem { LocalFiles() { super(new PlainFiles()); } }
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from penstock.spark.class_archive import cache_folder

FILE_SYSTEM = "penstock.LocalFiles"

_JAVA_8 = 52
_PUBLIC = 0x0001
_CONSTRUCTOR = ("<init>", "()V")
_HADOOP = "org/apache/hadoop/fs"
_ALOAD_0, _DUP, _RETURN, _INVOKESPECIAL, _NEW = b"\x2a", b"\x59", b"\xb1", b"\xb7", b"\xbb"


def plain_files_jar() -> Path | None:
    """The jar with the classes, written where it is not there yet; None where it cannot be."""
    content = _jar()
    path = cache_folder() / f"plain-files-{hashlib.sha256(content).hexdigest()[:12]}.jar"
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(content)
            draft.replace(path)
        except OSError:
            return None
    return path


def _jar() -> bytes:
    """The same bytes each time."""
    raw = _Class("penstock/PlainFiles", f"{_HADOOP}/RawLocalFileSystem")
    raw.method(*_CONSTRUCTOR, 1, 1, _ALOAD_0 + raw.call(raw.parent, *_CONSTRUCTOR) + _RETURN)
    raw.method("setPermission", f"(L{_HADOOP}/Path;L{_HADOOP}/permission/FsPermission;)V", 0, 3, _RETURN)
    local = _Class("penstock/LocalFiles", f"{_HADOOP}/LocalFileSystem")
    made = _NEW + local.type(raw.name) + _DUP + local.call(raw.name, *_CONSTRUCTOR)
    wrapped = local.call(local.parent, "<init>", f"(L{_HADOOP}/FileSystem;)V")
    local.method(*_CONSTRUCTOR, 3, 1, _ALOAD_0 + made + wrapped + _RETURN)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        for each in (raw, local):
            jar.writestr(zipfile.ZipInfo(f"{each.name}.class"), each.encoded())
    return content.getvalue()


@dataclass
class _Class:
    """A Java class in the making, as its file has it."""

    name: str
    parent: str
    _constants: dict[bytes, int] = field(default_factory=dict)
    _methods: list[bytes] = field(default_factory=list)

    def method(self, name: str, kind: str, stack: int, variables: int, code: bytes) -> None:
        body = struct.pack(">HHI", stack, variables, len(code)) + code + struct.pack(">HH", 0, 0)
        attribute = self._text("Code") + struct.pack(">I", len(body)) + body
        self._methods.append(
            struct.pack(">H", _PUBLIC) + self._text(name) + self._text(kind) + struct.pack(">H", 1) + attribute)

    def call(self, owner: str, name: str, kind: str) -> bytes:
        """The instruction that calls a constructor."""
        named = self._constant(b"\x0c" + self._text(name) + self._text(kind))
        return _INVOKESPECIAL + self._constant(b"\x0a" + self.type(owner) + named)

    def type(self, name: str) -> bytes:
        return self._constant(b"\x07" + self._text(name))

    def encoded(self) -> bytes:
        own, parent = self.type(self.name), self.type(self.parent)
        constants = struct.pack(">H", len(self._constants) + 1) + b"".join(self._constants)
        methods = struct.pack(">H", len(self._methods)) + b"".join(self._methods)
        head = struct.pack(">IHH", 0xCAFEBABE, 0, _JAVA_8)
        return b"".join((head, constants, struct.pack(">H", _PUBLIC | 0x20), own, parent, bytes(4), methods, bytes(2)))

    def _text(self, text: str) -> bytes:
        return self._constant(b"\x01" + struct.pack(">H", len(text)) + text.encode())

    def _constant(self, content: bytes) -> bytes:
        """Its number among the constants, which begin with 1."""
        return struct.pack(">H", self._constants.setdefault(content, len(self._constants) + 1))
