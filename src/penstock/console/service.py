"""What the console does when it is asked: submit, command, tell. The API and the page are a thin layer above it."""

from __future__ import annotations

import json
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from penstock.console.audit import Audit, Given, Outcome
from penstock.console.bundle import contents, digest_of, unpack
from penstock.console.calling import secrets_of
from penstock.console.commands import EVERYWHERE, Command, Verb, needs_it_stopped, new_goal, told, words_for
from penstock.console.desired import Desired, Goal, Wanted
from penstock.console.events import Event
from penstock.console.home import ConsoleHome
from penstock.console.inspection import inspect
from penstock.console.keeping import Keepers
from penstock.console.load import load_of
from penstock.console.masking import masked
from penstock.console.master import Master
from penstock.console.node_commands import LOG
from penstock.console.nodes import Nodes
from penstock.console.once_per_key import OncePerKey
from penstock.console.summary import is_running, summary
from penstock.console.task_giving import ANSWER_SECONDS, TaskGiving, away_from, homes_of
from penstock.console.tending import How
from penstock.console.tokens import Person
from penstock.console.topology_log import shown_log
from penstock.console.watching import Watched
from penstock.coordination.base import Coordinator
from penstock.errors import CommandRefused, ConsoleError, CoordinationError
from penstock.topology.environment import variables_in

_GRAPHS = "console/graphs/"
_COPY_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_ONLY_HERE = ("no other master has its files yet: see what the others say; if this one is lost before they have them, "
              "submit it once more")
_RUNNING = (How.RUNNING, How.STARTING, How.STOPPING)
_ASKED_AT_ONCE = 4
_LOGS_ASKED_AT_ONCE = 16
"""A log takes no process on its node, but somebody waits here for the answer."""


class NotLeading(ConsoleError):
    """This master does not lead, and commands nothing."""


class TooManyQuestions(ConsoleError):
    """Each question is a process on a node."""


