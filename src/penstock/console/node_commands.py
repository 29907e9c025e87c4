"""What a node is told to do to its topologies: each task once, beside everything else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from penstock.console.calling import Calling, environment, secrets_of
from penstock.console.commands import EVERYWHERE, ONE_BY_ONE, Verb
from penstock.console.desired import Desired, Wanted
from penstock.console.going_back import await_nobody, going_back, holder_of, refuse_taken_name
from penstock.console.masking import masked
from penstock.console.nodes import Node, Nodes, Task
from penstock.console.order_giving import ORDERS, give_order
from penstock.console.tended import Tended
from penstock.console.tending import begun_with
from penstock.console.topology_log import shown_log
from penstock.errors import CommandRefused, CoordinationError

_COMMAND_SECONDS = 300.0
_ROLLING_SECONDS = 1800.0
"""For what is done to one replica after the other, each of which is waited for until it has caught up."""
_AGAIN_SECONDS = 0.5
_TROUBLE_SECONDS = 5.0
"""How long to wait after something that nobody expected."""
_LAST_WORDS = 100_000
"""Of what a command has said: rows that were asked for, or an error."""
LOG = "log"
"""What is asked for the end of a log; the only word is a replica, if it is of one."""
_BESIDE_A_KILL = (Verb.CHECKPOINT, Verb.CRASH, Verb.DEAD_LETTERS)
"""Neither starts processes of the topology, and what each has begun is whole or is not there. A replay of dead letters
holds the state as a run does, and is waited for: the topology does not run then."""
_AT_ONCE = 4
"""How many commands are carried out side by side: each is a Python process."""
_ROLLING_AT_ONCE = 16
"""How many go from replica to replica side by side: most of the time they wait."""


class NodeCommands:
    """Carries out tasks in threads of its own; a topology has at most one at a time, questions aside."""

    def __init__(self, node: Node, nodes: Nodes, calling: Calling, desired: Desired) -> None:
        self._node = node
        self._nodes = nodes
        self._desired = desired
        self._calling = calling
        self._quick = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-command")
        self._rolling = ThreadPoolExecutor(_ROLLING_AT_ONCE, thread_name_prefix="penstock-rolling")
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="penstock-question")
        self._kills = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-kill")
        self._taken: set[str] = set()
        """The tasks that were begun by this process: none is begun twice."""
        self._over = threading.Event()

    def close(self) -> None:
        self._over.set()
        for pool in (self._quick, self._rolling, self._questions, self._kills):
            pool.shutdown(wait=False, cancel_futures=True)

    def take(self, task: Task, wanted: Wanted | None, tended: Tended | None) -> None:
        """Begin a task, unless something else is done to the topology: then at a later look.

        What waits is not begun: whoever has given it may take it back.
        """
        if task.id in self._taken:
            return
        words = [str(word) for word in task.arguments.get("words", ())]
        if tended is not None and _waits(task, words, tended):
            return
        if not self._nodes.begin(task, self._node.run):
            if not self._nodes.is_taken_back(task):
                self._nodes.finish(task, False, "the supervisor that had begun it is gone: look whether it was done")
            return
        if wanted is None or tended is None:
            self._nodes.finish(task, False, f"topology '{task.topology}' does not run on node '{self._node.name}'")
            return
        if task.verb == LOG:
            # At once: it takes no process.
            self._nodes.finish(task, *_log_or_why(wanted, tended, words[0] if words else None))
            return

        def carry_out() -> None:
            try:
                done, said = self.carry_out(wanted, tended, task.verb, words)
            except CommandRefused as refused:
                done, said = False, str(refused)
            except Exception as error:
                done, said = False, f"{type(error).__name__}: {error}"
            self._finish(task, done, said)

        def answer() -> None:
            with contextlib.suppress(CoordinationError):
                if self._nodes.is_withdrawn(task):
                    # Others wait behind it, who want to know.
                    self._nodes.drop(task)
                    return
            carry_out()

        self._taken.add(task.id)
        if _is_question(task, words):
            # It changes nothing: what the topology needs is not put off for it.
            self._questions.submit(answer)
        elif task.verb in ORDERS:
            # A wish, and done at once: it need not wait for what goes from replica to replica.
            self._quick.submit(carry_out)
        elif tended.busy:
            # Whoever says kill does not want to wait for minutes: what is being done ends by itself.
            self._kills.submit(carry_out)
        else:
            self.in_background(tended, task.verb, carry_out, "--replay" not in words)

    def in_background(self, tended: Tended, verb: str, work: Callable[[], object], killable: bool = False) -> None:
        """`killable` unless its words say otherwise: whether a kill may pass by, if its verb is of that kind."""
        tended.may_be_killed = killable and verb in _BESIDE_A_KILL
        tended.busy = True

        def run() -> None:
            try:
                with contextlib.suppress(CoordinationError):
                    work()
            except Exception as error:
                # A full disk, for one: it is told, and not tried again and again without a pause.
                tended.trouble = f"{verb}: {error}"
                tended.not_before = time.monotonic() + _TROUBLE_SECONDS
            finally:
                tended.busy = False

        (self._rolling if verb in ONE_BY_ONE else self._quick).submit(run)

    def carry_out(self, wanted: Wanted, tended: Tended, verb: str, words: Sequence[str]) -> tuple[bool, str]:
        """Give a `penstock` command for a topology of this node; whether it was done, and what it said."""
        before: tuple[str, ...] = ()
        if verb in ORDERS:
            state, log = tended.place.state, self._calling.shared_log(wanted)
            if log is None and not state.path.is_dir():
                return False, f"topology '{wanted.name}' has not run yet: nothing in {state.path}"
            return True, give_order(wanted, state.coordinator_of(wanted.name, log), verb, words)
        if wanted.spread and verb == Verb.RESTORE:
            return True, self._go_back(wanted, tended, words)
        if verb == Verb.RESTORE:
            # The only one with something before the file: which of the checkpoints in the state's folder.
            name, *words = words
            before = (str(tended.place.state.snapshots / name),)
        command = [*self._calling.line(verb, wanted, tended.place, *before), *words]
        if wanted.spread and verb in EVERYWHERE:
            here = self._calling.here(wanted)
            if not here:
                return False, f"no replica of '{wanted.name}' is on node '{self._node.name}'"
            command += ["--only", ",".join(here)]
        if wanted.spread and verb == Verb.DEAD_LETTERS:
            command.append("--spread")
        if wanted.spread and verb == Verb.CHECKPOINT:
            command += ["--nodes", str(self._calling.home.nodes)]
            if list(words[:1]) == ["--name"]:
                refuse_taken_name(self._calling, wanted, words[1], tended.place.state)
        if verb == Verb.RESTART:
            if wanted.digest not in (tended.unpacked, tended.there.begun.digest):
                why = tended.why or "wait for them"
                return False, f"the files of version {wanted.digest[:12]} are not here yet: {why}"
            # Replicas are about to know it, and may write it into their logs.
            tended.place.keep_secret(secrets_of(wanted.sets, wanted.variables))
        done, said = self._called(command, tended, verb, environment(wanted.sets))
        if done and verb == Verb.RESTART:
            # Which replicas are watched does not change with the version.
            tended.place.note(begun_with(wanted, tended.there.begun.here))
            tended.trouble = ""
            tended.failed_renewals.clear()
        secrets = (*secrets_of(wanted.sets, wanted.variables), *tended.place.secrets())
        said = _without_secrets(said, secrets, verb) if done and "--json" in words else masked(said, secrets)
        # Whole lines: they may be JSON.
        return done, said if len(said) <= _LAST_WORDS else said[-_LAST_WORDS:].partition("\n")[2]

    def _go_back(self, wanted: Wanted, tended: Tended, words: Sequence[str]) -> str:
        """Look whether a checkpoint can be restored, and have all nodes begin with it; raises CommandRefused."""
        name, *options = words
        node = holder_of(self._calling, wanted, name, self._nodes.alive())
        await_nobody(wanted, tended.place.state.coordinator_of(wanted.name, self._calling.shared_log(wanted)))
        checkpoint = str(self._calling.checkpoint(wanted, node, name))
        command = [*self._calling.line(Verb.RESTORE, wanted, tended.place, checkpoint), *options, "--dry-run", "--json"]
        done, said = self._called(command, tended, Verb.RESTORE, environment(wanted.sets))
        secrets = (*secrets_of(wanted.sets, wanted.variables), *tended.place.secrets())
        if not done:
            raise CommandRefused(masked(said, secrets))
        fresh_sinks = "--fresh-sinks" in options
        self._desired.change(wanted.name, lambda now: going_back(now, wanted, node, name, fresh_sinks))
        looked = json.loads(said)
        return "\n".join([f"'{wanted.name}' goes back to epoch {looked['epoch']}, on all nodes, when it starts",
                          *(f"note: {masked(note, secrets)}" for note in looked["notes"])])  # fmt: skip

    def _called(
        self, command: Sequence[str], tended: Tended, verb: str, variables: Mapping[str, str]
    ) -> tuple[bool, str]:
        patience = _ROLLING_SECONDS if verb in ONE_BY_ONE else _COMMAND_SECONDS
        with subprocess.Popen(command, cwd=tended.place.work, env=variables, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace") as process:  # fmt: skip
            if verb in ONE_BY_ONE:
                tended.rolling = process
            try:
                told, complaint = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                return False, f"it was not done within {patience:.0f} s"
            finally:
                if verb in ONE_BY_ONE:
                    tended.rolling = None
        done = process.returncode == 0
        return done, (told if done else complaint or told).strip()

    def _finish(self, task: Task, done: bool, said: str) -> None:
        """Tell how it went; while the coordinator is away, again and again: it is not done a second time."""
        while not self._over.is_set():
            with contextlib.suppress(CoordinationError):
                self._nodes.finish(task, done, said)
                return
            self._over.wait(_AGAIN_SECONDS)


def _is_question(task: Task, words: Sequence[str]) -> bool:
    return task.verb == "state" or "--json" in words


def _waits(task: Task, words: Sequence[str], tended: Tended) -> bool:
    """Whether a task is put off for what is being done to its topology."""
    if not tended.busy or task.verb == LOG or task.verb in ORDERS or _is_question(task, words):
        return False
    return not (task.verb == Verb.KILL and tended.may_be_killed)


def _log_or_why(wanted: Wanted, tended: Tended, replica: str | None) -> tuple[bool, str]:
    """The end of a log, or why it is not told: what must not stand in it cannot be read, for one."""
    try:
        return True, shown_log(tended.place, replica, secrets_of(wanted.sets, wanted.variables))
    except OSError as error:
        return False, f"the log of '{wanted.name}' cannot be told: {error.strerror}: {error.filename}"


def _without_secrets(rows: str, sets: Sequence[str], verb: str) -> str:
    """Rows are data, which programs use, and stay as they are: a checkpoint may be called like a value that was set.

    Only why a tuple has failed is said in words.
    """
    if verb != Verb.DEAD_LETTERS:
        return rows
    return "\n".join(_masked_letter(line, sets) for line in rows.split("\n"))


def _masked_letter(line: str, sets: Sequence[str]) -> str:
    try:
        letter = json.loads(line)
        error = letter["error"]
    except (ValueError, TypeError, KeyError):
        return masked(line, sets)
    told = masked(str(error), sets)
    return line if told == error else json.dumps({**letter, "error": told})
