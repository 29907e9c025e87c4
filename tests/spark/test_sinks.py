"""Sinks through real files: what is in them, and what they refuse to destroy."""

from __future__ import annotations

import csv
import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import ConnectorError
from penstock.connectors.memory import MemorySink
from penstock.topology.model import Topology

ROWS = '[[1, ann, 0.5], [2, "b,\\"o\\"b", null], [3, cy, 2.0]]'

LINES = ["1,ann,0.5", '2,"b,""o""b",', "3,cy,2.0"]


def writing(project: Any, sinks: str, more: str = "") -> Topology:
    topology: Topology = project.topology(f"""
        topology: write
        sources:
          people: {{rows: {ROWS}, schema: "id int, name string, score double"}}
        sinks:
          {sinks}
        {more}
        """)
    return topology


def test_sinks_of_all_kinds_take_the_same_epochs_side_by_side(project: Any) -> None:
    project.write("replaced.jsonl", "precious\n")
    outcome = project.run(writing(project, """
          json: {from: people, file: deep/er/out.jsonl}
          csv: {from: people, file: out.csv}
          bare: {from: people, file: bare.csv, header: false}
          parquet: {from: people, file: out/}
          memory: {from: people, memory: true}
          replaced: {from: people, file: replaced.jsonl, overwrite: true}"""))
    for name in ("deep/er/out.jsonl", "replaced.jsonl"):
        assert sorted(project.json_lines(name), key=lambda row: row["id"]) == [
            {"id": 1, "name": "ann", "score": 0.5}, {"id": 2, "name": 'b,"o"b', "score": None},
            {"id": 3, "name": "cy", "score": 2.0}]
    header, *lines = (project.folder / "out.csv").read_text().splitlines()
    assert header == "id,name,score"
    assert sorted(lines) == LINES
    assert sorted((project.folder / "bare.csv").read_text().splitlines()) == LINES
    assert len(MemorySink.rows("write", "memory")) == 3
    assert outcome.progress.delivered == dict.fromkeys(("json", "csv", "bare", "parquet", "memory", "replaced"), 3)
    left = sorted(path.name for path in (project.folder / "deep/er").iterdir())
    assert left == [".out.jsonl.epochs", "out.jsonl"], "nothing of the staging is left behind"


def test_lines_hold_what_they_were_given(project: Any) -> None:
    """Blanks and quotes as others read them, null apart from the empty string, and a row where all is null."""
    texts = [" a ", 'say "so", he', "back\\slash", "two\nlines", "a\rb", "  ", "#", "", None]
    rows = json.dumps([[number, text, number % 2 == 0] for number, text in enumerate(texts)] + [[None, None, None]])
    project.run(project.topology(f"""
        topology: texts
        sources:
          all: {{rows: {rows}, schema: "id bigint, text string, even boolean"}}
        operators:
          turned: {{from: all, select: [text, id, text as again, even]}}
          paired: {{from: all, select: [id, even, text, text as again]}}
          texts: {{from: all, select: [text]}}
          ids: {{from: all, select: [id]}}
          numbers: {{from: all, select: [id, even, "cast(id as tinyint) as `with a space`"]}}
        sinks:
          all: {{from: all, file: all.csv, header: false}}
          turned: {{from: turned, file: turned.csv, header: false}}
          paired: {{from: paired, file: paired.csv, header: false}}
          texts: {{from: texts, file: texts.csv, header: false}}
          ids: {{from: ids, file: ids.csv, header: false}}
          numbers: {{from: numbers, file: numbers.jsonl}}
        """))
    read = {name: list(csv.reader((project.folder / f"{name}.csv").open(encoding="utf-8", newline="")))
            for name in ("all", "turned", "paired", "texts", "ids")}
    shown = [text or "" for text in texts] + [""]
    numbers = [*map(str, range(len(texts))), ""]
    evens = [*("true" if number % 2 == 0 else "false" for number in range(len(texts))), ""]
    assert sorted(read["all"]) == sorted(map(list, zip(numbers, shown, evens, strict=True)))
    assert sorted(read["turned"]) == sorted(map(list, zip(shown, numbers, shown, evens, strict=True)))
    assert sorted(read["paired"]) == sorted(map(list, zip(numbers, evens, shown, shown, strict=True)))
    assert sorted(read["texts"]) == sorted([text] for text in shown)
    assert sorted(read["ids"]) == sorted([number] for number in numbers)
    assert sorted(map(str, project.json_lines("numbers.jsonl"))) == sorted(
        str({"id": number, "even": None if number is None else number % 2 == 0, "with a space": number})
        for number in (*range(len(texts)), None))  # fmt: skip
    assert {'7,"",false', "8,,true"} <= set((project.folder / "all.csv").read_text().splitlines())


