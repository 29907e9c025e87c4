"""A topology in Python: `Topology("reach").source("tweets", file="tweets.csv").filter("id > 1").sink(…)`.

Every step gives a new stream with a new topology behind it; nothing is ever changed. Two branches of
one stream come together with `union` or `merge`, which join what they have in common by name.
"""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import TopologyError
from penstock.topology.catalogue import describe_operator
from penstock.topology.enrichment import Enrich
from penstock.topology.input_ports import Inputs
from penstock.topology.join import Join
from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Explode,
    Filter,
    FrozenOptions,
    Location,
    OnError,
    Operator,
    Route,
    Select,
    Sink,
    Source,
    StreamRef,
    Topology,
    Union,
    Uniq,
)
from penstock.topology.problems import Problem, suggest
from penstock.topology.schema import Schema
from penstock.topology.values import (
    CUSTOM,
    ON_MALFORMED,
    check_name,
    name_expression,
    operator_fields,
    to_choice,
    to_connector_argument,
    to_expressions,
    to_field,
    to_kind_argument,
    to_plain,
    to_schema,
    to_stream,
)
from penstock.topology.window import Span, Window

_PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))

Code = str | Callable[..., Any]


def source(topology: Topology, name: str, *, schema: str | Schema | None = None, on_malformed: str = "fail",
           **options: Any) -> Stream:
    """Add a source and give its stream.

    The first option names the kind, as in YAML: `file="tweets.csv", format="csv"`; `custom="module:Class"`
    may stand anywhere. Whether kind and options exist is checked with the rest of the topology.
    """
    where = _caller()
    with _Written(where, f"source '{name}'"):
        kind, kept = _connector(options)
        made = Source(check_name(name), kind, kept, None if schema is None else to_schema(schema),
                      to_choice(on_malformed, ON_MALFORMED), where=where)
        _require_new(name, (*topology.sources, *topology.operators))
    return Stream(replace(topology, sources=(*topology.sources, made)), StreamRef(name))


def stream(topology: Topology, name: str) -> Stream:
    """The stream `name` or `name.port` of a topology, to go on from there."""
    with _Written(_caller(), "stream"):
        ref = to_stream(name)
        known = topology.streams()
        if ref not in known:
            raise TopologyError(f"no stream '{name}' {suggest(name, map(str, known))}".rstrip())
    return Stream(topology, ref)


def merge(first: Topology, second: Topology) -> Topology:
    """Both topologies in one, with the name and folder of the first.

    A node, test or setting that both have must be the same in both; raises TopologyError otherwise.
    """
    with _Written(_caller(), "merge"):
        merged: dict[str, Any] = {
            "sources": _merge_named(first.sources, second.sources),
            "operators": _merge_named(first.operators, second.operators),
            "sinks": _merge_named(first.sinks, second.sinks),
            "tests": _merge_named(first.tests, second.tests),
            "commands": first.commands if first.commands == second.commands
            else first.commands + second.commands,
            "folder": first.folder if first.folder != Path() else second.folder,
        }
        for field in fields(Topology):
            if field.name not in merged and field.name not in ("name", "where"):
                merged[field.name] = _merge_setting(field.name, field.default, first, second)
        sources, operators = ({node.name for node in merged[key]} for key in ("sources", "operators"))
        for name in sorted(sources & operators):
            raise TopologyError(f"'{name}' is a source here and an operator there; rename one")
    return replace(first, **merged)


