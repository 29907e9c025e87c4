"""What is remembered of a key survives as bytes, and only plain values are kept."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict, deque
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from penstock.topology.state_encoding import Item, NotPlain, Remembered, decode, encode

PLAIN = [
    None,
    True,
    -(1 << 80),
    2.5,
    1 + 2j,
    "straße",
    b"\x00\xff",
    dt.date(2024, 2, 29),
    dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 1, 12, tzinfo=ZoneInfo("Europe/Lisbon")),
    dt.timedelta(minutes=5),
    Decimal("1.20"),
    UUID(int=7),
    (1, ("a", [2])),
    {"a": [1, {"b": {3}}]},
    frozenset({1}),
    Counter("aab"),
    defaultdict(list, {"a": [1]}),
    deque([1, 2], maxlen=3),
]


class OfTheUser:
    pass


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_comes_back_as_it_was(value: object) -> None:
    back = decode(encode(Remembered({"a": Item("value", value)}))).items["a"].content
    assert back == value
    assert type(back) is type(value)


def test_everything_about_a_key_comes_back() -> None:
    whole = Remembered(
        {"v": Item("value", 1, 5000), "l": Item("list", [1, 2], [None, 7000]), "m": Item("map", {"a": 1}, {"a": 9000})},
        {"wait": 8000},
        8000,
    )
    assert decode(encode(whole)) == whole


@pytest.mark.parametrize("value", [OfTheUser(), OfTheUser, print, lambda: 1, [OfTheUser()]],
                         ids=["object", "class", "built-in", "function", "list"])
def test_what_is_not_plain_is_refused_when_it_is_written(value: object) -> None:
    with pytest.raises(NotPlain, match="plain values only"):
        encode(Remembered({"a": Item("value", value)}))


def test_bytes_that_would_call_something_are_refused_when_they_are_read() -> None:
    harmful = b"\x01\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."
    with pytest.raises(NotPlain, match=r"os\.system"):
        decode(harmful)


@pytest.mark.parametrize("encoded", [b"", b"\x02\x80\x05N."])
def test_another_version_is_not_guessed_at(encoded: bytes) -> None:
    with pytest.raises(NotPlain, match="version"):
        decode(encoded)
