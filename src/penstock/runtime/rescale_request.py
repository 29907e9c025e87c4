"""How a command asks a run for a rescale, and how the run replies: files in the state folder.

    rescale-asked-<id>     what is wanted, until the run takes it
    rescale-reply-<id>     what the run is doing about it, and in the end what came of it

Not by signals: the run may be a notebook, or a program of the user's.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.runtime.state_folder import StateFolder

_ASKED = "rescale-asked-"
_REPLY = "rescale-reply-"


@dataclass(frozen=True)
class RescaleRequest:
    """What a command asks for."""

    id: str
    process: int
    """The process that runs the topology; another one does not hear it."""
    operator: str
    instances: int


@dataclass(frozen=True)
class Reply:
    """What the run says; the last one has one of the fields behind `doing`."""

    doing: str = ""
    done: Mapping[str, Any] | None = None
    """The fields of `Rescaled`."""
    refused: str | None = None
    stops: bool = False
    """It cannot do it and go on: it stops, and leaves it to the command."""


def ask(state: StateFolder, process: int, operator: str, instances: int) -> RescaleRequest:
    """Ask the process that runs the topology; it takes the request within a moment."""
    request = RescaleRequest(uuid.uuid4().hex, process, operator, instances)
    state.write_whole(_ASKED + request.id, json.dumps(asdict(request)))
    return request


def take_request(state: StateFolder) -> RescaleRequest | None:
    """A request to this process, which is not heard again; None when there is none."""
    for file in sorted(state.path.glob(f"{_ASKED}*")):
        try:
            request = RescaleRequest(**json.loads(file.read_text()))
        except FileNotFoundError:
            continue
        if request.process == os.getpid():
            file.unlink(missing_ok=True)
            return request
    return None


def reply(state: StateFolder, request: RescaleRequest, said: Reply) -> None:
    state.write_whole(_REPLY + request.id, json.dumps(asdict(said)))


def reply_to(state: StateFolder, request: RescaleRequest) -> Reply | None:
    """What the run said last; None as long as it has not heard."""
    try:
        return Reply(**json.loads((state.path / (_REPLY + request.id)).read_text()))
    except FileNotFoundError:
        return None


def withdraw(state: StateFolder, request: RescaleRequest) -> None:
    """Remove the request, unless it was heard, and the reply."""
    for prefix in (_ASKED, _REPLY):
        (state.path / (prefix + request.id)).unlink(missing_ok=True)


def forget_old_requests(state: StateFolder) -> None:
    """At a start: what was asked of earlier runs, and what they replied to commands that are gone."""
    for file in (*state.path.glob(f"{_REPLY}*"), *state.path.glob(f"{_ASKED}*")):
        try:
            mine = file.name.startswith(_ASKED) and json.loads(file.read_text())["process"] == os.getpid()
        except FileNotFoundError:
            continue
        if not mine:
            file.unlink(missing_ok=True)