@dataclass(frozen=True)
class Stream:
    """A stream of a topology under construction; its methods add an operator or a sink that reads it."""

    topology: Topology
    ref: StreamRef

    def filter(self, condition: str, *, name: str | None = None, parallelism: int | None = None,
               route: str | Route | None = None) -> Stream:
        """Keep the tuples for which a SQL condition holds."""
        return self._add(Filter, name, {"filter": condition}, parallelism, route)

    def select(self, *columns: str, name: str | None = None, parallelism: int | None = None,
               route: str | Route | None = None, **named_columns: str) -> Stream:
        """Compute new columns: `select("user", "upper(url) as url", length="length(url)")`."""
        with _Written(_caller(), "select"):
            expressions = [part for column in columns for part in to_expressions(column)]
            expressions += [name_expression(text.strip(), new) for new, text in named_columns.items()]
        return self._add(Select, name, {"select": expressions}, parallelism, route)

    def explode(self, expression: str, as_: str = "item", *, name: str | None = None,
                parallelism: int | None = None, route: str | Route | None = None) -> Stream:
        """One tuple for every element of an array expression, in a new column `as_`."""
        return self._add(Explode, name, {"explode": expression, "as": as_}, parallelism, route)

    def dup(self, *, name: str | None = None, parallelism: int | None = None,
            route: str | Route | None = None) -> Stream:
        """Pass every tuple on unchanged."""
        return self._add(Dup, name, {"dup": None}, parallelism, route)

    def uniq(self, *keys: str, name: str | None = None, parallelism: int | None = None,
             route: str | Route | None = None) -> Stream:
        """Keep the first tuple of every key."""
        return self._add(Uniq, name, {"uniq": _keys(keys)}, parallelism, route)

    def count(self, *keys: str, emit: str = "changes", name: str | None = None,
              parallelism: int | None = None, route: str | Route | None = None) -> Stream:
        """Count tuples since the beginning, per key, or over all without keys."""
        return self._add(Count, name, {"count": _keys(keys), "emit": emit}, parallelism, route)

    def window(self, span: str | Span, *, compute: str | Sequence[str] | None = None, on: str | None = None,
               lateness: str | float = 0.0, by: str | Sequence[str] = (), emit: str = "close", late: str = "drop",
               custom: Code | None = None, emits: str | Schema | None = None, with_: Mapping[str, Any] | None = None,
               name: str | None = None, parallelism: int | None = None, route: str | Route | None = None) -> Stream:
        """Put tuples together by time or number, and by key: `window("tumbling(1 minute)", on="at", compute="count()
        as n")`; or give them to your own function with `custom` and `emits`."""
        topology = self.topology
        with _Written(_caller(), "window"):
            if custom is not None and not isinstance(custom, str):
                custom, folder = _find_code(custom)
                if folder is not None and topology.folder == Path():
                    topology = topology.with_folder(folder)
        given = {"window": span, "on": on, "lateness": lateness, "by": by or None, "compute": compute, "emit": emit,
                 "late": late, "custom": custom, "emits": emits, "with": with_}
        given = {key: value for key, value in given.items() if value is not None}
        return replace(self, topology=topology)._add(Window, name, given, parallelism, route)

    def union(self, *others: Stream, name: str | None = None, parallelism: int | None = None,
              route: str | Route | None = None) -> Stream:
        """Merge this stream with others; their topologies are merged too."""
        topology = self.topology
        for other in others:
            topology = merge(topology, other.topology)
        inputs = Inputs((self.ref, *(other.ref for other in others)))
        return replace(self, topology=topology)._add(Union, name, {"union": None}, parallelism, route, inputs)

    def join(self, other: Stream, condition: str, *, within: str | float, on: str | Mapping[str, str] | None = None,
             kind: str = "inner", lateness: str | float = 0.0, ports: tuple[str, str] | None = None,
             name: str | None = None, parallelism: int | None = None) -> Stream:
        """Put together the tuples of this stream and another that belong together and are near in time:
        `orders.join(payments, "orders.id = payments.order_id", within="1 hour")`.

        The ports are called like what the streams come from, or as `ports` says.
        """
        with _Written(_caller(), "join"):
            one, two = ports or (self.ref.port or self.ref.node, other.ref.port or other.ref.node)
            if one == two:
                raise TopologyError(f"both ports would be called '{one}'; name them with ports=(…, …)")
        stream, inputs = self._with_ports({one: self, two: other})
        given = {"join": condition, "within": within, "on": on, "kind": kind, "lateness": lateness}
        given = {key: value for key, value in given.items() if value is not None}
        return stream._add(Join, name, given, parallelism, None, inputs)

    def enrich(self, table: str, *, by: str | Sequence[str], schema: str | Schema | None = None, kind: str = "inner",
               rows_of: str | None = None, every: str | float = 60.0, format: str | None = None, header: bool = False,
               name: str | None = None, parallelism: int | None = None, route: str | Route | None = None) -> Stream:
        """Add the columns of a table, which is read again when it changes: `enrich("prices.csv", by="item", …)`."""
        given = {"enrich": table, "by": by, "schema": schema, "kind": kind, "rows_of": rows_of, "every": every,
                 "format": format, "header": header}
        given = {key: value for key, value in given.items() if value is not None}
        return self._add(Enrich, name, given, parallelism, route)

    def custom(self, code: Code, *, emits: str | Schema | Mapping[str, str | Schema] | None = None,
               keep: str | Sequence[str] | None = None, with_: Mapping[str, Any] | None = None,
               timeout: float | None = None, on_error: str | OnError | None = None,
               key: str | Sequence[str] | None = None, ports: Mapping[str, Stream] | None = None,
               access: str | None = None, name: str | None = None, parallelism: int | None = None,
               route: str | Route | None = None) -> Stream:
        """Run your own Python: `module:name`, or a function or class at the top level of a module.

        Given the object itself, the topology's folder becomes the one its module is imported from,
        unless the topology has a folder already. `with_` is what the YAML file calls `with`. `ports` are the
        operator's named inputs, this stream among them: `ports={"orders": orders, "payments": payments}`.
        """
        stream, inputs = (self, None) if ports is None else self._with_ports(ports)
        topology = stream.topology
        with _Written(_caller(), "custom"):
            if not isinstance(code, str):
                code, folder = _find_code(code)
                if folder is not None and topology.folder == Path():
                    topology = topology.with_folder(folder)
        given = {"custom": code, "emits": emits, "keep": keep, "with": with_, "timeout": timeout, "on_error": on_error,
                 "key": key, "access": access}
        given = {key: value for key, value in given.items() if value is not None}
        return replace(self, topology=topology)._add(Custom, name, given, parallelism, route, inputs)

    def port(self, name: str) -> Stream:
        """Another output of the operator that this stream comes from."""
        return stream(self.topology, f"{self.ref.node}.{name}")

    def sink(self, name: str, **options: Any) -> Topology:
        """Write the stream out, and give the topology; the first option names the kind, as in `source`."""
        where = _caller()
        with _Written(where, f"sink '{name}'"):
            kind, kept = _connector(options)
            _require_new(name, self.topology.sinks)
            made = Sink(check_name(name), self.ref, kind, kept, where=where)
        return replace(self.topology, sinks=(*self.topology.sinks, made))

    def _with_ports(self, ports: Mapping[str, Stream]) -> tuple[Stream, Inputs]:
        """This stream in a topology that has the streams of all ports; and these as inputs."""
        with _Written(_caller(), "ports"):
            if self.ref not in [other.ref for other in ports.values()]:
                raise TopologyError(f"'{self.ref}' itself is none of the ports {', '.join(ports)}")
            names = tuple(check_name(port) for port in ports)
        topology = self.topology
        for other in ports.values():
            topology = merge(topology, other.topology)
        return replace(self, topology=topology), Inputs(tuple(other.ref for other in ports.values()), names)

    def _add(self, operator: type[Operator], name: str | None, given: Mapping[str, Any],
             parallelism: int | None, route: str | Route | None, inputs: Inputs | None = None) -> Stream:
        where = _caller()
        streams, ports = inputs or Inputs((self.ref,))
        taken: tuple[Source | Operator, ...] = (*self.topology.sources, *self.topology.operators)
        common = {"parallelism": parallelism, "route": route}
        common_given = {key: value for key, value in common.items() if value is not None}
        with _Written(where, f"{operator.keyword} '{name}'" if name else operator.keyword):
            arguments = _arguments(operator, {**given, **common_given})
            chosen = check_name(name) if name is not None else _free_name(operator.keyword, taken)
            _require_new(chosen, taken)
            made = operator(chosen, streams, input_ports=ports, **arguments, where=where)
        grown = replace(self.topology, operators=(*self.topology.operators, made))
        return Stream(grown, StreamRef(chosen))


