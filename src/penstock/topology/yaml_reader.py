"""A topology from YAML: every problem is collected with its line, and as much as possible is read.

The topology comes back even with problems, so that the validation can find more in the same run. What
could not be read is left unnamed rather than guessed: such an operator is a bare `Operator` (its name and
inputs are known, its columns are not), such a source or sink has the kind `""`. Its problem is reported
here already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml

from penstock.errors import TopologyError
from penstock.topology.catalogue import Catalogue, Kind, Role, describe_operator
from penstock.topology.input_ports import Inputs, to_inputs
from penstock.topology.model import (
    CHAOS,
    ON_DIVERGENCE,
    OPERATOR_KINDS,
    Case,
    Command,
    Delivery,
    EpochSettings,
    FrozenOptions,
    Location,
    Operator,
    Sink,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.overrides import apply_overrides
from penstock.topology.problems import Problem, suggest
from penstock.topology.values import (
    CUSTOM,
    LOGGING,
    ON_MALFORMED,
    check_name,
    operator_fields,
    shown,
    to_boolean,
    to_cells,
    to_choice,
    to_code,
    to_connector_option,
    to_field,
    to_filled_text,
    to_integer,
    to_kind_argument,
    to_plain,
    to_schema,
    to_seconds,
    to_stream,
)
from penstock.topology.yaml_nodes import Entry, NodeReader, compose, location

TOP_LEVEL = ("topology", "delivery", "sources", "operators", "sinks", "epoch", "dead_letters", "acking",
             "ack_timeout", "replicas", "cells", "on_divergence", "chaos", "logging", "commands", "tests")
SOURCE_KEYS = ("schema", "on_malformed")
"""What every source takes, whatever its kind."""
SINK_KEYS = ("from",)

_OPERATORS = {operator.keyword: operator for operator in OPERATOR_KINDS}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_T = TypeVar("_T")


def read_topology(path: Path, catalogue: Catalogue, environ: Mapping[str, str],
                  overrides: Mapping[str, str] = _NOTHING) -> tuple[Topology | None, list[Problem]]:
    """The topology in a file and everything wrong with it; no topology where there is no tree to read.

    `overrides` are dotted paths and values, as in `--set operators.followers.parallelism=4`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None, [Problem(Location(str(path)), "no such file")]
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        return None, [Problem(Location(str(path), line), "not UTF-8 text", "save the file as UTF-8")]
    except OSError as error:
        return None, [Problem(Location(str(path)), f"cannot be read: {error.strerror}")]
    return read_topology_text(text, str(path), path.parent, catalogue, environ, overrides)


def read_topology_text(text: str, file_name: str, folder: Path, catalogue: Catalogue,
                       environ: Mapping[str, str], overrides: Mapping[str, str] = _NOTHING,
                       ) -> tuple[Topology | None, list[Problem]]:
    """The topology in `text`; `file_name` is only shown, `folder` is where its paths start."""
    root, problems = compose(text, file_name)
    if problems:
        return None, problems
    if not isinstance(root, yaml.MappingNode):
        where = location(root) if root is not None else Location(file_name)
        return None, [Problem(where, "not a topology: it has no keys", "begin with 'topology: NAME'")]
    problems = apply_overrides(root, overrides)
    reader = _TopologyReader(catalogue, environ)
    topology = reader.read(root, folder)
    return topology, sorted(problems + reader.problems, key=lambda problem: problem.where.line)


