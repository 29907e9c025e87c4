"""The topology as frozen data: no Spark, no I/O, equal whenever it means the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.topology.schema import Schema

if TYPE_CHECKING:
    from penstock.runtime.division import Rescaled
    from penstock.runtime.manifest import Manifest
    from penstock.runtime.run import Outcome
    from penstock.topology.builder import Stream

MAX_SOURCES = 64
MAX_EPOCH_TUPLES = 1 << 26
"""A tuple's sequence has so much room for the source it comes from, and for its number in the epoch."""

DEFAULT_PORT = ""
"""The port of an operator that has only one output."""


@dataclass(frozen=True)
class Location:
    """Where the user wrote something; shown in problems, never compared."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def nowhere() -> Any:
    """A field for the location: given by the readers, ignored by equality."""
    return field(default=Location(), compare=False, repr=False, kw_only=True)


def option(doc: str, default: Any = None, **metadata: Any) -> Any:
    """A field that users set by its name; `doc` is what `penstock kinds` and the schema say of it."""
    return field(default=default, kw_only=True, metadata={"doc": doc, **metadata})


LOCAL = "local"
"""The cell that is this machine."""
ANY_CELL = "any"
ON_DIVERGENCE = ("warn", "stop")
CHAOS = ("refused", "allowed")


class Delivery(StrEnum):
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class RouteKind(StrEnum):
    SHUFFLE = "shuffle"
    HASH = "hash"
    ALL = "all"
    GLOBAL = "global"
    LOCAL = "local"


@dataclass(frozen=True)
class Route:
    """How the tuples that enter an operator are divided over its instances."""

    kind: RouteKind
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.fields)})" if self.fields else str(self.kind)


class ErrorKind(StrEnum):
    FAIL = "fail"
    RETRY = "retry"
    DEAD_LETTER = "dead-letter"
    DROP = "drop"


@dataclass(frozen=True)
class OnError:
    """What becomes of a tuple for which custom code fails."""

    kind: ErrorKind = ErrorKind.FAIL
    retries: int = 0
    """With `retry`, how often the source tuple is replayed before it goes to the dead letters."""

    def __str__(self) -> str:
        return f"{self.kind}({self.retries})" if self.kind is ErrorKind.RETRY else str(self.kind)


@dataclass(frozen=True)
class StreamRef:
    """A stream an operator or sink reads: a source's or an operator's, and its port."""

    node: str
    port: str = DEFAULT_PORT

    def __str__(self) -> str:
        return f"{self.node}.{self.port}" if self.port else self.node


class FrozenOptions(dict[str, Any]):
    """Options of a connector as given; a dict, so that it reads and pickles like one, made hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items(), key=lambda item: item[0])))


@dataclass(frozen=True)
class Source:
    """Where tuples come from: a connector's kind and its options."""

    name: str
    kind: str
    options: FrozenOptions
    schema: Schema | None = None
    on_malformed: str = "fail"
    where: Location = nowhere()


@dataclass(frozen=True)
class Sink:
    """Where tuples go."""

    name: str
    input: StreamRef
    kind: str
    options: FrozenOptions
    where: Location = nowhere()


@dataclass(frozen=True)
class Operator:
    """What is done to tuples. Subclasses are the kinds; `keyword` is their name in the YAML file."""

    keyword: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    argument: ClassVar[str] = ""
    """The field that takes the value written at the keyword."""
    stateful: ClassVar[bool] = False
    named_ports: ClassVar[bool] = False
    """Whether its inputs may be named ports, each with columns of its own."""

    name: str
    inputs: tuple[StreamRef, ...]
    input_ports: tuple[str, ...] = field(default=(), kw_only=True)
    """The port of each input, where `from` names them; a port that is there twice merges its streams."""
    parallelism: int | None = option("How many instances run in parallel.", type="integer", minimum=1)
    route: Route | None = option("How tuples are divided over the instances.", type="route")
    where: Location = nowhere()

    def output_ports(self) -> tuple[str, ...]:
        return (DEFAULT_PORT,)

    def by_port(self) -> dict[str, tuple[StreamRef, ...]]:
        """The streams of each named input port, in the order written; empty where inputs are not named."""
        named = list(zip(self.input_ports, self.inputs, strict=False))
        return {port: tuple(ref for name, ref in named if name == port) for port in self.input_ports}


