"""Divide what the stateful operators of a topology remember over another number of instances, whether it runs or not.

A run is asked to do it itself, and goes on afterwards. What no run does is done here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from penstock.errors import CoordinationError
from penstock.runtime.division import Rescaled, check_rescale, divide_held
from penstock.runtime.rescale_request import Reply, RescaleRequest, ask, reply_to, withdraw
from penstock.runtime.run import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.swap import settle
from penstock.runtime.tool_session import tool_session
from penstock.topology.model import Topology

_HEARING_SECONDS = 120.0
"""How long a run may take to hear a request: it may be starting Spark."""
_PAUSE_SECONDS = 0.05

Say = Callable[[str], None]


def rescale(
    topology: Topology,
    operator: str,
    instances: int,
    settings: RunSettings | None = None,
    say: Say = lambda _: None,
) -> Rescaled:
    """Divide the state anew. A running topology does so between two epochs, and runs on.

    It is one number for all stateful operators. Killed at any moment, this process or the one that runs the topology
    leaves the old division or the new one.
    """
    check_rescale(topology, operator, instances)
    run = settings or RunSettings()
    state = StateFolder.of(topology, run.state)
    stopped = False
    while (process := state.running()) is not None:
        last = _asked(state, process, operator, instances, say)
        if last is not None and last.refused is not None:
            raise CoordinationError(last.refused)
        if last is not None and last.done is not None:
            return replace(Rescaled(**last.done), operators=tuple(last.done["operators"]))
        stopped = last is not None and last.stops
    with state.held() as lock:
        settle(state)
        done = divide_held(
            topology, state, instances, lambda: tool_session(topology.name, state, run, lock, say), say)
    return replace(done, stopped=stopped)


def _asked(state: StateFolder, process: int, operator: str, instances: int, say: Say) -> Reply | None:
    """Ask a run and wait; the last that it said, which is not the outcome when it has ended before."""
    say(f"asking process {process}, which runs it")
    request = ask(state, process, operator, instances)
    try:
        return _last_reply(state, request, say)
    finally:
        withdraw(state, request)


def _last_reply(state: StateFolder, request: RescaleRequest, say: Say) -> Reply | None:
    deadline = time.monotonic() + _HEARING_SECONDS
    heard: Reply | None = None
    while True:
        # In this order: what a run says last, it says before it ends.
        gone = state.running() != request.process
        found = reply_to(state, request)
        if found is not None and found != heard and found.doing:
            say(found.doing)
        heard = found or heard
        if gone or (heard is not None and (heard.done is not None or heard.refused is not None)):
            return heard
        if heard is None and time.monotonic() > deadline:
            raise CoordinationError(
                f"process {request.process}, which holds {state.path}, has not answered within {_HEARING_SECONDS:g} s; "
                "stop it, and try again"
            )
        time.sleep(_PAUSE_SECONDS)
