"""Whatever is asked of the API, it answers, and never with an error of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from penstock.console import service, task_giving
from penstock.console.bundle import pack
from penstock.console.commands import Verb
from penstock.console.desired import Desired

from ...waiting import wait_until
from .running_console import RunningConsole, running_console

ENDLESS = "/api/stream"
SUBMIT = "POST /api/topologies"
QUESTIONS = 30
COMMANDS = 8
SUBMITTED = 1
"""What was submitted is looked into in a process of its own, which takes its time."""
LONG_QUERY = 5_000
"""Each character may take twelve in a line, of which 64 KB are read."""
NAME = "count"
TOPOLOGY = f"""\
topology: {NAME}
chaos: allowed
sources:
  ticks: {{generator: {{id: sequence}}, count: 10}}
operators:
  kept: {{from: ticks, filter: id >= 0}}
sinks:
  out: {{from: kept, file: out/rows.jsonl}}
"""
REPLICAS = st.sampled_from(["1", "2", "9"])
OPERATORS = st.sampled_from(["kept", "ticks", "nobody"])
CHECKPOINTS = st.sampled_from(["before", "0"])
ARGUMENTS: dict[Verb, tuple[dict[str, st.SearchStrategy[Any]], dict[str, st.SearchStrategy[Any]]]] = {
    Verb.FREEZE: ({}, {"replica": REPLICAS, "operator": OPERATORS}),
    Verb.UNFREEZE: ({}, {"replica": REPLICAS, "operator": OPERATORS}),
    Verb.INTERVAL: ({"interval": st.sampled_from(["default", "500ms", "2s", "0"])}, {"operator": OPERATORS}),
    Verb.CRASH: ({}, {"replica": REPLICAS}),
    Verb.RESCALE: ({"operator": OPERATORS, "instances": st.integers(1, 1000)}, {}),
    Verb.CHECKPOINT: ({}, {"name": CHECKPOINTS}),
    Verb.RESTORE: ({"name": CHECKPOINTS}, {"fresh_sinks": st.booleans()}),
    Verb.DEAD_LETTERS: ({"action": st.sampled_from(["replay", "discard"])},
                        {"operator": OPERATORS, "letters": st.lists(st.from_regex(r"\A[0-9a-f]{10}\Z"), max_size=3)}),
}  # fmt: skip
"""What each verb needs, and may have."""
fuzzed = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


class Inhabited:
    """A console with a topology, whose node says something to all that it is told."""

    def __init__(self, running: RunningConsole, packed: bytes) -> None:
        self.url = running.url
        self.packed = packed
        self.done = Counter[str]()
        self._running = running
        self._desired = Desired(running.coordinator)
        self.digest = running.client.submit(packed, "topology.yaml", (), False, False)["digest"]
        wait_until(lambda: (wanted := self._desired.get(NAME)) and wanted.nodes)
        self._wanted = self._desired.change(NAME, lambda now: replace(now, replicas=2, nodes={"1": "a", "2": "a"}))

    def put_back(self) -> None:
        """If somebody has removed it."""
        if self._desired.get(NAME) is None:
            self._desired.add(self._wanted)
            self._running.master.watching.look()

    def work_until(self, over: threading.Event) -> None:
        while not over.wait(0.002):
            for task in self._running.nodes.tasks("a"):
                self.done[task.verb] += 1
                # Some cannot be done.
                self._running.nodes.finish(task, self.done[task.verb] % 4 != 0, '{"row": 1}\n{no row')


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inhabited]:
    folder, over = tmp_path_factory.mktemp("console"), threading.Event()
    (folder / "own").mkdir()
    (folder / "own/topology.yaml").write_text(TOPOLOGY)
    with pytest.MonkeyPatch.context() as patch, running_console(folder / "home") as running:
        # The node answers at once: nobody is to wait longer for it.
        patch.setattr(service, "_LOOK_SECONDS", 0.005)
        patch.setattr(task_giving, "_LOOK_SECONDS", 0.005)
        wait_until(lambda: running.master.leading)
        running.node("a")
        made = Inhabited(running, pack(folder / "own"))
        node = threading.Thread(target=made.work_until, args=(over,))
        node.start()
        try:
            yield made
            assert running.client.text("/healthz") == "alive\n"
        finally:
            over.set()
            node.join()


def test_no_question_breaks_it(console: Inhabited) -> None:
    described = schemathesis.openapi.from_url(f"{console.url}/api/openapi.json")
    operations = [found.ok() for found in described.get_all_operations()]
    answers = {operation.label: asked(console, operation) for operation in operations if operation.path != ENDLESS}
    # They came further than to a topology that is not there.
    for what in ("GET /api/topologies/{name}", "GET /api/topologies/{name}/log", "GET /api/topologies/{name}/state",
                 "GET /api/topologies/{name}/checkpoints", "GET /api/topologies/{name}/dead-letters",
                 "DELETE /api/topologies/{name}", "GET /api/bundles/{digest}"):  # fmt: skip
        assert answers[what][200], f"{what}: {answers[what]}"
    assert answers[SUBMIT][201], answers[SUBMIT]
    assert {"state", "checkpoint", "dead-letters", "log"} <= console.done.keys()


def asked(console: Inhabited, operation: Any) -> Counter[int]:
    """Ask what fits the description, and what does not; how often each code was the answer."""
    codes = Counter[int]()
    questions = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if any(operation.iter_parameters()) or operation.body:
        questions |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @given(case=questions, known=st.booleans())
    @settings(fuzzed, max_examples=QUESTIONS)
    def ask(case: Any, known: bool) -> None:
        if known:
            about_what_is_there(console, case, codes)
        try:
            answer = case.call(timeout=30)
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
            # Of a line that is too long for it a server reads no more, and hangs up.
            assert len(str(case.query)) > LONG_QUERY
            return
        assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text}"
        codes[answer.status_code] += 1
        console.put_back()

    ask()
    return codes


def about_what_is_there(console: Inhabited, case: Any, answered: Counter[int]) -> None:
    """Have a question be about the topology that there is."""
    for key, value in (("name", NAME), ("digest", console.digest)):
        if key in (case.path_parameters or {}):
            case.path_parameters[key] = value
    if f"{case.method} {case.path}" == SUBMIT and answered[201] < SUBMITTED:
        case.body, case.query, case.headers = console.packed, {"replace": "true"}, {}


def test_no_command_breaks_it_whatever_comes_of_it(console: Inhabited) -> None:
    for verb in Verb:
        console.done.clear()
        codes = given_to(console, verb)
        assert codes[200], verb
        # All but what is only wanted is done by the node.
        assert (str(verb) in console.done) == (verb not in (Verb.START, Verb.STOP)), verb


def given_to(console: Inhabited, verb: Verb) -> Counter[int]:
    """Give commands that fit their verb, some of them twice."""
    needs, may_have = ARGUMENTS.get(verb, ({}, {}))
    codes = Counter[int]()

    @given(command=st.fixed_dictionaries({"verb": st.just(str(verb)), **needs}, optional=may_have),
           key=st.none() | st.sampled_from(["a", "b"]))  # fmt: skip
    @settings(fuzzed, max_examples=COMMANDS)
    def give(command: dict[str, Any], key: str | None) -> None:
        answer = requests.post(f"{console.url}/api/topologies/{NAME}/commands", json=command, timeout=30,
                               headers={"Idempotency-Key": f"{verb}-{key}"} if key else {})  # fmt: skip
        taken = key is not None and "another command was given with the key" in answer.text
        assert answer.status_code in ((422,) if taken else (200, 404, 409)), f"{command}: {answer.text}"
        assert answer.json().keys() & {"said", "error"}
        codes[answer.status_code] += 1

    give()
    return codes
