"""The state server's protocol, against a server of the test's own that answers slowly and at length."""

from __future__ import annotations

import pickle
import socket
import struct
import threading

import pytest

from penstock.spark.state_socket import (
    StateServerError,
    StateSocket,
    check_done,
    clear_value,
    delete_timer,
    expired_timers,
    fields_of,
    get_value,
    register_timer,
    set_key,
    timers_in,
    update_value,
    value_in,
)


def unframed(request: bytes) -> bytes:
    version, length = struct.unpack(">ii", request[:8])
    assert (version, length) == (0, len(request) - 8)
    return request[8:]


def at(message: bytes, *path: int) -> int | bytes:
    """The content of a field within fields."""
    found: int | bytes = message
    for number in path:
        assert isinstance(found, bytes)
        found = dict(fields_of(found))[number]
    return found


def test_a_key_and_a_value_are_pickled_rows() -> None:
    key = at(unframed(set_key(("a", 1))), 4, 1, 1)
    assert isinstance(key, bytes)
    assert pickle.loads(key) == ("a", 1)
    update = unframed(update_value("state", b"x" * 300))
    assert at(update, 3, 1, 1) == b"state"
    value = at(update, 3, 1, 4, 1)
    assert isinstance(value, bytes)
    assert pickle.loads(value) == (b"x" * 300,)


def test_moments_are_numbers_of_any_size() -> None:
    assert at(unframed(register_timer(1_700_000_000_000)), 2, 5, 1, 1) == 1_700_000_000_000
    assert at(unframed(delete_timer(5)), 2, 5, 2, 1) == 5
    ask = unframed(expired_timers((1 << 63) - 1, "scan"))
    assert (at(ask, 5, 2, 1), at(ask, 5, 2, 2)) == (b"scan", (1 << 63) - 1)


def test_an_empty_answer_is_a_key_without_a_value() -> None:
    assert value_in(b"") is None
    check_done([b"", b""])


def test_a_refusal_says_why() -> None:
    refused = b"\x08\x01\x12\x06nobody"
    with pytest.raises(StateServerError, match="nobody"):
        value_in(refused)
    with pytest.raises(StateServerError, match="nobody"):
        check_done([b"", refused])
    with pytest.raises(StateServerError, match="nobody"):
        timers_in(refused)


def test_timers_come_with_their_keys() -> None:
    key = pickle.dumps(("a",))
    timer = b"\x0a" + bytes([len(key)]) + key + b"\x10\x07"
    answer = b"\x1a" + bytes([len(timer)]) + timer + b"\x20\x01"
    found = timers_in(answer)
    assert found.timers == [(("a",), 7)]
    assert found.more
    assert timers_in(b"\x08\x02\x12\x02no").timers == []


def test_requests_and_answers_larger_than_every_buffer_pass_at_once() -> None:
    ours, theirs = socket.socketpair()
    number, size = 200, 100_000

    def serve() -> None:
        # One at a time, as Spark does: it reads no further request before an answer is written.
        stream = theirs.makefile("rwb")
        for _ in range(number):
            _, length = struct.unpack(">ii", stream.read(8))
            stream.read(length)
            stream.write(struct.pack(">i", size) + b"a" * size)
            stream.flush()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    answers = StateSocket(ours).exchange([update_value("state", b"x" * size)] * number)
    server.join(10)
    assert answers == [b"a" * size] * number


class Server:
    """Answers every request with its number, or refuses it."""

    def __init__(self, refused: int = -1) -> None:
        ours, self._link = socket.socketpair()
        self.socket = StateSocket(ours)
        self._refused = refused
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        stream = self._link.makefile("rwb")
        number = 0
        while head := stream.read(8):
            stream.read(struct.unpack(">ii", head)[1])
            answer = b"\x08\x01\x12\x06nobody" if number == self._refused else b"\x12\x01" + bytes([number])
            stream.write(struct.pack(">i", len(answer)) + answer)
            stream.flush()
            number += 1


def test_what_was_asked_first_is_answered_first_whatever_was_told_in_between() -> None:
    server = Server().socket
    request = get_value("state")
    server.ask([request, request])
    server.tell([request])
    server.ask([request])
    assert [answer[-1] for answer in server.answers()] == [0, 1]
    server.tell([request])
    assert [answer[-1] for answer in server.answers()] == [3]
    assert [answer[-1] for answer in server.exchange([request])] == [5]


def test_a_refusal_of_what_was_only_told_comes_with_the_next_answers() -> None:
    server = Server(refused=1).socket
    server.tell([get_value("state"), clear_value("state")])
    with pytest.raises(StateServerError, match="nobody"):
        server.exchange([get_value("state")])


def test_a_server_that_goes_away_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with pytest.raises((StateServerError, BrokenPipeError, ConnectionResetError)):
        StateSocket(ours).exchange([get_value("state")])
