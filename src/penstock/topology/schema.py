"""Tuple schemas as users write them: `id int, user string, tags array<string>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import TopologyError

SIMPLE_TYPES = {
    "string": "string",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "smallint": "smallint",
    "short": "smallint",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "float": "float",
    "real": "float",
    "double": "double",
    "boolean": "boolean",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
}
"""Accepted spellings of the simple types, and Spark's own name for each."""

_DECIMAL = re.compile(r"decimal\s*(\(\s*\d+\s*(,\s*\d+\s*)?\))?$")
_FIELD = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<bare>[A-Za-z_]\w*))\s*:?\s+(?P<type>.+?)\s*$", re.DOTALL)


@dataclass(frozen=True)
class Field:
    """One column: its name and its type in Spark's spelling."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, in order."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def type_of(self, name: str) -> str | None:
        return next((field.type for field in self.fields if field.name == name), None)

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it, every name quoted."""
        return ", ".join(f"`{field.name}` {field.type}" for field in self.fields)

    def __str__(self) -> str:
        return ", ".join(str(field) for field in self.fields)


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """Split at separators that stand outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def parse_type(text: str) -> str:
    """Spark's spelling of one type; raises TopologyError for an unknown one."""
    stripped = text.strip()
    lowered = stripped.lower()
    if lowered in SIMPLE_TYPES:
        return SIMPLE_TYPES[lowered]
    if _DECIMAL.match(lowered):
        return lowered.replace(" ", "")
    head, _, rest = stripped.partition("<")
    if rest.endswith(">"):
        inner = rest[:-1]
        kind = head.strip().lower()
        if kind == "array":
            return f"array<{parse_type(inner)}>"
        if kind == "map":
            parts = split_top_level(inner)
            if len(parts) == 2:
                return f"map<{parse_type(parts[0])},{parse_type(parts[1])}>"
        if kind == "struct":
            fields = (part.replace(":", " ", 1) for part in split_top_level(inner))
            parsed = [_parse_field(part) for part in fields]
            return "struct<" + ",".join(f"{field.name}:{field.type}" for field in parsed) + ">"
    known = ", ".join(sorted(set(SIMPLE_TYPES.values())))
    raise TopologyError(f"unknown type '{stripped}'; use {known}, decimal(p,s), array<…>, map<…,…> or struct<…>")


def parse_schema(text: str) -> Schema:
    """Read `name type, name type`; raises TopologyError that says which part is wrong."""
    if not text.strip():
        raise TopologyError("an empty schema; write for example 'id int, user string'")
    fields = tuple(_parse_field(part) for part in split_top_level(text))
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise TopologyError(f"column '{name}' appears twice in the schema")
        if name.startswith("__"):
            raise TopologyError(f"column '{name}': names that begin with '__' belong to Penstock")
    return Schema(fields)


def _parse_field(part: str) -> Field:
    match = _FIELD.match(part)
    if match is None:
        shown = part.strip() or "an empty part"
        raise TopologyError(f"'{shown}' is not 'name type'; write for example 'id int, user string'")
    return Field(match["quoted"] or match["bare"], parse_type(match["type"]))
