from __future__ import annotations

import pyarrow as pa

from penstock.spark.numbering import SEQUENCE
from penstock.spark.ported_tuples import parts_of, ported_tuples

PORTS = {"orders": ("id", "item"), "payments": ("id",)}


def gathered(rows: list[tuple[int, dict[str, object] | None, dict[str, object] | None, int]]) -> pa.RecordBatch:
    orders = pa.struct([("id", pa.int32()), ("item", pa.string())])
    payments = pa.struct([("id", pa.int32())])
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.int32()),
            pa.array([row[1] for row in rows], orders),
            pa.array([row[2] for row in rows], payments),
            pa.array([row[3] for row in rows], pa.int64()),
        ],
        names=["__input_port", "__in_orders", "__in_payments", SEQUENCE],
    )


def test_tuples_are_told_apart_by_port_with_their_own_columns() -> None:
    batch = gathered([(1, None, {"id": 7}, 3), (0, {"id": 1, "item": "tea"}, None, 4), (1, None, {"id": None}, 5)])
    parts = dict(parts_of(batch, PORTS))
    assert parts["orders"].to_pylist() == [{"id": 1, "item": "tea", SEQUENCE: 4}]
    assert parts["payments"].to_pylist() == [{"id": 7, SEQUENCE: 3}, {"id": None, SEQUENCE: 5}]


def test_a_port_without_tuples_is_left_out() -> None:
    assert [port for port, _ in parts_of(gathered([(1, None, {"id": 7}, 3)]), PORTS)] == ["payments"]


def test_tuples_keep_their_order_and_know_their_port() -> None:
    batch = gathered([(1, None, {"id": 7}, 3), (0, {"id": 1, "item": "tea"}, None, 4), (1, None, {"id": None}, 5)])
    tuples, ports = ported_tuples(batch, PORTS)
    assert tuples == [(7,), (1, "tea"), (None,)]
    assert tuples[1].item == "tea"
    assert ports == ["payments", "orders", "payments"]
