"""Speak with Spark's state server, many requests at a time.

For every task of a `transformWithState` the JVM starts a server that reads one request after another from a socket:
set a key, get its value, update it. Spark's own Python client waits for each answer, which costs a round trip for every
key and request. Here any number of requests is sent in one go, while their answers are read: one exchange serves many
keys, and the server works on what was asked for next while the task works on what came before. The few messages of the
protocol (`StateMessage.proto` in Spark) are written by hand below.
"""

from __future__ import annotations

import io
import pickle
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

Key = tuple[Any, ...]
"""The values of the key columns, as Spark keeps them: a timestamp is a number of microseconds."""

_FRAME = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_PROTOCOL_VERSION = 0
_RECEIVE_BYTES = 1 << 18
_MANY = 100
_SECONDS_AN_ANSWER = 4e-6
"""About how fast answers come, at most."""
_LONGEST_PAUSE_SECONDS = 1e-3
"""Long enough for a hundred answers, and too short for so many that the server's buffer is full."""

_SMALL = [bytes((number,)) for number in range(0x80)]
_VALUE_TAG = 3 << 3 | 2
"""How an answer begins that is nothing but a value: a status of zero is not sent."""
_TIMERS_GO_ON = 0
_NO_MORE_TIMERS = 2


class Phase(IntEnum):
    """What the server is told of how far a task is; it allows state variables to be declared only in the first two."""

    PLANNING = 0
    CREATED = 1
    INITIALIZED = 2
    DATA_PROCESSED = 3
    TIMERS_PROCESSED = 4
    CLOSED = 5


class StateServerError(Exception):
    """The server refused a request, or went away."""


# -- protobuf, as far as needed -----------------------------------------------------------------


def _varint(number: int) -> bytes:
    if 0 <= number < 0x80:
        return _SMALL[number]
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _SMALL[number << 3 | 2] + _varint(len(content)) + content


def _number_field(number: int, value: int) -> bytes:
    return _SMALL[number << 3] + _varint(value)


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the content of each field of a message."""
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position)
        number, kind = tag >> 3, tag & 7
        value, position = _read_varint(message, position)
        if kind == 0:
            yield number, value
        elif kind == 2:
            yield number, message[position : position + value]
            position += value
        else:
            raise StateServerError(f"an answer with a field of kind {kind}, which the protocol does not have")


# -- requests -----------------------------------------------------------------------------------


def _request(number: int, content: bytes) -> bytes:
    message = _bytes_field(number, content)
    return _FRAME.pack(_PROTOCOL_VERSION, len(message)) + message


def _processor_call(number: int, content: bytes) -> bytes:
    return _request(2, _bytes_field(number, content))


def enter_phase(phase: Phase) -> bytes:
    return _processor_call(1, _number_field(1, phase) if phase else b"")


def declare_value(name: str, schema_json: str) -> bytes:
    """Declare a state variable that holds one value for every key."""
    return _processor_call(2, _bytes_field(1, name.encode()) + _bytes_field(2, schema_json.encode()))


def set_key(key: Key) -> bytes:
    """What follows is about this key."""
    return _request(4, _bytes_field(1, _bytes_field(1, pickle.dumps(key, 3))))


def get_value(name: str) -> bytes:
    return _value_call(name, 3, b"")


def update_value(name: str, encoded: bytes) -> bytes:
    return _value_call(name, 4, _bytes_field(1, pickle.dumps((encoded,), 3)))


def clear_value(name: str) -> bytes:
    return _value_call(name, 5, b"")


def _value_call(name: str, number: int, content: bytes) -> bytes:
    return _request(3, _bytes_field(1, _bytes_field(1, name.encode()) + _bytes_field(number, content)))


def register_timer(time_ms: int) -> bytes:
    return _processor_call(5, _bytes_field(1, _number_field(1, time_ms)))


def delete_timer(time_ms: int) -> bytes:
    return _processor_call(5, _bytes_field(2, _number_field(1, time_ms)))


def expired_timers(until_ms: int, scan: str) -> bytes:
    """The next timers due until then, of all keys; `scan` names one pass over them."""
    return _request(5, _bytes_field(2, _bytes_field(1, scan.encode()) + _number_field(2, until_ms)))


# -- answers ------------------------------------------------------------------------------------


def value_in(answer: bytes) -> bytes | None:
    """The value that was asked for; None when the key has none. Raises StateServerError when it was refused."""
    if not answer:
        return None
    if answer[0] != _VALUE_TAG:
        raise _refusal(dict(fields_of(answer)))
    _, begin = _read_varint(answer, 1)
    (encoded,) = _row_in(answer[begin:])
    return bytes(encoded)


def check_done(answers: Iterable[bytes]) -> None:
    """Raises StateServerError when one of the requests was refused: an empty answer says that all is well."""
    for answer in answers:
        if answer and dict(fields_of(answer)).get(1):
            raise _refusal(dict(fields_of(answer)))


@dataclass(frozen=True)
class ExpiredTimers:
    """Some of the timers that are due, and whether there are more to ask for."""

    timers: list[tuple[Key, int]]
    more: bool


def timers_in(answer: bytes) -> ExpiredTimers:
    timers: list[tuple[Key, int]] = []
    more = False
    for number, content in fields_of(answer):
        match number:
            case 1 if content == _NO_MORE_TIMERS:
                return ExpiredTimers([], False)
            case 1 if content != _TIMERS_GO_ON:
                raise _refusal(dict(fields_of(answer)))
            case 3 if isinstance(content, bytes):
                timer = dict(fields_of(content))
                timers.append((_row_in(timer[1]), int(timer.get(2, 0))))
            case 4:
                more = bool(content)
    return ExpiredTimers(timers, more)


class _RowUnpickler(pickle.Unpickler):
    """Reads the rows of the JVM. Each names its schema in JSON, which Spark's own reading parses for every row."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("pyspark.sql.types", "_create_row_inbound_converter"):
            return _of_any_schema
        return super().find_class(module, name)