def _arguments(operator: type[Operator], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the operator's fields, from what the user gave under the names of the YAML file."""
    settable = operator_fields(operator)
    kind = describe_operator(operator)
    arguments = {}
    for key, value in given.items():
        is_argument = key == operator.keyword
        converted = to_kind_argument(kind, value) if is_argument else to_field(settable[key], value)
        if key in settable:
            arguments[settable[key].name] = converted
    return arguments


class _Written:
    """Says in every TopologyError raised inside what was being written, and on which line of whose file."""

    def __init__(self, where: Location, what: str) -> None:
        self._where = where
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TopologyError) and not error.problems:
            problem = Problem(self._where, f"{self._what}: {error}")
            raise TopologyError(str(problem), (problem,)) from None


def _caller() -> Location:
    """The line of the user's own code that called into Penstock."""
    frame = inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename).resolve().is_relative_to(_PACKAGE):
        frame = frame.f_back
    return Location() if frame is None else Location(frame.f_code.co_filename, frame.f_lineno)


def _connector(options: Mapping[str, Any]) -> tuple[str, FrozenOptions]:
    kind = CUSTOM if CUSTOM in options else next(iter(options), None)
    if kind is None:
        raise TopologyError('it has no kind; write for example file="tweets.csv"')
    kept = FrozenOptions((key, to_plain(value)) for key, value in options.items())
    kept[kind] = to_connector_argument(kept[kind])
    return kind, kept


