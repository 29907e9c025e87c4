from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.base import Place, SourceConnector
from penstock.connectors.rows import RowsSource
from penstock.errors import TopologyError
from penstock.topology.schema import parse_schema

from .source_conformance import SourceConformance

SCHEMA = parse_schema("id int, user string")
ROWS = [{"id": 1, "user": "ann"}, [2, "bob"], {"id": 3}, {"id": "four", "user": "cy"}, {"id": 5, "user": "dee"}]


def rows(given: object) -> RowsSource:
    return RowsSource.configure(Place("t", "given", Path()), {"rows": given}, SCHEMA)


class TestConformance(SourceConformance):
    @pytest.fixture
    def source(self) -> SourceConnector:
        return rows(ROWS)


def test_rows_that_do_not_fit_are_malformed_and_the_others_keep_their_order() -> None:
    source = rows(ROWS)
    cut = source.cut(source.start(), 100)
    (part,) = source.slices(source.start(), cut.end, 2)
    (chunk,) = source.read(part)
    assert chunk.rows.column("id").to_pylist() == [1, 2, 3, 5]
    assert [bad.position for bad in chunk.malformed] == ["row 4"]


def test_rows_must_be_a_list() -> None:
    with pytest.raises(TopologyError, match="must be a list"):
        rows("ann")
