"""The events of the Nexmark benchmark: an auction house, of whose events 2% are new persons, 6% new auctions, and 92%
bids.

Every event depends on its number and the seed alone. All three kinds are in one stream, with the columns of all; what a
query does not need is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.connectors.arrow_types import arrow_type
from penstock.connectors.base import Place
from penstock.connectors.generator import PACE, GeneratorSource, checked_rate
from penstock.connectors.generator_columns import Column, Make
from penstock.connectors.generator_random import Numbers, random_bits, random_floats, random_letters
from penstock.topology.catalogue import Kind, Option
from penstock.topology.schema import Field, Schema

PERSON, AUCTION, BID = 0, 1, 2
EVENTS_PER_SECOND = 10_000
"""By the time in the events, whatever the pace at which they come."""

_BLOCK = 50
"""One person, three auctions, and 46 bids."""
_AUCTIONS = 3
_FIRST_ID = 1000
_FIRST_MOMENT = 1_735_689_600_000_000
"""2025-01-01, in microseconds."""
_STEP = 1_000_000 // EVENTS_PER_SECOND
_HOT_EVERY = 100
"""Of so many auctions or persons, one is hot."""
_RECENT = 1000
"""Bids go to the last so many auctions, by the last so many persons."""

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent",
           "Cheyenne")
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NexmarkEvents(GeneratorSource):
    """Persons, auctions and bids; `count`, `rate` and `seed` are those of a generator."""

    describe: ClassVar[Kind] = Kind(
        "nexmark",
        "source",
        "The events of the Nexmark benchmark: new persons (kind 0), auctions (kind 1) and bids (kind 2).",
        Option("nexmark", "boolean", "Nothing, or true.", default=True),
        PACE,
    )

    chosen: tuple[str, ...] = ()
    """The columns to make; none: all."""

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> NexmarkEvents:
        return cls((), checked_rate(place, options), options["count"], options["seed"])

    def only(self, columns: Sequence[str]) -> NexmarkEvents:
        return replace(self, chosen=tuple(columns))

    @cached_property
    def _columns(self) -> list[Column]:
        return [column for column in _COLUMNS if not self.chosen or column.field.name in self.chosen]


def _kind(rows: Numbers) -> Integers:
    place = (rows % np.uint64(_BLOCK)).astype(np.int64)
    return np.where(place == 0, PERSON, np.where(place <= _AUCTIONS, AUCTION, BID))


def _block(rows: Numbers) -> Integers:
    return (rows // np.uint64(_BLOCK)).astype(np.int64)


def _newest_person(rows: Numbers) -> Integers:
    """The person that was new last, counted from 0."""
    return _block(rows)


def _newest_auction(rows: Numbers) -> Integers:
    place = (rows % np.uint64(_BLOCK)).astype(np.int64)
    return _block(rows) * _AUCTIONS + np.clip(place, 1, _AUCTIONS) - 1


def _one_of_recent(key: np.uint64, rows: Numbers, newest: Integers, hot_in: int) -> Integers:
    """An id of one that is there by then; one time in `hot_in`, another than the hot one."""
    bits = random_bits(key, rows)
    hot = newest // _HOT_EVERY * _HOT_EVERY
    oldest = np.maximum(newest - _RECENT, 0)
    other = oldest + ((bits >> np.uint64(8)) % (newest - oldest + 1).astype(np.uint64)).astype(np.int64)
    return _FIRST_ID + np.where(bits % np.uint64(hot_in) == 0, other, hot)


def _id(_: np.uint64, rows: Numbers) -> Integers:
    return _FIRST_ID + np.where(_kind(rows) == PERSON, _newest_person(rows), _newest_auction(rows))


def _price(key: np.uint64, rows: Numbers) -> Integers:
    return np.round(10.0 ** (random_floats(key, rows) * 6.0) * 100.0).astype(np.int64)


def _at(_: np.uint64, rows: Numbers) -> Integers:
    return _FIRST_MOMENT + rows.astype(np.int64) * _STEP


def _expires(key: np.uint64, rows: Numbers) -> Integers:
    return _at(key, rows) + 1_000_000 * (1 + (random_bits(key, rows) % np.uint64(20)).astype(np.int64))


def _seller(key: np.uint64, rows: Numbers) -> Integers:
    return _one_of_recent(key, rows, _newest_person(rows), 4)


def _auction(key: np.uint64, rows: Numbers) -> Integers:
    return _one_of_recent(key, rows, _newest_auction(rows), 2)


def _bidder(key: np.uint64, rows: Numbers) -> Integers:
    return _one_of_recent(key, rows, _newest_person(rows), 4)


def _category(key: np.uint64, rows: Numbers) -> Integers:
    return 10 + (random_bits(key, rows) % np.uint64(5)).astype(np.int64)


def _words(choices: Sequence[str]) -> Make:
    known = pa.array(choices)
    return lambda key, rows: known.take(pa.array(random_bits(key, rows) % np.uint64(len(choices))))


def _letters(width: int) -> Make:
    return lambda key, rows: random_letters(key, rows, width)


def _numbers(make: Callable[[np.uint64, Numbers], Integers], arrow: pa.DataType) -> Make:
    return lambda key, rows: pa.array(make(key, rows)).cast(arrow)


def _column(name: str, type_name: str, make: Make, *kinds: int) -> Column:
    """A column that is null where an event is of none of these kinds; without any, it never is."""
    if not kinds:
        return Column(Field(name, type_name), make)
    nothing = pa.scalar(None, arrow_type(type_name))

    def made(key: np.uint64, rows: Numbers) -> pa.Array:
        has = np.isin(_kind(rows), kinds)
        return pa.compute.if_else(pa.array(has), make(key, rows), nothing)

    return Column(Field(name, type_name), made)


def _integer(name: str, make: Callable[[np.uint64, Numbers], Integers], *kinds: int) -> Column:
    return _column(name, "bigint", _numbers(make, pa.int64()), *kinds)


def _moment(name: str, make: Callable[[np.uint64, Numbers], Integers], *kinds: int) -> Column:
    return _column(name, "timestamp", _numbers(make, arrow_type("timestamp")), *kinds)


_NAMES = [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]
_COLUMNS = (
    _integer("kind", lambda _, rows: _kind(rows)),
    _moment("at", _at),
    _integer("id", _id, PERSON, AUCTION),
    _column("name", "string", _words(_NAMES), PERSON),
    _column("email", "string", _letters(16), PERSON),
    _column("city", "string", _words(_CITIES), PERSON),
    _column("state", "string", _words(_STATES), PERSON),
    _column("item", "string", _letters(12), AUCTION),
    _integer("initial_bid", _price, AUCTION),
    _moment("expires", _expires, AUCTION),
    _integer("seller", _seller, AUCTION),
    _integer("category", _category, AUCTION),
    _integer("auction", _auction, BID),
    _integer("bidder", _bidder, BID),
    _integer("price", _price, BID),
    _column("channel", "string", _words(_CHANNELS), BID),
    _column("extra", "string", _letters(32), BID),
)
