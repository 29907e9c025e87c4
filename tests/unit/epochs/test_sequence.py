from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.epochs.record import SEQUENCE_BITS
from penstock.epochs.sequence import Anchor, anchor_of
from penstock.topology.model import MAX_EPOCH_TUPLES, MAX_SOURCES

anchors = st.builds(
    Anchor,
    st.integers(0, 2**30 - 1),
    st.integers(0, MAX_SOURCES - 1),
    st.integers(0, MAX_EPOCH_TUPLES - 1),
    st.booleans(),
)


@given(anchors)
def test_a_sequence_leads_back_to_its_anchor_and_fits_64_bits(anchor: Anchor) -> None:
    assert anchor_of(anchor.sequence) == anchor
    assert 0 <= anchor.sequence < 2**63
    assert anchor.sequence >> SEQUENCE_BITS == anchor.epoch


def test_tuples_are_ordered_by_epoch_and_then_the_replayed_ones_come_last() -> None:
    in_order = [Anchor(1, 0, 0), Anchor(1, 0, 5), Anchor(1, 3, 0), Anchor(1, 0, 0, replayed=True), Anchor(2, 0, 0)]
    sequences = [anchor.sequence for anchor in in_order]
    assert sequences == sorted(sequences)
