"""What can be written in a topology: the kinds of sources, operators and sinks, and their options.

The catalogue is data. `penstock kinds`, `penstock schema`, the reference pages and the checks for
unknown keys are all made from it, so nothing is typed twice.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Literal

from penstock.topology.model import OPERATOR_KINDS, Operator

Role = Literal["source", "operator", "sink"]

REQUIRED: Any = "<required>"
"""The default of an option that must be given."""


@dataclass(frozen=True)
class Option:
    """One thing a user can set."""

    name: str
    type: str
    """string, integer, number, boolean, duration, path, choice, expression(s), columns, mapping, code…"""
    doc: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Kind:
    """One kind of source, operator or sink; written as `name: <argument>` among its options."""

    name: str
    role: Role
    doc: str
    argument: Option | None
    options: tuple[Option, ...] = ()
    stateful: bool = False
    named_ports: bool = False
    """Whether an operator's inputs may be named ports."""

    def option(self, name: str) -> Option | None:
        return next((option for option in self.options if option.name == name), None)


@dataclass(frozen=True)
class Catalogue:
    """All kinds that can be used."""

    kinds: tuple[Kind, ...]

    def of(self, role: Role) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.kinds if kind.role == role)

    def find(self, role: Role, name: str) -> Kind | None:
        return next((kind for kind in self.of(role) if kind.name == name), None)


def option_key(field: Field[Any]) -> str:
    """How a model field is spelled in YAML."""
    return str(field.metadata.get("key", field.name))


def describe_field(field: Field[Any]) -> Option:
    """The option that a model field stands for."""
    meta = field.metadata
    default = REQUIRED if field.default in (MISSING, None) and meta.get("required") else field.default
    return Option(option_key(field), meta["type"], meta["doc"], default, tuple(meta.get("choices", ())),
                  meta.get("minimum"))


def describe_operator(operator: type[Operator]) -> Kind:
    """The catalogue entry of an operator class, read off its fields."""
    described = {field.name: describe_field(field) for field in fields(operator) if "doc" in field.metadata}
    argument = described.pop(operator.argument, None)
    doc = (operator.__doc__ or "").strip().splitlines()[0]
    options = tuple(described.values())
    return Kind(operator.keyword, "operator", doc, argument, options, operator.stateful, operator.named_ports)


def operator_kinds() -> tuple[Kind, ...]:
    return tuple(describe_operator(operator) for operator in OPERATOR_KINDS)
