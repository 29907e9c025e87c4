"""The rescale that a command asks a running topology for: heard while it runs, done between two of its epochs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import PenstockError
from penstock.runtime.division import Rescaled, check_rescale, divide_held, present_division
from penstock.runtime.rescale_request import Reply, RescaleRequest, reply, take_request
from penstock.runtime.state_folder import StateFolder
from penstock.topology.model import Topology


class LiveRescale:
    """What a run has been asked for: one request at a time, from `hear` to `answer`."""

    def __init__(self, topology: Topology, state: StateFolder, say: Callable[[str], None]) -> None:
        self._topology = topology
        self._state = state
        self._say = say
        self._request: RescaleRequest | None = None
        self._outcome: Rescaled | PenstockError | OSError | None = None

    @property
    def wanted(self) -> bool:
        """Whether the query is to be stopped at the end of its epoch, for `carry_out`."""
        return self._request is not None

    def hear(self) -> bool:
        """Whether there is a new request that needs the query stopped. What needs no stop is answered at once."""
        request = None if self.wanted else take_request(self._state)
        if request is None:
            return False
        self._request = request
        try:
            check_rescale(self._topology, request.operator, request.instances)
            present = present_division(self._topology, self._state)
        except PenstockError as error:
            self._outcome = error
            self.answer(going_on=True)
            return False
        if present.after == request.instances:
            self._outcome = present
            self.answer(going_on=True)
            return False
        self._tell("finishing the epoch, to divide the state anew")
        return True

    def leave_to_command(self) -> None:
        """Reply that the run stops: the command that asked does it then."""
        assert self._request is not None
        self._say("stopping after this epoch, so that the state can be divided")
        reply(self._state, self._request, Reply("waiting for the run to stop at the end of its epoch", stops=True))
        self._request = None

    def carry_out(self, spark: SparkSession) -> None:
        """Divide the state; the query must be stopped. `answer` tells the command, once the run goes on.

        What goes wrong is told as well: the state is as it was, then. Only a JVM that is gone is raised, as py4j does.
        """
        assert self._request is not None
        try:
            wanted = self._request.instances
            done = divide_held(self._topology, self._state, wanted, lambda: nullcontext(spark), self._tell)
        except (PenstockError, OSError) as error:
            if error.__cause__ is not None and _is_jvm_gone(error.__cause__):
                raise error.__cause__ from error
            self._outcome = error
            self._say(f"the state stays divided as it is: {error}")
        else:
            self._outcome = done
            self._say(f"going on with {done.after} instances instead of {done.before}, as of epoch {done.epoch}")

    def answer(self, going_on: bool) -> None:
        """Tell the command what came of its request; then the next one may be heard."""
        assert self._request is not None
        if isinstance(self._outcome, Rescaled):
            done = replace(self._outcome, went_on=going_on, stopped=not going_on)
            reply(self._state, self._request, Reply(done=asdict(done)))
        else:
            reply(self._state, self._request, Reply(refused=str(self._outcome)))
        self._request = None

    def _tell(self, said: str) -> None:
        assert self._request is not None
        self._say(said)
        reply(self._state, self._request, Reply(said))


def _is_jvm_gone(cause: BaseException) -> bool:
    return isinstance(cause, ConnectionError) or (isinstance(cause, Py4JError) and not isinstance(cause, Py4JJavaError))
