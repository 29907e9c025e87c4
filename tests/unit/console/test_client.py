"""A console from another process, whose answers may be lost on their way."""

from __future__ import annotations

import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.console import client as client_module
from penstock.console.client import AnswerLost, Client, NoAnswer
from penstock.console.desired import Desired, Wanted
from penstock.errors import ConsoleError

from ...waiting import wait_until
from ..cli.typed import penstock
from .running_console import RunningConsole, running_console

Answer = Callable[[bytes], bytes]
"""What is answered to a request, as it goes over the wire."""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_REPEATED_AFTER", (0.0, 0.0))


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers each connection with the next of these, and then is gone; its address and what it got."""
    got: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(10)
                    got.append(request_of(connection))
                    connection.sendall(answer(got[-1]))

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", got
    serving.join(10)
    assert not serving.is_alive(), "it was asked less often than expected"


def request_of(connection: socket.socket) -> bytes:
    """Until it is whole, with as much of a body as it says."""
    taken = b""
    while True:
        head, end, body = taken.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head.lower())
        if end and len(body) >= (int(length[1]) if length else 0):
            return taken
        taken += connection.recv(65536)


def key_of(request: bytes) -> bytes:
    found = re.search(rb"(?i)idempotency-key: *([^\r]+)", request)
    assert found
    return found[1]


def http(code: int, body: str, length: int | None = None) -> Answer:
    """An answer of HTTP, which says that it is longer than it is where `length` says so."""
    return lambda _: (f"HTTP/1.1 {code} Some\r\nContent-Type: application/json\r\nConnection: close\r\n"
                      f"Content-Length: {len(body) if length is None else length}\r\n\r\n{body}").encode()  # fmt: skip


def nothing(_: bytes) -> bytes:
    return b""


DONE = http(200, '{"done": true, "said": "it stops"}')
HALF = http(200, '{"done": true', 1000)
OTHER = lambda _: b"SSH-2.0-OpenSSH_9.6\r\n"  # noqa: E731


@pytest.mark.parametrize("lost", [nothing, HALF, OTHER, http(504, "gateway time-out"), http(500, "it broke")])
def test_a_command_whose_answer_was_lost_is_given_again_with_its_key(lost: Answer) -> None:
    with answering(lost, lost, DONE) as (url, got):
        assert Client(url).command("count", "stop")["said"] == "it stops"
    assert len({key_of(each) for each in got}) == 1


@pytest.mark.parametrize("later", [(nothing, nothing), (), (http(503, '{"error": "nothing was done"}'),) * 2,
                                   (http(429, '{"error": "nothing was done"}'),) * 2])  # fmt: skip
def test_where_that_does_not_help_it_may_have_been_done(later: tuple[Answer, ...]) -> None:
    """It is gone, or another one is asked that leads nothing: neither knows of the first time."""
    with answering(nothing, *later) as (url, _), pytest.raises(AnswerLost, match="may have been done; look at `penst"):
        Client(url).remove("count")


def test_a_refusal_of_what_was_repeated_is_final() -> None:
    refused = http(409, '{"error": "it does not run"}')
    with answering(nothing, refused) as (url, _), pytest.raises(ConsoleError, match=r"^it does not run$"):
        Client(url).command("count", "kill")


def test_a_console_that_says_nothing_for_long_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_SECONDS", 0.2)
    with (closing(socket.create_server(("127.0.0.1", 0))) as silent,
          pytest.raises(AnswerLost, match=r"lost \(timed out\)")):  # fmt: skip
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}").command("count", "kill")
    # Refused at once, and never sent: that is known.
    with pytest.raises(NoAnswer, match="start one with `penstock up`"):
        Client("http://127.0.0.1:9").command("count", "kill")


@pytest.mark.parametrize(("answer", "why"), [(HALF, "gave no whole answer"), (OTHER, "gave no whole answer"),
                                             (nothing, "gave no whole answer"),
                                             (http(200, "<html>"), "is no console"),
                                             (http(500, "it bro", 1000), "answered 500: it bro")])  # fmt: skip
def test_what_is_no_answer_to_a_question_is_said_in_words(answer: Answer, why: str) -> None:
    with answering(answer) as (url, _), pytest.raises(ConsoleError, match=why):
        Client(url).get("/api/topologies")


@pytest.mark.parametrize("url", ["http://127.0.0.1:port", "console", "http://127.0.0.1:80 80"])
def test_what_is_no_address_is_said_in_words(url: str) -> None:
    with pytest.raises(NoAnswer, match="no console answers at"):
        Client(url).get("/api/topologies")


# With a real console.


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RunningConsole]:
    with running_console(tmp_path / "home") as console:
        wait_until(lambda: console.master.leading)
        yield console


@pytest.fixture
def loses_first_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer to each command is lost on its way back."""
    through, met = urllib.request.urlopen, set[str | None]()

    def urlopen(request: urllib.request.Request, **options: object) -> object:
        answer = through(request, **options)  # type: ignore[arg-type]
        key = request.get_header("Idempotency-key")
        if key is None or key in met:
            return answer
        met.add(key)
        answer.close()
        raise ConnectionResetError("the master was killed")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)


@pytest.mark.usefixtures("loses_first_answers")
def test_what_is_given_again_is_done_once_and_has_the_first_answer(console: RunningConsole) -> None:
    Desired(console.coordinator).add(Wanted("count", "0" * 64, "topology.yaml"))
    console.see("count")
    assert console.client.command("count", "stop") == {"done": True, "said": "it stops after its epoch"}
    told = [event["words"] for event in console.client.get("/api/events")]
    assert len([words for words in told if words.endswith(": stop")]) == 1


def test_a_submission_whose_outcome_is_not_known_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topology.yaml").write_text("topology: count\nsources: {ticks: {generator: {id: sequence}}}\n"
                                     "sinks: {out: {from: ticks, file: out/rows.jsonl}}\n")  # fmt: skip
    unknown = http(201, '{"done": false, "said": "its outcome is not known: look at its events"}')
    with answering(nothing, unknown) as (url, _):
        result = penstock("submit", "--at", url)
    assert (result.exit_code, result.exception) == (0, None)
    assert result.stdout == "its outcome is not known: look at its events, and at `penstock list`\n"
