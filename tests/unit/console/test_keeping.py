"""Code is not lost with the master that took it: all masters have it, and hand it out."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.console import fetching, service
from penstock.console.bundle import check_bundle, contents, digest_of
from penstock.console.desired import Desired
from penstock.console.fetching import fetch_from
from penstock.console.home import ConsoleHome
from penstock.console.keeping import Keeping
from penstock.console.master import Candidate
from penstock.console.tokens import Role, Tokens
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import BundleError

from ...waiting import wait_until
from .several_masters import Certificate, made_bundle, one_master

TOPOLOGY = """\
topology: count
sources:
  ticks: {generator: {id: sequence}, count: 10}
sinks:
  out: {from: ticks, file: out/rows.jsonl}
"""


def test_what_was_submitted_outlives_the_home_of_the_master_that_took_it(tmp_path: Path) -> None:
    store = MemoryStore()
    packed, digest = made_bundle(tmp_path / "own", TOPOLOGY)
    node = ConsoleHome(tmp_path / "node")
    with one_master(tmp_path / "one", store) as first:
        wait_until(lambda: first.master.leading)
        with one_master(tmp_path / "two", store) as second:
            wait_until(lambda: len(first.master.candidates()) == 2)
            answer = first.client().submit(packed, "topology.yaml", (), False, False)
            # Whoever is told that it was taken may lose the master that took it.
            assert (answer.get("warning"), second.has(digest)) == (None, True)
            first.home.bundle(digest).unlink()
            assert contents(fetch_from(node, second.master.candidates)(digest)) == contents(packed)
            # It copies what it has lost.
            first.keeping.look()
            assert first.has(digest)


def test_a_master_that_comes_later_copies_what_is_wanted_already(tmp_path: Path) -> None:
    store = MemoryStore()
    with one_master(tmp_path / "one", store) as one:
        digests = [one.take("a", "topology: a\n"), one.take("b", "topology: b\n")]
        with one_master(tmp_path / "two", store) as two:
            wait_until(lambda: all(two.has(digest) for digest in digests))
            assert two.home.bundle(digests[0]).stat().st_mode & 0o077 == 0


def test_with_tokens_and_tls_a_standby_needs_an_operators_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_COPY_SECONDS", 0.5)
    store, certificate = MemoryStore(), Certificate.made_in(tmp_path, "127.0.0.1")
    tokens = Tokens(MemoryCoordinator(store))
    operator, viewer = tokens.create("nodes", Role.OPERATOR), tokens.create("eve", Role.VIEWER)
    packed, digest = made_bundle(tmp_path / "own", TOPOLOGY)
    with one_master(tmp_path / "one", store, certificate=certificate, open_to_all=False) as one:
        wait_until(lambda: one.master.leading)
        with one_master(tmp_path / "two", store, certificate=certificate) as two:
            # What is not safe from the leader's death is not called so.
            console = one.client(operator, certificate.authority)
            answer = console.submit(packed, "topology.yaml", (), False, False)
            assert "no other master has its files yet" in answer["warning"]
            wait_until(lambda: two.said)
            assert two.said[0].startswith(f"the files of version {digest[:12]} could not be copied: {one.url}: a token")
            assert two.said[0].endswith("`penstock token create`; give this one --token, an operator's")
            two.keeping.look()
            assert len(two.said) == 1
        with one_master(tmp_path / "two", store, certificate=certificate, token=viewer) as two:
            wait_until(lambda: two.said)
            assert "eve may look but not command" in two.said[0]
        with one_master(tmp_path / "two", store, certificate=certificate, token=operator) as two:
            wait_until(lambda: two.has(digest))


def test_files_that_are_not_those_that_were_submitted_are_had_elsewhere(tmp_path: Path) -> None:
    store = MemoryStore()
    with one_master(tmp_path / "one", store) as one, one_master(tmp_path / "two", store) as two:
        digest = one.take("a")
        wait_until(lambda: two.has(digest))
        good = two.home.bundle(digest).read_bytes()
        one.home.bundle(digest).write_bytes(made_bundle(tmp_path / "other", "topology: other\n")[0])
        node = ConsoleHome(tmp_path / "node")
        node.keep_bundle(digest, b"half of i")
        fetch = fetch_from(node, lambda: [one.master.me, two.master.me])
        assert fetch(digest) == good
        with pytest.raises(OSError, match=f"{one.url}: its files are not those that were submitted"):
            fetch_from(node, lambda: [one.master.me])(digest)


def test_a_master_on_loopback_elsewhere_is_not_asked(tmp_path: Path) -> None:
    """Its address means this machine here: whoever listens would be given the token."""
    store = MemoryStore()
    with one_master(tmp_path / "one", store, machine="another-machine") as one:
        digest = one.take("a")
        fetch = fetch_from(ConsoleHome(tmp_path / "node"), one.master.candidates, "secret")
        with pytest.raises(OSError, match=f"{one.url}: it can be reached on its own machine only: start it with --h"):
            fetch(digest)


def test_where_nobody_has_it_everybody_is_named(tmp_path: Path) -> None:
    store = MemoryStore()
    home = ConsoleHome(tmp_path / "node")
    with one_master(tmp_path / "one", store) as one:
        gone = Candidate("gone", "http://console.invalid:8470", "0", 1)
        with pytest.raises(OSError, match=r"http://console\.invalid:8470: .*; .*: this master has no bundle 0123"):
            fetch_from(home, lambda: [gone, one.master.me])("0123" * 16)
    with pytest.raises(OSError, match="no master is there to ask"):
        fetch_from(home, list)("0123" * 16)


def test_a_master_that_drips_is_given_up_and_the_next_one_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_WHOLE_SECONDS", 0.2)
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
            for _ in range(100):
                connection.sendall(b"x")
                over.wait(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener, one_master(tmp_path / "one", MemoryStore()) as one:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        dripping = Candidate("dripping", url, "0", 1, socket.gethostname())
        with pytest.raises(OSError, match=f"{url}: it had not sent all of it after 0.2 s; {one.url}: .* no bundle 01"):
            fetch_from(ConsoleHome(tmp_path / "node"), lambda: [dripping, one.master.me])("0123" * 16)
        over.set()


def test_a_full_disk_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    with one_master(tmp_path / "one", store) as one:
        digest = one.take("a")
        said: list[str] = []
        home = ConsoleHome(tmp_path / "two")
        keeping = Keeping("two", home, one.coordinator, fetch_from(home, one.master.candidates), said.append)

        def full(digest: str, packed: bytes) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(ConsoleHome, "keep_bundle", lambda self, digest, packed: full(digest, packed))
            keeping.look()
        assert "No space left on device" in said[0]
        keeping.look()
        assert home.bundle(digest).exists()


def test_a_standby_forgets_what_nobody_wants_after_a_day(tmp_path: Path) -> None:
    store = MemoryStore()
    with one_master(tmp_path / "one", store) as one, one_master(tmp_path / "two", store) as two:
        old, kept = one.take("a", "topology: a\n"), one.take("b", "topology: b\n")
        wait_until(lambda: two.has(old) and two.has(kept))
        for digest in (old, kept):
            os.utime(two.home.bundle(digest), (time.time() - 90_000,) * 2)
        Desired(one.coordinator).remove("a")
        wait_until(lambda: not two.has(old))
        assert two.has(kept)


def test_a_bundle_is_checked_by_its_digest(tmp_path: Path) -> None:
    packed, digest = made_bundle(tmp_path / "own", TOPOLOGY)
    assert check_bundle(packed, digest) is packed
    assert digest == digest_of(contents(packed))
    with pytest.raises(BundleError, match="not those that were submitted"):
        check_bundle(packed, "0" * 64)
