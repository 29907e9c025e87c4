"""Column types as validation sees them: exact where known, a family where not, and what can be compared."""

from __future__ import annotations

import re
from typing import Literal

from penstock.topology.schema import Field, Schema, split_top_level

UNKNOWN = "unknown"
"""The type of a column whose name is known and whose type is not; it goes with everything."""

NUMERIC = "numeric"
"""The type of a computed number: Spark alone knows which number type it will be."""

Family = Literal["number", "text", "boolean", "time", "binary", "array", "map", "struct", "unknown"]

_FAMILIES: dict[str, Family] = {
    NUMERIC: "number", "tinyint": "number", "smallint": "number", "int": "number", "bigint": "number",
    "float": "number", "double": "number", "decimal": "number", "string": "text", "boolean": "boolean",
    "date": "time", "timestamp": "time", "timestamp_ntz": "time", "binary": "binary", "array": "array",
    "map": "map", "struct": "struct",
}

_BOOLEAN_WORDS = {"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"}


def family(type_: str) -> Family:
    """The family of a type in Spark's spelling."""
    head = re.split(r"[<(]", type_, maxsplit=1)[0]
    return _FAMILIES.get(head, "unknown")


def agree(one: str, other: str) -> bool:
    """Whether two columns can be one: equal types, or types too little known to differ."""
    if one == other or UNKNOWN in one or UNKNOWN in other:
        return True
    return NUMERIC in (one, other) and family(one) == family(other)


def element_type(type_: str) -> str:
    """The type of an array's elements, or of a map's values."""
    if family(type_) == "array" and type_.endswith(">"):
        return type_[len("array<"):-1]
    if family(type_) == "map" and type_.endswith(">"):
        parts = split_top_level(type_[len("map<"):-1])
        return parts[1].strip() if len(parts) == 2 else UNKNOWN
    return UNKNOWN


def struct_fields(type_: str) -> Schema | None:
    """The fields of a struct as a schema; None for anything else."""
    if family(type_) != "struct" or not type_.endswith(">"):
        return None
    pairs = (part.partition(":") for part in split_top_level(type_[len("struct<"):-1]))
    return Schema(tuple(Field(name.strip(), kind.strip()) for name, _, kind in pairs))


def find_column(schema: Schema, name: str) -> Field | None:
    """The column of that name; like Spark, without regard to case."""
    return next((field for field in schema.fields if field.name.lower() == name.lower()), None)


def comparable(one: str, other: str) -> bool:
    """False when comparing two such columns is surely a mistake in Spark's ANSI mode.

    Text against a number is one: Spark would cast every text to a number and fail at the first that
    is none.
    """
    families = {family(one), family(other)}
    if "unknown" in families or len(families) == 1:
        return True
    return "text" in families and not families & {"number", "array", "map", "struct"}


def literal_fits(literal: str, type_: str) -> bool:
    """Whether a quoted text can be compared with a column of a type: Spark casts it to that type."""
    match family(type_):
        case "number":
            return is_number(literal)
        case "boolean":
            return literal.strip().lower() in _BOOLEAN_WORDS
        case "time":
            return any(char.isdigit() for char in literal)
        case "array" | "map" | "struct":
            return False
        case _:
            return True


def is_number(text: str) -> bool:
    """Whether it can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
