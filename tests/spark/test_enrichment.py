"""Tuples enriched from a table that changes while the topology runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConnectorError
from penstock.runtime.progress import Snapshot


def replace_file(path: Path, text: str) -> None:
    """As people should: never half written."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)


TOPOLOGY = """
topology: priced
sources:
  orders: {file: orders.csv, follow: true, schema: "id int, item string"}
operators:
  priced: {from: orders, enrich: prices.csv, schema: "item string, price double, note string", by: item, kind: left}
  sure:   {from: orders, enrich: prices.csv, schema: "item string, price double, note string", by: item}
sinks:
  out:  {from: priced, file: out.jsonl}
  sure: {from: sure, file: sure.jsonl}
"""


def test_each_epoch_has_the_table_as_it_was_when_the_epoch_was_cut(project: Any) -> None:
    orders, prices, out = project.folder / "orders.csv", project.folder / "prices.csv", project.folder / "out.jsonl"
    prices.write_text("tea,1,\n,5,nobody has this key\n")
    orders.write_text("1,tea\n")
    run = project.started(project.topology(TOPOLOGY))

    def enter(line: str) -> None:
        with orders.open("a") as file:
            file.write(line)

    def change_prices() -> None:
        replace_file(prices, "tea,2,\ntea,3,two rows of one key\n")
        enter("2,tea\n3,jam\n4,\n")

    def take_prices_away() -> None:
        prices.unlink()
        enter("5,tea\n")

    steps = {1: change_prices, 5: take_prices_away, 7: run.stop}

    def look(_: Snapshot) -> None:
        lines = out.read_text().count("\n") if out.exists() else 0
        if lines in steps:
            steps.pop(lines)()

    run.wait(look)
    rows = sorted((row["id"], row["item"], row["price"] or 0) for row in project.json_lines("out.jsonl"))
    dear = [(2, "tea", 2), (2, "tea", 3)], [(5, "tea", 2), (5, "tea", 3)]
    assert rows == [(1, "tea", 1), *dear[0], (3, "jam", 0), (4, "", 0), *dear[1]]
    found = sorted((row["id"], row["price"]) for row in project.json_lines("sure.jsonl"))
    assert found == [(1, 1), (2, 2), (2, 3), (5, 2), (5, 3)]
    versions = {record.tables["priced"] for record in project.epochs()}
    assert len(versions) == 2
    assert len(list((project.state / "tables" / "priced").iterdir())) == 2


def test_a_table_that_is_not_there_keeps_the_topology_from_starting(project: Any) -> None:
    (project.folder / "orders.csv").write_text("1,tea\n")
    with pytest.raises(ConnectorError, match=r"priced: .*prices\.csv"):
        project.started(project.topology(TOPOLOGY))
