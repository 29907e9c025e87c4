"""DADSTORM configurations read as topologies.

    OP1 input_ops tweeters.dat rep_fact 2 routing hashing(1) address tcp://… operator_spec FILTER 3,=,"x"
    Semantics exactly-once
    Start OP1

The format has no standard; every variant met in real files is taken. What it means here:

- A file becomes a source of strings f1, f2, …; as many as its first tuple has. A line with another
  number of fields goes to the dead letters: it neither vanishes nor stops the run.
- `Semantics` is the delivery. DADSTORM has no default; without it delivery is exactly-once.
- `rep_fact` is the parallelism and `routing` the route, except where they would change the result: UNIQ is
  always routed by its field and COUNT always counts in one place, where DADSTORM's replicas share their
  state. With `primary` one instance works. Spark places the instances, so addresses only resolve
  commands that name a replica's URL.
- `CUSTOM library.dll,Class,method` is the code `library:Class.method`. Such a method is called with the
  fields of a tuple as **one** list and returns a list of lists, one for every tuple it emits.
- The output of an operator that nobody reads is shown on the console.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from penstock.topology.dadstorm.commands import Replicas, resolve_all
from penstock.topology.dadstorm.data import count_fields, data_files_in, find_data_file
from penstock.topology.dadstorm.lowering import lower
from penstock.topology.dadstorm.operators import Declaration, declare, find_id
from penstock.topology.dadstorm.statements import Script, read_script
from penstock.topology.dadstorm.streams import Wiring, find_columns, find_cycle, string_columns
from penstock.topology.dadstorm.tokens import Section, Setting, Token
from penstock.topology.model import (
    ANY_CELL,
    Command,
    Delivery,
    FrozenOptions,
    Location,
    Source,
    Topology,
)
from penstock.topology.model_overrides import override
from penstock.topology.problems import Problem, suggest

_TO_REPLICAS = ("Crash", "Freeze", "Unfreeze")
"""The commands that are given to one replica."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


def read_dadstorm(path: Path, overrides: Mapping[str, str] = {}) -> tuple[Topology | None, list[Problem]]:
    """The topology in a DADSTORM file and everything found wrong with it; None if an error is among it.

    `overrides` are `--set` paths as for YAML files: `delivery`, `operators.OP2.parallelism`, …
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None, [Problem(Location(str(path)), "no such file")]
    except OSError as error:
        return None, [Problem(Location(str(path)), f"cannot be read: {error.strerror}")]
    topology, problems = read_dadstorm_text(_decode(content), str(path), path.parent)
    if topology is None or not overrides:
        return topology, problems
    changed, refused = override(topology, overrides)
    return (None if refused else changed), [*problems, *refused]


def read_dadstorm_text(text: str, file_name: str, folder: Path) -> tuple[Topology | None, list[Problem]]:
    """As `read_dadstorm`, from text; data files are looked for in `folder`."""
    script = read_script(text, file_name)
    problems = list(script.problems)
    declarations = _declare_all(script, file_name, problems)
    names = _NodeNames(text.id.text for text in script.operators)
    inputs = _InputFinder(names, folder, file_name, problems)
    wiring = Wiring({names.of_operator[one.id]: one for one in declarations},
                    {names.of_operator[one.id]: inputs.of(one) for one in declarations})
    commands, unresolved = resolve_all(script.commands, Replicas(declarations, names.of_operator))
    problems += unresolved
    if (cycle := find_cycle(wiring)) is not None:
        problems.append(cycle)
    topology = None
    if not _has_errors(problems):
        columns = find_columns(wiring, inputs.sources)
        operators, sinks, remarks = lower(wiring, columns, names.choose)
        problems += remarks
        addressed = any(command.verb in _TO_REPLICAS for command in commands)
        topology = Topology(
            # Replicas are whole copies of a topology: where commands are given to some, there are so many.
            replicas=max((one.rep_fact for one in declarations), default=1) if addressed else 1,
            cells=(ANY_CELL,) if addressed else Topology.cells,
            chaos="allowed" if any(command.verb == "Crash" for command in commands) else Topology.chaos,
            name=_valid_name(Path(file_name).stem, "topology"),
            delivery=Delivery(_setting(script, Setting.SEMANTICS) or Delivery.EXACTLY_ONCE),
            sources=tuple(replace(source, schema=columns.leaving[source.name]) for source in inputs.sources),
            operators=operators, sinks=sinks,
            logging=_setting(script, Setting.LOGGING_LEVEL) or "light",
            commands=commands, folder=folder, where=Location(file_name))
    problems.sort(key=lambda problem: problem.where.line)
    return (None if _has_errors(problems) else topology), problems


def parse_commands(text: str, file_name: str) -> tuple[tuple[Command, ...], list[Problem]]:
    """The commands of a script of their own, in order, and what is wrong with its lines.

    Operators are not known here: names are not checked, and `Crash tcp://…` keeps the URL; see `resolve_all`.
    """
    script = read_script(text, file_name)
    return tuple(script.commands), sorted(script.problems, key=lambda problem: problem.where.line)


def read_replicas(path: Path) -> Replicas:
    """What commands in a file of their own may name of a DADSTORM file that can be read: operators and addresses.

    How many replicas there are is not in it: that may be changed with `--set`, and the running topology knows.
    """
    script = read_script(_decode(path.read_bytes()), str(path))
    names = _NodeNames(text.id.text for text in script.operators)
    replicas = Replicas(_declare_all(script, str(path), []), names.of_operator)
    replicas.counts.clear()
    return replicas


class _NodeNames:
    """Valid names for nodes, each used once; the operators' come first."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._taken: set[str] = set()
        self.of_operator = {one: self.choose(one) for one in dict.fromkeys(ids)}

    def choose(self, wish: str) -> str:
        base = name = _valid_name(wish, "input")
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name


