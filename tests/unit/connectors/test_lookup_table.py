from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.lookup_tables import enrichment_from_json, enrichment_to_json, lookup_table
from penstock.errors import ConnectorError
from penstock.topology.enrichment import Enrich
from penstock.topology.schema import parse_schema

SCHEMA = parse_schema("item string, price double")
ROWS = [{"item": "tea", "price": 2.5}, {"item": "jam", "price": 4.0}]


def table(file: str, **more: object) -> Enrich:
    return Enrich("priced", (), table=file, keys=("item",), schema=SCHEMA, **more)  # type: ignore[arg-type]


def rows(enrich: Enrich, folder: Path) -> list[dict[str, object]]:
    passed_on = enrichment_from_json(enrichment_to_json(enrich))
    return lookup_table(passed_on, "t", folder).snapshot(folder / "scratch").rows.to_pylist()


def test_files_of_every_format_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("tea,2.5\njam,4\n")
    (tmp_path / "named.csv").write_text("price,item\n2.5,tea\n4,jam\n")
    (tmp_path / "p.jsonl").write_text('{"item": "tea", "price": 2.5}\n{"item": "jam", "price": 4}\n')
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "p.parquet")
    assert rows(table("p.csv"), tmp_path) == ROWS
    assert rows(table("named.csv", header=True), tmp_path) == ROWS
    assert rows(table("p.jsonl"), tmp_path) == ROWS
    assert rows(table("p.parquet"), tmp_path) == ROWS
    assert not list((tmp_path / "scratch").iterdir())


def test_a_table_of_a_database_is_read_whole_and_known_whatever_its_order(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "p.db") as database:
        database.execute('create table "price list" (item text, price real, note text)')
        database.executemany('insert into "price list" values (?, ?, null)', [("tea", 2.5), ("jam", 4.0)])
    enrich = table("sqlite:///p.db", rows_of="price list", every=60.0)
    first = lookup_table(enrich, "t", tmp_path).snapshot(tmp_path)
    assert sorted(first.rows.to_pylist(), key=str) == sorted(ROWS, key=str)
    with sqlite3.connect(tmp_path / "p.db") as database:
        database.execute('delete from "price list"')
        database.executemany('insert into "price list" values (?, ?, null)', [("jam", 4.0), ("tea", 2.5)])
    assert lookup_table(enrich, "t", tmp_path).snapshot(tmp_path).digest == first.digest


@pytest.mark.parametrize(("enrich", "said"), [
    (table("none.csv"), "none.csv"),
    (table("bad.csv"), r"bad.csv:2: "),
    (table("sqlite:///none.db", rows_of="p"), "no database"),
    (table("sqlite:///empty.db", rows_of="p"), "p"),
])
def test_a_table_that_cannot_be_read_is_told(tmp_path: Path, enrich: Enrich, said: str) -> None:
    (tmp_path / "bad.csv").write_text("tea,2.5\njam,cheap\n")
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(ConnectorError, match=said):
        rows(enrich, tmp_path)


def test_the_mark_changes_with_the_file_and_with_the_time_of_a_database(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("tea,2.5\n")
    file = lookup_table(table("p.csv"), "t", tmp_path)
    before = file.mark(0)
    assert file.mark(1000) == before
    (tmp_path / "p.csv").write_text("tea,2.55\n")
    assert file.mark(0) != before
    database = lookup_table(table("sqlite:///p.db", rows_of="p", every=10.0), "t", tmp_path)
    assert database.mark(101) == database.mark(109) != database.mark(110)