class Service:
    """One console, as one of its masters sees it."""

    def __init__(self, master: Master, home: ConsoleHome, coordinator: Coordinator) -> None:
        self.master = master
        self._home = home
        self._coordinator = coordinator
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._tasks = TaskGiving(self._nodes, self._is_busy)
        self._audit = Audit(home.audit)
        self._keepers = Keepers(coordinator)
        self._lock = threading.Lock()
        self._commands = OncePerKey(coordinator)
        self._graphs: dict[str, dict[str, Any] | None] = {}
        """As they were last read."""
        self._asking: set[tuple[str, ...]] = set()
        """About what nodes are asked now: a topology, once; or the log of one, by each who asks."""

    # -- telling --------------------------------------------------------------------------------

    def overview(self) -> list[dict[str, Any]]:
        """All topologies, in a line each; raises CoordinationError before anything is known of them."""
        self.look()
        self._require_a_look()
        return [summary(each) for each in self.master.watching.all()]

    def details(self, name: str) -> dict[str, Any]:
        """Everything about one topology; raises CommandRefused when there is none."""
        self.look()
        watched = self._watched(name)
        graph = self._graph(name)
        sources = {node["id"] for node in graph["nodes"] if node["role"] == "source"} if graph else set()
        return {
            **summary(watched),
            "graph": graph,
            "points": [
                {"time": point.time, "epoch": point.epoch, "lag": point.lag, "latency_ms": point.latency_ms,
                 "epoch_ms": point.epoch_ms,
                 "in": sum(rate for node, rate in point.rates.items() if node in sources),
                 "out": sum(rate for node, rate in point.rates.items() if node.startswith("sink:"))}
                for point in list(watched.points)
            ],
            "epochs": list(watched.timeline.epochs),
            "rates": dict(watched.rates),
            "load": asdict(load_of(graph, list(watched.points) if is_running(watched) else [])),
            "events": [vars(event) for event in self.master.watching.events(name, 50)],
        }  # fmt: skip

    def look(self) -> None:
        """Have what is told be of now; while the coordinator is away, what is known is told."""
        if self.master.watching.reachable:
            with suppress(CoordinationError):
                self.master.watching.look_unless_recent()

    def log(self, name: str, replica: str | None = None, node: str | None = None) -> str:
        """The end of what a topology's supervisor has said, or one of its replicas, wherever it is.

        Where several nodes have a supervisor of it, one after the other, each line with its node before it.
        """
        wanted = self._desired.get(name) or self._watched(name).wanted
        homes = homes_of(wanted)
        if replica is not None:
            if replica not in wanted.nodes:
                known = ", ".join(wanted.nodes)
                raise CommandRefused(f"'{name}' has no replica '{replica}': its replicas are {known}", missing=True)
            homes = [wanted.nodes[replica]]
        elif node is not None:
            if node not in homes:
                raise CommandRefused(f"'{name}' is not on a node '{node}': it is on {', '.join(homes)}", missing=True)
            homes = [node]
        if len(homes) == 1:
            return self._log_at(wanted, homes[0], replica)
        return "".join(f"{home}: {line}\n" for home in homes for line in self._lines_at(wanted, home))

    def _lines_at(self, wanted: Wanted, home: str) -> list[str]:
        try:
            return self._log_at(wanted, home, None).splitlines()
        except CommandRefused as refused:
            # The others are shown all the same.
            return [str(refused)]

    def _log_at(self, wanted: Wanted, home: str, replica: str | None) -> str:
        place = self._home.topology(wanted.name, home)
        if place.path.is_dir():
            return shown_log(place, replica, secrets_of(wanted.sets, wanted.variables))
        # Several may follow the same log.
        with self._asking_about((wanted.name, uuid.uuid4().hex), _LOGS_ASKED_AT_ONCE):
            answer = self._tasks.give(wanted, LOG, [] if replica is None else [replica], home)
        return self._tasks.read(wanted.name, answer)

    def asked(self, name: str, verb: str, *words: str) -> list[dict[str, Any]]:
        """What `penstock VERB FILE --json` says about a topology, where it is; raises CommandRefused when it does not.

        Whoever may look may ask: it changes nothing.
        """
        wanted = self._desired.get(name) or self._watched(name).wanted
        with self._asking_about((name,), _ASKED_AT_ONCE):
            answer = self._tasks.give(wanted, verb, ["--json", *words])
        found = []
        for line in self._tasks.read(name, answer).splitlines():
            with suppress(ValueError):
                row = json.loads(line)
                found += [row] if isinstance(row, dict) else []
        return found

    @contextmanager
    def _asking_about(self, what: tuple[str, ...], at_once: int) -> Iterator[None]:
        """While a node is asked: the same by one at a time, and of its kind not too much; raises TooManyQuestions."""
        with self._lock:
            if what in self._asking or sum(len(each) == len(what) for each in self._asking) >= at_once:
                raise TooManyQuestions("others are asking already: try again in some seconds")
            self._asking.add(what)
        try:
            yield
        finally:
            with self._lock:
                self._asking.discard(what)

    def bundle(self, digest: str) -> bytes | None:
        path = self._home.bundle(digest)
        return path.read_bytes() if path.exists() else None

    def _graph(self, name: str) -> dict[str, Any] | None:
        """As it was last known, where the coordinator is away."""
        try:
            text = self._coordinator.get(_GRAPHS + name)
        except CoordinationError:
            if name not in self._graphs:
                raise
        else:
            self._graphs[name] = None if text is None else json.loads(text)
        return self._graphs[name]

    def _watched(self, name: str) -> Watched:
        watched = self.master.watching.get(name)
        if watched is None:
            self._require_a_look()
            known = ", ".join(each.wanted.name for each in self.master.watching.all()) or "none yet"
            raise CommandRefused(f"there is no topology '{name}'; the topologies are: {known}", missing=True)
        return watched

    def _is_busy(self, name: str) -> bool:
        watched = self.master.watching.get(name)
        return watched is not None and watched.seen is not None and bool(watched.seen.get("busy"))

    def _require_a_look(self) -> None:
        if not self.master.watching.has_looked:
            raise CoordinationError(self.master.watching.trouble or "this master has just started, and has not seen "
                                    "yet what there is: try again in some seconds")  # fmt: skip

    # -- commanding -----------------------------------------------------------------------------

    def submit(self, packed: bytes, file: str, sets: Sequence[str], replace_it: bool, fresh: bool, who: Person,
               address: str, key: str | None = None, spread: bool = False) -> dict[str, Any]:  # fmt: skip
        """Take a topology over; raises CommandRefused or BundleError with what is wrong with it."""
        try:
            files = contents(packed)
            if file not in files:
                raise CommandRefused(f"the bundle has no file '{file}'")
        except ConsoleError as refused:
            self._audit.note(who, address, "submit", None, file=file, outcome=Outcome.REFUSED, said=str(refused))
            raise
        digest = digest_of(files)
        variables = variables_in("\n".join((files[file].decode(errors="replace"), *sets)))
        secrets = secrets_of(sets, variables)

        def do() -> dict[str, Any]:
            try:
                with tempfile.TemporaryDirectory(prefix="penstock-submit-") as folder:
                    unpack(files, Path(folder))
                    found = inspect(Path(folder) / file, sets)
                self._home.keep_bundle(digest, packed)
            except OSError as error:
                raise CommandRefused(f"its files cannot be kept here: {error.strerror}") from error
            if spread and found.replicas < 2:
                raise CommandRefused("--spread is for replicas, and this topology has one: say replicas: 2")
            if spread and found.private:
                raise CommandRefused(
                    "with --spread all replicas must write to the same place, and these are in a folder of each node: "
                    f"{'; '.join(found.private)}: give paths that all nodes see, from the root, or a database"
                )
            wanted = Wanted(found.name, digest, file, tuple(sets), found.replicas, found.chaos, spread,
                            fresh=int(fresh), variables=variables, submission=uuid.uuid4().hex)  # fmt: skip
            there = self._desired.get(found.name)
            if there is not None and replace_it and there.spread != spread:
                raise CommandRefused(f"'{found.name}' was submitted {'with' if there.spread else 'without'} --spread: "
                                     "remove it first, to have it otherwise")  # fmt: skip
            watched = self.master.watching.get(found.name)
            how = "" if watched is None or watched.away else (watched.seen or {}).get("how")
            if there is not None and replace_it and there.replicas != found.replicas and how in _RUNNING:
                # Who watches its replicas has their number from its start.
                raise CommandRefused(f"'{found.name}' is {how} with replicas: {there.replicas}, and this version says "
                                     f"{found.replicas}: stop it first")  # fmt: skip
            ended = spread and how == How.ENDED
            if there is not None and replace_it:
                wanted = self._desired.change(found.name, lambda now: replace(
                    now, digest=digest, file=file, sets=tuple(sets), variables=variables, replicas=found.replicas,
                    chaos=found.chaos, goal=Goal.RUN, fresh=now.fresh + (fresh or ended)))  # fmt: skip
            else:
                wanted = self._desired.add(wanted)
            graph = _without_values(found.graph.model_dump(by_alias=True), secrets)
            self._coordinator.put(_GRAPHS + found.name, json.dumps(graph))
            self._home.forget_bundles({each.digest for each in self._desired.all()})
            # Whoever asks next finds it.
            self.master.watching.look()
            self._say(wanted.name, f"{who.name} has submitted it, version {digest[:12]}")
            answer = {"topology": wanted.name, "digest": digest, "replicas": wanted.replicas,
                      "said": f"'{wanted.name}' was submitted"}  # fmt: skip
            return answer if self._is_copied(digest) else {**answer, "warning": _ONLY_HERE}

        # Not the values: some are passwords.
        details = {"file": file, "digest": digest, "sets": [item.partition("=")[0] for item in sets],
                   "replace": replace_it, "fresh": fresh, "spread": spread}  # fmt: skip
        # What it is called stands in the file, which nobody has looked into yet.
        return self._once(key, Given(self._audit, who, address, "submit", None), details, do, secrets, sets)

    def _is_copied(self, digest: str) -> bool:
        """Whether another master has a bundle, where there are others: they are waited for, for a while."""
        deadline = time.monotonic() + _COPY_SECONDS
        with suppress(CoordinationError):
            while others := self.master.others():
                if any(digest in self._keepers.of(other.name) for other in others):
                    return True
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_LOOK_SECONDS)
        return True

    def command(self, name: str, command: Command, who: Person, address: str,
                key: str | None = None) -> dict[str, Any]:  # fmt: skip
        """Carry a command out; raises CommandRefused when it makes no sense, NotLeading, and OutcomeUnknown."""

        def do() -> dict[str, Any]:
            self._check_operator(name, command)
            self._check_nodes(name, command)
            wanted = self._desired.change(name, lambda now: new_goal(command, now))
            self._say(name, f"{who.name}: {told(command)}")
            try:
                return self._carried_out(wanted, command)
            except CommandRefused as refused:
                if command.verb is not Verb.KILL:
                    raise
                # Its node may have been about to start it: whoever says kill does not want it to run.
                raise CommandRefused(f"{refused}\nit is to end all the same, and is not started before `penstock start "
                                     f"{name}`", refused.missing) from None  # fmt: skip

        given = Given(self._audit, who, address, command.verb, name)
        return self._once(key, given, command.model_dump(exclude_none=True), do)

    def _carried_out(self, wanted: Wanted, command: Command) -> dict[str, Any]:
        """What is to be done for a command, beside what is wanted from now on."""
        if wanted.spread:
            return self._given_to_nodes(wanted, command)
        words = words_for(command)
        if words is None or (command.verb is Verb.RESTART and wanted.replicas < 2):
            if command.verb is Verb.RESTART:
                return self._restart_alone(wanted.name)
            said = "it stops after its epoch" if wanted.goal is Goal.STOP else "it starts"
            return {"done": True, "said": said}
        if needs_it_stopped(command):
            return self._given_while_stopped(wanted, command.verb, words)
        return self._tasks.give(wanted, command.verb, words)

    def _check_operator(self, name: str, command: Command) -> None:
        """Raises CommandRefused for an operator that the topology does not have; letters may be of sources, too."""
        graph = self._graph(name)
        if graph is None or command.operator is None or command.verb is Verb.DEAD_LETTERS:
            return
        names = [node["name"] for node in graph["nodes"] if node["role"] not in ("source", "sink")]
        if command.operator not in names:
            raise CommandRefused(f"'{name}' has no operator '{command.operator}': its operators are "
                                 f"{', '.join(names) or 'none'}", missing=True)  # fmt: skip

    def _check_nodes(self, name: str, command: Command) -> None:
        """Raises CommandRefused where no node can do it now: before anything is changed for it."""
        wanted = self._desired.get(name)
        if wanted is None or words_for(command) is None:
            return
        # What makes no sense at all is said first.
        new_goal(command, wanted)
        homes, alive = homes_of(wanted), self._nodes.alive()
        if wanted.spread and command.verb is Verb.KILL:
            # Who is away is killed already.
            return
        if wanted.spread and command.verb is Verb.CRASH and command.replica in wanted.nodes:
            homes = [wanted.nodes[command.replica]]
        away = [home for home in homes if home not in alive]
        each = wanted.spread and (command.verb in EVERYWHERE or command.verb is Verb.CRASH)
        if away and (each or len(away) == len(homes)):
            raise away_from(wanted, away[0])

    def remove(self, name: str, who: Person, address: str, key: str | None = None) -> dict[str, Any]:
        """Forget a topology that does not run; what it has written stays."""

        def do() -> dict[str, Any]:
            watched = self._watched(name)
            how = "" if watched.seen is None else watched.seen["how"]
            if how in _RUNNING and not watched.away:
                raise CommandRefused(f"'{name}' is {how}: stop it first")
            self._desired.remove(name)
            self._nodes.forget(name)
            self._coordinator.delete(_GRAPHS + name)
            # A node may be lost for good.
            still = "; should it still run where nobody sees it, it ends when its node is back" if watched.away else ""
            return {"done": True, "said": f"'{name}' was removed; its files are where they were{still}"}

        return self._once(key, Given(self._audit, who, address, "remove", name), {}, do)

    def _restart_alone(self, name: str) -> dict[str, Any]:
        """One replica: it ends after its epoch, and goes on from there."""
        with self._stopped(name) as how:
            if how == How.STOPPING:
                return {"done": False, "said": f"its epoch takes longer than {ANSWER_SECONDS:.0f} s: it stops after "
                        "that, and starts again"}  # fmt: skip
            if how in _RUNNING:
                raise _unheard(name)
        return {"done": True, "said": "it was stopped after its epoch, and starts again"}

    @contextmanager
    def _stopped(self, name: str) -> Iterator[str]:
        """While it is to be stopped, with how it is then; after that it runs again, unless somebody has stopped it.

        It may be running or stopping still, where that takes too long.
        """
        with self.master.pausing(name):
            deadline = time.monotonic() + ANSWER_SECONDS
            while (how := self._how(name)) in _RUNNING and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
            yield how

    def _how(self, name: str) -> str:
        self.look()
        seen = self._watched(name).seen
        return How.STOPPED if seen is None else str(seen["how"])

    def _given_while_stopped(self, wanted: Wanted, verb: Verb, words: Sequence[str]) -> dict[str, Any]:
        if wanted.goal is Goal.STOP:
            return self._tasks.give(wanted, verb, words)
        with self._stopped(wanted.name) as how:
            if how == How.STOPPING:
                raise CommandRefused(f"the epoch of '{wanted.name}' takes longer than {ANSWER_SECONDS:.0f} s, and "
                                     "nothing was done: stop it, and try again when it is stopped")  # fmt: skip
            if how in _RUNNING:
                raise _unheard(wanted.name)
            answer = self._tasks.give(wanted, verb, words)
        return {**answer, "said": f"{answer['said']}\nit was stopped for it, and starts again"}

    def _given_to_nodes(self, wanted: Wanted, command: Command) -> dict[str, Any]:
        """A command for a topology whose replicas have nodes of their own: each node does it to its own."""
        words = words_for(command)
        if words is None:
            return {"done": True, "said": "it stops after its epoch" if wanted.goal is Goal.STOP else "it starts"}
        if command.verb is Verb.CRASH:
            homes_of(wanted)
            wounded = [command.replica] if command.replica else list(wanted.nodes)
            answers = [self._tasks.give(wanted, command.verb, ["--replica", name], wanted.nodes.get(name))
                       for name in wounded]  # fmt: skip
            return {**answers[-1], "said": "\n".join(answer["said"] for answer in answers)}
        if command.verb in EVERYWHERE:
            return self._tasks.give_everywhere(wanted, command.verb, words)
        if needs_it_stopped(command):
            return self._given_while_stopped(wanted, command.verb, words)
        return self._tasks.give(wanted, command.verb, words)

    def refuse(self, who: Person, address: str, what: str, topology: str | None, said: str) -> None:
        """Write down that somebody wanted to command who may only look."""
        self._audit.refused(who, address, what, topology, said)

    def _once(self, key: str | None, given: Given, details: dict[str, Any], do: Callable[[], dict[str, Any]],
              secrets: Sequence[str] = (), sets: Sequence[str] = ()) -> dict[str, Any]:  # fmt: skip
        self._require_leading(given)
        return self._commands.carry_out(key, given, details, do, secrets, sets)

    def _require_leading(self, given: Given) -> None:
        if self.master.leading:
            return
        leader = self.master.leader()
        where = f"give it to {leader.url}" if leader is not None else "wait some seconds until one leads"
        said = f"this master does not lead, and nothing was done: {where}"
        given.ended(Outcome.REFUSED, said)
        raise NotLeading(said)

    def _say(self, name: str, words: str) -> None:
        self.master.watching.note(Event(time.time(), name, words))


def _unheard(name: str) -> CommandRefused:
    return CommandRefused(f"the node of '{name}' has not begun to stop it within {ANSWER_SECONDS:.0f} s, and nothing "
                          "else was done: see whether its supervisor runs, and try again")  # fmt: skip


def _without_values(graph: Mapping[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """A graph for everybody who may look: what stands in it about its nodes may be what was set."""
    return {**graph, "nodes": [{**node, "brief": masked(node["brief"], secrets)} for node in graph["nodes"]]}
