"""Mounting without root: a process may mount what it likes in namespaces of its own."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import wraps
from multiprocessing import get_context
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_NO_NAMESPACES = 77
"""The exit code of a process that got none."""


def with_own_mounts(test: Callable[..., None]) -> Callable[..., None]:
    """A test that mounts a disk: root calls it as it is, everybody else in a process with namespaces of its own.

    On a machine that allows neither, it is called as it is and must find that mounting is refused.
    """

    @wraps(test)
    def called(**fixtures: object) -> None:
        if os.geteuid() != 0:
            # A fork, which has the fixtures and one thread only: with more there is no new user namespace.
            process = get_context("fork").Process(target=_call_in_own_namespaces, args=(test, fixtures))
            process.start()
            process.join()
            if process.exitcode != _NO_NAMESPACES:
                assert process.exitcode == 0, "it failed in its own process: see what was written to standard error"
                return
        test(**fixtures)

    return called


def _call_in_own_namespaces(test: Callable[..., None], fixtures: dict[str, object]) -> None:
    try:
        _enter_own_namespaces()
    except OSError:
        sys.exit(_NO_NAMESPACES)
    test(**fixtures)


def _enter_own_namespaces() -> None:
    """Become root where only this process and its children are."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "no namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
