"""Look at what the stateful operators of a topology remember, while it runs or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.errors import MachineError, TopologyError
from penstock.runtime.manifest import CHECKPOINT, Manifest
from penstock.runtime.run import RunSettings
from penstock.runtime.snapshots import passing_snapshot
from penstock.runtime.state_files import operator_metadata, size_of_state
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.tool_session import tool_session
from penstock.spark.state_columns import readable_state
from penstock.topology.model import Operator, Topology
from penstock.topology.problems import suggest


@dataclass(frozen=True)
class OperatorState:
    """What is known of an operator's state without reading it."""

    operator: str
    kind: str
    epoch: int
    """It is the state after this epoch."""
    version: int
    """Spark's own number for that."""
    instances: int
    bytes: int
    copies: int
    """As many as there are branches that the operator stands in."""


def stateful_operator(topology: Topology, name: str) -> Operator:
    """The operator; raises TopologyError when it does not exist or remembers nothing."""
    stateful = [operator for operator in topology.operators if operator.stateful]
    for operator in stateful:
        if operator.name == name:
            return operator
    names = [operator.name for operator in stateful]
    if any(operator.name == name for operator in topology.operators):
        raise TopologyError(f"operator '{name}' remembers nothing; with state there are: {', '.join(names) or 'none'}")
    advice = suggest(name, names) or f"with state there are: {', '.join(names) or 'none'}"
    raise TopologyError(f"there is no operator '{name}' in topology '{topology.name}'; {advice}")


def overview(topology: Topology, state: StateFolder, coordinator: str) -> list[OperatorState]:
    """Every stateful operator, in the order written; needs no Spark."""
    with passing_snapshot(state.furthest(), topology.name, coordinator) as (folder, manifest):
        return [_described(operator, folder / CHECKPOINT, manifest)
                for operator in topology.operators if operator.name in manifest.state_ids]


def _described(operator: Operator, checkpoint: Path, manifest: Manifest) -> OperatorState:
    numbers = [number for number, name in enumerate(manifest.state_ids) if name == operator.name]
    size = sum(size_of_state(checkpoint, number, manifest.batch) for number in numbers)
    return OperatorState(operator.name, operator.keyword, manifest.epoch, manifest.batch + 1, manifest.instances, size,
                         len(numbers))


@dataclass(frozen=True)
class ReadState:
    """The state of one operator after an epoch, as a DataFrame: a row for every key."""

    operator: str
    epoch: int
    keys: Sequence[str]
    rows: DataFrame


@contextmanager
def opened_state(
    topology: Topology,
    operator: str,
    coordinator: str | None = None,
    settings: RunSettings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[ReadState]:
    """The state of an operator, for the time of the block: the stream goes on meanwhile."""
    node = stateful_operator(topology, operator)
    run = settings or RunSettings()
    state = StateFolder.of(topology, run.state)
    address = state.coordinator_for(topology, coordinator)
    with passing_snapshot(state.furthest(), topology.name, address) as (folder, manifest):
        number = manifest.state_ids.index(operator) if operator in manifest.state_ids else None
        if number is None:
            raise TopologyError(f"there is no state of '{operator}' in {state.path} yet: run the topology first")
        with tool_session(topology.name, state, run, None, say) as spark:
            say(f"reading the state of '{operator}'")
            checkpoint = folder / CHECKPOINT
            kind = str(operator_metadata(checkpoint, number)["operatorInfo"]["operatorName"])
            try:
                keys, rows = readable_state(spark, checkpoint, number, kind, node)
                yield ReadState(operator, manifest.epoch, keys, rows)
            except PySparkException as error:
                said = str(error).splitlines()[0]
                raise MachineError(f"Spark could not read the state of '{operator}': {said}") from error
