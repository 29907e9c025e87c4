"""Dead letters: looked at, discarded, and asked to be replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.postponed import Origin, Span, replays_in
from penstock.epochs.record import EpochRecord
from penstock.errors import CoordinationError, DeliveryError
from penstock.runtime.buried import Graveyard
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.topology.model import Topology


def topology(folder: Path) -> Topology:
    stream = Topology("t").source("s", file="s.csv", schema="n bigint").filter("n > 0", name="some")
    return (stream.custom("own:code", emits="n bigint", on_error="dead-letter", name="own")
            .sink("o", file="out/o.jsonl").with_folder(folder))  # fmt: skip


def letter(position: int, **fields: Any) -> dict[str, Any]:
    return {"epoch": 3, "operator": "own", "error": "ValueError: no", "at": "own.py:3", "tuple": {"n": position},
            "attempts": 1, "source": "s", "read_in_epoch": 3, "position": position,
            "span": [{"row": 20}, {"row": 30}, 2], **fields}  # fmt: skip


def buried(folder: Path, *letters: dict[str, Any]) -> Graveyard:
    (folder / "dead-letters").mkdir(exist_ok=True)
    (folder / "dead-letters/t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in letters))
    return Graveyard(topology(folder))


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    """A run that was stopped after epoch 5."""
    state = StateFolder(tmp_path / "state")
    state.path.mkdir()
    state.record(Committed(5))
    log_of(state).propose(EpochRecord(5, 0, {"s": {"row": 50}}, {"s": 10}))
    return state


def log_of(state: StateFolder) -> EpochLog:
    return EpochLog(open_coordinator(state.coordinator))


def test_without_any_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert Graveyard(topology(tmp_path)).letters() == []


def test_they_are_told_apart_and_stay_the_same(tmp_path: Path) -> None:
    graveyard = buried(tmp_path, letter(1), letter(2), {"epoch": 4, "source": "s", "raw": "a,", "error": "no number"})
    one, two, record = graveyard.letters()
    assert len({one.id, two.id, record.id}) == 3
    assert [each.id for each in graveyard.letters()] == [one.id, two.id, record.id]
    assert (one.where, one.what, record.where, record.what) == ("own", '{"n": 1}', "s", "a,")
    assert graveyard.letters("own") == [one, two]
    assert graveyard.letters(ids=[two.id]) == [two]
    with pytest.raises(DeliveryError, match="no dead letter 0000000000"):
        graveyard.letters(ids=["0000000000"])


def test_what_is_discarded_is_not_shown_and_still_there(tmp_path: Path) -> None:
    graveyard = buried(tmp_path, letter(1), letter(2))
    before = graveyard.path.read_text()
    graveyard.discard(graveyard.letters()[:1])
    assert [each.fields["position"] for each in graveyard.letters()] == [2]
    assert graveyard.path.read_text() == before


def test_output_that_begins_anew_has_new_letters(tmp_path: Path) -> None:
    graveyard = buried(tmp_path, letter(1))
    graveyard.discard(graveyard.letters())
    graveyard.path.unlink()
    graveyard._sink.open(fresh=True)
    assert [each.fields["position"] for each in buried(tmp_path, letter(1)).letters()] == [1]


def test_source_tuples_are_replayed_in_the_next_epoch_each_once(tmp_path: Path, state: StateFolder) -> None:
    graveyard = buried(tmp_path, letter(1), letter(2))
    first, second = graveyard.letters()
    assert graveyard.replay([first], state, state.coordinator) == 1
    assert graveyard.letters() == [second]
    # Once more, as after a crash before it was written down; and another one.
    assert graveyard.replay([first, second], state, state.coordinator) == 2
    replays = replays_in(6, log_of(state).all_postponed())
    assert [(each.late.origin, each.span) for each in replays] == [
        (Origin(3, number), Span({"row": 20}, {"row": 30}, 2)) for number in (1, 2)
    ]
    assert replays_in(7, log_of(state).all_postponed()) == []
    # An epoch that is computed once more does not do without them.
    assert log_of(state).postponed(5) is None


def test_what_was_asked_for_is_forgotten_in_time(tmp_path: Path, state: StateFolder) -> None:
    graveyard = buried(tmp_path, letter(1))
    graveyard.replay(graveyard.letters(), state, state.coordinator)
    log = log_of(state)
    log.note_progress("1", 200)
    log.forget_unneeded(kept=10)
    assert log.all_postponed() == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"operator": None, "raw": "x"}, "never was a tuple"),
        ({"span": None}, "nothing says where to read it"),
        ({"source": "gone"}, "is not there any more"),
    ],
)
def test_what_cannot_be_replayed_says_why_and_nothing_is_done(
    tmp_path: Path, state: StateFolder, fields: dict[str, Any], why: str
) -> None:
    graveyard = buried(tmp_path, letter(1), letter(2, **fields))
    with pytest.raises(DeliveryError, match=why):
        graveyard.replay(graveyard.letters(), state, state.coordinator)
    assert len(graveyard.letters()) == 2


def test_nothing_is_replayed_in_a_run_that_ended_or_runs_or_is_in_an_epoch(tmp_path: Path, state: StateFolder) -> None:
    graveyard = buried(tmp_path, letter(1))
    letters = graveyard.letters()
    with state.held(), pytest.raises(CoordinationError, match="running"):
        graveyard.replay(letters, state, state.coordinator)
    log_of(state).propose(EpochRecord(6, 0, {"s": {"row": 60}}, {"s": 10}))
    with pytest.raises(DeliveryError, match="begun and not finished"):
        graveyard.replay(letters, state, state.coordinator)
    state.record(Committed(6, ended=True))
    with pytest.raises(DeliveryError, match="end of its input"):
        graveyard.replay(letters, state, state.coordinator)
    assert graveyard.letters() == letters


def test_a_log_of_somebody_else_is_not_written_to(tmp_path: Path, state: StateFolder) -> None:
    graveyard = buried(tmp_path, letter(1))
    with pytest.raises(DeliveryError, match="give the --coordinator"):
        graveyard.replay(graveyard.letters(), state, f"sqlite:{tmp_path / 'other.sqlite'}")
    assert len(graveyard.letters()) == 1


def test_where_other_nodes_have_replicas_the_log_says_which_epoch_was_the_last(
    tmp_path: Path, state: StateFolder
) -> None:
    graveyard, log = buried(tmp_path, letter(1)), log_of(state)
    log.propose(EpochRecord(6, 0, {"s": {"row": 60}}, {"s": 10}))
    letters = graveyard.letters()
    with pytest.raises(DeliveryError, match="epoch 6 of 't' was begun and not finished"):
        graveyard.replay(letters, state, state.coordinator, spread=True)
    # Delivered by a sibling on another node; here only epoch 5 is known to be.
    log.delivered(6, "2")
    assert graveyard.replay(letters, state, state.coordinator, spread=True) == 1
    assert len(replays_in(7, log.all_postponed())) == 1
    log.propose(EpochRecord(7, 0, {"s": {"row": 60}}, {"s": 0}, last=True))
    with pytest.raises(DeliveryError, match="has come to the end of its input"):
        graveyard.replay(letters, state, state.coordinator, spread=True)
