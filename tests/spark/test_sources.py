"""Sources through real files, all the way to a sink."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import ConnectorError, MalformedRecord, Topology

PEOPLE = [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}, {"id": 3, "name": "cy"}]
SCHEMA = 'schema: "id int, name string"'


def copied(project: Any, source: str, more: str = "") -> tuple[Any, Any]:
    """Copy a source to a JSON-lines file: how the run ended, and the rows."""
    topology = project.topology(f"""
        topology: copy
        sources:
          people: {source}
        sinks:
          out: {{from: people, file: out.jsonl}}
        {more}
        """)
    outcome = project.run(topology)
    assert outcome.ended
    return outcome, project.json_lines("out.jsonl")


def copying(project: Any, sources: dict[str, str], more: str = "") -> Topology:
    """A topology that copies every source to `<its name>.out.jsonl`."""
    written = "\n".join(f"  {name}: {source}" for name, source in sources.items())
    sinks = "\n".join(f"  {name}: {{from: {name}, file: {name}.out.jsonl}}" for name in sources)
    topology: Topology = project.topology(f"topology: copy\n{more}\nsources:\n{written}\nsinks:\n{sinks}\n")
    return topology


# -- files --------------------------------------------------------------------------------------


def test_files_of_every_format_give_their_records(project: Any) -> None:
    project.write("people.csv", '1, ann\n2, "bob"\n\n3, cy\n')
    project.write("headed.csv", "name;age;id\nann;30;1\nbob;40;2\ncy;50;3\n")
    project.write("people.jsonl", """
        {"name": "ann", "id": 1, "age": 30}
        {"id": 2, "name": "bob"}
        {"id": 3, "name": "cy"}
        """)
    pq.write_table(pa.Table.from_pylist(PEOPLE), project.folder / "people.parquet")
    project.write("people/b.csv", "2,bob\n3,cy")
    project.write("people/a.csv", "1,ann\n")
    project.write("people.txt", "ann, 1\n\n  bob ünal\nno newline at the end")
    sources = {
        "csv": f"{{file: people.csv, {SCHEMA}}}",
        "headed": f'{{file: headed.csv, header: true, delimiter: ";", {SCHEMA}}}',
        "json": f"{{file: people.jsonl, {SCHEMA}}}",
        "parquet": "{file: people.parquet}",
        "folder": f"{{file: people, format: csv, {SCHEMA}}}",
        "glob": f'{{file: "people/*.csv", {SCHEMA}}}',
        "text": "{file: people.txt}",
    }
    outcome = project.run(copying(project, sources))
    received = {name: project.json_lines(f"{name}.out.jsonl") for name in sources}
    assert [row["value"] for row in received.pop("text")] == ["ann, 1", "", "  bob ünal", "no newline at the end"]
    assert received == dict.fromkeys(received, PEOPLE)
    assert outcome.progress.malformed == {}


def test_an_empty_file_is_a_run_without_tuples(project: Any) -> None:
    project.write("people.csv", "")
    outcome, rows = copied(project, f"{{file: people.csv, {SCHEMA}}}")
    assert rows == []
    assert outcome.progress.tuples["people"] == 0


def test_a_line_of_ten_megabytes_is_one_tuple(project: Any) -> None:
    long = "x" * 10_000_000
    project.write("people.jsonl", f'{{"id": 1, "name": "{long}"}}\n{{"id": 2, "name": "bob"}}\n')
    rows = copied(project, f"{{file: people.jsonl, {SCHEMA}}}")[1]
    assert [(row["id"], len(row["name"])) for row in rows] == [(1, 10_000_000), (2, 3)]


def test_a_missing_file_is_named_before_anything_runs(project: Any) -> None:
    topology = project.topology(f"""
        topology: copy
        sources: {{people: {{file: "peple/*.csv", {SCHEMA}}}}}
        sinks: {{out: {{from: people, file: out.jsonl}}}}
        """)
    with pytest.raises(ConnectorError, match=r"people.*peple"):
        project.run(topology)


# -- malformed records --------------------------------------------------------------------------

BAD = "1,ann\nno number,x\n2,bob\n4\n3,cy\n"


def test_a_malformed_record_ends_the_run_where_the_source_says_fail(project: Any) -> None:
    project.write("people.csv", BAD)
    with pytest.raises(MalformedRecord) as caught:
        copied(project, f"{{file: people.csv, {SCHEMA}}}")
    message = str(caught.value)
    assert "source 'people'" in message
    assert "people.csv:2" in message
    assert "no number,x" in message
    assert "on_malformed: drop" in message


def test_malformed_records_are_dropped_or_kept_with_their_reason_and_place(project: Any) -> None:
    project.write("people.csv", BAD)
    not_utf_8 = {"utf.csv": b"1,ann\n2,b\xff\n3,cy\n", "utf.txt": b"ann\nb\xff\ncy\n",
                 "utf.jsonl": b'{"id": 1, "name": "ann"}\n{"id": 2, "name": "b\xff"}\n{"id": 3, "name": "cy"}\n'}
    for name, content in not_utf_8.items():
        (project.folder / name).write_bytes(content)
    sources = {
        "dropped": f"{{file: people.csv, {SCHEMA}, on_malformed: drop}}",
        "kept": f"{{file: people.csv, {SCHEMA}, on_malformed: dead-letter}}",
        "csv": f"{{file: utf.csv, {SCHEMA}, on_malformed: dead-letter}}",
        "json": f"{{file: utf.jsonl, {SCHEMA}, on_malformed: dead-letter}}",
        "text": "{file: utf.txt, on_malformed: dead-letter}",
    }
    outcome = project.run(copying(project, sources, "epoch: {max_tuples: 2}"))
    assert outcome.progress.malformed == {"dropped": 2, "kept": 2, "csv": 1, "json": 1, "text": 1}
    assert outcome.progress.tuples["dropped"] == 3
    for name in ("dropped", "kept"):
        assert project.json_lines(f"{name}.out.jsonl") == PEOPLE
    for name in ("csv", "json", "text"):
        rows = project.json_lines(f"{name}.out.jsonl")
        assert [row.get("name", row.get("value")) for row in rows] == ["ann", "cy"]
    letters = project.json_lines("dead-letters/copy.jsonl")
    assert sorted((letter["source"], letter["epoch"], letter["position"]) for letter in letters) == [
        ("csv", 1, "utf.csv:2"), ("json", 1, "utf.jsonl:2"), ("kept", 1, "people.csv:2"), ("kept", 2, "people.csv:4"),
        ("text", 1, "utf.txt:2")]
    assert [letter["raw"] for letter in letters if letter["source"] == "kept"] == ["no number,x", "4"]
    assert all(letter["error"] for letter in letters)
    assert all("UTF-8" in letter["error"] for letter in letters if letter["source"] != "kept")


# -- made-up tuples and the user's own ----------------------------------------------------------


def test_a_generator_gives_as_many_tuples_as_asked_however_epochs_are_cut(project: Any) -> None:
    source = '{generator: {id: sequence, name: "choice(ann, bob)"}, count: 250, seed: 5}'
    whole = copied(project, source)[1]
    in_small_epochs = copied(project, source, "epoch: {max_tuples: 60}")[1]
    assert [row["id"] for row in whole] == [row["id"] for row in in_small_epochs]
    assert len(whole) == 250
    assert whole == in_small_epochs


MADE = "id: sequence, at: 'timestamp(2026-01-01, 250ms)'"


@pytest.mark.parametrize("count", [250, 150_000])
def test_tuples_that_spark_makes_by_itself_are_those_that_python_makes(project: Any, count: int) -> None:
    """A column of random numbers has to be read, so all its neighbours are."""
    native = copied(project, f"{{generator: {{{MADE}}}, count: {count}}}", "epoch: {max_tuples: 100000}")[1]
    read = copied(project, f'{{generator: {{{MADE}, dice: "int(1, 6)"}}, count: {count}}}')[1]
    assert native == [{"id": row["id"], "at": row["at"]} for row in read]
    assert len(native) == count


SPOUT = '''
from penstock import Spout

class People(Spout):
    def initialize(self, count):
        self.count = count

    def emit_from(self, offset, limit):
        for number in range(offset, min(offset + limit, self.count)):
            yield number, f"person {number}"

    def ended(self, offset):
        return offset >= self.count

class Broken(People):
    def emit_from(self, offset, limit):
        raise OSError("no connection")
'''


def test_a_spout_is_read_from_offset_to_offset(project: Any) -> None:
    project.write("own.py", SPOUT)
    rows = copied(project, f'{{spout: "own:People", with: {{count: 25}}, {SCHEMA}}}', "epoch: {max_tuples: 10}")[1]
    assert rows == [{"id": number, "name": f"person {number}"} for number in range(25)]
    assert [record.tuples["people"] for record in project.epochs()][:3] == [10, 10, 5]


def test_a_spout_that_raises_is_named_with_its_line(project: Any) -> None:
    project.write("own.py", SPOUT)
    with pytest.raises(ConnectorError) as caught:
        copied(project, f'{{spout: "own:Broken", with: {{count: 5}}, {SCHEMA}}}')
    assert "own:Broken" in str(caught.value)
    assert "OSError: no connection" in str(caught.value)
    assert "own.py:16" in str(caught.value)


OWN_SOURCE = '''
import pyarrow as pa

from penstock.connectors.base import Chunk, Cut, Slice, SourceConnector
from penstock.topology.schema import parse_schema

class Squares(SourceConnector):
    """The first squares."""

    def __init__(self, count):
        self.count = count

    @classmethod
    def configure(cls, place, options, schema):
        return cls(options["count"])

    def schema(self):
        return parse_schema("number bigint, square bigint")

    def start(self):
        return {"at": 0}

    def cut(self, start, limit):
        end = min(start["at"] + limit, self.count)
        return Cut({"at": end}, end - start["at"], end == self.count)

    def slices(self, start, end, parallelism):
        return [Slice(number - start["at"], {"number": number}) for number in range(start["at"], end["at"])]

    def read(self, part):
        number = part.detail["number"]
        yield Chunk(pa.RecordBatch.from_pydict({"number": [number], "square": [number * number]}))
'''


def test_the_users_own_source_class_works_by_its_name(project: Any) -> None:
    project.write("own.py", OWN_SOURCE)
    rows = copied(project, '{custom: "own:Squares", count: 5}', "epoch: {max_tuples: 3}")[1]
    assert [(row["number"], row["square"]) for row in rows] == [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]


# -- several sources ----------------------------------------------------------------------------


def test_sources_of_different_length_share_their_epochs(project: Any) -> None:
    project.write("long.txt", "".join(f"{number}\n" for number in range(45)))
    project.write("short.txt", "".join(f"{number}\n" for number in range(12)))
    topology = project.topology("""
        topology: two-sources
        epoch: {max_tuples: 10}
        sources:
          long: {file: long.txt}
          short: {file: short.txt}
        operators:
          both: {from: [long, short], union: }
          total: {from: both, count: }
        sinks:
          out: {from: total, file: out.jsonl}
        """)
    outcome = project.run(topology)
    records = project.epochs()
    assert [record.epoch for record in records] == list(range(1, len(records) + 1))
    assert all(set(record.ends) == {"long", "short"} for record in records)
    assert [record.tuples["long"] for record in records][:5] == [10, 10, 10, 10, 5]
    assert [record.tuples["short"] for record in records][:3] == [10, 2, 0]
    assert [record.last for record in records] == [False] * (len(records) - 1) + [True]
    assert project.json_lines("out.jsonl") == [{"count": total} for total in (20, 32, 42, 52, 57)]
    assert outcome.progress.epoch == len(records)
