from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.lookup_table import LookupTable, Snapshot
from penstock.errors import ConnectorError
from penstock.spark.table_versions import KEPT, TableVersions, rows_of_version, version_file
from penstock.topology.schema import Schema, parse_schema


class Prices(LookupTable):
    """A table that tests change, take away and look at."""

    def __init__(self) -> None:
        self.price: int | None = 1
        self.reads = 0

    def schema(self) -> Schema:
        return parse_schema("price int")

    def mark(self, now: float) -> Any:
        if self.price is None:
            raise ConnectorError("no file prices.csv")
        return self.price

    def snapshot(self, scratch: Path) -> Snapshot:
        self.reads += 1
        return Snapshot(f"v{self.mark(0)}", pa.table({"price": [self.price]}))


def rows(state: Path, version: str) -> list[dict[str, Any]]:
    return [row for batch in rows_of_version(version_file(state, "priced", version)) for row in batch.to_pylist()]


def test_a_table_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    prices = Prices()
    versions = TableVersions(tmp_path, {"priced": prices})
    assert versions.newest({}, 0) == versions.newest({}, 1) == {"priced": "v1"}
    assert prices.reads == 1
    prices.price = 2
    assert versions.newest({"priced": "v1"}, 2) == {"priced": "v2"}
    assert rows(tmp_path, "v1") == [{"price": 1}]
    assert rows(tmp_path, "v2") == [{"price": 2}]


def test_a_table_that_disappears_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = Prices()
    versions = TableVersions(tmp_path, {"priced": prices})
    before = versions.newest({}, 0)
    prices.price = None
    assert versions.newest(before, 1) == before
    assert "operator 'priced' goes on with its table as it was: no file prices.csv" in capsys.readouterr().err


def test_a_table_that_was_never_there_ends_the_run(tmp_path: Path) -> None:
    prices = Prices()
    prices.price = None
    with pytest.raises(ConnectorError, match=r"no file prices\.csv"):
        TableVersions(tmp_path, {"priced": prices}).newest({}, 0)


def test_a_version_that_others_agreed_on_is_made_here_if_the_table_still_is_that(tmp_path: Path) -> None:
    prices = Prices()
    versions = TableVersions(tmp_path, {"priced": prices})
    versions.fetch({"priced": "v1"}, 0)
    assert rows(tmp_path, "v1") == [{"price": 1}]
    with pytest.raises(ConnectorError, match="agreed with another version of its table"):
        versions.fetch({"priced": "v7"}, 1)


def test_the_last_versions_are_kept_and_one_that_returns_counts_as_new(tmp_path: Path) -> None:
    prices = Prices()
    versions = TableVersions(tmp_path, {"priced": prices})
    for price in range(KEPT):
        prices.price = price
        versions.newest({}, 0)
    prices.price = 0
    versions.newest({}, 0)
    prices.price = 1000
    versions.newest({}, 0)
    assert version_file(tmp_path, "priced", "v0").exists()
    assert not version_file(tmp_path, "priced", "v1").exists()
    assert len(list(version_file(tmp_path, "priced", "v0").parent.iterdir())) == KEPT
