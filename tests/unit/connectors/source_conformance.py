"""What every source must do, whatever it reads; see the contract in `penstock.connectors.base`.

A test module subclasses `SourceConformance` and gives it a fixture `source`: a connector with bounded
input of at least three tuples.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Cut, Malformed, Offset, SourceConnector

ALL = 1_000_000


def rows_between(
    source: SourceConnector, start: Offset, end: Offset, parallelism: int = 1
) -> tuple[list[dict[str, object]], list[Malformed]]:
    """The rows and the malformed records of an epoch, slice by slice."""
    rows: list[dict[str, object]] = []
    malformed: list[Malformed] = []
    for part in source.slices(start, end, parallelism):
        for chunk in source.read(part):
            rows += chunk.rows.to_pylist()
            malformed += chunk.malformed
    return rows, malformed


def cuts(source: SourceConnector, limit: int) -> Iterator[tuple[Offset, Cut]]:
    """Every cut until there is nothing new, each with the offset at which it begins."""
    start = source.start()
    while (cut := source.cut(start, limit)).tuples:
        yield start, cut
        start = cut.end


def everything(source: SourceConnector) -> tuple[list[dict[str, object]], list[Malformed]]:
    """All that is there, in one bite."""
    return rows_between(source, source.start(), source.cut(source.start(), ALL).end)


class SourceConformance:
    """Tests that every source passes."""

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, ALL])
    def test_a_cut_never_exceeds_the_limit(self, source: SourceConnector, limit: int) -> None:
        sizes = [cut.tuples for _, cut in cuts(source, limit)]
        assert sizes
        assert max(sizes) <= limit

    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    def test_bites_of_any_size_give_what_one_big_bite_gives(self, source: SourceConnector, limit: int) -> None:
        rows: list[dict[str, object]] = []
        malformed: list[Malformed] = []
        for start, cut in cuts(source, limit):
            more_rows, more_malformed = rows_between(source, start, cut.end)
            rows += more_rows
            malformed += more_malformed
        assert (rows, malformed) == everything(source)

    @pytest.mark.parametrize("limit", [2, ALL])
    def test_a_cut_counts_the_records_between_its_ends(self, source: SourceConnector, limit: int) -> None:
        for start, cut in cuts(source, limit):
            rows, malformed = rows_between(source, start, cut.end)
            assert len(rows) + len(malformed) == cut.tuples

    @pytest.mark.parametrize("parallelism", [2, 3, 8])
    def test_slices_together_give_the_epoch_in_order(self, source: SourceConnector, parallelism: int) -> None:
        end = source.cut(source.start(), ALL).end
        assert rows_between(source, source.start(), end, parallelism) == everything(source)

    @pytest.mark.parametrize("parallelism", [1, 2, 8])
    def test_slices_number_their_first_tuple_within_the_epoch(self, source: SourceConnector, parallelism: int) -> None:
        cut = source.cut(source.start(), ALL)
        parts = source.slices(source.start(), cut.end, parallelism)
        firsts = [part.first for part in parts]
        assert firsts[0] == 0
        assert len(parts) <= parallelism + 1
        for part, following in zip(parts, [*firsts[1:], cut.tuples], strict=True):
            found = sum(chunk.rows.num_rows + len(chunk.malformed) for chunk in source.read(part))
            assert part.first + found == following

    def test_a_slice_can_be_read_twice(self, source: SourceConnector) -> None:
        assert everything(source) == everything(source)

    def test_slices_are_the_same_every_time(self, source: SourceConnector) -> None:
        end = source.cut(source.start(), ALL).end
        assert source.slices(source.start(), end, 3) == source.slices(source.start(), end, 3)

    def test_nothing_between_equal_offsets(self, source: SourceConnector) -> None:
        end = source.cut(source.start(), 2).end
        assert source.slices(source.start(), source.start(), 4) == []
        assert source.slices(end, end, 4) == []

    def test_it_ends_where_nothing_is_left(self, source: SourceConnector) -> None:
        cut = source.cut(source.start(), ALL)
        assert cut.ended
        assert cut.backlog == 0
        after = source.cut(cut.end, ALL)
        assert (after.end, after.tuples, after.ended) == (cut.end, 0, True)

    def test_a_first_bite_leaves_a_backlog(self, source: SourceConnector) -> None:
        cut = source.cut(source.start(), 1)
        assert not cut.ended

    def test_it_survives_pickling(self, source: SourceConnector) -> None:
        everything(source)
        copy = pickle.loads(pickle.dumps(source))
        assert everything(copy) == everything(source)
        assert copy.schema() == source.schema()

    def test_offsets_survive_json(self, source: SourceConnector) -> None:
        for start, cut in cuts(source, 2):
            assert json.loads(json.dumps(cut.end)) == cut.end
            again = json.loads(json.dumps(start))
            assert rows_between(source, again, json.loads(json.dumps(cut.end))) == rows_between(source, start, cut.end)

    def test_batches_have_the_schema_of_the_source(self, source: SourceConnector) -> None:
        expected: pa.Schema = arrow_schema(source.schema())
        end = source.cut(source.start(), ALL).end
        for part in source.slices(source.start(), end, 1):
            for chunk in source.read(part):
                assert chunk.rows.schema == expected
                chunk.rows.validate(full=True)
