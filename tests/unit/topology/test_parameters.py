from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.topology.parameters import called_with_values, column_parameters, with_context

COLUMNS = ("user", "amount", "tup")


def of_tuple(row: Any) -> Any: ...
def of_columns(amount: int, user: str) -> Any: ...
def with_more(user: str, rate: int, context: Any, amount: int = 1) -> Any:
    return user, rate, context, amount


def by_name(user: str, *, amount: int) -> Any:
    return user, amount


def only_by_place(user: str, /, amount: int) -> Any: ...
def anything(*values: Any, **named: Any) -> Any: ...
def of_batch(user: pa.RecordBatch) -> Any: ...


@pytest.mark.parametrize(("function", "arguments", "names"), [
    (of_tuple, (), None),
    (of_columns, (), ("amount", "user")),
    (of_columns, ("amount",), ("user",)),
    (of_columns, ("user",), ("amount",)),
    (with_more, ("rate",), ("user", "amount")),
    (by_name, (), ("user", "amount")),
    (only_by_place, (), None),
    (anything, (), None),
    (of_batch, (), None),
    (len, (), None),
])
def test_a_function_takes_columns_when_its_first_parameter_is_named_after_one(
    function: Callable[..., Any], arguments: tuple[str, ...], names: tuple[str, ...] | None
) -> None:
    assert column_parameters(function, COLUMNS, arguments) == names


def test_values_come_where_they_belong_whatever_stands_between_the_columns() -> None:
    call = called_with_values(with_more, ("user", "amount"), {"rate": 3, "context": "here"})
    assert call("ann", 7) == ("ann", 3, "here", 7)
    assert called_with_values(by_name, ("user", "amount"), {})("ann", 7) == ("ann", 7)
    assert called_with_values(by_name, ("user",), {"amount": 7})("ann") == ("ann", 7)


def test_a_function_of_nothing_but_columns_is_called_as_it_is() -> None:
    assert called_with_values(of_columns, ("amount", "user"), {}) is of_columns


def test_only_who_asks_for_the_context_is_given_it() -> None:
    assert with_context(with_more, {"rate": 2}, "here") == {"rate": 2, "context": "here"}
    assert with_context(of_columns, {}, "here") == {}