def _keys(keys: tuple[str, ...]) -> object:
    """Column names as given: one string may hold several, as in YAML."""
    return None if not keys else keys[0] if len(keys) == 1 else list(keys)


def _require_new(name: str, nodes: tuple[Source | Operator | Sink, ...]) -> None:
    taken = next((node for node in nodes if node.name == name), None)
    if taken is not None:
        raise TopologyError(f"the name '{name}' is taken already, at {taken.where}")


def _free_name(keyword: str, nodes: tuple[Source | Operator, ...]) -> str:
    taken = {node.name for node in nodes}
    number, name = 1, keyword
    while name in taken:
        number += 1
        name = f"{keyword}-{number}"
    return name


def _merge_named(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    known = {node.name: node for node in first}
    for node in second:
        if known.setdefault(node.name, node) != node:
            raise TopologyError(f"'{node.name}' means two things: {known[node.name].where} and {node.where} "
                                "differ; give one another name")
    return tuple(known.values())


def _merge_setting(name: str, default: Any, first: Topology, second: Topology) -> Any:
    ours, theirs = getattr(first, name), getattr(second, name)
    if ours != theirs and default not in (ours, theirs):
        raise TopologyError(f"'{name}' is {ours} here and {theirs} there; make them the same")
    return theirs if ours == default else ours


def _find_code(code: Callable[..., Any]) -> tuple[str, Path | None]:
    """`module:qualname` of a function or class, and the folder its module is imported from."""
    qualname = getattr(code, "__qualname__", "")
    shown = getattr(code, "__name__", repr(code))
    if not qualname or "<" in qualname:
        raise TopologyError(f"{shown} cannot be found by other processes: "
                            "define it at the top level of a module")
    module = sys.modules.get(code.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        raise TopologyError(f"{shown} is not in a file: put it in a module beside the topology")
    path = Path(file).resolve()
    # A file that is run, rather than imported, has a module name by which nobody else finds it.
    name = code.__module__ if _is_importable(code.__module__) else path.stem
    if not _is_importable(name):
        raise TopologyError(f"{shown} is in {path.name}, which cannot be imported: rename the file")
    depth = name.count(".") + (path.name == "__init__.py")
    installed = any(path.is_relative_to(folder) for folder in _INSTALLED)
    return f"{name}:{qualname}", None if installed else path.parents[depth]


def _is_importable(module: str) -> bool:
    return module != "__main__" and all(part.isidentifier() for part in module.split("."))
