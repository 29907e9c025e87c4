from __future__ import annotations

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.orders import EVERYTHING, Orders


@pytest.fixture
def orders() -> Orders:
    return Orders(MemoryCoordinator())


def test_what_is_frozen_stays_so_until_it_is_taken_back(orders: Orders) -> None:
    assert orders.frozen("1") == ()
    assert orders.freeze("1")
    assert orders.frozen("1") == (EVERYTHING,)
    assert orders.frozen("2") == ()
    assert orders.unfreeze("1")
    assert orders.frozen("1") == ()


def test_the_same_order_twice_is_one(orders: Orders) -> None:
    assert orders.freeze("1")
    assert not orders.freeze("1")
    assert orders.unfreeze("1")
    assert not orders.unfreeze("1")


def test_a_replica_is_frozen_while_any_operator_of_it_is(orders: Orders) -> None:
    orders.freeze("1", "counts")
    orders.freeze("1", "words")
    assert orders.unfreeze("1", "counts")
    assert orders.frozen("1") == ("words",)
    orders.freeze("1")
    assert orders.unfreeze("1")
    assert orders.frozen("1") == ()


def test_the_end_is_held_until_all_who_hold_it_have_let_go() -> None:
    holder = MemoryCoordinator()
    orders = Orders(holder)
    assert not orders.end_is_held()
    orders.hold_end("a")
    orders.hold_end("b")
    orders.release_end("a")
    orders.release_end("a")
    assert orders.end_is_held()
    # Its process has died.
    holder.close()
    assert not Orders(MemoryCoordinator(holder.store)).end_is_held()


def test_replicas_whose_names_begin_alike_are_told_apart(orders: Orders) -> None:
    orders.freeze("11")
    assert orders.frozen("1") == ()
    assert not orders.unfreeze("1")


def test_an_interval_holds_until_it_is_taken_back(orders: Orders) -> None:
    assert orders.interval() is None
    orders.set_interval(0.25)
    assert orders.interval() == 0.25
    orders.set_interval(0)
    assert orders.interval() == 0.0
    orders.set_interval(None)
    assert orders.interval() is None


def test_of_the_intervals_of_several_operators_the_longest_counts_whoever_gave_them() -> None:
    store = MemoryCoordinator().store
    first, second = (Orders(MemoryCoordinator(store)) for _ in range(2))
    first.set_interval(2.0, "OP1")
    second.set_interval(0.5, "OP2")
    assert second.interval() == 2.0
    second.set_interval(0.0, "OP1")
    assert first.interval() == 0.5
    first.set_interval(None, "OP2")
    assert first.interval() == 0.0


def test_intervals_of_operators_and_of_the_whole_topology_replace_each_other(orders: Orders) -> None:
    orders.set_interval(2.0, "OP1")
    orders.set_interval(0.5)
    assert orders.interval() == 0.5
    orders.set_interval(0.1, "OP2")
    assert orders.interval() == 0.1
    orders.set_interval(None)
    assert orders.interval() is None


def test_all_orders_are_forgotten_at_once(orders: Orders) -> None:
    orders.freeze("1")
    orders.set_interval(3)
    orders.set_interval(3, "OP1")
    orders.forget()
    assert orders.frozen("1") == ()
    assert orders.interval() is None
