"""Storm's spout made replayable: a user's own source in a few lines of Python.

class Squares(Spout):
    def emit_from(self, offset, limit):
        for n in range(offset, offset + limit):
            yield n, n * n
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from penstock.connectors.base import Chunk, Cut, Malformed, Offset, Place, Slice, SourceConnector
from penstock.connectors.records.lines import one_batch, salvage
from penstock.connectors.records.slices import row_slices
from penstock.connectors.records.values import RowFormat
from penstock.errors import ConnectorError, OperatorError, TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.code import load_user_object
from penstock.topology.model import FrozenOptions
from penstock.topology.schema import Schema
from penstock.topology.spout import Spout

T = TypeVar("T")

_BATCH_ROWS = 10_000


@dataclass
class SpoutSource(SourceConnector):
    """Reads a Spout; the offset is the number of tuples read.

    A spout cannot be asked how much it has, so a cut makes the tuples, counts them and throws them away.
    A tuple is a sequence in the schema's order, a mapping by column name or, for a schema of one
    column, the value itself.
    """

    describe: ClassVar[Kind] = Kind(
        "spout",
        "source",
        "Read tuples from your own Spout class.",
        Option("spout", "code", "`module:Class` of a penstock.Spout.", REQUIRED),
        (Option("with", "mapping", "Keyword arguments for the spout's `initialize`."),),
    )

    place: Place
    code: str
    arguments: FrozenOptions
    declared: Schema
    _spout: Spout | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> SpoutSource:
        if schema is None:
            raise TopologyError(f"source '{place.name}': a spout needs a schema; "
                                'write for example schema: "id int, user string"')  # fmt: skip
        return cls(place, str(options["spout"]), FrozenOptions(options["with"] or {}), schema)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spout": None}

    def schema(self) -> Schema:
        return self.declared

    def start(self) -> Offset:
        return {"row": 0}

    def cut(self, start: Offset, limit: int) -> Cut:
        row = start["row"]
        spout = self._opened()
        tuples = self._asking("emit_from", lambda: sum(1 for _ in islice(spout.emit_from(row, limit), limit)))
        ended = self._asking("ended", lambda: bool(spout.ended(row + tuples)))
        return Cut({"row": row + tuples}, tuples, ended)

    def slices(self, start: Offset, end: Offset, parallelism: int) -> list[Slice]:
        return row_slices(start["row"], end["row"], parallelism)

    def read(self, part: Slice) -> Iterator[Chunk]:
        format = RowFormat(self.declared)
        begin, end = part.detail["begin"], part.detail["end"]
        for offset, rows in self._rows(begin, end):
            batches, refused = salvage(rows, format.batch)
            malformed = (
                Malformed(_shown(rows[index]), reason, f"{self.code}[{offset + index}]") for index, reason in refused
            )
            yield Chunk(one_batch(batches, format.schema), tuple(malformed))

    def _rows(self, begin: int, end: int) -> Iterator[tuple[int, list[Any]]]:
        """The rows in lists, each with the offset of its first."""
        spout = self._opened()
        emitted = iter(self._asking("emit_from", lambda: spout.emit_from(begin, end - begin)))
        offset = begin
        while offset < end:
            wanted = min(_BATCH_ROWS, end - offset)
            rows = self._asking("emit_from", partial(_take, emitted, wanted))
            if not rows:
                raise ConnectorError(
                    f"{self.place.name}: {self.code} gave {offset - begin} tuples from offset {begin}, "
                    f"and {end - begin} before; emit_from must give the same tuples every time"
                )
            yield offset, rows
            offset += len(rows)

    def _opened(self) -> Spout:
        if self._spout is None:
            made = load_user_object(self.code, self.place.folder)
            if not (isinstance(made, type) and issubclass(made, Spout)):
                raise TopologyError(f"source '{self.place.name}': {self.code} is not a subclass of penstock.Spout")
            spout = self._asking("__init__", made)
            self._asking("initialize", lambda: spout.initialize(**self.arguments))
            self._spout = spout
        return self._spout

    def _asking(self, method: str, ask: Callable[[], T]) -> T:
        """What the user's code answers; what it raises becomes an OperatorError with the user's own line."""
        try:
            return ask()
        except (Exception, SystemExit) as error:
            folder = self.place.folder.absolute()
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
            where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
            said = f"{type(error).__name__}: {error}"
            raise OperatorError(f"source '{self.place.name}': {self.code}.{method} raised {said}{where}") from error


def _take(rows: Iterator[Any], count: int) -> list[Any]:
    return list(islice(rows, count))


def _shown(row: Any) -> str:
    try:
        return repr(row)
    except Exception as error:
        return f"<a {type(row).__name__} whose repr raises {type(error).__name__}>"
