"""What can be computed of a window's tuples, and how it is written: `sum(amount) as total`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import TopologyError
from penstock.topology.problems import suggest
from penstock.topology.sql_text import QUOTE_IT, closes_what_it_opens, split_sql

MOST_KEPT = 100_000
"""The most tuples that one `top` may keep of a window: Spark's own limit."""

_WRITTEN = re.compile(
    r"\s*(?P<function>\w+)\s*\((?P<arguments>.*)\)\s*(?:as\s+(?:`(?P<quoted>[^`]+)`|(?P<bare>\w+))\s*)?",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Function:
    """A function of many tuples."""

    usage: str
    doc: str
    arguments: tuple[int, ...] = (1,)
    """How many arguments it takes."""


FUNCTIONS = {
    "count": Function("count()", "How many tuples; `count(x)`: how many where x is not null.", (0, 1)),
    "sum": Function("sum(x)", "The sum."),
    "avg": Function("avg(x)", "The mean."),
    "min": Function("min(x)", "The smallest."),
    "max": Function("max(x)", "The largest."),
    "stddev": Function("stddev(x)", "The standard deviation of the sample."),
    "percentile": Function("percentile(x, p)", "The value below which the fraction p lies, exactly.", (2,)),
    "approx_distinct": Function("approx_distinct(x)", "How many different values, within about 5 %."),
    "first": Function("first(x)", "The value of the tuple that was read first."),
    "last": Function("last(x)", "The value of the tuple that was read last."),
    "collect": Function("collect(x)", "All values that are not null as an array, in the order read."),
    "top": Function("top(n, x)", "The n tuples with the largest x as an array, the largest first; of equals, the one "
                    "that was read first.", (2,)),
}  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """One column computed of a window's tuples."""

    function: str
    arguments: tuple[str, ...]
    """SQL expressions over one tuple."""
    name: str

    @property
    def number(self) -> float:
        """The fraction of a percentile, or how many a `top` keeps."""
        return float(self.arguments[1 if self.function == "percentile" else 0])

    @property
    def value(self) -> str | None:
        """The expression whose values are put together; None where there is none."""
        if self.function == "top":
            return self.arguments[1]
        return self.arguments[0] if self.arguments else None


def parse_aggregate(text: str) -> Aggregate:
    """Read `sum(amount) as total`; raises TopologyError that says what would be right."""
    match = _WRITTEN.fullmatch(text)
    if not closes_what_it_opens(text):
        raise TopologyError(f"'{text}' has a bracket without its partner; {QUOTE_IT}write \"top(3, x) as best\"")
    if match is None or not closes_what_it_opens(match["arguments"]):
        raise TopologyError(f"'{text}' computes nothing of many tuples; write for example count() as clicks, one "
                            "function alone")
    function = match["function"].lower()
    known = FUNCTIONS.get(function)
    if known is None:
        advice = suggest(function, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}"
        raise TopologyError(f"'{text}': no function of many tuples is called '{match['function']}': {advice}")
    written = match["arguments"].strip()
    arguments = tuple(part.strip() for part in split_sql(written)) if written else ()
    if function == "count" and arguments == ("*",):
        arguments = ()
    if len(arguments) not in known.arguments or not all(arguments):
        raise TopologyError(f"'{text}': write {known.usage}")
    name = match["quoted"] or match["bare"]
    if name is None:
        raise TopologyError(f"the column '{text}' has no name; write '{text} as name'")
    aggregate = Aggregate(function, arguments, name)
    _check_number(text, aggregate)
    return aggregate


def _check_number(text: str, aggregate: Aggregate) -> None:
    if aggregate.function not in ("percentile", "top"):
        return
    try:
        number = aggregate.number
    except ValueError:
        number = -1.0
    if aggregate.function == "percentile" and not 0 <= number <= 1:
        raise TopologyError(f"'{text}': the second argument is a number from 0 to 1, for example 0.95")
    if aggregate.function == "top" and not (1 <= number <= MOST_KEPT and number.is_integer()):
        raise TopologyError(f"'{text}': the first argument says how many to keep, from 1 to {MOST_KEPT:,}")