def _of_any_schema(schema_json: str) -> Callable[..., tuple[Any, ...]]:
    return _as_it_is


def _as_it_is(*values: Any) -> tuple[Any, ...]:
    return values


def _row_in(pickled: int | bytes) -> tuple[Any, ...]:
    assert isinstance(pickled, bytes)
    row: tuple[Any, ...] = _RowUnpickler(io.BytesIO(pickled)).load()
    return row


def _refusal(fields: dict[int, int | bytes]) -> StateServerError:
    said = fields.get(2, b"")
    return StateServerError(said.decode() if isinstance(said, bytes) else str(said))


class StateSocket:
    """One task's connection to its state server, which answers one request after another."""

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        self._link = link
        self._poll = select.poll()
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._answers: list[bytes] = []
        """Those that have come and that nobody has taken."""
        self._owed: deque[tuple[int, bool]] = deque()
        """For how many requests answers are still to be taken, and whether they were asked for or only told."""

    @classmethod
    def connect(cls, address: int | str) -> StateSocket:
        """Connect to a port of this machine, or to a socket in the file system. The server takes one connection."""
        if isinstance(address, str):
            link = socket.socket(socket.AF_UNIX)
            link.connect(address)
        else:
            link = socket.create_connection(("localhost", address))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(link)

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        """Send all the requests and take their answers, in order."""
        assert not any(asked for _, asked in self._owed)
        self.ask(requests)
        return self.answers()

    def ask(self, requests: Sequence[bytes]) -> None:
        """Send the requests, without waiting for their answers: those are for `answers`."""
        self._send(requests, asked=True)

    def tell(self, requests: Sequence[bytes]) -> None:
        """Send requests that are answered with no more than that all is well. It is checked with the next answers."""
        self._send(requests, asked=False)

    def answers(self) -> list[bytes]:
        """The answers to what was asked first of all that has not been answered yet, in order.

        Raises StateServerError when something that was told before it was refused.
        """
        while True:
            number, asked = self._owed.popleft()
            taken = self._take(number)
            if asked:
                return taken
            check_done(taken)

    def _send(self, requests: Sequence[bytes], *, asked: bool) -> None:
        self._owed.append((len(requests), asked))
        self._unsent = memoryview(b"".join((self._unsent, *requests)))
        self._send_some()

    def _take(self, number: int) -> list[bytes]:
        """Answers are read while requests are still being sent: neither side can block on a full buffer."""
        while (missing := number - len(self._answers)) > 0:
            self._await(bool(self._unsent), missing)
            self._send_some()
            self._receive_some()
        taken = self._answers[:number]
        del self._answers[:number]
        return taken

    def _await(self, to_send: bool, missing: int) -> None:
        """Until there is something to do. The server sends each answer alone: to wake up for each costs more than to
        let some of them gather."""
        if not to_send and missing > _MANY:
            time.sleep(min(missing * _SECONDS_AN_ANSWER, _LONGEST_PAUSE_SECONDS))
        self._poll.register(self._link, select.POLLIN | select.POLLOUT if to_send else select.POLLIN)
        self._poll.poll()

    def _send_some(self) -> None:
        """What can be sent at once."""
        if self._unsent:
            try:
                self._unsent = self._unsent[self._link.send(self._unsent) :]
            except BlockingIOError:
                return

    def _receive_some(self) -> None:
        """What has come."""
        try:
            part = self._link.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not part:
            raise StateServerError("the state server has closed the connection")
        self._received += part
        _take_frames(self._received, self._answers)

    def close(self) -> None:
        self._link.close()


def _take_frames(received: bytearray, answers: list[bytes]) -> None:
    """Move the complete answers at the beginning of `received` to `answers`."""
    position, end = 0, len(received)
    while end - position >= 4:
        (length,) = _LENGTH.unpack_from(received, position)
        if end - position - 4 < length:
            break
        answers.append(bytes(received[position + 4 : position + 4 + length]))
        position += 4 + length
    del received[:position]