@dataclass(frozen=True)
class Filter(Operator):
    """Keep the tuples for which a SQL condition holds."""

    keyword: ClassVar[str] = "filter"
    argument: ClassVar[str] = "condition"

    condition: str = option("A SQL condition over the columns.", type="expression")


@dataclass(frozen=True)
class Select(Operator):
    """Compute new columns with SQL expressions."""

    keyword: ClassVar[str] = "select"
    argument: ClassVar[str] = "columns"

    columns: tuple[str, ...] = option("SQL expressions, each `expr` or `expr as name`.", type="expressions")


@dataclass(frozen=True)
class Explode(Operator):
    """One tuple for every element of an array expression."""

    keyword: ClassVar[str] = "explode"
    argument: ClassVar[str] = "expression"

    expression: str = option("An array column or a SQL expression that gives an array.", type="expression")
    alias: str = option("The name of the new column.", default="item", type="string", key="as")


@dataclass(frozen=True)
class Dup(Operator):
    """Pass every tuple on unchanged."""

    keyword: ClassVar[str] = "dup"


@dataclass(frozen=True)
class Uniq(Operator):
    """Keep the first tuple of every key."""

    keyword: ClassVar[str] = "uniq"
    argument: ClassVar[str] = "keys"
    stateful: ClassVar[bool] = True

    keys: tuple[str, ...] = option("The columns that make the key.", type="columns")


@dataclass(frozen=True)
class Count(Operator):
    """Count tuples since the beginning, over all or per key."""

    keyword: ClassVar[str] = "count"
    argument: ClassVar[str] = "keys"
    stateful: ClassVar[bool] = True

    keys: tuple[str, ...] = option("The columns that make the key; none: all tuples together.", default=(),
                                   type="columns")
    emit: str = option("`changes`: the new count once an epoch. `each`: every number counted through.",
                       default="changes", type="choice", choices=("changes", "each"))


@dataclass(frozen=True)
class Union(Operator):
    """Merge streams that have the same columns."""

    keyword: ClassVar[str] = "union"


@dataclass(frozen=True)
class Custom(Operator):
    """Run your own Python: a function of a tuple, a function of an Arrow batch, or a Bolt class."""

    keyword: ClassVar[str] = "custom"
    argument: ClassVar[str] = "code"
    named_ports: ClassVar[bool] = True

    code: str = option("`module:function`, `module:BoltClass` or `module:Class.method`.", type="code")
    emits: tuple[tuple[str, Schema], ...] = option(
        "The schema of what it emits, or a mapping from port to schema.", default=(), type="emits")
    keep: tuple[str, ...] = option(
        "Columns of a tuple that stand in front of what the code emits for it: the code need not return them, which is "
        "also faster.", default=(), type="columns")
    arguments: FrozenOptions = option("Keyword arguments for the function or for the bolt's `initialize`.",
                                      default=FrozenOptions(), type="mapping", key="with")
    key: tuple[str, ...] = option(
        "The columns that make the key: the code then has a state and timers for every key, and gets the tuples of a "
        "key in order.", default=(), type="columns")
    timeout: float = option("Seconds one tuple may take before the operator counts as hung.", default=60.0,
                            type="number")
    on_error: OnError = option(
        "What becomes of a tuple for which it fails: `fail` ends the run, `drop` only counts it, `dead-letter` writes "
        "it to the dead letters, `retry(n)` replays its source tuple up to n times first.",
        default=OnError(), type="on_error", choices=("fail", "drop", "dead-letter", "retry(n)"))
    access: str = option(
        "With several input ports: `asynchronous` calls it for each tuple, from any port. `synchronous` calls "
        "`process_epoch` once an epoch, with the tuples of every port.",
        default="asynchronous", type="choice", choices=("asynchronous", "synchronous"))

    def __post_init__(self) -> None:
        # Of custom code, only that with a key remembers anything; of the other kinds, all operators or none.
        object.__setattr__(self, "stateful", bool(self.key))

    def output_ports(self) -> tuple[str, ...]:
        return tuple(port for port, _ in self.emits) or (DEFAULT_PORT,)

    def schema_of(self, port: str) -> Schema | None:
        return dict(self.emits).get(port)

    @property
    def tolerates(self) -> bool:
        """Whether a tuple may fail without ending the run."""
        return self.on_error.kind is not ErrorKind.FAIL

    @property
    def retries(self) -> bool:
        return self.on_error.kind is ErrorKind.RETRY

    @property
    def synchronous(self) -> bool:
        """Whether it is called with the tuples of all its ports together."""
        return self.access == "synchronous"


