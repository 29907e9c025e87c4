"""The type of an expression, as far as it is sure without Spark.

sqlglot's own inference differs from Spark's in detail (the type of `1.5`, of `length(x)`, of text plus a
number), and a wrong guess would refuse a good topology. So only what Spark surely does is said here:
everything else is UNKNOWN, and a computed number is only NUMERIC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import TopologyError
from penstock.topology.schema import Schema, parse_type
from penstock.validation.types import NUMERIC, UNKNOWN, element_type, family, find_column, struct_fields

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def _classes(names: str) -> tuple[type[Expr], ...]:
    """sqlglot's classes of these names; those that the installed version lacks are left out."""
    return tuple(getattr(exp, name) for name in names.split() if hasattr(exp, name))


_ARITHMETIC = _classes("Add Sub Mul Div Mod IntDiv")
_SAME_NUMBER = _classes("Abs Round Floor Ceil Sqrt Ln Exp Pow")
_SAME_AS_ARGUMENT = _classes("Paren Alias")
_BOOLEAN = _classes("Predicate And Or Not Boolean StartsWith EndsWith Contains IsNan")
_TEXT = _classes("Lower Upper Trim Initcap Replace RegexpReplace RegexpExtract ConcatWs JSONExtractScalar")
_TEXT_IF_TEXT = _classes("Concat DPipe Substring Reverse Left Right Repeat Pad")
_NUMBER = _classes("Length ArraySize Year Month Day Hour Minute Second Quarter Levenshtein DateDiff")
_TEXT_ARRAY = _classes("RegexpSplit Split")


def type_of(node: Expr, schema: Schema | None) -> str:
    """The type of `node` over tuples of `schema`, in Spark's spelling, or NUMERIC, or UNKNOWN."""
    if isinstance(node, exp.Column):
        return column_type(node, schema)
    if isinstance(node, exp.Cast):
        return _cast_type(node)
    if isinstance(node, exp.Literal):
        return _literal_type(node)
    if isinstance(node, (*_SAME_AS_ARGUMENT, exp.Neg)):
        return type_of(node.this, schema)
    if isinstance(node, _BOOLEAN):
        return "boolean"
    if isinstance(node, (exp.Bracket, exp.Dot)):
        return _part_type(node, schema)
    if isinstance(node, (exp.Coalesce, exp.If, exp.Case)):
        return _common_type(_branches(node), schema)
    if isinstance(node, exp.Array):
        return f"array<{_common_type(node.expressions, schema)}>"
    return _function_type(node, schema)


def column_type(column: exp.Column, schema: Schema | None) -> str:
    """The type of a column, or of the field within a column that `a.b.c` names."""
    if schema is None:
        return UNKNOWN
    root, *path = (part.name for part in column.parts)
    field = find_column(schema, root)
    found = field.type if field else UNKNOWN
    for name in path:
        found = _field_type(found, name)
    return found


def _field_type(type_: str, name: str) -> str:
    if family(type_) == "map":
        return element_type(type_)
    inner = struct_fields(type_)
    field = find_column(inner, name) if inner else None
    return field.type if field else UNKNOWN


def _cast_type(node: exp.Cast) -> str:
    try:
        return parse_type(node.args["to"].sql("spark"))
    except TopologyError:
        return UNKNOWN


def _literal_type(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    return "int" if node.this.isdigit() and int(node.this) < 2**31 else NUMERIC


def _part_type(node: Expr, schema: Schema | None) -> str:
    whole = type_of(node.this, schema)
    if isinstance(node, exp.Dot):
        return _field_type(whole, node.expression.name)
    return element_type(whole)


def _branches(node: Expr) -> list[Expr]:
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.If):
        found = [node.args.get("true"), node.args.get("false")]
    else:
        found = [*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")]
    return [branch for branch in found if branch is not None]


def _common_type(nodes: list[Expr], schema: Schema | None) -> str:
    types = {type_of(node, schema) for node in nodes if not isinstance(node, exp.Null)}
    if len(types) == 1:
        return types.pop()
    return NUMERIC if types and {family(type_) for type_ in types} == {"number"} else UNKNOWN


def _function_type(node: Expr, schema: Schema | None) -> str:
    if isinstance(node, _TEXT):
        return "string"
    if isinstance(node, _NUMBER):
        return NUMERIC
    if isinstance(node, _TEXT_ARRAY):
        return "array<string>"
    if isinstance(node, _classes("CurrentDate TsOrDsToDate")):
        return "date"
    if isinstance(node, _classes("CurrentTimestamp TimestampTrunc")):
        return "timestamp"
    arguments = [child for child in node.iter_expressions() if not isinstance(child, exp.Identifier)]
    families = {family(type_of(child, schema)) for child in arguments}
    if isinstance(node, (*_ARITHMETIC, *_SAME_NUMBER)) and families == {"number"}:
        return NUMERIC
    if isinstance(node, _TEXT_IF_TEXT) and families <= {"text", "number"} and "text" in families:
        return "string"
    return UNKNOWN
