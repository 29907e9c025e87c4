from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.epochs.record import EpochRecord
from penstock.errors import TopologyError
from penstock.runtime.compatibility import changes, check_log, shape_of
from penstock.topology.model import (
    Count,
    Custom,
    Delivery,
    EpochSettings,
    Filter,
    FrozenOptions,
    Operator,
    Sink,
    Source,
    StreamRef,
    Topology,
    Uniq,
)

VISITS = Source("visits", "file", FrozenOptions(file="visits.csv"))
CLICKS = Source("clicks", "generator", FrozenOptions(generator={"id": "sequence"}, count=10))
HOME = Filter("home", (StreamRef("visits"),), condition="page = '/home'")
UNIQUE = Uniq("unique", (StreamRef("home"),), keys=("user",))
VIEWS = Count("views", (StreamRef("unique"),), keys=("user", "page"))
OUT = Sink("out", StreamRef("views"), "file", FrozenOptions(file="out.jsonl"))
CLICKED = Sink("clicked", StreamRef("clicks"), "console", FrozenOptions())

BEFORE = Topology("pages", sources=(VISITS, CLICKS), operators=(HOME, UNIQUE, VIEWS), sinks=(OUT, CLICKED))


def said(now: Topology, partitions: int = 4, before: Topology = BEFORE) -> list[str]:
    """What has changed, as a run finds it: the old shape comes from a file."""
    return changes(json.loads(json.dumps(shape_of(before, 4))), shape_of(now, partitions))


def with_operators(*operators: Operator) -> Topology:
    return replace(BEFORE, operators=operators)


def test_the_same_topology_goes_on() -> None:
    assert said(BEFORE) == []


@pytest.mark.parametrize("now", [
    with_operators(replace(HOME, condition="page = '/'"), UNIQUE, VIEWS),
    with_operators(replace(UNIQUE, inputs=(StreamRef("visits"),)), VIEWS),
    with_operators(HOME, Custom("more", (StreamRef("home"),), code="m:f"),
                   replace(UNIQUE, inputs=(StreamRef("more"),)), VIEWS),
    replace(BEFORE, sinks=(replace(OUT, name="new", kind="console", options=FrozenOptions()), CLICKED)),
    replace(BEFORE, operators=(*BEFORE.operators, Filter("unread", (StreamRef("visits"),), condition="true"))),
    replace(BEFORE, delivery=Delivery.AT_LEAST_ONCE),
    replace(BEFORE, epoch=EpochSettings(max_tuples=7)),
    replace(BEFORE, sources=(VISITS, replace(CLICKS, options=FrozenOptions(generator={"id": "sequence"}, count=99)))),
])
def test_what_the_checkpoint_does_not_hold_may_change(now: Topology) -> None:
    assert said(now) == []


@pytest.mark.parametrize(("now", "change"), [
    (replace(BEFORE, sources=(VISITS,), sinks=(OUT,)), "source 'clicks' is gone"),
    (replace(BEFORE, sources=(VISITS, CLICKS, replace(VISITS, name="more"))), "source 'more' is new"),
    (replace(BEFORE, sources=(CLICKS, VISITS)),
     "the sources stand in another order: visits, clicks, now clicks, visits"),
    (replace(BEFORE, sources=(replace(VISITS, options=FrozenOptions(file="b.csv")), CLICKS)),
     "source 'visits': reads was visits.csv, now b.csv"),
    (with_operators(HOME, replace(VIEWS, inputs=(StreamRef("home"),))), "stateful operator 'unique' is gone"),
    (with_operators(HOME, UNIQUE, VIEWS, replace(VIEWS, name="again")), "stateful operator 'again' is new"),
    (with_operators(HOME, VIEWS, UNIQUE),
     "the stateful operators stand in another order: unique, views, now views, unique"),
    (with_operators(HOME, replace(UNIQUE, keys=("user", "page")), VIEWS),
     "stateful operator 'unique': keys was user, now user, page"),
    (with_operators(HOME, UNIQUE, replace(VIEWS, keys=())), "stateful operator 'views': keys was user, page, now none"),
    (with_operators(HOME, UNIQUE, replace(VIEWS, emit="each")),
     "stateful operator 'views': emit was changes, now each"),
])
def test_what_it_holds_may_not_and_is_named(now: Topology, change: str) -> None:
    assert said(now) == [change]


def test_another_kind_under_the_same_name_is_told() -> None:
    now = with_operators(HOME, UNIQUE, Uniq("views", (StreamRef("unique"),), keys=("user", "page")))
    assert said(now) == ["stateful operator 'views': kind was count, now uniq"]
    kind = replace(BEFORE, sources=(replace(VISITS, kind="spout", options=FrozenOptions(spout="m:S")), CLICKS))
    assert said(kind) == ["source 'visits': kind was file, now spout", "source 'visits': reads was visits.csv, now m:S"]


def test_all_changes_are_told_at_once() -> None:
    now = replace(with_operators(HOME, replace(VIEWS, inputs=(StreamRef("home"),))), sources=(VISITS,), sinks=(OUT,))
    assert said(now, partitions=2) == [
        "source 'clicks' is gone",
        "stateful operator 'unique' is gone",
        "the parallelism of stateful operators was 4, now 2; `penstock rescale` divides their state anew",
    ]


def test_state_stays_in_as_many_parts_as_it_has() -> None:
    (change,) = said(BEFORE, partitions=8)
    assert change == "the parallelism of stateful operators was 4, now 8; `penstock rescale` divides their state anew"


def test_without_state_the_number_of_cores_does_not_matter() -> None:
    stateless = replace(with_operators(HOME), sinks=(replace(OUT, input=StreamRef("home")), CLICKED))
    assert said(stateless, partitions=8, before=stateless) == []


MORE = Sink("more", StreamRef("home"), "console", FrozenOptions())


@pytest.mark.parametrize(("sinks", "now"), [
    ((OUT,), "visits → unique → views"),
    ((OUT, CLICKED, MORE), "visits → unique → views; clicks; visits"),
    ((CLICKED, OUT), "clicks; visits → unique → views"),
])
def test_sinks_stay_on_their_branches(sinks: tuple[Sink, ...], now: str) -> None:
    was = "visits → unique → views; clicks"
    assert said(replace(BEFORE, sinks=sinks)) == [
        f"the sinks hang on other branches, or in another order: {was}, now {now}"
    ]


def test_sinks_that_change_places_on_equal_branches_do_not_mix_up_the_state() -> None:
    again = replace(VIEWS, name="again")
    other = replace(OUT, name="other", input=StreamRef("again"))
    two = replace(with_operators(HOME, UNIQUE, VIEWS, again), sinks=(OUT, other))
    assert len(said(replace(two, sinks=two.sinks[::-1]), before=two)) == 1


def test_a_shape_that_was_written_before_branches_were_noted_is_accepted() -> None:
    old = shape_of(BEFORE, 4)
    del old["branches"]
    assert changes(old, shape_of(BEFORE, 4)) == []


def test_the_epoch_log_of_another_topology_of_that_name_is_refused() -> None:
    check_log(BEFORE, None, "zookeeper://here/pages")
    check_log(BEFORE, EpochRecord(3, 0, {"visits": {}, "clicks": {}}, {}), "zookeeper://here/pages")
    with pytest.raises(TopologyError, match=r"here/pages is of another topology 'pages': .*orders.*--fresh"):
        check_log(BEFORE, EpochRecord(3, 0, {"orders": {}, "clicks": {}}, {}), "zookeeper://here/pages")