def test_epochs_are_put_together_or_kept_apart_as_the_sink_has_it(project: Any) -> None:
    """One CSV header however many epochs there are; a Parquet file for every epoch that has rows; the user's own."""
    project.write("own.py", OWN_SINK)
    project.run(writing(project, """
          csv: {from: people, file: out.csv}
          parquet: {from: people, file: out.parquet}
          own: {from: people, custom: "own:Mailbox", folder: mail}""", "epoch: {max_tuples: 2}"))
    header, *lines = (project.folder / "out.csv").read_text().splitlines()
    assert header == "id,name,score"
    assert (sorted(lines[:2]), lines[2:]) == (LINES[:2], LINES[2:])
    files = sorted(path.name for path in (project.folder / "out.parquet").glob("[!.]*"))
    table = pq.read_table(project.folder / "out.parquet")
    assert files == ["epoch-00000001.parquet", "epoch-00000002.parquet"]
    assert sorted(table.column("id").to_pylist()) == [1, 2, 3]
    assert [str(table.schema.field(name).type) for name in ("id", "name", "score")] == ["int32", "string", "double"]
    assert sorted(row["id"] for row in project.json_lines("mail/1.json")[0]) == [1, 2]
    assert project.json_lines("mail/2.json") == [[{"id": 3, "name": "cy", "score": 2.0}]]


def test_a_finished_topology_run_again_starts_its_output_anew(project: Any) -> None:
    topology = writing(project, "out: {from: people, file: out.jsonl}")
    project.run(topology)
    project.run(topology)
    assert len(project.json_lines("out.jsonl")) == 3


def test_a_file_of_somebody_else_is_not_touched(project: Any) -> None:
    project.write("out.jsonl", "precious\n")
    with pytest.raises(ConnectorError, match=r"out\.jsonl exists and was not written by this topology"):
        project.run(writing(project, "out: {from: people, file: out.jsonl}"))
    assert (project.folder / "out.jsonl").read_text() == "precious\n"


def test_a_place_that_cannot_be_written_is_named(project: Any) -> None:
    project.write("taken", "a file\n")
    with pytest.raises(ConnectorError, match="taken"):
        project.run(writing(project, "out: {from: people, file: taken/out.jsonl}"))


OWN_SINK = '''
import json
from pathlib import Path

from penstock.connectors.base import EVERY_GUARANTEE, SinkConnector, Staged
from penstock.errors import ConnectorError

class Mailbox(SinkConnector):
    """One file per epoch, named after it: a second commit writes the same again."""

    keeps = EVERY_GUARANTEE

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def configure(cls, place, options):
        return cls(place.resolve(options["folder"]))

    def open(self, fresh):
        self.folder.mkdir(exist_ok=True)

    def stage(self, batches):
        rows = [row for batch in batches for row in batch.to_pylist()]
        return Staged(len(rows), {"rows": rows})

    def commit(self, epoch, staged):
        rows = [row for part in staged for row in part.detail["rows"]]
        (self.folder / f"{epoch}.json").write_text(json.dumps(rows))

class Full(Mailbox):
    def stage(self, batches):
        raise ConnectorError("the mailbox is full: empty it")
'''


@pytest.mark.parametrize("more", ["", "\n          other: {from: people, memory: true}"])
def test_a_sink_that_cannot_write_ends_the_run_in_its_own_words(project: Any, more: str) -> None:
    project.write("own.py", OWN_SINK)
    with pytest.raises(ConnectorError, match="the mailbox is full: empty it"):
        project.run(writing(project, 'out: {from: people, custom: "own:Full", folder: mail}' + more))
