"""Where replicas share processors one goes ahead, and nobody is held back who would not stay safe."""

from __future__ import annotations

from penstock.control.precedence import BEHIND, Order, Precedence, Runner, order_after
from penstock.replication.lifecycle import Phase

PACE = 1.0


def safe(name: str, took: float = 0.2) -> Runner:
    return Runner(name, Phase.SAFE, took)


def test_the_first_goes_ahead_and_the_others_follow() -> None:
    order = order_after(Order(), [safe("1"), safe("2"), safe("3")], PACE)
    assert order == Order("1", frozenset({"2", "3"}))


def test_who_goes_ahead_does_so_until_it_is_not_safe() -> None:
    first = Order("2", frozenset({"1"}))
    assert order_after(first, [safe("1"), safe("2")], PACE) == first
    for phase in (Phase.DOWN, Phase.FROZEN, Phase.RECOVERING):
        assert order_after(first, [safe("1"), Runner("2", phase, 0.2)], PACE) == Order("1")


def test_who_hardly_keeps_up_is_not_held_back() -> None:
    alone = order_after(Order(), [safe("1"), safe("2", took=0.6)], PACE)
    assert alone == Order("1")
    following = Order("1", frozenset({"2"}))
    assert order_after(following, [safe("1"), safe("2", took=0.6)], PACE) == following
    assert order_after(following, [safe("1"), safe("2", took=0.9)], PACE) == alone
    # As fast as it goes: there is no time between two epochs.
    assert order_after(following, [safe("1"), safe("2", took=0.2)], 0.2) == alone


def test_who_falls_behind_is_not_held_back_however_little_its_last_epoch_took() -> None:
    following = Order("1", frozenset({"2"}))
    assert order_after(following, [safe("1"), Runner("2", Phase.SAFE, 0.01, behind=2)], PACE) == following
    assert order_after(following, [safe("1"), Runner("2", Phase.SAFE, 0.01, behind=3)], PACE) == Order("1")


def test_of_one_that_recovers_or_has_not_said_how_long_it_takes_nothing_is_asked() -> None:
    runners = [safe("1"), Runner("2", Phase.RECOVERING, 0.2), safe("3", took=0.0)]
    assert order_after(Order(), runners, PACE) == Order("1")
    assert order_after(Order(), runners[1:2], PACE) == Order()


def test_nobody_is_held_back_by_one_that_does_not_get_anywhere_and_the_next_epoch_decides_who_leads() -> None:
    following = Order("1", frozenset({"2"}))
    assert order_after(following, [safe("1"), safe("2")], PACE, still=1.4) == following
    late = order_after(following, [safe("1"), safe("2")], PACE, still=1.6)
    assert late == Order()
    # It stays so until somebody has done the epoch: the one that spins has not, and comes to follow.
    assert order_after(late, [safe("1"), safe("2")], PACE, still=9.0) == Order()
    spins = Runner("1", Phase.SAFE, 0.2, behind=1)
    after = order_after(late, [spins, safe("2")], PACE)
    assert after == Order("2", frozenset({"1"}))
    assert order_after(after, [spins, safe("2")], PACE, still=0.9) == after
    # One that only had a hiccup goes on ahead.
    assert order_after(late, [safe("1"), Runner("2", Phase.SAFE, 0.2, behind=1)], PACE) == following


def test_what_looks_like_jitter_because_replicas_tell_four_times_a_second_makes_nobody_equal() -> None:
    following = Order("1", frozenset({"2"}))
    for pace in (0.3, 0.5, 1.0):
        runners = [safe("1", took=0.1), safe("2", took=0.1)]
        assert order_after(following, runners, pace, still=pace + 0.4) == following
        assert order_after(following, runners, pace, still=pace + 0.6) == Order()


class System:
    """Notes what is set, and does it unless it is busy."""

    def __init__(self) -> None:
        self.done: list[tuple[int, ...]] = []
        self.busy = False

    def lower(self, session: int, niceness: int) -> bool:
        self.done.append((session, niceness))
        return not self.busy

    def restore(self, session: int) -> bool:
        self.done.append((session,))
        return not self.busy


def test_each_session_is_set_once_and_one_that_is_gone_is_left_alone() -> None:
    system = System()
    precedence, done = Precedence(system.lower, system.restore), system.done
    both, sessions = [safe("1"), safe("2")], {"1": 11, "2": 22}
    precedence.heed(both, sessions, PACE)
    precedence.heed(both, sessions, PACE)
    assert done == [(22, BEHIND)]
    # The first is killed: the second goes ahead, and who comes in its place follows.
    precedence.heed([Runner("1", Phase.DOWN, 0.2), safe("2")], {"2": 22}, PACE)
    assert done[1:] == [(22,)]
    precedence.heed(both, {"1": 12, "2": 22}, PACE)
    assert done[2:] == [(12, BEHIND)]
    precedence.heed(both, {"1": 13, "2": 22}, PACE)
    assert done[3:] == [(13, BEHIND)]
    # Replicas of other machines have processors of their own.
    precedence.heed(both, {"2": 22}, PACE)
    assert done[4:] == []


def test_a_follower_is_raised_while_the_one_ahead_does_not_move_and_that_one_is_lowered_then() -> None:
    system = System()
    precedence, done = Precedence(system.lower, system.restore), system.done
    both, sessions = [safe("1"), safe("2")], {"1": 11, "2": 22}
    for still in (0.0, 1.0, 2.0, 3.0):
        precedence.heed(both, sessions, PACE, still)
    assert done == [(22, BEHIND), (22,)]
    precedence.heed([Runner("1", Phase.SAFE, 0.2, behind=1), safe("2")], sessions, PACE, 0.1)
    assert done[2:] == [(11, BEHIND)]


def test_what_the_system_does_not_do_is_tried_again() -> None:
    system = System()
    precedence, done = Precedence(system.lower, system.restore), system.done
    both, alone, sessions = [safe("1"), safe("2")], [Runner("1", Phase.FROZEN, 0.2), safe("2")], {"1": 11, "2": 22}
    for busy in (True, False):
        system.busy = busy
        precedence.heed(both, sessions, PACE)
    assert done == [(22, BEHIND)] * 2
    for busy in (True, False, False):
        system.busy = busy
        precedence.heed(alone, sessions, PACE)
    assert done[2:] == [(22,)] * 2