# Here, because these kinds are built upon what stands above.
from penstock.topology.enrichment import Enrich  # noqa: E402
from penstock.topology.join import Join  # noqa: E402
from penstock.topology.window import Window  # noqa: E402


def own_function(operator: Operator) -> Custom | None:
    """The operator's code of the user's own: a custom operator itself, or the function that a window gives its tuples
    to; None where an operator is Spark's."""
    return operator.function if isinstance(operator, Window) else operator if isinstance(operator, Custom) else None


OPERATOR_KINDS: tuple[type[Operator], ...] = (
    Filter, Select, Explode, Dup, Uniq, Count, Window, Union, Join, Enrich, Custom
)  # fmt: skip


@dataclass(frozen=True)
class EpochSettings:
    """How the input is cut into epochs."""

    interval: float = option("Seconds between the starts of two epochs; 0: as soon as there is input.",
                             default=0.0, type="duration")
    max_tuples: int | None = option(
        "The most tuples of one source in one epoch; by default 10,000,000, and where tuples go through code of your "
        "own 1,000,000, or up to 4,000,000 while such epochs take less than a second.", type="integer", minimum=1)
    tick: float = option("Seconds after which an empty epoch is cut when every source is idle; 0: never.",
                         default=0.0, type="duration")


@dataclass(frozen=True)
class Command:
    """A puppet-master command kept from a DADSTORM script, for example `Freeze OP2 1`."""

    verb: str
    arguments: tuple[str, ...] = ()
    where: Location = nowhere()

    def __str__(self) -> str:
        return " ".join((self.verb, *self.arguments))


@dataclass(frozen=True)
class Case:
    """A test of the topology: given rows for each source, the rows each sink must receive, order aside."""

    name: str
    given: Mapping[str, tuple[Mapping[str, Any], ...]]
    expect: Mapping[str, tuple[Mapping[str, Any], ...]]
    where: Location = nowhere()


