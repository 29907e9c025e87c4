from __future__ import annotations

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.errors import CoordinationError
from penstock.replication.roster import ENDED, Member, Roster, Told

FIRST = Member("1", "local", "here", 41, "a")


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator()


def test_who_signs_in_is_seen_until_it_leaves(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.join(FIRST)
    assert roster.members() == {"1": FIRST}
    roster.leave("1")
    assert roster.members() == {}


def test_a_name_is_taken_by_one(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.join(FIRST)
    roster.join(FIRST)
    with pytest.raises(CoordinationError, match=r"replica 1 is running already: process 41 on here, in cell local"):
        roster.join(Member("1", "local", "there", 42, "b"))


def test_what_was_said_last_is_known(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.tell("1", Told("a", 7))
    roster.tell("1", Told("a", 8, 3, ENDED, progress={"epoch": 8}))
    roster.tell("2", Told("b", 5))
    assert roster.told() == {"1": Told("a", 8, 3, ENDED, progress={"epoch": 8}), "2": Told("b", 5)}


def test_the_first_version_is_agreed_on(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    assert roster.agree_on("one") == "one"
    assert roster.agree_on("two") == "one"
    roster.adopt("two")
    assert roster.agree_on("one") == "two"


def test_those_of_a_version_that_have_begun_alike_are_known_until_all_have(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.note_begun("1", "old")
    roster.note_begun("2", "old")
    roster.note_begun("1", "new")
    assert (roster.begun("old"), roster.begun("new")) == ({"2"}, {"1"})
    roster.note_alike()
    assert roster.begun("new") == set()


def test_what_is_forgotten_is_what_was_said_and_not_who_is_there(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.join(FIRST)
    roster.tell("1", Told("a", 7))
    roster.agree_on("one")
    roster.forget()
    assert roster.told() == {}
    assert roster.members() == {"1": FIRST}
    assert roster.agree_on("two") == "two"