class _InputFinder:
    """Finds what an operator reads; makes one source for each file."""

    def __init__(self, names: _NodeNames, folder: Path, file_name: str, problems: list[Problem]) -> None:
        self._names, self._folder, self._file_name, self._problems = names, folder, file_name, problems
        self._by_file: dict[Path, Source] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self._by_file.values())

    def of(self, operator: Declaration) -> tuple[str, ...]:
        """The names of the nodes it reads, without those that cannot be found: they are problems."""
        found = (self._find(operator.id, token) for token in operator.inputs)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def _find(self, reader: str, token: Token) -> str | None:
        where = Location(self._file_name, token.line)
        operators = self._names.of_operator
        identifier = find_id(token.text, operators)
        # A file of exactly this name is meant rather than an operator whose id differs in case.
        if identifier is not None and (identifier == token.text or not (self._folder / token.text).is_file()):
            return operators[identifier]
        path = find_data_file(self._folder, token.text)
        if path is None:
            near = (*operators, *data_files_in(self._folder), *Section)
            self._problems.append(Problem(
                where, f"operator {reader} reads '{token.text}', which is neither an operator nor a file",
                suggest(token.text, near) or f"put the file in {self._folder}"))
            return None
        if path != token.text.replace("\\", "/"):
            self._problems.append(Problem(where, f"there is no file '{token.text}'; '{path}' is read instead",
                                          f"write {path}", "warning"))
        return self._source(path, where)

    def _source(self, path: str, where: Location) -> str | None:
        file = (self._folder / path).resolve()
        if file not in self._by_file:
            try:
                width = count_fields(file)
            except OSError as error:
                self._problems.append(Problem(where, f"'{path}' cannot be read: {error.strerror}"))
                return None
            if width is None:
                self._problems.append(Problem(
                    where, f"'{path}' has no tuples yet; its fields are guessed from their use",
                    "put a first tuple in it", "warning"))
            self._by_file[file] = Source(
                self._names.choose(Path(path).stem), "file",
                FrozenOptions({"file": path, "format": "csv", "comment": "%"}),
                string_columns(width) if width else None, "dead-letter", where=where)
        return self._by_file[file].name


def _declare_all(script: Script, file_name: str, problems: list[Problem]) -> list[Declaration]:
    declarations: dict[str, Declaration] = {}
    first_lines: dict[str, int] = {}
    for text in script.operators:
        declaration, found = declare(text, file_name)
        problems += found
        name = text.id.text
        if name in first_lines:
            problems.append(Problem(Location(file_name, text.id.line), f"operator {name} is described twice",
                                    f"the first is in line {first_lines[name]}; give this one another id"))
        elif declaration is not None:
            declarations[name] = declaration
        first_lines.setdefault(name, text.id.line)
    if not script.operators:
        problems.append(Problem(Location(file_name), "no operator in this file",
                                "write for example: OP1 input_ops tweeters.dat rep_fact 1 routing primary "
                                "operator_spec COUNT"))
    return list(declarations.values())


def _setting(script: Script, setting: Setting) -> str | None:
    return next((one.value for one in reversed(script.settings) if one.setting is setting), None)


def _valid_name(wish: str, otherwise: str) -> str:
    return _NOT_IN_NAMES.sub("-", wish).strip("-") or otherwise


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _decode(content: bytes) -> str:
    """Text in UTF-8, in UTF-16 with its mark, or in the old Windows code page of many of these files."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