@dataclass(frozen=True)
class Topology:
    """A whole topology. `Topology("name").source(…)` starts the Python builder."""

    name: str
    delivery: Delivery = Delivery.EXACTLY_ONCE
    sources: tuple[Source, ...] = ()
    operators: tuple[Operator, ...] = ()
    sinks: tuple[Sink, ...] = ()
    epoch: EpochSettings = EpochSettings()
    dead_letters: str | None = None
    logging: str = "light"
    commands: tuple[Command, ...] = ()
    tests: tuple[Case, ...] = ()
    acking: bool = False
    """Whether bolts may ack their tuples themselves, and whether all are acked is looked at."""
    ack_timeout: float = 30.0
    """Seconds that a tuple may wait for its ack."""
    replicas: int = 1
    """How many full copies run at once: one less is how many may fail unnoticed."""
    cells: tuple[str, ...] = (LOCAL,)
    """The failure domains that replicas are put in, no two in one; `any` alone: wherever there is room."""
    on_divergence: str = "warn"
    """What to do when replicas give different output for the same epoch: `warn` or `stop`."""
    chaos: str = "refused"
    """Whether `penstock crash` may kill its replicas: `refused` or `allowed`."""
    folder: Path = field(default=Path(), compare=False)
    """Paths and code are found relative to this."""
    where: Location = nowhere()

    def node(self, name: str) -> Source | Operator | None:
        nodes: tuple[Source | Operator, ...] = (*self.sources, *self.operators)
        return next((node for node in nodes if node.name == name), None)

    @property
    def retries(self) -> bool:
        """Whether any operator has tuples that fail replayed."""
        return any(isinstance(operator, Custom) and operator.retries for operator in self.operators)

    @property
    def epoch_tuples(self) -> int:
        """The most tuples of one source in one epoch: as it is set, or what takes seconds and not minutes."""
        if self.epoch.max_tuples is not None:
            return self.epoch.max_tuples
        own_code = any(own_function(operator) for operator in self.operators) or any(
            source.kind in ("spout", "custom") for source in self.sources
        )
        return 1_000_000 if own_code else 10_000_000

    @property
    def most_epoch_tuples(self) -> int:
        """How far `epoch_tuples` may grow while epochs are quick: not where it is set, nor where those of an epoch are
        kept in memory, or replayed one by one."""
        in_memory = self.acking or any(
            operator.synchronous for operator in self.operators if isinstance(operator, Custom)
        )
        if self.epoch.max_tuples is not None or in_memory or self.retries:
            return self.epoch_tuples
        return max(self.epoch_tuples, 4_000_000)

    def streams(self) -> tuple[StreamRef, ...]:
        """Every stream that can be read, in the order written."""
        ports = [StreamRef(op.name, port) for op in self.operators for port in op.output_ports()]
        return (*(StreamRef(source.name) for source in self.sources), *ports)

    def consumers(self, stream: StreamRef) -> tuple[Operator | Sink, ...]:
        operators = [op for op in self.operators for ref in op.inputs if ref == stream]
        return (*operators, *(sink for sink in self.sinks if sink.input == stream))

    @property
    def replica_names(self) -> list[str]:
        return [str(number) for number in range(1, self.replicas + 1)]

    def with_folder(self, folder: Path) -> Topology:
        return replace(self, folder=folder)

    # -- the Python builder ---------------------------------------------------------------------

    def source(self, name: str, **options: Any) -> Stream:
        """Add a source and go on from its stream: `.source("tweets", file="tweets.csv", schema="…")`."""
        from penstock.topology.builder import source

        return source(self, name, **options)

    def stream(self, name: str) -> Stream:
        """Go on from a stream that exists: a source's or an operator's name, or `operator.port`."""
        from penstock.topology.builder import stream

        return stream(self, name)

    def merge(self, other: Topology) -> Topology:
        """All nodes of both; the same name with different content is a TopologyError."""
        from penstock.topology.builder import merge

        return merge(self, other)

    def run(self, master: str | None = None, fresh: bool = False, seconds: float | None = None) -> Outcome:
        """Run it here and now, to the end of bounded input or for some seconds; for scripts and notebooks.

        Raises TopologyError with every problem when the topology is wrong.
        """
        from penstock.notebook import run_here

        return run_here(self, master=master, fresh=fresh, seconds=seconds)

    # -- what it remembers, running or stopped; see docs/state.md -------------------------------

    def checkpoint(self, name: str | None = None) -> Manifest:
        """Keep what it remembers after its newest epoch under a name; a run does not notice."""
        from penstock.notebook import checkpoint_here

        return checkpoint_here(self, name)

    def backup(self, folder: Path | str, checkpoint: str | None = None) -> Manifest:
        """Copy a checkpoint, or what it remembers now, to an empty folder."""
        from penstock.notebook import backup_here

        return backup_here(self, Path(folder), checkpoint)

    def restore(
        self, folder: Path | str, parallelism: int | None = None, replace: bool = False, fresh_sinks: bool = False
    ) -> list[str]:
        """Go on from a backup with the next `run`; what to know about it: what is left behind, what begins empty."""
        from penstock.notebook import restore_here

        return restore_here(self, Path(folder), parallelism, replace, fresh_sinks)

    def rescale(self, operator: str, instances: int) -> Rescaled:
        """Divide what its stateful operators remember over so many instances."""
        from penstock.notebook import rescale_here

        return rescale_here(self, operator, instances)

    def state(self, operator: str) -> list[dict[str, Any]]:
        """What a stateful operator remembers after the newest epoch, a row for every key."""
        from penstock.notebook import state_here

        return state_here(self, operator)