class _TopologyReader(NodeReader):
    def __init__(self, catalogue: Catalogue, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self._catalogue = catalogue

    def read(self, root: yaml.MappingNode, folder: Path) -> Topology:
        where = location(root)
        entries = self.entries(root, "the topology")
        self._report_unknown(entries, TOP_LEVEL, "the topology")
        misspelt = any(suggest(key, TOP_LEVEL) == suggest("topology", TOP_LEVEL) for key in entries)
        if "topology" not in entries and not misspelt:
            self.report(where, "the topology has no name", "begin with 'topology: NAME'")
        return Topology(
            name=self._value(entries, "topology", lambda value: check_name(to_filled_text(value)), ""),
            delivery=self._value(entries, "delivery", _to_delivery, Delivery.EXACTLY_ONCE),
            sources=self._section(entries, "sources", "source", self._source),
            operators=self._section(entries, "operators", "operator", self._operator),
            sinks=self._section(entries, "sinks", "sink", self._sink),
            epoch=self._epoch(entries.get("epoch")),
            dead_letters=self._value(entries, "dead_letters", to_filled_text, None),
            acking=self._value(entries, "acking", to_boolean, False),
            ack_timeout=self._value(entries, "ack_timeout", to_seconds, Topology.ack_timeout),
            replicas=self._value(entries, "replicas", to_integer, Topology.replicas),
            cells=self._value(entries, "cells", to_cells, Topology.cells),
            on_divergence=self._value(entries, "on_divergence", lambda value: to_choice(value, ON_DIVERGENCE),
                                      Topology.on_divergence),
            chaos=self._value(entries, "chaos", lambda value: to_choice(value, CHAOS), Topology.chaos),
            logging=self._value(entries, "logging", lambda value: to_choice(value, LOGGING), LOGGING[0]),
            commands=self._commands(entries.get("commands")),
            tests=self._tests(entries.get("tests")),
            folder=folder,
            where=where,
        )

    def _convert(self, entry: Entry, conversion: Callable[[Any], _T]) -> tuple[_T] | None:
        """The converted value, boxed since it may be None; nothing, and a report, where it does not fit."""
        seen = len(self.problems)
        value = self.plain(entry.node)
        if len(self.problems) > seen:
            return None
        try:
            return (conversion(value),)
        except TopologyError as error:
            where = location(entry.node)
            self.report(where if where.line >= entry.where.line else entry.where, f"{entry.key}: {error}")
            return None

    def _value(self, entries: Mapping[str, Entry], key: str, conversion: Callable[[Any], _T],
               default: _T) -> _T:
        if key not in entries:
            return default
        converted = self._convert(entries[key], conversion)
        return default if converted is None else converted[0]

    def _report_unknown(self, entries: Mapping[str, Entry], known: Sequence[str], what: str) -> None:
        for key, entry in entries.items():
            if key not in known:
                hint = suggest(key, known) or f"it may have: {', '.join(known)}"
                self.report(entry.where, f"unknown key '{key}' in {what}", hint)

    def _section(self, entries: Mapping[str, Entry], section: str, role: Role,
                 read: Callable[[str, Mapping[str, Entry], Location], _T]) -> tuple[_T, ...]:
        if section not in entries:
            return ()
        nodes = []
        for name, entry in self.entries(entries[section].node, f"'{section}'").items():
            try:
                check_name(name)
            except TopologyError as error:
                self.report(entry.where, str(error))
            if not isinstance(entry.node, yaml.MappingNode):
                self.report(entry.where, f"{role} '{name}' must be a mapping",
                            f"write for example {name}: {_EXAMPLES[role]}")
                continue
            nodes.append(read(name, self.entries(entry.node, f"{role} '{name}'"), entry.where))
        return tuple(nodes)

    # Sources and sinks

    def _source(self, name: str, entries: Mapping[str, Entry], where: Location) -> Source:
        seen = len(self.problems)
        schema = self._value(entries, "schema", to_schema, None)
        on_malformed = self._value(entries, "on_malformed", lambda value: to_choice(value, ON_MALFORMED),
                                   ON_MALFORMED[0])
        kind, options = self._connector("source", name, entries, SOURCE_KEYS, where)
        readable = len(self.problems) == seen
        return Source(name, kind if readable else "", options, schema, on_malformed, where=where)

    def _sink(self, name: str, entries: Mapping[str, Entry], where: Location) -> Sink:
        seen = len(self.problems)
        kind, options = self._connector("sink", name, entries, SINK_KEYS, where)
        readable = len(self.problems) == seen
        stream = self._value(entries, "from", to_stream, StreamRef(""))
        if "from" not in entries:
            self.report(where, f"sink '{name}' does not say which stream it takes", "add 'from: STREAM'")
        return Sink(name, stream, kind if readable else "", options, where=where)

    def _connector(self, role: Role, name: str, entries: Mapping[str, Entry], common: tuple[str, ...],
                   where: Location) -> tuple[str, FrozenOptions]:
        kinds = self._catalogue.of(role)
        names = tuple(dict.fromkeys((*(kind.name for kind in kinds), CUSTOM)))
        chosen = CUSTOM if CUSTOM in entries else self._only_kind(role, name, entries, names, common, where)
        if chosen is None:
            return "", FrozenOptions()
        kind = self._catalogue.find(role, chosen)
        known = tuple(entries)
        if kind is not None and chosen != CUSTOM:
            known = (chosen, *common, *(option.name for option in kind.options))
            self._report_unknown(entries, known, f"{role} '{name}'")
        options = FrozenOptions()
        for key, entry in entries.items():
            if key in common or key not in known:
                continue
            converted = self._convert(entry, _connector_conversion(kind, chosen, key))
            if converted is not None:
                options[key] = converted[0]
        if kind is not None:
            self._report_missing(kind, name, entries, where)
        return chosen, options

    def _only_kind(self, role: Role, name: str, entries: Mapping[str, Entry], kinds: Sequence[str],
                   common: Sequence[str], where: Location) -> str | None:
        """The one key that names a kind; reports none and several."""
        given = [key for key in entries if key in kinds]
        if len(given) == 1:
            return given[0]
        if given:
            names = " and ".join(f"'{key}'" for key in given)
            self.report(where, f"{role} '{name}' has several kinds: {names}", "keep one")
            return None
        near = {key: suggest(key, kinds) for key in entries if key not in common}
        for key, hint in near.items():
            if hint:
                self.report(entries[key].where, f"no kind of {role} is called '{key}'", hint)
                return None
        self.report(where, f"{role} '{name}' has no kind", f"use one of {', '.join(kinds)}")
        return None

    def _report_missing(self, kind: Kind, name: str, entries: Mapping[str, Entry], where: Location) -> None:
        for option in kind.options:
            if option.required and option.name not in entries and option.name not in SOURCE_KEYS:
                self.report(where, f"{kind.role} '{name}' lacks '{option.name}'", option.doc)

    # Operators

    def _operator(self, name: str, entries: Mapping[str, Entry], where: Location) -> Operator:
        inputs, ports = self._value(entries, "from", to_inputs, Inputs())
        if "from" not in entries:
            self.report(where, f"operator '{name}' does not say which stream it takes", "add 'from: STREAM'")
        seen = len(self.problems)
        common = ("from", *operator_fields(Operator))
        # A kind's name may be an option of another: `custom` of a window.
        given_kinds = [kind for kind in entries if kind in _OPERATORS]
        options = {key for kind in given_kinds for key in operator_fields(_OPERATORS[kind]) if key != kind}
        kinds = tuple(kind for kind in _OPERATORS if kind not in options)
        keyword = self._only_kind("operator", name, entries, kinds, common, where)
        operator = _OPERATORS[keyword] if keyword else Operator
        settable = operator_fields(operator)
        if keyword:
            known = (keyword, "from", *(key for key in settable if key != keyword))
            self._report_unknown(entries, known, f"operator '{name}'")
        given: dict[str, Any] = {}
        for key, entry in entries.items():
            conversion = _operator_conversion(operator, key, settable)
            converted = self._convert(entry, conversion) if conversion else None
            if converted is not None and key in settable:
                given[settable[key].name] = converted[0]
        if len(self.problems) > seen:
            common_given = {key: given[key] for key in ("parallelism", "route") if key in given}
            return Operator(name, inputs, input_ports=ports, **common_given, where=where)
        return operator(name, inputs, input_ports=ports, **given, where=where)

    # Settings, commands and tests

    def _epoch(self, entry: Entry | None) -> EpochSettings:
        if entry is None:
            return EpochSettings()
        entries = self.entries(entry.node, "'epoch'")
        settable = {field.name: field for field in fields(EpochSettings)}
        self._report_unknown(entries, tuple(settable), "'epoch'")
        given: dict[str, Any] = {}
        for key in entries.keys() & settable.keys():
            converted = self._convert(entries[key], partial(to_field, settable[key]))
            if converted is not None:
                given[key] = converted[0]
        return EpochSettings(**given)

    def _commands(self, entry: Entry | None) -> tuple[Command, ...]:
        commands = []
        for item in self._items(entry, "commands", "a list of commands, for example '- Freeze OP2 1'"):
            box = self._convert(Entry("commands", location(item), item), to_filled_text)
            if box:
                verb, *arguments = box[0].split()
                commands.append(Command(verb, tuple(arguments), where=location(item)))
        return tuple(commands)

    def _tests(self, entry: Entry | None) -> tuple[Case, ...]:
        if entry is not None and isinstance(entry.node, yaml.MappingNode):
            return tuple(self._case(name, self.entries(case.node, f"test '{name}'"), case.where)
                         for name, case in self.entries(entry.node, "'tests'").items())
        cases: list[Case] = []
        for item in self._items(entry, "tests", "a list of cases with name, given and expect"):
            entries = self.entries(item, "a test")
            name = self._value(entries, "name", to_filled_text, "")
            if "name" not in entries:
                self.report(location(item), "a test without a name", "add 'name: …'")
            if any(name == case.name for case in cases if name):
                self.report(location(item), f"two tests are called '{name}'")
            cases.append(self._case(name, entries, location(item), ("name",)))
        return tuple(cases)

    def _case(self, name: str, entries: Mapping[str, Entry], where: Location,
              further: tuple[str, ...] = ()) -> Case:
        self._report_unknown(entries, (*further, "given", "expect"), f"test '{name}'")
        if "given" not in entries:
            self.report(where, f"test '{name}' has no 'given' rows",
                        "add 'given: {SOURCE: [{column: value}]}'")
        return Case(name, self._rows_by_name(entries.get("given")), self._rows_by_name(entries.get("expect")),
                    where=where)

    def _rows_by_name(self, entry: Entry | None) -> dict[str, tuple[Mapping[str, Any], ...]]:
        if entry is None:
            return {}
        entries = self.entries(entry.node, f"'{entry.key}'")
        return {name: self._value(entries, name, _to_rows, ()) for name in entries}

    def _items(self, entry: Entry | None, key: str, expected: str) -> list[yaml.Node]:
        if entry is None:
            return []
        if isinstance(entry.node, yaml.SequenceNode):
            return list(entry.node.value)
        if self.plain(entry.node) is not None:
            self.report(entry.where, f"'{key}' must be {expected}")
        return []


_EXAMPLES: dict[Role, str] = {
    "source": "{file: tweets.csv, schema: \"id int, user string\"}",
    "operator": "{from: tweets, filter: \"id > 1\"}",
    "sink": "{from: tweets, file: out.jsonl}",
}


def _connector_conversion(kind: Kind | None, chosen: str, key: str) -> Callable[[Any], Any]:
    """How an option of a connector is checked; a user's own connector takes anything."""
    if key == chosen:
        return to_code if kind is None else partial(to_kind_argument, kind)
    option = kind.option(key) if kind is not None else None
    return to_plain if option is None else partial(to_connector_option, option)


def _operator_conversion(operator: type[Operator], key: str, settable: Mapping[str, Any],
                         ) -> Callable[[Any], Any] | None:
    if key == operator.keyword:
        return partial(to_kind_argument, describe_operator(operator))
    return partial(to_field, settable[key]) if key in settable else None


def _to_delivery(value: object) -> Delivery:
    return Delivery(to_choice(value, tuple(Delivery)))


def _to_rows(value: object) -> tuple[Mapping[str, Any], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise TopologyError(f"{shown(value)} is not a list of rows; write for example [{{id: 1, user: ann}}]")
    return tuple(to_plain(row) for row in value)
