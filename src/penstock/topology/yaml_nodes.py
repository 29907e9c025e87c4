"""YAML as a tree in which every value knows its line: the floor under the topology reader.

Plain words are read as in YAML 1.2's core schema, like the editors that check files against the JSON
Schema do: `yes`, `010` and `2024-01-01` mean what they say, and no surprise is built from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.errors import TopologyError
from penstock.topology.environment import Outside, mentions_environment, substitute
from penstock.topology.model import Location
from penstock.topology.problems import Problem

_TAG = "tag:yaml.org,2002:"
_CORE_SCHEMA = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")),
    ("float", re.compile(r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
                         r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"), list("-+.0123456789")),
    ("merge", re.compile(r"<<$"), ["<"]),
)


class CoreLoader(yaml.SafeLoader):
    """Composes nodes by the core schema; never constructs anything."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way


class OutsideScalar(yaml.ScalarNode):
    """A scalar that was put into the tree from outside the file."""


def add_core_schema(resolver: type[yaml.resolver.BaseResolver]) -> None:
    """Teach a loader or dumper which plain words are not text."""
    for name, pattern, first in _CORE_SCHEMA:
        resolver.add_implicit_resolver(_TAG + name, pattern, first)


add_core_schema(CoreLoader)


@dataclass(frozen=True)
class Entry:
    """One `key: value` of a mapping."""

    key: str
    where: Location
    """Where the key stands."""
    node: yaml.Node


def location(node: yaml.Node) -> Location:
    """Where a node begins."""
    return Location(str(node.start_mark.name), node.start_mark.line + 1)


def compose(text: str, file: str) -> tuple[yaml.Node | None, list[Problem]]:
    """The tree of a file, or what is wrong with its syntax."""
    loader: CoreLoader | None = None
    try:
        loader = CoreLoader(text)
        loader.name = file
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error, text, file)]
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = f"U+{ord(error.character):04X}" if isinstance(error.character, str) else error.character
        return None, [Problem(Location(file, line), f"a character that YAML does not allow: {character}")]
    except RecursionError:
        return None, [Problem(Location(file, 1), "nested too deeply")]
    finally:
        if loader is not None:
            loader.dispose()
    return node, []


def scalar(text: str, file: str) -> OutsideScalar:
    """A value from the command line as a node; quotes work as in the file."""
    mark = yaml.Mark(file, 0, -1, 0, None, 0)
    node, problems = compose(text, file)
    if problems or not isinstance(node, yaml.ScalarNode):
        return OutsideScalar(f"{_TAG}str", text, mark, mark, "'")
    return OutsideScalar(node.tag, node.value, mark, mark, node.style)


class NodeReader:
    """Reads values off nodes and collects problems on the way; it never stops at the first."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self._environ = environ
        self._open: list[yaml.Node] = []
        self._merging: list[yaml.Node] = []
        self._reported: set[tuple[int, str]] = set()

    def report(self, where: Location, message: str, hint: str = "") -> None:
        self.problems.append(Problem(where, message, hint))

    def entries(self, node: yaml.Node, what: str) -> dict[str, Entry]:
        """The entries of a mapping by key, merges (`<<`) included; reports duplicates, and anything else."""
        if not isinstance(node, yaml.MappingNode):
            if not _is_null(node):
                self.report(location(node), f"{what} must be a mapping, with lines of 'name: value'")
            return {}
        found: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged = {**self._merged(value, node, what), **merged}
            elif not isinstance(key, yaml.ScalarNode):
                self.report(location(key), f"a key of {what} must be a plain name")
            elif key.value in found:
                self._report_duplicate(key, found[key.value].where, what)
            else:
                found[key.value] = Entry(key.value, location(key), value)
        return {**merged, **found}

    def plain(self, node: yaml.Node) -> Any:
        """The value as dicts, lists and scalars; text from the environment is marked as Outside."""
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if any(node is outer for outer in self._open):
            self.report(location(node), "an anchor that contains itself")
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.plain(item) for item in node.value]
            entries = self.entries(node, "a mapping")
            return {key: self.plain(entry.node) for key, entry in entries.items()}
        finally:
            self._open.pop()

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = node.value
        outside = isinstance(node, OutsideScalar)
        if mentions_environment(text):
            try:
                text, outside = substitute(text, self._environ), True
            except TopologyError as error:
                self.report(location(node), str(error))
                return None
        tag = _implied_tag(text) if outside and node.style is None else node.tag
        value = self._typed(node, tag.removeprefix(_TAG), text)
        return Outside(text, value) if outside and value is not None else value

    def _typed(self, node: yaml.ScalarNode, kind: str, text: str) -> Any:
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if kind == "float":
            return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
        if kind not in ("str", "merge"):
            self.report(location(node), f"the tag {node.tag} means nothing here", "leave it out")
        return text

    def _merged(self, value: yaml.Node, into: yaml.MappingNode, what: str) -> dict[str, Entry]:
        merged: dict[str, Entry] = {}
        self._merging.append(into)
        for node in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(node, yaml.MappingNode) or any(node is outer for outer in self._merging):
                self.report(location(value), "'<<' takes another mapping, for example '<<: *defaults'")
            else:
                merged = {**self.entries(node, what), **merged}
        self._merging.pop()
        return merged

    def _report_duplicate(self, key: yaml.ScalarNode, first: Location, what: str) -> None:
        # A mapping behind an anchor is read once for every alias; one report is enough.
        if (key.start_mark.index, key.value) not in self._reported:
            self._reported.add((key.start_mark.index, key.value))
            self.report(location(key), f"'{key.value}' appears twice in {what}",
                        f"first in line {first.line}")


def _implied_tag(text: str) -> str:
    return _TAG + next((name for name, pattern, _ in _CORE_SCHEMA if pattern.match(text)), "str")


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    number = mark.line + 1 if mark else 1
    lines = text.splitlines()
    line = lines[number - 1] if number <= len(lines) else ""
    hint = ""
    if "'\\t'" in str(error.problem) or line.lstrip(" ").startswith("\t"):
        hint = "indent with blanks, not tabs"
    elif "${" in line:
        hint = "inside {…}, put values with ${…} in quotes"
    elif ": " in str(error.problem) or "mapping values" in str(error.problem):
        hint = "put text that contains ': ' in quotes"
    context = f" {error.context}" if error.context else ""
    return Problem(Location(file, number), f"not valid YAML: {error.problem}{context}", hint)
