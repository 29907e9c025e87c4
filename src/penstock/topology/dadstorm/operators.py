"""One DADSTORM operator, checked by itself: its sections read as numbers, routes and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.topology.dadstorm.statements import PARAMETERS, OperatorText
from penstock.topology.dadstorm.tokens import Section, Token, values_of
from penstock.topology.model import Location, RouteKind
from penstock.topology.problems import Problem, suggest

ROUTINGS = {"primary": RouteKind.GLOBAL, "hashing": RouteKind.HASH, "random": RouteKind.SHUFFLE}
CONDITIONS = ("<", ">", "=")

_HASHING = re.compile(r"hashing\(?(\d+)\)?$")
_LIBRARY = re.compile(r"(?:.*[/\\])?(?P<module>.+?)(?:\.(?:dll|py))?", re.IGNORECASE)


@dataclass(frozen=True)
class Declaration:
    """What one operator says of itself; fields count from 1."""

    id: str
    kind: str
    parameters: tuple[str, ...]
    inputs: tuple[Token, ...]
    rep_fact: int
    routing: RouteKind
    hash_field: int | None
    addresses: tuple[str, ...]
    where: Location

    @property
    def field(self) -> int:
        """The field that FILTER or UNIQ looks at."""
        return int(self.parameters[0])

    @property
    def used_fields(self) -> tuple[int, ...]:
        """The fields of entering tuples that the operator or its routing looks at."""
        own = (self.field,) if self.kind in ("FILTER", "UNIQ") else ()
        return own if self.hash_field is None else (*own, self.hash_field)

    @property
    def passes_on(self) -> bool:
        """Whether the tuples it emits are tuples that entered."""
        return self.kind in ("FILTER", "UNIQ", "DUP")


def find_id(written: str, ids: Iterable[str]) -> str | None:
    """The id that is meant; `op1` means OP1 where no id is spelled so."""
    alike = [one for one in ids if one.lower() == written.lower()]
    return written if written in alike else alike[0] if len(alike) == 1 else None


class _Mistake(Exception):
    """A section that cannot be read: its line, what is wrong, and what would be right."""

    def __init__(self, line: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.hint = line, message, hint


def declare(text: OperatorText, file_name: str) -> tuple[Declaration | None, list[Problem]]:
    """Read every section of an operator; None when one of them is wrong, and all that is wrong."""
    name, first_line = text.id.text, text.id.line
    where = Location(file_name, first_line)
    problems: list[Problem] = []

    def warn(message: str, hint: str = "") -> None:
        problems.append(Problem(where, f"operator {name}: {message}", hint, "warning"))

    inputs = text.values(Section.INPUT_OPS)
    addresses = tuple(token.text for token in text.values(Section.ADDRESS))
    mistakes: list[_Mistake] = []
    if not inputs:
        mistakes.append(_Mistake(first_line, "input_ops is missing", "say which operators or files it reads"))
    rep_fact, routing, hash_field, kind = max(len(addresses), 1), RouteKind.SHUFFLE, None, ""
    parameters: tuple[str, ...] = ()
    try:
        if Section.REP_FACT in text.sections:
            rep_fact = _read_rep_fact(text.values(Section.REP_FACT), first_line)
            if addresses and len(addresses) != rep_fact:
                warn(f"rep_fact is {rep_fact}, but there are {len(addresses)} addresses",
                     "rep_fact counts; addresses only name the replicas in commands")
        else:
            warn(f"rep_fact is missing; {rep_fact} taken", "write rep_fact N")
    except _Mistake as mistake:
        mistakes.append(mistake)
    try:
        if Section.ROUTING in text.sections:
            routing, hash_field = _read_routing(text.values(Section.ROUTING), first_line)
        else:
            warn("routing is missing; random taken", "write routing primary, hashing(FIELD) or random")
    except _Mistake as mistake:
        mistakes.append(mistake)
    try:
        kind, parameters = _read_spec(text.sections.get(Section.OPERATOR_SPEC, ()), first_line)
    except _Mistake as mistake:
        mistakes.append(mistake)
    if kind in ("COUNT", "DUP") and parameters:
        warn(f"{kind} takes no parameters; '{' '.join(parameters)}' is ignored")
    problems += [Problem(Location(file_name, wrong.line), f"operator {name}: {wrong.message}", wrong.hint)
                 for wrong in mistakes]
    if mistakes:
        return None, problems
    declaration = Declaration(name, kind, parameters, inputs, rep_fact, routing, hash_field, addresses, where)
    return declaration, problems


def _read_rep_fact(values: Sequence[Token], line: int) -> int:
    written = " ".join(value.text for value in values)
    line = values[0].line if values else line
    if not (written.isascii() and written.isdigit() and int(written) > 0):
        raise _Mistake(line, f"rep_fact must be a whole number of at least 1, not '{written}'",
                       "write for example rep_fact 2")
    return int(written)


def _read_routing(values: Sequence[Token], line: int) -> tuple[RouteKind, int | None]:
    # Joined without blanks, `hashing(1)`, `hashing ( 1 )` and `hashing 1` differ only in the brackets.
    written = "".join(value.text for value in values).lower()
    line = values[0].line if values else line
    if written in ("primary", "random"):
        return ROUTINGS[written], None
    if (hashing := _HASHING.match(written)) is not None:
        return RouteKind.HASH, _read_field(hashing[1], "hashing", line)
    if written.startswith("hashing"):
        raise _Mistake(line, f"routing '{written}' names no field", "write hashing(1) for the first field")
    raise _Mistake(line, f"unknown routing '{written}'",
                   suggest(written, ROUTINGS) or "use primary, hashing(FIELD) or random")


def _read_spec(tokens: Sequence[Token], line: int) -> tuple[str, tuple[str, ...]]:
    values = values_of(tokens)
    if not values:
        raise _Mistake(line, "operator_spec is missing", "add for example: operator_spec UNIQ 1")
    kind, line = values[0].text.upper(), values[0].line
    if kind not in PARAMETERS:
        raise _Mistake(line, f"unknown operator type '{values[0].text}'",
                       suggest(kind, PARAMETERS) or f"use one of {', '.join(PARAMETERS)}")
    parameters = _split_parameters(tokens[1:], len(PARAMETERS[kind].split(",")))
    if PARAMETERS[kind] and len(parameters) != len(PARAMETERS[kind].split(",")):
        found = ",".join(parameters) or "nothing"
        raise _Mistake(line, f"{kind} takes {PARAMETERS[kind]}, not {found}",
                       "put quotes round a value that contains commas")
    if kind in ("FILTER", "UNIQ"):
        parameters = (str(_read_field(parameters[0], kind, line)), *parameters[1:])
    if kind == "FILTER" and parameters[1] not in CONDITIONS:
        raise _Mistake(line, f"FILTER cannot compare with '{parameters[1]}'", "use <, > or =")
    if kind == "CUSTOM":
        parameters = _read_code(*parameters, line=line)
    return kind, parameters


def _split_parameters(tokens: Sequence[Token], wanted: int) -> tuple[str, ...]:
    """Parameters between commas, where a value may contain blanks; or between blanks where that fits."""
    values = tuple(value.text for value in values_of(tokens))
    if len(values) == wanted:
        return values
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token.is_comma:
            groups.append([])
        else:
            groups[-1].append(token.text)
    return tuple(" ".join(group) for group in groups if group)


def _read_field(written: str, user: str, line: int) -> int:
    if not (written.isascii() and written.isdigit()):
        raise _Mistake(line, f"{user} needs the number of a field, not '{written}'", "fields count from 1")
    if int(written) == 0:
        raise _Mistake(line, f"{user} names field 0", "fields count from 1")
    return int(written)


def _read_code(library: str, class_name: str, method: str, *, line: int) -> tuple[str, str, str]:
    """Module, class and method: without the library's folder and `.dll`, and the class's .NET namespace."""
    found = _LIBRARY.fullmatch(library)
    code = (found["module"] if found else "", class_name.rpartition(".")[2], method)
    for role, name in zip(("Python module", "class", "method"), code, strict=True):
        if not all(part.isidentifier() for part in name.split(".")):
            raise _Mistake(line, f"CUSTOM: '{name}' cannot be the name of a {role}",
                           "write CUSTOM library,class,method")
    return code
