from __future__ import annotations

from penstock import Topology
from penstock.topology.model import EpochSettings

SPARK_ALONE, OWN_CODE = 10_000_000, 1_000_000


def test_an_epoch_is_large_where_spark_does_all_the_work() -> None:
    assert Topology("t").source("s", rows=[], schema="a int").filter("a > 1").topology.epoch_tuples == SPARK_ALONE


def test_an_epoch_is_smaller_where_tuples_go_through_own_code() -> None:
    people = Topology("t").source("s", rows=[], schema="a int")
    assert people.custom("m:f", emits="a int").topology.epoch_tuples == OWN_CODE
    assert Topology("t").source("s", spout="m:Spout", schema="a int").topology.epoch_tuples == OWN_CODE
    assert Topology("t").source("s", custom="m:Source").topology.epoch_tuples == OWN_CODE


def test_what_is_set_holds() -> None:
    set_to_seven = Topology("t", epoch=EpochSettings(max_tuples=7))
    assert (set_to_seven.epoch_tuples, set_to_seven.most_epoch_tuples) == (7, 7)


def test_epochs_with_own_code_may_grow_unless_they_are_kept_in_memory_or_replayed() -> None:
    people = Topology("t").source("s", rows=[], schema="a int")
    assert people.custom("m:f", emits="a int").topology.most_epoch_tuples == 4 * OWN_CODE
    assert people.custom("m:f", emits="a int", on_error="retry(2)").topology.most_epoch_tuples == OWN_CODE
    acking = Topology("t", acking=True).source("s", rows=[], schema="a int").custom("m:f", emits="a int").topology
    assert acking.most_epoch_tuples == OWN_CODE
    assert people.filter("a > 1").topology.most_epoch_tuples == SPARK_ALONE
