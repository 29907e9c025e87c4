from __future__ import annotations

from typing import Any

from penstock.runtime.state_match import match_state, misfits

from .stored_state import shape


def of(*operators: str, **more: Any) -> dict[str, Any]:
    return dict(shape(operators)) | more


def test_the_same_topology_takes_all_state_to_the_same_places() -> None:
    match = match_state(of("total", "first"), of("total", "first"))
    assert match.same_places
    assert (match.taken, match.empty, match.left_behind, match.notes()) == ({0: 0, 1: 1}, {}, (), [])


def test_state_follows_its_operator_by_name() -> None:
    match = match_state(of("total", "first"), of("new", "first", "total"))
    assert not match.same_places
    assert (match.taken, match.empty) == ({1: 1, 2: 0}, {0: "new"})
    assert match.notes() == ["operator 'new' is new: it begins empty"]


def test_state_that_nobody_wants_is_left_behind_and_that_is_said() -> None:
    match = match_state(of("total", "first"), of("first"))
    assert (match.taken, match.left_behind) == ({0: 1}, ("total",))
    assert match.notes() == [
        "operator 'total' is not in the topology any more: what it remembered is left behind"
    ]


def test_another_branch_of_an_operator_takes_a_copy() -> None:
    assert match_state(of("first"), of("first", "total", "first")).taken == {0: 0, 2: 0}
    assert match_state(of("first", "total", "first"), of("total", "first")).taken == {0: 1, 1: 0}


def test_a_branch_more_without_state_is_another_arrangement() -> None:
    assert not match_state(of("first"), of("first", branches=[["s", "first"], ["s"]])).same_places


def test_operators_may_come_and_go_but_what_fits_no_more_is_refused() -> None:
    assert misfits(of("first"), of("total")) == []
    other = of("first")
    other["state"] = {"first": {"kind": "count", "keys": ["page", "user"], "emit": "changes"}}
    assert misfits(of("first"), other) == [
        "operator 'first': keys was word, now page, user; with another name it would begin empty"
    ]


def test_sources_stay_but_may_read_from_another_place() -> None:
    elsewhere = of("first", sources={"s": {"kind": "file", "reads": "/other/s.csv"}})
    assert misfits(of("first"), elsewhere) == []
    assert misfits(of("first"), of("first", sources={"s": {"kind": "spout", "reads": ""}, "t": {"kind": "file"}})) == [
        "source 't' is new", "source 's': kind was file, now spout"
    ]
    assert misfits(of("first"), of("first", sources={})) == ["source 's' is gone"]
