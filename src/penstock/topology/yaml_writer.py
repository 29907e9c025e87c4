"""A topology as YAML that reads well and reads back as the same topology."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import yaml

from penstock.errors import TopologyError
from penstock.topology.catalogue import option_key
from penstock.topology.input_ports import write_inputs, write_times
from penstock.topology.model import (
    DEFAULT_PORT,
    Case,
    OnError,
    Operator,
    Route,
    Sink,
    Source,
    Topology,
)
from penstock.topology.problems import suggest
from penstock.topology.routes import write_route
from penstock.topology.schema import Schema
from penstock.topology.values import operator_fields
from penstock.topology.window import Span
from penstock.topology.yaml_nodes import add_core_schema, compose

_ONE_LINE = 1_000_000_000
_LINE_BREAKS = set("\n\r\x85\u2028\u2029")


class _FlowDumper(yaml.SafeDumper):
    """Writes `{…}` on one line and quotes whatever any YAML version might take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        needs_no_escape = isinstance(self.event, yaml.ScalarEvent) and not set('"\\') & set(self.event.value)
        return '"' if style == "'" and needs_no_escape else style


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Only in double quotes are line breaks escaped, and so kept on one line and as they are.
    style = '"' if _LINE_BREAKS & set(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


add_core_schema(_FlowDumper)
_FlowDumper.add_representer(str, _represent_text)


def write_topology(topology: Topology, comment: str = "") -> str:
    """The YAML of a topology, `comment` on top; `read_topology_text` gives an equal topology back."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"topology: {flow(topology.name)}", f"delivery: {topology.delivery}"]
    epoch = {option_key(field): getattr(topology.epoch, field.name) for field in fields(topology.epoch)
             if getattr(topology.epoch, field.name) != field.default}
    if epoch:
        lines.append(f"epoch: {flow(epoch)}")
    if topology.dead_letters is not None:
        lines.append(f"dead_letters: {flow(topology.dead_letters)}")
    if topology.acking:
        lines.append("acking: true")
    if topology.ack_timeout != Topology.ack_timeout:
        lines.append(f"ack_timeout: {flow(topology.ack_timeout)}")
    if topology.replicas != Topology.replicas:
        lines.append(f"replicas: {topology.replicas}")
    if topology.cells != Topology.cells:
        lines.append(f"cells: {flow(topology.cells[0] if len(topology.cells) == 1 else topology.cells)}")
    if topology.on_divergence != Topology.on_divergence:
        lines.append(f"on_divergence: {topology.on_divergence}")
    if topology.chaos != Topology.chaos:
        lines.append(f"chaos: {topology.chaos}")
    if topology.logging != "light":
        lines.append(f"logging: {topology.logging}")
    lines += _section("sources", {source.name: _source(source) for source in topology.sources})
    lines += _section("operators", {operator.name: _operator(operator) for operator in topology.operators})
    lines += _section("sinks", {sink.name: _sink(sink) for sink in topology.sinks})
    if topology.commands:
        lines += ["commands:", *(f"  - {flow(str(command))}" for command in topology.commands)]
    if topology.tests:
        lines += ["tests:", *(line for case in topology.tests for line in _case(case))]
    return "\n".join(lines) + "\n"


def flow(value: Any) -> str:
    """A value on one line, as it may stand inside `{…}` and `[…]`."""
    # Dumped inside a list: alone, a scalar would be written by the laxer rules of block style.
    text = yaml.dump([_writable(value)], Dumper=_FlowDumper, default_flow_style=True, sort_keys=False,
                     allow_unicode=True, width=_ONE_LINE)
    return text.strip()[1:-1]


def rows_in_block(rows: Mapping[str, Sequence[Mapping[str, Any]]], indent: str) -> list[str]:
    """Rows by source or sink, one row a line."""
    lines = []
    for name, of_name in rows.items():
        lines.append(f"{indent}{flow(name)}:" if of_name else f"{indent}{flow(name)}: []")
        lines += [f"{indent}  - {flow(row)}" for row in of_name]
    return lines


def replace_expected(text: str, case_name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """`text` with `rows` as what one test case expects; everything else stays as it is, letter by letter.

    Raises TopologyError where there is no such case, or its rows are an alias of rows elsewhere.
    """
    case = _find_case(text, case_name)
    key, value = next(((key, value) for key, value in case.value if key.value == "expect"), (None, None))
    if case.flow_style:
        return _replace_in_flow(text, case, value, f"{{{flow(rows)[1:-1]}}}")
    newline = "\r\n" if "\r\n" in text else "\n"
    if key is None or value is None:
        indent = " " * case.value[0][0].start_mark.column
        end = _end(case)
        block = [f"{indent}expect:", *rows_in_block(rows, f"{indent}  ")]
    else:
        if value.start_mark.index < key.end_mark.index:
            raise TopologyError(f"the expected rows of test '{case_name}' are an alias: write them out first")
        indent = " " * (key.start_mark.column + 2)
        start, end = value.start_mark.index, _end(value)
        block = rows_in_block(rows, indent)
        if start != end:
            # What stood between the colon and the old rows may be a comment: it stays.
            kept = text[:start].rstrip()
            text, end = kept + text[end:], len(kept)
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    head = text[:line_end].rstrip("\r")
    return head + newline + newline.join(block) + (text[len(head):] or newline)


def _replace_in_flow(text: str, case: yaml.MappingNode, value: yaml.Node | None, rows: str) -> str:
    if value is not None:
        gap = "" if text[value.start_mark.index - 1].isspace() else " "
        return text[:value.start_mark.index] + gap + rows + text[value.end_mark.index:]
    end = _end(case) - 1
    head = text[:end].rstrip()
    return f"{head}{' ' if head.endswith(',') else ', '}expect: {rows}{text[len(head):]}"


def _find_case(text: str, name: str) -> yaml.MappingNode:
    root, problems = compose(text, "")
    entries = dict(_pairs(root)) if not problems else {}
    tests = entries.get("tests")
    if isinstance(tests, yaml.SequenceNode):
        named = {case_name.value: case for case in tests.value for key, case_name in _pairs(case)
                 if key == "name"}
    else:
        named = dict(_pairs(tests))
    case = named.get(name)
    if not isinstance(case, yaml.MappingNode) or not case.value:
        raise TopologyError(f"no test is called '{name}' {suggest(name, named)}".rstrip())
    return case


def _pairs(node: yaml.Node | None) -> list[tuple[str, yaml.Node]]:
    return [(key.value, value) for key, value in node.value] if isinstance(node, yaml.MappingNode) else []


def _end(node: yaml.Node) -> int:
    """Where a node's text ends. A block ends with its last value: YAML's own mark is after the comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(_end(part) for part in last) if isinstance(last, tuple) else _end(last)
    return int(node.end_mark.index)


def _section(key: str, nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    names = {name: f"{flow(name)}:" for name in nodes}
    width = max((len(name) for name in names.values()), default=0)
    lines = [f"  {names[name]:<{width}} {flow(node)}" for name, node in nodes.items()]
    return [f"{key}:", *lines] if lines else []


def _source(source: Source) -> dict[str, Any]:
    written = {source.kind: source.options.get(source.kind)}
    if source.schema is not None:
        written["schema"] = write_schema(source.schema)
    if source.on_malformed != "fail":
        written["on_malformed"] = source.on_malformed
    return {**written, **source.options}


def _sink(sink: Sink) -> dict[str, Any]:
    return {"from": str(sink.input), sink.kind: sink.options.get(sink.kind), **sink.options}


def _operator(operator: Operator) -> dict[str, Any]:
    written: dict[str, Any] = {"from": write_inputs(operator), operator.keyword: None}
    options = {}
    for key, field in operator_fields(type(operator)).items():
        value = getattr(operator, field.name)
        if key == operator.keyword:
            written[key] = _argument(field.metadata["type"], value)
        elif value != field.default:
            options[key] = _argument(field.metadata["type"], value)
    common = [key for key in operator_fields(Operator) if key in options]
    return {**written, **{key: options[key] for key in options if key not in common},
            **{key: options[key] for key in common}}


def _argument(kind: str, value: Any) -> Any:
    if kind == "columns":
        return _columns(value)
    if kind == "expressions":
        return list(value)
    if kind == "times":
        return write_times(value)
    if kind == "schema":
        return write_schema(value)
    if kind == "emits":
        ports = {port: write_schema(schema) for port, schema in value}
        return ports[DEFAULT_PORT] if list(ports) == [DEFAULT_PORT] else ports
    if isinstance(value, Route):
        return write_route(value)
    if isinstance(value, OnError | Span):
        return str(value)
    return value


def _columns(names: tuple[str, ...]) -> Any:
    if not names:
        return None
    return names[0] if len(names) == 1 and names[0].isidentifier() else list(names)


def write_schema(schema: Schema) -> str:
    """What `parse_schema` reads back as `schema`."""
    plain = [field.name.isascii() and field.name.isidentifier() for field in schema.fields]
    return ", ".join(f"{field.name if bare else f'`{field.name}`'} {field.type}"
                     for field, bare in zip(schema.fields, plain, strict=True))


def _case(case: Case) -> list[str]:
    lines = [f"  - name: {flow(case.name)}", "    given:", *rows_in_block(case.given, " " * 6)]
    if case.expect:
        lines += ["    expect:", *rows_in_block(case.expect, " " * 6)]
    return lines


def _writable(value: Any) -> Any:
    """A value in terms of YAML: what has no form of its own there is written as text."""
    if isinstance(value, Mapping):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return str(value)
    return value if value is None or isinstance(value, int | float) else str(value)
